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
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >&-"]);
        let mut launcher = rlaunch();
        command.arg(launcher.get_program()).args(*words);
        for (name, value) in launcher.args(*words).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {stderr}");
        assert!(
            stderr.ends_with("rlaunch: stdout: Bad file number\n"),
            "{words:?}: {stderr}"
        );
    }
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
