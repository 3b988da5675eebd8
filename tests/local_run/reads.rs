//! Who reads our standard input.

use std::io::{Seek, SeekFrom, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Run, finish, rlaunch};

/// `rlaunch OPTIONS -- sh -c SCRIPT` with this on stdin, through a pipe that then closes.
fn fed(input: &[u8], options: &[&str], script: &str) -> Run {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), input).unwrap();
    let mut cat = Command::new("cat")
        .arg(file.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut command = rlaunch();
    command
        .stdin(cat.stdout.take().unwrap())
        .args(["--oversubscribe", "-np", "3"])
        .args(options)
        .args(["--", "sh", "-c", script]);
    let run = finish(&mut command);
    // It may have been cut off.
    cat.wait().unwrap();
    run
}

/// A job in a shell's loop leaves the loop its input.
#[test]
fn a_loop_keeps_its_input() {
    let script = "while read word; do \"$0\" -np 2 --oversubscribe cat; echo $word; done";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_rlaunch")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\nthree\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\nthree\n");
}

/// Much more than is under way at a time, to its end; the others have none.
#[test]
fn one_rank_reads_all_of_it() {
    let input = vec![b'x'; 5_000_000];
    let run = fed(&input, &["--stdin", "1"], "echo $RANK $(wc -c)");
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 0", "1 5000000", "2 0"]);
}

/// Each has its copy, also when another one takes nothing of it and ends.
#[test]
fn all_ranks_read_all_of_it() {
    let input = vec![b'x'; 5_000_000];
    let script = "[ $RANK != 1 ] || { sleep 0.3; exit 0; }; echo $RANK $(wc -c)";
    let run = fed(&input, &["--stdin", "all"], script);
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 5000000", "2 5000000"], "{}", run.stderr);
}

/// The job ends with its ranks, although its input stays open and is not taken.
#[test]
fn input_that_stays_open_holds_nobody_up() {
    for options in [&["--stdin", "0"][..], &["--stdin", "all"], &[]] {
        let mut command = rlaunch();
        // The pipe's other end is ours until the job has ended.
        let (reader, _writer) = nix::unistd::pipe().unwrap();
        command
            .stdin(reader)
            .args(["-np", "2", "--oversubscribe"])
            .args(options)
            .args(["--", "sh", "-c", "echo done"]);
        let run = finish(&mut command);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "done\ndone\n"));
        assert!(run.took < Duration::from_secs(20));
    }
}

/// Each attempt of the job reads the whole input, and what stood before it is not read.
#[test]
fn a_job_that_starts_again_reads_its_file_again() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"header\none\ntwo\n").unwrap();
    file.seek(SeekFrom::Start(7)).unwrap();
    let script = "cat; exit $((1 - TORCHELASTIC_RESTART_COUNT))";
    let mut command = rlaunch();
    command.args(["--stdin", "0", "--max-restarts", "1", "-np", "1"]);
    let run = finish(command.args(["sh", "-c", script]).stdin(file));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout, "one\ntwo\none\ntwo\n", "{}", run.stderr);
}
