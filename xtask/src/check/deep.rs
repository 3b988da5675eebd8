//! `cargo x check --deep`: what finds faults that tests only meet by luck.
//!
//! - **Models** of the shared-memory protocols under loom, with the pinned toolchain.
//! - **Algorithms** at 1,000 and 1,024 ranks, all of them: checker and simulator.
//! - **Garbage** fed to everything that parses bytes of others, for longer than the tests do; and a
//!   fuzzer that looks for inputs which take new ways.
//! - **Exit codes**: each way in which a job can end, 200 times, also with kill -9 of each part.
//! - **Miri** (undefined behaviour) on the crates whose unsafe code it can interpret: no system calls,
//!   no vector instructions, so not the memory that processes share.
//! - **ThreadSanitizer** on the transports and the engine, ranks being threads of one process. It sees
//!   no races between processes, and does not understand fences: the models do.
//!
//! Miri, ThreadSanitizer and the fuzzer need a nightly toolchain with rust-src; where there is none they
//! are said to have been left out, and why. A word after `--deep` runs only the parts whose name has it.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::fuzz;
use crate::{paths, sh};

const GARBAGE_SECONDS: &str = "20";
/// Of each case.
const EXIT_CODE_RUNS: &str = "200";
/// A sanitizer makes everything ten times slower.
const PATIENCE: &str = "50";
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub fn run(only: Option<&str>) -> Result<(), String> {
    let mut report = Report::new(only);
    report.part("models", models);
    report.part("algorithms, checked", || ignored("rlaunch-schedule"));
    report.part("algorithms, simulated", || ignored("rlaunch-sim"));
    report.part("garbage", garbage);
    report.part("exit codes", exit_codes);
    match nightly() {
        Ok(()) => {
            report.part("fuzz, build", fuzz::build);
            for fuzz in &fuzz::ALL {
                for target in fuzz.targets {
                    report.part(&format!("fuzz {target}"), || fuzz.run(target));
                }
            }
            for package in ["rlaunch-wire", "rlaunch-device"] {
                report.part(&format!("miri {package}"), || miri(package));
            }
            for (package, folder) in [
                ("rlaunch-transport", "transport"),
                ("rlaunch-runtime", "engine"),
            ] {
                report.part(&format!("thread sanitizer {package}"), || {
                    sanitized(package, folder)
                });
            }
        }
        Err(why) => report.left_out("fuzzer, miri and thread sanitizer", &why),
    }
    report.end()
}

/// Tests that take too long for every day.
fn ignored(package: &str) -> Result<(), String> {
    let test = ["test", "--package", package, "--lib", "--tests", "--"];
    sh::run(sh::cargo(test).args(["--ignored", "thousand"]))
}

fn models() -> Result<(), String> {
    let test = ["test", "--package", "rlaunch-transport", "--features"];
    sh::run(sh::cargo(test).args(["models", "--test", "models"]))
}

fn garbage() -> Result<(), String> {
    for package in ["rlaunch-transport", "rlaunch-plan"] {
        let mut test = sh::cargo(["test", "--package", package]);
        test.args(["--test", "garbage", "--", "--nocapture"]);
        sh::run(test.env("RLAUNCH_GARBAGE_SECONDS", GARBAGE_SECONDS))?;
    }
    Ok(())
}

/// Each way in which a job ends, so often that a race would show; on hosts where there can be any.
fn exit_codes() -> Result<(), String> {
    for program in ["local_run", "hosts"] {
        let mut test = sh::cargo(["test", "--package", "rlaunch", "--test", program]);
        test.args(["--", "--nocapture", "exit_codes"]);
        sh::run(test.env("RLAUNCH_TEST_RUNS", EXIT_CODE_RUNS))?;
    }
    Ok(())
}

fn miri(package: &str) -> Result<(), String> {
    let mut test = nightly_cargo("miri");
    test.args(["miri", "test", "--package", package, "--lib"]);
    // Tests read files and the clock.
    sh::run(test.env("MIRIFLAGS", "-Zmiri-disable-isolation"))
}

/// Tests that a sanitizer can't judge: loom has its own threads; ranks that are processes share no
/// memory that it sees, while they measure times that it spoils; the sweep's worlds of 16 and 17 ranks
/// in one process reserve more addresses than it leaves (their numbers are no matter of races).
const NOT_SANITIZED: [&str; 4] = ["models", "faults", "process", "property"];

/// The standard library is built with the sanitizer too, or its own synchronisation would look like
/// races.
fn sanitized(package: &str, folder: &str) -> Result<(), String> {
    let mut test = nightly_cargo("thread-sanitizer");
    test.args(["test", "--package", package, "--lib"]);
    for name in test_programs(folder)? {
        if !NOT_SANITIZED.contains(&name.as_str()) {
            test.args(["--test", &name]);
        }
    }
    test.args(["-Zbuild-std", "--target", TARGET]);
    test.env("RLAUNCH_TEST_PATIENCE", PATIENCE);
    sh::run(test.env("RUSTFLAGS", "-Zsanitizer=thread"))
}

/// The integration tests of a crate of the runtime.
fn test_programs(folder: &str) -> Result<Vec<String>, String> {
    let tests = paths::root().join("runtime").join(folder).join("tests");
    let failed = |error: std::io::Error| format!("{}: {error}", tests.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&tests).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_program =
            path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists();
        if let Some(name) = path.file_stem().filter(|_| is_program) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// `cargo` of the nightly toolchain, with a build folder of its own below ours.
pub fn nightly_cargo(folder: &str) -> Command {
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
struct Report<'o> {
    only: Option<&'o str>,
    lines: Vec<String>,
    failed: bool,
}

impl<'o> Report<'o> {
    fn new(only: Option<&'o str>) -> Self {
        Self {
            only,
            lines: Vec::new(),
            failed: false,
        }
    }

    fn part(&mut self, name: &str, run: impl FnOnce() -> Result<(), String>) {
        if self.only.is_some_and(|word| !name.contains(word)) {
            return;
        }
        let (begin, cpu_before) = (Instant::now(), cpu_seconds());
        let result = run();
        let (seconds, cpu) = (begin.elapsed().as_secs(), cpu_seconds() - cpu_before);
        let took = format!("{seconds} s, {cpu} s of CPU time");
        let line = match &result {
            Ok(()) => format!("{name}: passed in {took}"),
            Err(error) => format!("{name}: FAILED after {took}: {error}"),
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
        if self.lines.is_empty() {
            return Err(format!("no part is named `{}`", self.only.unwrap_or("")));
        }
        Ok(())
    }
}

/// Of the processes that were started and have ended; 0 where the kernel doesn't say.
fn cpu_seconds() -> u64 {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything: cutime and cstime, fields 16 and 17 from 1.
    let behind = stat.rsplit(')').next().unwrap_or_default();
    let fields = behind.split_whitespace().skip(13).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}
