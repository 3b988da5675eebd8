//! `cargo x check --deep`: what finds faults that tests only meet by luck.
//!
//! - **Models** of the shared-memory protocols under loom, with the pinned toolchain.
//! - **Garbage** fed to everything that parses bytes of others, for longer than the tests do.
//! - **Miri** (undefined behaviour) on the crates whose unsafe code it can interpret: no system calls,
//!   no vector instructions, so not the memory that processes share.
//! - **ThreadSanitizer** on the transports and the engine, ranks being threads of one process. It sees
//!   no races between processes, and does not understand fences: the models do.
//!
//! Miri and ThreadSanitizer need a nightly toolchain with rust-src; where there is none they are said
//! to have been left out, and why.

use std::process::{Command, Stdio};

use crate::{paths, sh};

const GARBAGE_SECONDS: &str = "20";
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub fn run() -> Result<(), String> {
    let mut report = Report::default();
    report.step("models", models());
    report.step("garbage", garbage());
    match nightly() {
        Ok(()) => {
            for package in ["rlaunch-wire", "rlaunch-device", "rlaunch-schedule"] {
                report.step(&format!("miri {package}"), miri(package));
            }
            for package in ["rlaunch-transport", "rlaunch-runtime"] {
                report.step(&format!("thread sanitizer {package}"), sanitized(package));
            }
        }
        Err(why) => report.left_out("miri and thread sanitizer", &why),
    }
    report.end()
}

fn models() -> Result<(), String> {
    let test = ["test", "--package", "rlaunch-transport", "--features"];
    sh::run(sh::cargo(test).args(["models", "--test", "models"]))
}

fn garbage() -> Result<(), String> {
    let mut test = sh::cargo(["test", "--package", "rlaunch-transport"]);
    test.args(["--test", "garbage", "--", "--nocapture"]);
    sh::run(test.env("RLAUNCH_GARBAGE_SECONDS", GARBAGE_SECONDS))
}

fn miri(package: &str) -> Result<(), String> {
    let mut test = nightly_cargo("miri");
    test.args(["miri", "test", "--package", package, "--lib"]);
    // Tests read files and the clock.
    sh::run(test.env("MIRIFLAGS", "-Zmiri-disable-isolation"))
}

/// The standard library is built with the sanitizer too, or its own synchronisation would look like
/// races.
fn sanitized(package: &str) -> Result<(), String> {
    let mut test = nightly_cargo("thread-sanitizer");
    test.args(["test", "--package", package, "--lib", "--tests"]);
    test.args(["-Zbuild-std", "--target", TARGET]);
    sh::run(test.env("RUSTFLAGS", "-Zsanitizer=thread"))
}

/// `cargo` of the nightly toolchain, with a build folder of its own below ours.
fn nightly_cargo(folder: &str) -> Command {
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo"])
        .current_dir(paths::root())
        .env("CARGO_TARGET_DIR", paths::target().join(folder));
    for set_by_ours in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(set_by_ours);
    }
    command
}

/// Whether there is a nightly toolchain with what is needed; tries to add the components.
fn nightly() -> Result<(), String> {
    let mut add = Command::new("rustup");
    add.args(["component", "add", "--toolchain", "nightly"]);
    add.args(["miri", "rust-src"]).stdout(Stdio::null());
    let hint = "hint: rustup toolchain install nightly --component miri,rust-src";
    sh::run(&mut add).map_err(|error| format!("{error}\n{hint}"))
}

/// What was done and what was not, told at the end too, below all output.
#[derive(Default)]
struct Report {
    lines: Vec<String>,
    failed: bool,
}

impl Report {
    fn step(&mut self, name: &str, result: Result<(), String>) {
        let line = match &result {
            Ok(()) => format!("{name}: passed"),
            Err(error) => format!("{name}: FAILED: {error}"),
        };
        self.failed |= result.is_err();
        eprintln!("x check --deep: {line}");
        self.lines.push(line);
    }

    fn left_out(&mut self, name: &str, why: &str) {
        self.lines.push(format!("{name}: not run: {why}"));
    }

    fn end(self) -> Result<(), String> {
        eprintln!("x check --deep:\n  {}", self.lines.join("\n  "));
        if self.failed {
            return Err("see above".to_owned());
        }
        Ok(())
    }
}
