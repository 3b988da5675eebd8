//! Whole runs of the executable on this machine.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

#[path = "exit_codes/cases.rs"]
mod cases;
#[path = "local_run/causes.rs"]
mod causes;
#[path = "local_run/codes.rs"]
mod codes;
#[path = "local_run/completions.rs"]
mod completions;
#[path = "local_run/ends.rs"]
mod ends;
#[path = "local_run/hangs.rs"]
mod hangs;
#[path = "local_run/inherits.rs"]
mod inherits;
#[path = "local_run/limits.rs"]
mod limits;
#[path = "local_run/lost.rs"]
mod lost;
#[path = "local_run/mistakes.rs"]
mod mistakes;
#[path = "local_run/needs.rs"]
mod needs;
#[path = "local_run/origins.rs"]
mod origins;
#[path = "local_run/output_options.rs"]
mod output_options;
#[path = "local_run/prints.rs"]
mod prints;
#[path = "local_run/prints_much.rs"]
mod prints_much;
#[path = "local_run/programs.rs"]
mod programs;
#[path = "local_run/reads.rs"]
mod reads;
#[path = "local_run/report.rs"]
mod report;
#[path = "local_run/signals.rs"]
mod signals;
#[path = "local_run/terminal.rs"]
mod terminal;
#[path = "local_run/topo.rs"]
mod topo;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No run of these tests takes longer, however busy the machine is.
const RUN_MAX: Duration = Duration::from_secs(60);

struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

/// The executable, apart from the settings of whoever runs the tests.
fn rlaunch() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlaunch"));
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    forget_settings(&mut command);
    command
}

/// What the tests themselves are told by variables is nothing to a job.
fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"RLAUNCH_") {
            command.env_remove(name);
        }
    }
}

fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    finish(rlaunch().args(arguments))
}

/// `-np N --oversubscribe -- sh -c SCRIPT`: tests run on machines of any size.
fn ranks(number: u32, options: &[&str], script: &str) -> Run {
    let mut command = rlaunch();
    command
        .args(["-np", &number.to_string(), "--oversubscribe"])
        .args(options);
    finish(command.args(["--", "sh", "-c", script]))
}

fn finish(command: &mut Command) -> Run {
    let start = Instant::now();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output: Output = match receiver.recv_timeout(RUN_MAX) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).ok();
            let output = receiver.recv().unwrap().unwrap();
            let end = |bytes: &[u8]| {
                let end = &bytes[bytes.len().saturating_sub(2000)..];
                String::from_utf8_lossy(end).into_owned()
            };
            panic!(
                "not over after {RUN_MAX:?}: …{}\nstderr: …{}",
                end(&output.stdout),
                end(&output.stderr)
            );
        }
    };
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took: start.elapsed(),
    }
}

/// Waits until `condition` holds.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{what}: not within 20 s"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process whose number stands in this file is gone, or only waits to be reaped.
fn is_gone(pid_file: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(pid_file) else {
        return false;
    };
    let Ok(pid) = text.trim().parse::<u32>() else {
        return false;
    };
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z')),
    }
}
