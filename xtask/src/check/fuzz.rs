//! libFuzzer on everything that parses bytes of others: `runtime/transport/fuzz`.
//!
//! Built with a nightly toolchain, coverage and AddressSanitizer; each target runs for a moment, from
//! what the tests know and what earlier runs found (`target/fuzz/TARGET`).

use super::deep::nightly_cargo;
use crate::{paths, sh};
use std::process::Command;

pub const TARGETS: [&str; 6] = [
    "descriptor",
    "header",
    "frame",
    "message",
    "acceptor",
    "connector",
];
const SECONDS: u32 = 20;
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// What cargo-fuzz sets too.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Cdebug-assertions --cfg fuzzing";

pub fn build() -> Result<(), String> {
    let mut build = nightly_cargo("fuzz");
    build.current_dir(paths::root().join("runtime/transport/fuzz"));
    build.args(["build", "--release", "--quiet", "--target", TRIPLE]);
    sh::run(build.env("RUSTFLAGS", FLAGS))
}

pub fn run(target: &str) -> Result<(), String> {
    let folder = paths::target().join("fuzz");
    let inputs = folder.join("inputs").join(target);
    std::fs::create_dir_all(&inputs).map_err(|error| format!("{}: {error}", inputs.display()))?;
    let program = folder.join(TRIPLE).join("release/rlaunch-transport-fuzz");
    let mut fuzz = Command::new(program);
    fuzz.env("RLAUNCH_FUZZ_TARGET", target)
        .env("RLAUNCH_FUZZ_SEEDS", &inputs)
        .arg(format!("-max_total_time={SECONDS}"))
        .arg(format!("-artifact_prefix={}/{target}-", folder.display()))
        .args(["-max_len=4096", "-timeout=5", "-verbosity=0"])
        .arg(&inputs);
    sh::run(&mut fuzz).map_err(|error| {
        format!(
            "{error}\nhint: the input is in {}; its bytes as a line of hexadecimal digits in \
             runtime/transport/fuzz/corpus/{target}.hex are held by the tests from then on",
            folder.display()
        )
    })
}
