//! With a terminal as stdin or stdout.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{OutputFlags, SetArg, tcgetattr, tcsetattr};
use nix::unistd::Pid;

use super::{finish, rlaunch};

/// Our side of a terminal that shows bytes as they are, and its other side.
fn terminal() -> (File, OwnedFd) {
    let pair = openpty(None, None).unwrap();
    let mut modes = tcgetattr(&pair.slave).unwrap();
    modes.output_flags.remove(OutputFlags::OPOST);
    tcsetattr(&pair.slave, SetArg::TCSANOW, &modes).unwrap();
    (pair.master.into(), pair.slave)
}

/// What the terminal shows until `text` is there.
fn shown(terminal: File, text: &'static str) -> String {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut terminal, mut seen, mut buffer) = (terminal, String::new(), [0; 4096]);
        while !seen.contains(text) {
            match terminal.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
                }
                _ => break,
            }
        }
        sender.send(seen)
    });
    receiver
        .recv_timeout(Duration::from_secs(30))
        .expect("the terminal shows nothing")
}

/// A launcher that ends with the test, also when that fails.
struct Launcher(Child);

impl Launcher {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // KILL of the launcher ends its ranks too. It may have ended by itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A terminal never says that it ends: the job ends with its ranks.
#[test]
fn a_program_that_reads_one_line_ends() {
    let (mut ours, theirs) = terminal();
    ours.write_all(b"one\ntwo\n").unwrap();
    let mut command = rlaunch();
    let run = finish(
        command
            .stdin(theirs)
            .args(["--stdin", "0", "-np", "1", "head", "-1"]),
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "one\n"));
    assert!(run.took < Duration::from_secs(20));
}

/// ^D is the end of the rank's input.
#[test]
fn the_end_of_input_is_passed_on() {
    let (mut ours, theirs) = terminal();
    ours.write_all(b"one\n\x04").unwrap();
    let mut command = rlaunch();
    let run = finish(
        command
            .stdin(theirs)
            .args(["--stdin", "0", "-np", "1", "wc", "-l"]),
    );
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "1"));
}

/// Two ranks with a bar each, live: who draws while the other's bar stands there begins a line.
#[test]
fn progress_bars_are_live_on_a_terminal() {
    let (ours, theirs) = terminal();
    let script = "[ $RANK = 0 ] || sleep 0.7; printf '\\r10%%' >&2; sleep 1.4; printf '\\r20%%' >&2; \
                  sleep 1000";
    let mut command = rlaunch();
    command
        .args([
            "-np",
            "2",
            "--oversubscribe",
            "--tag-output",
            "--",
            "sh",
            "-c",
            script,
        ])
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs);
    let _launcher = Launcher::start(&mut command);
    let text = shown(ours, "[1]<stderr>+ 20%");
    assert_eq!(
        text,
        "\r[0]<stderr>: 10%\n\r[1]<stderr>: 10%\n\r[0]<stderr>+ 20%\n\r[1]<stderr>+ 20%"
    );
}

/// Python's own progress bars and prompts: alone on a terminal a rank's bytes are what it wrote.
#[test]
fn one_rank_alone_writes_as_without_a_launcher() {
    let (ours, theirs) = terminal();
    let script =
        "printf 'name? '; sleep 0.6; printf 'x\\n' >&2; printf 'half'; sleep 0.6; echo ' done'";
    let mut command = rlaunch();
    command
        .args(["-np", "1", "--", "sh", "-c", script])
        .stdout(theirs.try_clone().unwrap())
        .stderr(theirs);
    let _launcher = Launcher::start(&mut command);
    assert_eq!(shown(ours, "done\n"), "name? x\nhalf done\n");
}

/// In the background of a terminal that it may not read, the job runs; it reads once it is in
/// front.
#[test]
fn a_job_in_the_background_is_not_stopped() {
    let (mut ours, theirs) = terminal();
    ours.write_all(b"typed\n").unwrap();
    // A shell with job control, whose job is first in the background.
    let script = "set -m; \"$0\" -np 2 --oversubscribe --stdin 0 -- sh -c \
                  'echo rank $RANK runs; [ $RANK = 1 ] || head -1' & \
                  sleep 2; fg >&2";
    let mut command = Command::new("setsid");
    command
        .args([
            "--ctty",
            "--wait",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_rlaunch"),
        ])
        .stdin(theirs)
        .stdout(Stdio::piped());
    let start = Instant::now();
    let run = finish(&mut command);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["rank 0 runs", "rank 1 runs", "typed"],
        "{}",
        run.stderr
    );
    assert!(
        start.elapsed() > Duration::from_secs(2),
        "it read in the background"
    );
}

fn resize(terminal: &OwnedFd, rows: &str, columns: &str) {
    let mut stty = Command::new("stty");
    let stty = stty.args(["rows", rows, "cols", columns]);
    let status = stty.stdin(terminal.try_clone().unwrap()).status();
    assert!(status.unwrap().success());
}

/// Programs draw by the size of their terminal: it is that of ours, and stays so.
#[test]
fn terminals_of_ranks_have_the_size_of_ours() {
    let (ours, theirs) = terminal();
    resize(&theirs, "50", "132");
    let script = "show() { echo $1 rank $RANK $(stty size </dev/tty); }; \
                  trap 'show then; exit 0' WINCH; show first; while :; do sleep 0.02; done";
    let mut command = rlaunch();
    command
        .args(["-np", "2", "--oversubscribe", "--pty", "--tag-output"])
        .args(["sh", "-c", script])
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(Stdio::null());
    let mut launcher = Launcher::start(&mut command);
    let (sender, receiver) = mpsc::channel();
    let mut lines = BufReader::new(ours).lines();
    std::thread::spawn(move || {
        while let Some(Ok(line)) = lines.next() {
            sender.send(line).unwrap_or_default();
        }
    });
    let next_two = || {
        let mut two = [(); 2].map(|()| receiver.recv_timeout(Duration::from_secs(30)).unwrap());
        two.sort_unstable();
        two
    };
    let wanted = |word: &str, size: &str| {
        [0, 1].map(|rank| format!("[{rank}]<stdout>: {word} rank {rank} {size}"))
    };
    assert_eq!(next_two(), wanted("first", "50 132"));
    resize(&theirs, "40", "100");
    launcher.signal(Signal::SIGWINCH);
    assert_eq!(next_two(), wanted("then", "40 100"));
    assert_eq!(launcher.0.wait().unwrap().code(), Some(0));
}

/// Where there is no terminal, the size is one that every program can draw in.
#[test]
fn a_terminal_without_ours_has_the_usual_size() {
    let run = super::ranks(1, &["--pty"], "stty size </dev/tty");
    assert_eq!(run.stdout, "24 80\n", "{}", run.stderr);
}
