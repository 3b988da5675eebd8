//! `--preload`: what is brought to the hosts, and where it stands there.

use std::path::{Component, Path, PathBuf};

use super::directory::working_directory;
use super::{ProgramSettings, SettingsError};
use crate::cli::Options;

#[derive(Debug, Default)]
pub struct Preload {
    pub paths: Vec<PreloadPath>,
    /// `--preload-replace`
    pub replace: bool,
}

/// Both absolute; `to` as it is where the hostfile gives the host no directory of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreloadPath {
    pub from: PathBuf,
    pub to: PathBuf,
    /// Whose directory `to` is below; none: it was typed as an absolute path.
    pub program: Option<usize>,
}

/// Of all programs. A relative path is read from here and stands in its program's directory there.
pub(super) fn preload(
    options: &[&Options],
    programs: &[ProgramSettings],
) -> Result<Preload, SettingsError> {
    let mut found = Preload {
        paths: Vec::new(),
        replace: options[0].program.preload_replace,
    };
    if options
        .iter()
        .all(|options| options.program.preload.is_empty())
    {
        return Ok(found);
    }
    let here = working_directory().map_err(SettingsError::NoDirectory)?;
    for (number, (options, program)) in options.iter().zip(programs).enumerate() {
        for path in &options.program.preload {
            let from = clean(&here.join(path));
            from.metadata().map_err(|error| SettingsError::Preload {
                path: path.clone(),
                error,
            })?;
            let to = clean(&program.directory.join(path));
            let program = path.is_relative().then_some(number);
            let path = PreloadPath { from, to, program };
            if !found.paths.contains(&path) {
                found.paths.push(path);
            }
        }
    }
    Ok(found)
}

/// Without `.`; `..` stays, for behind a link it is not the folder above.
fn clean(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}
