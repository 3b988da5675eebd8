//! What was asked for on stdout and did not arrive there is no success.

use std::fs::File;
use std::process::{Command, Stdio};

use super::rlaunch;

const SHOWING: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["man"],
    &["completions", "bash"],
    &["settings"],
    &["reap", "--help"],
    &["reap"],
    &["topo"],
    &["topo", "--json"],
    &["--dry-run", "-np", "1", "true"],
    &["--dry-run", "--json", "-np", "1", "true"],
];

#[test]
fn a_full_disk_is_told() {
    for words in SHOWING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = rlaunch();
        let output = command.args(*words).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {stderr}");
        assert!(
            stderr.ends_with("rlaunch: stdout: No space left on device\n"),
            "{words:?}: {stderr}"
        );
    }
}

/// `>&-`
#[test]
fn a_closed_stdout_is_told() {
    for words in SHOWING {
        let mut command = under_sh("exec \"$0\" \"$@\" >&-", words);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {stderr}");
        assert!(
            stderr.ends_with("rlaunch: stdout: Bad file number\n"),
            "{words:?}: {stderr}"
        );
    }
}

/// The launcher with these words as `$0` and `$@` of a shell's script.
pub(super) fn under_sh(script: &str, words: &[&str]) -> Command {
    let launcher = rlaunch();
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(launcher.get_program());
    for (name, value) in launcher.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(words).stdin(Stdio::null());
    command
}

/// What ranks print is lost there as on a full disk; a stderr that was closed was to be silent.
#[test]
fn a_job_without_a_stdout_is_no_success() {
    for (script, code) in [
        ("echo lost", 125),
        ("echo lost; exit 3", 3),
        ("echo silent >&2", 0),
        ("true", 0),
    ] {
        let closing = "exec \"$0\" \"$@\" >&-";
        let mut command = under_sh(closing, &["-np", "1", "sh", "-c", script]);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{script}: {stderr}");
        let told = stderr.contains("rlaunch: stdout: 5 bytes could not be written\n");
        assert_eq!(told, script.starts_with("echo lost"), "{stderr}");
    }
    let closing = "exec \"$0\" \"$@\" 2>&-";
    let mut command = under_sh(closing, &["-np", "1", "sh", "-c", "echo silent >&2"]);
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}

/// `| head -1`, and a reader that is gone before anything is written.
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    // What `reap` finds here is no matter of this test.
    for words in SHOWING.iter().filter(|words| **words != ["reap"]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = rlaunch().args(*words).stdout(writer).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{words:?}");
    }
}
