//! libFuzzer on everything that parses bytes of others: the `fuzz` folders.
//!
//! Built with a nightly toolchain, coverage and AddressSanitizer; each target runs for a moment, from
//! what the tests know and what earlier runs found (`target/fuzz/TARGET`).

use super::deep::nightly_cargo;
use crate::{paths, sh};
use std::process::Command;

/// A crate of targets, and how its corpus holds an input.
pub struct Fuzz {
    folder: &'static str,
    program: &'static str,
    pub targets: &'static [&'static str],
    how_to_keep: &'static str,
}

pub const ALL: [Fuzz; 3] = [
    Fuzz {
        folder: "runtime/transport/fuzz",
        program: "rlaunch-transport-fuzz",
        targets: &[
            "descriptor",
            "header",
            "frame",
            "message",
            "acceptor",
            "connector",
        ],
        how_to_keep: "its bytes as a line of hexadecimal digits in corpus/TARGET.hex",
    },
    Fuzz {
        folder: "launcher/remote/fuzz",
        program: "rlaunch-remote-fuzz",
        targets: &["ssh_config", "known_hosts", "key_file", "greeting"],
        how_to_keep: "a copy of it in corpus/TARGET",
    },
    Fuzz {
        folder: "launcher/plan/fuzz",
        program: "rlaunch-plan-fuzz",
        targets: &[
            "hostfile",
            "hosts_toml",
            "host_list",
            "nodelist",
            "environment",
        ],
        how_to_keep: "a copy of it in corpus/TARGET",
    },
];
const SECONDS: u32 = 20;
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// What cargo-fuzz sets too.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Cdebug-assertions --cfg fuzzing";

pub fn build() -> Result<(), String> {
    ALL.iter().try_for_each(|fuzz| {
        let mut build = nightly_cargo("fuzz");
        build.current_dir(paths::root().join(fuzz.folder));
        build.args(["build", "--release", "--quiet", "--target", TRIPLE]);
        sh::run(build.env("RUSTFLAGS", FLAGS))
    })
}

impl Fuzz {
    pub fn run(&self, target: &str) -> Result<(), String> {
        let folder = paths::target().join("fuzz");
        let inputs = folder.join("inputs").join(target);
        std::fs::create_dir_all(&inputs)
            .map_err(|error| format!("{}: {error}", inputs.display()))?;
        let program = folder.join(TRIPLE).join("release").join(self.program);
        let mut fuzz = Command::new(program);
        fuzz.env("RLAUNCH_FUZZ_TARGET", target)
            .env("RLAUNCH_FUZZ_SEEDS", &inputs)
            .arg(format!("-max_total_time={SECONDS}"))
            .arg(format!("-artifact_prefix={}/{target}-", folder.display()))
            .args(["-max_len=4096", "-timeout=5", "-verbosity=0"])
            .arg(&inputs);
        sh::run(&mut fuzz).map_err(|error| {
            format!(
                "{error}\nhint: the input is in {}; {} of {} is held by the tests from then on",
                folder.display(),
                self.how_to_keep.replace("TARGET", target),
                self.folder
            )
        })
    }
}
