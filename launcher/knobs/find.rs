//! Which files are read: the user's, and the project's.
//!
//! The project's is the first `rlaunch.toml` from the current directory upwards. Below a directory
//! that everybody may write into, such as /tmp, it could be anybody's: one that belongs to another
//! user, or that everybody may change, is left out and that is said. One that is there and can't be
//! read, such as a link to nowhere, is a mistake: it was meant to count. `RLAUNCH_CONFIG` names one
//! file that is read in place of both.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::KnobError;

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// May also choose what runs on this machine.
    pub(super) own: bool,
}

/// The name of both.
pub(super) const NAME: &str = "rlaunch.toml";
/// The variable that names a file.
pub(super) const VARIABLE: &str = "RLAUNCH_CONFIG";

/// From far to near.
pub(super) fn files(notes: &mut Vec<String>) -> Result<Vec<Found>, KnobError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        if named == "none" {
            return Ok(Vec::new());
        }
        let path = PathBuf::from(named);
        return match path.metadata() {
            Ok(_) => Ok(vec![Found { path, own: true }]),
            Err(error) => {
                let error = crate::files::why(&path, error);
                Err(KnobError::Named { path, error })
            }
        };
    }
    let users = users_folder().map(|folder| folder.join("rlaunch").join(NAME));
    let mut found = Vec::new();
    if let Some(path) = users.filter(|path| exists(path)) {
        found.push(Found { path, own: true });
    }
    if let Ok(here) = std::env::current_dir()
        && let Some(project) = project(&here, notes)
        && found.iter().all(|users| users.path != project.path)
    {
        found.push(project);
    }
    Ok(found)
}

fn users_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}

/// The project's file for the directory `here`.
pub(super) fn project(here: &Path, notes: &mut Vec<String>) -> Option<Found> {
    let path = here
        .ancestors()
        .map(|folder| folder.join(NAME))
        .find(|path| exists(path))?;
    // Of a link to nowhere, the link's.
    let metadata = path.metadata().or_else(|_| path.symlink_metadata()).ok()?;
    if let Some(why) = doubtful(&metadata, nix::unistd::geteuid().as_raw()) {
        notes.push(format!(
            "{} is not read: {why}\nhint: {VARIABLE}={0} reads it",
            path.display()
        ));
        return None;
    }
    Some(Found { path, own: false })
}

/// Why a file that just lies there is not to be followed.
pub(super) fn doubtful(metadata: &Metadata, user: u32) -> Option<&'static str> {
    const ROOT: u32 = 0;
    const OTHERS_WRITE: u32 = 0o002;
    if metadata.uid() != user && metadata.uid() != ROOT {
        return Some("it belongs to another user");
    }
    // Of a link the system says so always.
    let others_write = !metadata.is_symlink() && metadata.mode() & OTHERS_WRITE != 0;
    others_write.then_some("everybody may change it")
}

/// What can't be looked at is as if it weren't there: above this directory that is nobody's fault. A
/// link is there, whatever it leads to, and so is a folder: reading it is a mistake that is told.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
