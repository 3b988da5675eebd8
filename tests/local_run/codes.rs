//! Exit codes, again and again: `RLAUNCH_TEST_RUNS=200` is the deep check's.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::signals::heeding;
use super::{finish, rlaunch, wait_until};
use crate::cases::{CASES, delay, runs};

fn job() -> Command {
    let mut command = rlaunch();
    command.args(["-np", "4", "--oversubscribe", "--kill-after", "2"]);
    command
}

#[test]
fn exit_codes_of_jobs() {
    for case in CASES {
        for run in runs(2) {
            let ended = finish(job().args(case.options).arg("--").args(case.words));
            let code = ended.code.unwrap_or(-1);
            let name = case.name;
            assert!(
                case.codes.contains(&code),
                "{name}, run {run}: {code}: {}",
                ended.stderr
            );
        }
    }
}

/// Whenever they come: while hosts are reached, while ranks start, while they run.
#[test]
fn exit_codes_of_signals() {
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        for run in runs(2) {
            let mut command = job();
            command.args([
                "--",
                "/bin/sh",
                "-c",
                "trap 'exit 0' TERM; while :; do sleep 0.01; done",
            ]);
            command.stderr(Stdio::piped());
            let child = heeding(&mut command).spawn().unwrap();
            std::thread::sleep(delay(run, 60));
            kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            // Before it listens a program ends by the signal itself: shells see the same.
            let status = output.status;
            let code = status.code().or(status.signal().map(|number| 128 + number));
            assert_eq!(
                code,
                Some(128 + signal as i32),
                "{signal}, run {run}: {text}"
            );
        }
    }
}

/// Of a reader that goes away before it has read all, soon or late, and of a device that is full. The
/// job may be over before anybody sees it: that is no success either.
#[test]
fn exit_codes_of_unread_output() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["--output-dir", directory.path().to_str().unwrap()];
    // More than a pipe holds.
    let script = "exec seq 30000";
    for options in [&[][..], &["--tag-output"], &files] {
        for run in runs(2) {
            let mut command = job();
            command.args(options).args(["--", "/bin/sh", "-c", script]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut read = vec![0; delay(run, 2).as_micros() as usize];
            let mut stdout = child.stdout.take().unwrap();
            stdout.read_exact(&mut read).unwrap();
            drop(stdout);
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            assert_eq!((code, &*text), (Some(141), ""), "{options:?}, run {run}");

            let full = File::options().write(true).open("/dev/full").unwrap();
            let mut command = job();
            command.args(options).args(["--", "/bin/sh", "-c", script]);
            let output = command.stdout(full).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(125),
                "{options:?}, run {run}: {text}"
            );
        }
    }
}

fn children(pid: i32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// kill -9 of the launcher, the agent, the keeper and a rank: never 0, and nothing is left.
#[test]
fn exit_codes_of_killed_parts() {
    for (part, codes) in [
        ("launcher", &[137][..]),
        ("agent", &[123]),
        ("keeper", &[125]),
        ("rank", &[137]),
    ] {
        for run in runs(2) {
            let mut command = job();
            command.args([
                "--",
                "/bin/sh",
                "-c",
                "trap 'exit 0' TERM; while :; do sleep 0.01; done",
            ]);
            let child = command.stderr(Stdio::piped()).spawn().unwrap();
            let launcher = child.id().cast_signed();
            let mut tree = Vec::new();
            wait_until("all ranks", || {
                let agent = children(launcher).first().copied().unwrap_or(-1);
                let keeper = children(agent).first().copied().unwrap_or(-1);
                children(keeper).len() == 4
            });
            let agent = children(launcher)[0];
            let keeper = children(agent)[0];
            tree.extend([launcher, agent, keeper]);
            tree.extend(children(keeper));
            std::thread::sleep(delay(run, 30));
            let victim = match part {
                "launcher" => launcher,
                "agent" => agent,
                "keeper" => keeper,
                _ => tree[3 + run as usize % 4],
            };
            kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            let code = output
                .status
                .code()
                .or(output.status.signal().map(|number| 128 + number));
            let code = code.unwrap();
            assert!(codes.contains(&code), "{part}, run {run}: {code}: {text}");
            assert!(!text.contains("by the kernel"), "{part}, run {run}: {text}");
            wait_until("nothing is left", || tree.iter().all(|pid| is_over(*pid)));
        }
    }
}

fn is_over(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_err()
        || stat.is_ok_and(|stat| {
            stat.contains(") Z ") || !stat.contains("rlaunch") && !stat.contains("(sh)")
        })
}
