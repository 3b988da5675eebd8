//! Debian packages that builds and tests need, installed where they are missing.

use crate::sh;
use std::path::Path;
use std::process::Command;

/// A package, and a file that shows that it is there.
#[derive(Clone, Copy)]
struct Package {
    name: &'static str,
    proof: &'static str,
}

const BUILD: &[Package] = &[
    Package {
        name: "gcc",
        proof: "/usr/bin/cc",
    },
    Package {
        name: "libc6-dev",
        proof: "/usr/include/stdio.h",
    },
    Package {
        name: "pkg-config",
        proof: "/usr/bin/pkg-config",
    },
    Package {
        name: "libssl-dev",
        proof: "/usr/include/openssl/ssl.h",
    },
    Package {
        name: "zlib1g-dev",
        proof: "/usr/include/zlib.h",
    },
];

/// What the hosts of tests/harness are made of.
const HOSTS: &[Package] = &[
    Package {
        name: "openssh-server",
        proof: "/usr/sbin/sshd",
    },
    Package {
        name: "openssh-client",
        proof: "/usr/bin/ssh",
    },
    Package {
        name: "iproute2",
        proof: "/sbin/ip",
    },
    Package {
        name: "nftables",
        proof: "/usr/sbin/nft",
    },
    Package {
        name: "procps",
        proof: "/usr/bin/ps",
    },
    Package {
        name: "binutils",
        proof: "/usr/bin/nm",
    },
];

/// The scheduler that tests run over those hosts.
const SLURM: &[Package] = &[
    Package {
        name: "slurmctld",
        proof: "/usr/sbin/slurmctld",
    },
    Package {
        name: "slurmd",
        proof: "/usr/sbin/slurmd",
    },
    Package {
        name: "slurm-client",
        proof: "/usr/bin/sbatch",
    },
    Package {
        name: "munge",
        proof: "/usr/sbin/munged",
    },
];

pub fn ensure_build() -> Result<(), String> {
    ensure(BUILD)
}

pub fn ensure_hosts() -> Result<(), String> {
    ensure(&[HOSTS, SLURM].concat())
}

fn ensure(packages: &[Package]) -> Result<(), String> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|package| !Path::new(package.proof).exists())
        .map(|package| package.name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install {}", missing.join(" "));
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!(
            "missing here, by their Debian names: {}",
            missing.join(" ")
        ));
    }
    eprintln!("x: installing {}", missing.join(" "));
    // Lists that stand already are tried first: an update costs more than the packages.
    if install(&missing).is_err() {
        sh::run(&mut apt(&["update"]))
            .and_then(|()| install(&missing))
            .map_err(|error| format!("{error}\nhint: run `{by_hand}` as root, then try again"))?;
    }
    Ok(())
}

fn install(packages: &[&str]) -> Result<(), String> {
    let mut words = vec!["install", "-y", "--no-install-recommends"];
    words.extend(packages);
    let _no_daemons = PolicyRcD::forbid();
    sh::run(&mut apt(&words))
}

fn apt(words: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
        .args(words)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(std::process::Stdio::null());
    command
}

/// While it lives, installing openssh-server starts no sshd on this machine.
struct PolicyRcD;

impl PolicyRcD {
    const PATH: &'static str = "/usr/sbin/policy-rc.d";

    fn forbid() -> Option<Self> {
        use std::os::unix::fs::PermissionsExt;
        if Path::new(Self::PATH).exists() {
            return None; // somebody's own policy stands
        }
        std::fs::write(Self::PATH, "#!/bin/sh\nexit 101\n").ok()?;
        std::fs::set_permissions(Self::PATH, std::fs::Permissions::from_mode(0o755)).ok()?;
        Some(Self)
    }
}

impl Drop for PolicyRcD {
    fn drop(&mut self) {
        // Left behind it would only keep daemons from starting at install; not worth a failure.
        let _ = std::fs::remove_file(Self::PATH);
    }
}
