use std::os::unix::fs::MetadataExt;

use sha2::{Digest, Sha256};

use super::*;

fn entry(path: &Path, data: &[u8]) -> FileEntry {
    FileEntry {
        path: path.as_os_str().as_bytes().to_vec().into(),
        kind: FileKind::File.into(),
        mode: 0o755,
        bytes: data.len() as u64,
        sha256: Sha256::digest(data).to_vec().into(),
        ..FileEntry::default()
    }
}

/// Everything in one chunk or several; the writer's answer.
fn write(entry: FileEntry, chunks: &[&[u8]]) -> Result<u32, String> {
    let (sender, receiver) = mpsc::channel(chunks.len() + 1);
    let first = PreloadChunk {
        entry: Some(entry),
        ..PreloadChunk::default()
    };
    sender.try_send(first).unwrap();
    for (index, data) in chunks.iter().enumerate() {
        let chunk = PreloadChunk {
            data: data.to_vec().into(),
            last: index + 1 == chunks.len(),
            ..PreloadChunk::default()
        };
        sender.try_send(chunk).unwrap();
    }
    drop(sender);
    write_all(receiver)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_file_appears_whole_with_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/data");
    let entry = entry(&path, b"one two");
    assert_eq!(compare::state(&entry), State::Lacking);
    assert_eq!(write(entry.clone(), &[b"one ", b"two"]), Ok(1));
    assert_eq!(std::fs::read(&path).unwrap(), b"one two");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o755);
    assert_eq!(compare::state(&entry), State::Same);
    assert_eq!(names(path.parent().unwrap()), ["data"]);
}

#[test]
fn a_transfer_that_breaks_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let entry = entry(&folder.path().join("data"), b"one two");
    let (sender, receiver) = mpsc::channel(2);
    let half = PreloadChunk {
        entry: Some(entry),
        data: b"one ".to_vec().into(),
        last: false,
    };
    sender.try_send(half).unwrap();
    drop(sender);
    write_all(receiver).unwrap();
    assert_eq!(names(folder.path()).len(), 0);
}

/// Another host of the same file system was faster, with the same content or another.
#[test]
fn what_stands_there_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut entry = entry(&path, b"mine");
    assert_eq!(write(entry.clone(), &[b"mine"]), Ok(1));
    assert_eq!(write(entry.clone(), &[b"mine"]), Ok(1));
    std::fs::write(&path, b"else").unwrap();
    let error = write(entry.clone(), &[b"mine"]).unwrap_err();
    assert!(error.ends_with("data: has other content there"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"else");
    entry.replace = true;
    assert_eq!(write(entry, &[b"mine"]), Ok(1));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    assert_eq!(names(folder.path()), ["data"]);
}

#[test]
fn each_difference_has_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let entry = entry(&path, b"mine");
    let differs = |entry: &FileEntry| match compare::state(entry) {
        State::Differs(how) => how,
        other => panic!("{other:?}"),
    };
    std::fs::write(&path, b"longer").unwrap();
    assert_eq!(differs(&entry), "has 6 bytes there, 4 here");
    std::fs::write(&path, b"mine").unwrap();
    assert_eq!(differs(&entry), "is executable on one side only");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(differs(&entry), "is no file there");
    let mut link = entry.clone();
    link.kind = FileKind::Link.into();
    link.target = b"x".to_vec().into();
    assert_eq!(differs(&link), "is no link there");
    assert_eq!(
        compare::state(&FileEntry {
            kind: FileKind::Folder.into(),
            ..entry
        }),
        State::Same
    );
}
