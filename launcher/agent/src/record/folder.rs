//! Where records stand: `/tmp/rlaunch-UID/jobs`, else `/dev/shm/rlaunch-UID/jobs`.
//!
//! Never in the home directory, which hosts may share: a number means a process on one host only.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use nix::unistd::getuid;

use super::parse::{Record, parse};
use crate::cache::{is_ours, make};

/// A line for each of the ranks that one host may have, and the head.
const RECORD_MAX_BYTES: u64 = 8 << 20;
/// Records looked at; what is beyond are years of crashes.
const RECORDS_MAX: usize = 10_000;

/// The folder, made if need be; with why not, for each place.
pub(super) fn prepare() -> io::Result<PathBuf> {
    let mut reasons = Vec::new();
    for [root, jobs] in folders() {
        match make(&root).and_then(|()| make(&jobs)) {
            Ok(()) => return Ok(jobs),
            Err(error) => reasons.push(format!("{}: {error}", root.display())),
        }
    }
    Err(io::Error::other(reasons.join("; ")))
}

/// All records of this user, and those files that can't be read, with why.
pub(crate) fn all() -> (Vec<(PathBuf, Record)>, Vec<String>) {
    let (mut records, mut notes) = (Vec::new(), Vec::new());
    for [root, jobs] in folders() {
        if !jobs.exists() {
            continue;
        }
        if let Err(error) = is_ours(&root).and_then(|()| is_ours(&jobs)) {
            notes.push(format!("{}: {error}; not looked at", jobs.display()));
            continue;
        }
        let entries = std::fs::read_dir(&jobs).into_iter().flatten().flatten();
        for entry in entries.take(RECORDS_MAX) {
            let path = entry.path();
            match read(&path) {
                Ok(Some(record)) => records.push((path, record)),
                // Its job is just beginning, or has just ended.
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => notes.push(format!("{}: {error}; not looked at", path.display())),
            }
        }
    }
    records.sort_by_key(|(_, record)| record.started_us);
    (records, notes)
}

fn read(path: &std::path::Path) -> io::Result<Option<Record>> {
    let mut options = File::options();
    options.read(true).custom_flags(nix::libc::O_NOFOLLOW);
    let mut text = Vec::new();
    let file = options.open(path)?;
    file.take(RECORD_MAX_BYTES).read_to_end(&mut text)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn folders() -> [[PathBuf; 2]; 2] {
    ["/tmp", "/dev/shm"].map(|place| {
        let root = PathBuf::from(format!("{place}/rlaunch-{}", getuid()));
        let jobs = root.join("jobs");
        [root, jobs]
    })
}
