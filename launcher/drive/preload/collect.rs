//! The files that `--preload` names, with what a host needs to tell whether it has them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rlaunch_control::v1::{FileEntry, FileKind};
use sha2::{Digest, Sha256};

use crate::settings::PreloadPath;

/// More than a job's own files: a home directory named by mistake is not walked to its end.
const FILES_MAX: usize = 100_000;

/// One of the launcher's files.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) from: PathBuf,
    pub(super) entry: FileEntry,
    /// Of the path that it belongs to.
    pub(super) program: Option<usize>,
}

/// All of them, folders before what is in them. The error names the path.
pub(super) fn collect(paths: &[PreloadPath]) -> Result<Vec<Item>, (PathBuf, io::Error)> {
    let mut items = Vec::new();
    for path in paths {
        let at = |error| (path.from.clone(), error);
        // The named path itself is followed; links inside of a folder stay links.
        let meta = path.from.metadata().map_err(at)?;
        let first = items.len();
        add(&path.from, &path.to, &meta, &mut items)?;
        for item in &mut items[first..] {
            item.program = path.program;
        }
    }
    Ok(items)
}

fn add(
    from: &Path,
    to: &Path,
    meta: &Metadata,
    items: &mut Vec<Item>,
) -> Result<(), (PathBuf, io::Error)> {
    let at = |error| (from.to_owned(), error);
    if items.len() >= FILES_MAX {
        let text = format!("more than {FILES_MAX} files; pack them into one");
        return Err(at(io::Error::other(text)));
    }
    let mut entry = FileEntry {
        path: to.as_os_str().as_bytes().to_vec().into(),
        mode: meta.permissions().mode() & 0o777,
        ..FileEntry::default()
    };
    let kind = meta.file_type();
    if kind.is_symlink() {
        entry.kind = FileKind::Link.into();
        let target = std::fs::read_link(from).map_err(at)?;
        entry.target = target.as_os_str().as_bytes().to_vec().into();
    } else if kind.is_file() {
        entry.kind = FileKind::File.into();
        let (bytes, hash) = hash(from).map_err(at)?;
        entry.bytes = bytes;
        entry.sha256 = hash.to_vec().into();
    } else if kind.is_dir() {
        entry.kind = FileKind::Folder.into();
    } else {
        return Err(at(io::Error::other(
            "neither a file nor a folder nor a link",
        )));
    }
    let from = from.to_owned();
    items.push(Item {
        from: from.clone(),
        entry,
        program: None,
    });
    if kind.is_dir() {
        let at = |error| (from.clone(), error);
        let entries = std::fs::read_dir(&from).map_err(at)?;
        let mut names: Vec<_> = entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<_>>()
            .map_err(at)?;
        names.sort();
        for name in names {
            let below = from.join(&name);
            let meta = below
                .symlink_metadata()
                .map_err(|error| (below.clone(), error))?;
            add(&below, &to.join(&name), &meta, items)?;
        }
    }
    Ok(())
}

/// Size and hash of what is read, which may differ from what a look at the file said.
fn hash(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, hash.finalize().into())),
            count => {
                hash.update(&buffer[..count]);
                bytes += count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_and_links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("b")).unwrap();
        std::fs::write(root.join("b/file"), "12").unwrap();
        std::os::unix::fs::symlink("b", root.join("a")).unwrap();
        // Walked for ever, were it followed.
        std::os::unix::fs::symlink("..", root.join("b/up")).unwrap();
        let path = PreloadPath {
            from: root.to_owned(),
            to: "/to".into(),
            program: None,
        };
        let items = collect(&[path]).unwrap();
        let shown: Vec<_> = items
            .iter()
            .map(|item| (String::from_utf8_lossy(&item.entry.path), item.entry.kind()))
            .collect();
        let expected = [
            ("/to".into(), FileKind::Folder),
            ("/to/a".into(), FileKind::Link),
            ("/to/b".into(), FileKind::Folder),
            ("/to/b/file".into(), FileKind::File),
            ("/to/b/up".into(), FileKind::Link),
        ];
        assert_eq!(shown, expected);
        assert_eq!(items[3].entry.bytes, 2);
    }

    #[test]
    fn what_cannot_be_copied_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let path = PreloadPath {
            from: folder.path().to_owned(),
            to: "/to".into(),
            program: None,
        };
        let (at, error) = collect(&[path]).unwrap_err();
        assert_eq!(at, socket);
        assert!(error.to_string().starts_with("neither a file"), "{error}");
    }
}
