//! A launcher's file against what stands here under its path.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rlaunch_control::v1::{CompareReply, CompareRequest, Differing, FileEntry, FileKind};
use sha2::{Digest, Sha256};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Same,
    Lacking,
    /// In words that go on from the path.
    Differs(String),
}

pub(super) fn all(request: &CompareRequest) -> CompareReply {
    let mut reply = CompareReply::default();
    for (number, entry) in (0..).zip(&request.entries) {
        match state(entry) {
            State::Same => {}
            State::Lacking => reply.lacking.push(number),
            State::Differs(how) => reply.differing.push(Differing { entry: number, how }),
        }
    }
    reply
}

pub(super) fn state(entry: &FileEntry) -> State {
    let path = Path::new(OsStr::from_bytes(&entry.path));
    let found = match entry.kind() {
        FileKind::Link => path.symlink_metadata(),
        // A link to the same content will do.
        FileKind::File | FileKind::Folder => path.metadata(),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return State::Lacking,
        Err(error) => return State::Differs(format!("cannot be looked at there: {error}")),
    };
    match entry.kind() {
        FileKind::Folder if found.is_dir() => State::Same,
        FileKind::Folder => State::Differs("is no folder there".to_owned()),
        FileKind::Link => link(entry, path, &found),
        FileKind::File => file(entry, path, &found),
    }
}

fn link(entry: &FileEntry, path: &Path, found: &Metadata) -> State {
    if !found.is_symlink() {
        return State::Differs("is no link there".to_owned());
    }
    match std::fs::read_link(path) {
        Ok(target) if target.as_os_str().as_bytes() == entry.target => State::Same,
        Ok(target) => State::Differs(format!("leads to {} there", target.display())),
        Err(error) => State::Differs(format!("cannot be read there: {error}")),
    }
}

fn file(entry: &FileEntry, path: &Path, found: &Metadata) -> State {
    if !found.is_file() {
        return State::Differs("is no file there".to_owned());
    }
    if found.len() != entry.bytes {
        let (there, here) = (found.len(), entry.bytes);
        return State::Differs(format!("has {there} bytes there, {here} here"));
    }
    let runs = |mode: u32| mode & 0o100 != 0;
    if runs(found.permissions().mode()) != runs(entry.mode) {
        return State::Differs("is executable on one side only".to_owned());
    }
    match hash(path) {
        Ok(hash) if hash == entry.sha256.as_ref() => State::Same,
        Ok(_) => State::Differs("has other content there".to_owned()),
        Err(error) => State::Differs(format!("cannot be read there: {error}")),
    }
}

fn hash(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}
