//! `--preload` on this host: which of the launcher's files are lacking or differ, and their writing.
//!
//! A file appears whole or not at all: it is written beside its place and renamed. One that came to
//! stand there meanwhile is not replaced, unless the launcher said so: hosts may share the folder,
//! and then the same file is written by several at once.

mod compare;

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use rlaunch_control::v1::{
    CompareReply, CompareRequest, FileEntry, FileKind, PreloadChunk, PreloadReply,
};
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use compare::State;

/// Chunks between the stream and the disk.
const QUEUE_MAX: usize = 4;

pub(crate) async fn compare(request: CompareRequest) -> Result<CompareReply, Status> {
    let compared = tokio::task::spawn_blocking(move || compare::all(&request));
    compared
        .await
        .map_err(|error| Status::internal(error.to_string()))
}

/// Writes what the stream brings.
pub(crate) async fn receive(mut chunks: Streaming<PreloadChunk>) -> Result<PreloadReply, Status> {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let writing = tokio::task::spawn_blocking(move || write_all(receiver));
    while let Some(chunk) = chunks.message().await? {
        if sender.send(chunk).await.is_err() {
            break; // the writer has ended, with an error
        }
    }
    drop(sender);
    match writing.await {
        Ok(Ok(files)) => Ok(PreloadReply { files }),
        Ok(Err(error)) => Err(Status::internal(error)),
        Err(error) => Err(Status::internal(error.to_string())),
    }
}

fn write_all(mut chunks: mpsc::Receiver<PreloadChunk>) -> Result<u32, String> {
    let mut open: Option<Writing> = None;
    let mut files = 0;
    while let Some(chunk) = chunks.blocking_recv() {
        if let Some(entry) = chunk.entry {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(&entry.path));
            let failed = |error: io::Error| format!("{}: {error}", path.display());
            if !path.is_absolute() {
                return Err(format!("{}: not an absolute path", path.display()));
            }
            open = begin(entry, &path).map_err(failed)?;
            files += 1;
        }
        let Some(writing) = &mut open else {
            continue;
        };
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        writing
            .file
            .write_all(&chunk.data)
            .map_err(|error| failed(&writing.path, error))?;
        if chunk.last
            && let Some(writing) = open.take()
        {
            let path = writing.path.clone();
            writing.finish().map_err(|error| failed(&path, error))?;
        }
    }
    Ok(files)
}

/// A folder or link is made at once; a file's bytes are still to come.
fn begin(entry: FileEntry, path: &Path) -> io::Result<Option<Writing>> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match entry.kind() {
        FileKind::Folder => {
            match std::fs::create_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    std::fs::set_permissions(path, Permissions::from_mode(entry.mode))?;
                }
            }
            Ok(None)
        }
        FileKind::Link => {
            let target = std::ffi::OsStr::from_bytes(&entry.target);
            match std::os::unix::fs::symlink(target, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    agreed(&entry).map(|()| None)
                }
                made => made.map(|()| None),
            }
        }
        FileKind::File => Writing::new(entry, path).map(Some),
    }
}

/// A file under way; removed if it is dropped before its end.
struct Writing {
    entry: FileEntry,
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    finished: bool,
}

impl Writing {
    fn new(entry: FileEntry, path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(
            name.as_bytes()
                .get(..64)
                .map_or(name, std::ffi::OsStr::from_bytes),
        );
        hidden.push(format!(".rlaunch-{}", crate::random::hex::<8>()));
        let temporary = path.with_file_name(hidden);
        let mut options = File::options();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        Ok(Self {
            entry,
            path: path.to_owned(),
            temporary,
            file,
            finished: false,
        })
    }

    fn finish(mut self) -> io::Result<()> {
        self.file
            .set_permissions(Permissions::from_mode(self.entry.mode))?;
        if self.entry.replace {
            std::fs::rename(&self.temporary, &self.path)?;
        } else {
            match rename_new(&self.temporary, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return agreed(&self.entry);
                }
                renamed => renamed?,
            }
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.finished {
            std::fs::remove_file(&self.temporary).ok();
        }
    }
}

/// What came to stand there meanwhile has to be the same.
fn agreed(entry: &FileEntry) -> io::Result<()> {
    match compare::state(entry) {
        State::Same => Ok(()),
        State::Lacking => Err(io::ErrorKind::NotFound.into()),
        State::Differs(how) => Err(io::Error::other(how)),
    }
}

/// Fails if there is something of the new name.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // A file system that cannot: a link with the new name is as good where there are links.
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        renamed => renamed.map_err(io::Error::from),
    }
}

#[cfg(test)]
#[path = "preload/tests.rs"]
mod tests;
