//! Where the ranks start.

use std::path::{Path, PathBuf};

use super::SettingsError;

pub(super) fn directory(wdir: Option<&Path>) -> Result<PathBuf, SettingsError> {
    match wdir {
        Some(path) if path.is_absolute() => Ok(path.to_owned()),
        _ => {
            let here = working_directory().map_err(SettingsError::NoDirectory)?;
            Ok(wdir.map_or_else(|| here.clone(), |path| here.join(path)))
        }
    }
}

/// $PWD where it is this directory: on a cluster the path through a link is the one that the
/// hosts share, the resolved one may be this machine's own.
pub(super) fn working_directory() -> std::io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let real = std::env::current_dir()?;
    let logical = std::env::var_os("PWD")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let identity = |path: &Path| path.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    match logical {
        Some(path) if identity(&path).is_some() && identity(&path) == identity(&real) => Ok(path),
        _ => Ok(real),
    }
}
