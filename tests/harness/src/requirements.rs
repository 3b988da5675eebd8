//! What this machine must have before hosts can be made on it.

use crate::error::HarnessError;
use std::path::{Path, PathBuf};

/// A program and the Debian package that brings it.
const PROGRAMS: &[(&str, &str)] = &[
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("ip", "iproute2"),
    ("bridge", "iproute2"),
    ("tc", "iproute2"),
    ("nft", "nftables"),
];

/// What a Slurm needs besides.
const SLURM: &[(&str, &str)] = &[
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("sbatch", "slurm-client"),
    ("munged", "munge"),
];

/// Searched beside PATH, which often lacks the sbin folders.
const FOLDERS: &[&str] = &["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin"];

pub(crate) fn check() -> Result<(), HarnessError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(HarnessError::NotRoot);
    }
    check_programs(PROGRAMS)
}

pub(crate) fn check_slurm() -> Result<(), HarnessError> {
    check_programs(SLURM)
}

fn check_programs(wanted: &[(&str, &str)]) -> Result<(), HarnessError> {
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(name, _)| find(name).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs = missing
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ");
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    Err(HarnessError::Missing {
        programs,
        packages: packages.join(" "),
    })
}

/// Why no hosts can be made here, for a test that then says so and stops; none if they can.
pub fn unavailable() -> Option<String> {
    check().err().map(|error| error.to_string())
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let listed = std::env::split_paths(&path);
    let known = FOLDERS.iter().map(PathBuf::from);
    listed
        .chain(known)
        .map(|folder: PathBuf| folder.join(program))
        .find(|file| is_file(file))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file())
}
