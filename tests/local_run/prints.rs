//! What ranks print, on our stdout and stderr.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{forget_settings, ranks, rlaunch};

#[test]
fn streams_stay_apart() {
    let run = ranks(1, &[], "echo out; echo err >&2");
    assert_eq!(
        (run.stdout.as_str(), run.stderr.as_str()),
        ("out\n", "err\n")
    );
}

/// Two ranks, 200 lines each of 20,000 characters: byte for byte, also with tags.
#[test]
fn long_lines_are_whole() {
    let script = "i=0; line=$(head -c 20000 /dev/zero | tr '\\0' $RANK); \
                  while [ $i -lt 200 ]; do echo $line; i=$((i+1)); done";
    for (options, tags) in [
        (&[][..], ["", ""]),
        (&["--tag-output"], ["[0]<stdout>: ", "[1]<stdout>: "]),
    ] {
        let run = ranks(2, options, script);
        for (digit, tag) in ["0", "1"].into_iter().zip(tags) {
            let expected = tag.to_owned() + &digit.repeat(20_000);
            let count = run.stdout.lines().filter(|line| *line == expected);
            assert_eq!(count.count(), 200, "rank {digit} with {options:?}");
        }
        assert_eq!(run.stdout.lines().count(), 400);
    }
}

/// Lines of 3 MB of two ranks at once, and a short one: whatever the length, none is broken.
#[test]
fn lines_of_any_length_are_whole() {
    let script = "if [ $RANK = 2 ]; then for i in 1 2 3 4 5 6; do echo short; sleep 0.02; done; exit; fi; \
                  for i in 1 2 3; do head -c 3000000 /dev/zero | tr '\\0' $RANK; echo; done";
    let run = ranks(3, &["--tag-output"], script);
    let mut counts = [0; 3];
    for line in run.stdout.lines() {
        let (tag, text) = line.split_at("[0]<stdout>: ".len());
        let rank = usize::from(tag.as_bytes()[1] - b'0');
        let expected = match rank {
            2 => "short".to_owned(),
            rank => rank.to_string().repeat(3_000_000),
        };
        assert!(text == expected, "{tag}: {} bytes", text.len());
        counts[rank] += 1;
    }
    assert_eq!(counts, [3, 3, 6]);
}

/// Long ones behind short ones, where credit of the short ones is still owed.
#[test]
fn lines_of_all_lengths_go_through() {
    let lens = [
        100_000, 100_000, 900_000, 1, 250_000, 1_000_000, 1_040_000, 7,
    ];
    let script = lens.map(|len| format!("head -c {len} /dev/zero | tr '\\0' x; echo"));
    let run = ranks(1, &[], &script.join("; "));
    let seen: Vec<usize> = run.stdout.lines().map(str::len).collect();
    assert_eq!(seen, lens);
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

/// All 256 of them, in every order of two, on both streams.
#[test]
fn bytes_pass_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bytes");
    let bytes: Vec<u8> = (0..=255_u8)
        .flat_map(|first| (0..=255_u8).flat_map(move |second| [first, second]))
        .collect();
    std::fs::write(&path, &bytes).unwrap();
    let script = format!("cat {0}; cat {0} >&2", path.display());
    let output = rlaunch()
        .args(["-np", "1", "--", "sh", "-c", &script])
        .output()
        .unwrap();
    assert!(output.stdout == bytes && output.stderr == bytes);
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

/// `rlaunch … | head -1` ends at once and quietly, also when no rank prints again.
#[test]
fn a_reader_that_has_seen_enough_ends_the_job() {
    for script in ["while :; do echo y; done", "echo y; exec sleep 1000"] {
        let mut child = rlaunch()
            .args(["-np", "2", "--oversubscribe", "--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::with_capacity(2, stdout)
            .read_line(&mut line)
            .unwrap();
        let start = Instant::now();
        assert_eq!(line, "y\n");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{script}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        // It takes some milliseconds; ranks that had to be killed would take ten seconds.
        assert!(start.elapsed() < Duration::from_secs(8), "{script}");
    }
}

/// A device that is full: the job goes on, what is lost is told, and that is no success.
#[test]
fn a_full_stdout_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let done = directory.path().join("done");
    let script = format!("echo lost; sleep 0.3; touch {}", done.display());
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = rlaunch()
        .args(["-np", "1", "--", "sh", "-c", &script])
        .stdout(full)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(done.exists(), "the rank was ended: {stderr}");
    for words in [
        "rlaunch: stdout: No space left on device",
        "rlaunch: stdout: 5 bytes could not be written",
    ] {
        assert!(stderr.contains(words), "{stderr}");
    }
}

/// `rlaunch … >&-`
#[test]
fn a_closed_stdout_costs_only_the_output() {
    let script = "exec \"$0\" -np 1 -- sh -c 'echo gone; echo here >&2; exit 3' >&-";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_rlaunch")]);
    forget_settings(&mut command);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.lines().any(|line| line == "here"), "{stderr}");
}

/// `2>/dev/full`, and a reader of stderr that has gone, with all that the launcher has to say.
#[test]
fn a_stderr_that_takes_nothing_costs_only_words() {
    for ending in ["2>/dev/full", "2>&1 >&- | true"] {
        let script = format!(
            "{{ \"$0\" -v --display-map -np 1 -- sh -c 'sleep 0.3; exit 3'; echo $? >\"$1\"; }} {ending}"
        );
        let directory = tempfile::tempdir().unwrap();
        let code = directory.path().join("code");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_rlaunch")]);
        forget_settings(&mut command);
        command.arg(&code).output().unwrap();
        assert_eq!(std::fs::read_to_string(&code).unwrap(), "3\n", "{ending}");
    }
}

/// Ranks draw over their line with CR: on a pipe each drawing is seen while they run, with its tag.
#[test]
fn progress_bars_are_live_on_a_pipe() {
    let script = "for i in 1 2 3; do printf '\\r%s0%%' $i; sleep 0.4; done; sleep 1000";
    let mut child = rlaunch()
        .args(["-np", "1", "--tag-output", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let expected = "\r[0]<stdout>: 10%\r[0]<stdout>: 20%\r[0]<stdout>: 30%";
    let mut text = vec![0; expected.len()];
    child.stdout.take().unwrap().read_exact(&mut text).unwrap();
    assert_eq!(String::from_utf8_lossy(&text), expected);
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    child.wait().unwrap();
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
