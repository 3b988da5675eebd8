//! Paths as users write them, and why one can't be opened.

use std::io;
use std::path::{Path, PathBuf};

/// `~/x` below the home directory. A shell does that only to a word of its own, not behind `=`, nor
/// in a file of settings.
pub(crate) fn from_home(path: &Path) -> PathBuf {
    let below = path.strip_prefix("~").ok();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match below.zip(home.filter(|home| home.is_absolute())) {
        Some((below, home)) => home.join(below),
        None => path.to_owned(),
    }
}

/// The error of opening `path`, with what the system's words leave open.
pub(crate) fn why(path: &Path, error: io::Error) -> io::Error {
    let Ok(target) = path.read_link() else {
        return error;
    };
    let text = format!("{error}; it is a link to {}", target.display());
    io::Error::new(error.kind(), text)
}

/// Whether `path` is a file that can be read, or why not; nothing is read.
pub(crate) fn readable(path: &Path) -> io::Result<()> {
    let is_folder = path.metadata().map_err(|error| why(path, error))?.is_dir();
    if is_folder {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    std::fs::File::open(path)
        .map(drop)
        .map_err(|error| why(path, error))
}
