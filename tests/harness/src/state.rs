//! The folder that a cluster has outside of its namespaces, and what is left of it when the owner
//! was killed.
//!
//! A folder is named `OWNER-START-N` (process id, start time, running number), so whether it is
//! still wanted can be told from its name alone, also by another process at the same moment.

use crate::error::{HarnessError, failed};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const BASE: &str = "/run/rlaunch-hosts";

/// Where all clusters of this machine keep their folders.
pub fn base() -> PathBuf {
    std::env::var_os("RLAUNCH_HOSTS_DIR").map_or_else(|| BASE.into(), PathBuf::from)
}

/// Removed when dropped.
pub(crate) struct StateFolder(PathBuf);

impl StateFolder {
    /// A new folder, with one for each host's mounts. Folders of owners that are no more go first.
    pub(crate) fn make(hosts: &[String]) -> Result<Self, HarnessError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let base = base();
        fs::create_dir_all(&base).map_err(failed(format!("make {}", base.display())))?;
        sweep(&base);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let owner = std::process::id();
        let started = start_time(owner).unwrap_or(0);
        let state = Self(base.join(format!("{owner}-{started}-{number}")));
        for host in hosts {
            for folder in ["root", "store"] {
                let path = state.0.join(host).join(folder);
                fs::create_dir_all(&path).map_err(failed(format!("make {}", path.display())))?;
            }
        }
        Ok(state)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Hosts die with their owner's guardian, so that only files can be left.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name
            .to_str()
            .and_then(owner)
            .is_some_and(|(pid, start)| start_time(pid) != Some(start))
        {
            remove(&entry.path());
        }
    }
}

fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.split('-');
    let owner = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next()?.parse::<u32>().ok()?;
    Some(owner)
}

/// Two processes may sweep at once; what is not there any more was removed by the other.
fn remove(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            eprintln!("harness: {} stays behind: {error}", folder.display());
        }
        _ => {}
    }
}

/// In clock ticks since the machine started; with the process id it names a process for good.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; what follows are numbers, this one the 20th.
    stat.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(19)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only folders that follow the naming are ever removed.
    #[test]
    fn owner_of_a_folder() {
        assert_eq!(owner("12-345-0"), Some((12, 345)));
        assert_eq!(owner("hand-default"), None);
        assert_eq!(owner("12-345"), None);
    }

    /// What a killed owner left is removed; what a living one uses stays.
    #[test]
    fn leftovers_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let alive = base
            .path()
            .join(format!("{own}-{}-0", start_time(own).unwrap()));
        let left = base.path().join(format!("{own}-1-0"));
        let other = base.path().join("notes");
        for folder in [&alive, &left, &other] {
            fs::create_dir_all(folder.join("node1")).unwrap();
        }
        sweep(base.path());
        assert!(alive.exists() && other.exists() && !left.exists());
    }
}
