//! Who holds this machine's GPUs: what is open in `/proc/PID/fd`. A worker that outlived its job keeps a
//! GPU's memory, and the next job fails for want of it with words that don't say why.
//!
//! Other users' processes can't be looked into, unless by root, and are absent from the answer.

use std::fs;
use std::path::{Path, PathBuf};

use rlaunch_control::v1::DeviceHolder;

use crate::processes;

/// Told at most: with one GPU a holder, all of the largest machines.
const HOLDERS_MAX: usize = 16;
/// The kernel's names of those that look after GPUs and use none of their memory. For the telling only.
const CARETAKERS: [&str; 6] = [
    "nvidia-persiste",
    "nvidia-smi",
    "nv-hostengine",
    "dcgm-exporter",
    "nvidia-cuda-mps",
    "Xorg",
];

/// The GPUs below a folder, which is `/dev` but in tests.
pub(crate) struct Gpus(Vec<PathBuf>);

impl Gpus {
    pub(crate) fn of_this_machine() -> Self {
        Self::below(Path::new("/dev"))
    }

    fn below(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_gpu = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("nvidia"));
            number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
        };
        Self(entries.filter(is_gpu).map(|entry| entry.path()).collect())
    }

    /// Those that this process has open, in order.
    pub(crate) fn held_by(&self, pid: i32) -> Vec<String> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let descriptors = descriptors.into_iter().flatten().flatten();
        let mut held: Vec<PathBuf> = descriptors
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter(|path| self.0.contains(path))
            .collect();
        held.sort_unstable();
        held.dedup();
        held.iter().map(|path| path.display().to_string()).collect()
    }

    /// Every process that holds one, but for those below `root` and those that look after GPUs.
    pub(crate) fn holders(&self, root: i32) -> Vec<DeviceHolder> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let ours = processes::descendants(root);
        let others = processes::all().into_iter().filter(|process| {
            let is_ours = ours.iter().any(|own| own.identity() == process.identity());
            !is_ours && process.pid != root && !CARETAKERS.contains(&process.name.as_str())
        });
        let held = others.map(|process| (self.held_by(process.pid), process));
        held.filter(|(devices, _)| !devices.is_empty())
            .take(HOLDERS_MAX)
            .map(|(devices, process)| DeviceHolder {
                pid: process.pid.unsigned_abs(),
                command: process.command(),
                devices,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::{Child, Command};

    use super::*;

    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn holds(path: &Path) -> Sleeper {
        let mut sleep = Command::new("sleep");
        let file = File::open(path).unwrap();
        Sleeper(sleep.arg("1000").stdin(file).spawn().unwrap())
    }

    /// A file stands in for a GPU.
    #[test]
    fn holders_are_found_and_our_own_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"] {
            File::create(folder.path().join(name)).unwrap();
        }
        let gpus = Gpus::below(folder.path());
        assert_eq!(gpus.0.len(), 2);
        let one = holds(&folder.path().join("nvidia1"));
        let other = holds(&folder.path().join("nvidiactl"));
        let found = |root: i32| {
            let holders = gpus.holders(root).into_iter();
            let holders: Vec<_> = holders.map(|it| (it.pid, it.command, it.devices)).collect();
            holders
        };
        let path = folder.path().join("nvidia1").display().to_string();
        let expected = (one.0.id(), "sleep 1000".to_owned(), vec![path]);
        assert_eq!(found(other.0.id().cast_signed()), [expected]);
        let own = nix::unistd::getpid().as_raw();
        assert_eq!(found(own), [], "below the job's own agent");
    }
}
