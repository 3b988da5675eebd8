//! Where the bundle of files (Python module, librlaunch.so) stands on this host.
//!
//! `~/.cache/rlaunch/bundle/ID`, else the same in `/tmp/rlaunch-UID` or `/var/tmp/rlaunch-UID`. A folder counts only if it is
//! ours and nobody else can write it: what stands there is code that ranks load.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{User, getuid};

/// The most that an id may have; it becomes a folder's name.
const ID_MAX_CHARS: usize = 128;

/// Letters, digits, dots, dashes; not hidden and no way out of the folder.
pub(crate) fn is_id(id: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    !id.is_empty() && id.len() <= ID_MAX_CHARS && !id.starts_with('.') && id.bytes().all(allowed)
}

/// Whether this very executable, if it stands in a cache as `…/BUILD/rlaunch`, stands where nobody
/// else can exchange it. The host's shell has seen that all of it is ours, and can't tell more
/// without help.
pub(crate) fn check_own_place(build: &str) -> io::Result<()> {
    let executable = std::fs::read_link("/proc/self/exe")?;
    let cached = executable.parent().and_then(Path::file_name);
    if cached.is_none_or(|name| name != build) {
        return Ok(());
    }
    for path in executable.ancestors().take(3) {
        let data = path.metadata()?;
        if data.uid() != getuid().as_raw() || data.mode() & 0o022 != 0 {
            let path = path.display();
            let reason = format!("{path}: others may write there, or it is theirs");
            return Err(io::Error::other(reason));
        }
    }
    Ok(())
}

/// The installed bundle of that id.
pub(crate) fn find(id: &str) -> Option<PathBuf> {
    if !is_id(id) {
        return None;
    }
    roots()
        .into_iter()
        .map(|root| root.join("bundle").join(id))
        .find(|path| {
            // Every folder down from the root's own is ours, so that none can be exchanged.
            path.ancestors()
                .take(3)
                .all(|folder| is_ours(folder).is_ok())
        })
}

/// The folder that bundles are installed in, made if need be; with why not, for each place.
pub(crate) fn prepare() -> io::Result<PathBuf> {
    let mut reasons = Vec::new();
    for root in roots() {
        let folder = root.join("bundle");
        match make(&root)
            .and_then(|()| make(&folder))
            .and_then(|()| is_executable_here(&folder))
        {
            Ok(()) => return Ok(folder),
            Err(error) => reasons.push(format!("{}: {error}", root.display())),
        }
    }
    Err(io::Error::other(reasons.join("; ")))
}

pub(crate) fn home() -> Option<PathBuf> {
    let named = std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute());
    named.or_else(|| Some(User::from_uid(getuid()).ok()??.dir))
}

fn roots() -> Vec<PathBuf> {
    let cache = home().map(|home| home.join(".cache/rlaunch"));
    let own = format!("rlaunch-{}", getuid());
    let outside = ["/tmp", "/var/tmp"].map(|folder| Path::new(folder).join(&own));
    cache.into_iter().chain(outside).collect()
}

/// Makes the folder, for us alone, or checks the one that is there.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        // ~/.cache itself is the user's and as open as they like.
        std::fs::create_dir_all(parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_ours(folder),
        Err(error) => Err(error),
    }
}

pub(crate) fn is_ours(folder: &Path) -> io::Result<()> {
    let found = folder.symlink_metadata()?;
    if !found.is_dir() {
        return Err(io::Error::other("is no folder"));
    }
    if found.uid() != getuid().as_raw() {
        return Err(io::Error::other(format!("belongs to user {}", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        return Err(io::Error::other("can be written by others"));
    }
    Ok(())
}

/// A library cannot be loaded from a file system that is mounted noexec.
fn is_executable_here(folder: &Path) -> io::Result<()> {
    if statvfs(folder)?.flags().contains(FsFlags::ST_NOEXEC) {
        return Err(io::Error::other("is mounted noexec"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_id_is_no_path() {
        for good in ["a", "0.1.0-abc_def", "A+b"] {
            assert!(is_id(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            ".x",
            "a/b",
            "a b",
            "a\0",
            "ä",
            &"x".repeat(129),
        ] {
            assert!(!is_id(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_ours() {
        let folder = std::env::temp_dir().join(format!("rlaunch-cache-{}", std::process::id()));
        make(&folder).unwrap();
        make(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o770)).unwrap();
        assert!(
            is_ours(&folder)
                .unwrap_err()
                .to_string()
                .contains("written by others")
        );
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(is_ours(&link).is_err(), "a link can be turned elsewhere");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
