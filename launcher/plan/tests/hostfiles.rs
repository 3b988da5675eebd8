//! The hostfiles of the repository: the good ones parse, each bad one gives exactly the message in
//! the `.expected` beside it.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads files; the crate does not"
)]

use std::fs;
use std::path::{Path, PathBuf};

use rlaunch_plan::hostfile;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../hostfiles")
        .join(name)
}

/// Files of a folder in order of their names.
fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.is_file() && wanted(path.file_name().unwrap().to_str().unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn good_hostfiles_parse() {
    let files = files(&folder(""), |name| name.starts_with("hosts."));
    assert!(files.len() >= 5, "{files:?}");
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let hostfile = hostfile::parse(name, &fs::read(&path).unwrap());
        assert!(hostfile.is_ok(), "{hostfile:?}");
    }
}

#[test]
fn bad_hostfiles_give_their_message() {
    let files = files(&folder("bad"), |name| name.ends_with(".txt"));
    assert!(files.len() >= 30, "only {}", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let message = match hostfile::parse(name, &fs::read(&path).unwrap()) {
            Ok(hostfile) => format!("parsed: {hostfile:?}"),
            Err(error) => error.to_string(),
        };
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
        if message != expected.trim_end() {
            wrong.push(format!("{message}\n  instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
