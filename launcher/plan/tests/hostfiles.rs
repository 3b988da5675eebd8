//! The hostfiles of the repository: what the good ones mean stands in `meaning.txt`, each bad one
//! gives exactly the message in the `.expected` beside it.
//!
//! `RLAUNCH_TEST_UPDATE=1` writes both anew; the diff is to be read.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads files; the crate does not"
)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use rlaunch_plan::hostfile::{self, HostEntry};

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

/// Compares, or writes.
fn golden(path: &Path, found: &str) -> Result<(), String> {
    if std::env::var_os("RLAUNCH_TEST_UPDATE").is_some() {
        fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{}:\n{found}instead of\n{expected}",
        path.display()
    ))
}

#[test]
fn good_hostfiles_mean_what_they_should() {
    let files = files(&folder(""), |name| name.starts_with("hosts."));
    assert!(files.len() >= 13, "{files:?}");
    let mut found = "What each file means: host, slots, the most slots, and the rest.\n".to_owned();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let hostfile = hostfile::parse(name, &fs::read(&path).unwrap());
        let hostfile = hostfile.unwrap_or_else(|error| panic!("{error}"));
        writeln!(found, "\n{name}").unwrap();
        hostfile
            .hosts
            .iter()
            .for_each(|host| writeln!(found, "  {}", shown(host)).unwrap());
    }
    golden(&folder("meaning.txt"), &found).unwrap();
}

fn shown(entry: &HostEntry) -> String {
    let number = |number: Option<u32>| number.map_or("?".to_owned(), |number| number.to_string());
    let mut text = format!("{} slots={}", entry.host, number(entry.slots));
    if entry.max_slots.is_some() {
        write!(text, " max_slots={}", number(entry.max_slots)).unwrap();
    }
    let details = serde_json::to_string(&entry.details).unwrap();
    if details != "{}" {
        write!(text, " {details}").unwrap();
    }
    text
}

#[test]
fn bad_hostfiles_give_their_message() {
    let files = files(&folder("bad"), |name| !name.ends_with(".expected"));
    assert!(files.len() >= 45, "only {}", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let message = match hostfile::parse(name, &fs::read(&path).unwrap()) {
            Ok(hostfile) => format!("parsed: {hostfile:?}"),
            Err(error) => error.to_string(),
        };
        assert!(!message.starts_with("parsed: "), "{name} {message}");
        wrong.extend(golden(&path.with_extension("expected"), &format!("{message}\n")).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
