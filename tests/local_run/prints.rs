//! What ranks print, on our stdout and stderr.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{finish, ranks, rlaunch};

#[test]
fn streams_stay_apart() {
    let run = ranks(1, &[], "echo out; echo err >&2");
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn lines_are_tagged() {
    let run = ranks(2, &["--tag-output"], "echo a; echo b; echo c >&2; printf d");
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "[0]<stdout>: a",
            "[0]<stdout>: b",
            "[0]<stdout>: d",
            "[1]<stdout>: a",
            "[1]<stdout>: b",
            "[1]<stdout>: d"
        ]
    );
    let mut lines: Vec<&str> = run.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0]<stderr>: c", "[1]<stderr>: c"]);
}

/// Two ranks, 200 lines each of 20,000 characters: no line is broken or mixed.
#[test]
fn long_lines_are_whole() {
    let script = "i=0; line=$(head -c 20000 /dev/zero | tr '\\0' $RANK); \
                  while [ $i -lt 200 ]; do echo $line; i=$((i+1)); done";
    let run = ranks(2, &[], script);
    assert_eq!(run.stdout.lines().count(), 400);
    for line in run.stdout.lines() {
        let first = line.as_bytes()[0];
        assert!(line.len() == 20_000 && line.bytes().all(|byte| byte == first));
    }
}

/// All of it comes, in order, and no faster than we take it.
#[test]
fn much_output_is_complete() {
    let run = ranks(2, &[], "seq 1 200000 | sed s/^/$RANK:/");
    for rank in 0..2 {
        let prefix = format!("{rank}:");
        let numbers = run
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix));
        assert!(numbers.eq((1..=200_000).map(|number| number.to_string())));
    }
}

#[test]
fn bytes_pass_unchanged() {
    let run = finish(rlaunch().args([
        "-np",
        "1",
        "--",
        "sh",
        "-c",
        "head -c 100000 /dev/zero | tr '\\0' '\\1'; printf 'end without newline'",
    ]));
    assert_eq!(run.stdout.len(), 100_000 + 19);
    assert!(run.stdout.ends_with("end without newline"));
}

/// Python's print is seen while the rank still runs, without flush.
#[test]
fn python_prints_are_seen_live() {
    let mut child = rlaunch()
        .args([
            "-np",
            "1",
            "--",
            "python3",
            "-c",
            "print('now'); import time; time.sleep(100)",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "now\n");
    assert!(child.try_wait().unwrap().is_none());
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

/// A prompt has no newline and is seen all the same.
#[test]
fn unfinished_lines_are_seen_live() {
    let mut child = rlaunch()
        .args(["-np", "1", "--", "sh", "-c", "printf 'ready? '; sleep 100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut text = [0; 7];
    child.stdout.take().unwrap().read_exact(&mut text).unwrap();
    assert_eq!(&text, b"ready? ");
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

/// `rlaunch … | head -1` ends soon and quietly.
#[test]
fn a_reader_that_has_seen_enough_ends_the_job() {
    let start = Instant::now();
    let mut child = rlaunch()
        .args(["-np", "1", "--", "sh", "-c", "while :; do echo y; done"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::with_capacity(2, child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "y\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(start.elapsed() < Duration::from_secs(20));
}

/// The verdict shows the last lines of the rank that failed, not of others.
#[test]
fn the_verdict_has_the_last_lines() {
    let script = "if [ $RANK = 0 ]; then sleep 100; fi; seq 1 100; echo reason >&2; exit 4";
    let run = ranks(2, &[], script);
    assert_eq!(run.code, Some(4));
    let verdict = &run.stderr[run.stderr.find("rlaunch:").unwrap()..];
    assert!(
        verdict.contains("reason") && verdict.contains("100"),
        "{verdict}"
    );
}
