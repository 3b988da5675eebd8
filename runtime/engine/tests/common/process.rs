//! Ranks as real processes: a test binary runs itself again, as the ranks.
//!
//! The binary has an ignored test `rank_process`, which [`start`] runs; `TEST_ROLE` says what as.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Killed when it is dropped.
pub(crate) struct Rank {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Rank {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Rank {
    /// The next line that a rank prints for us; an empty one at its end.
    pub(crate) fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).unwrap();
            if count == 0 {
                return line;
            }
            // The test harness starts its own line without an end.
            if let Some((_, line)) = line.split_once("@@") {
                return line.trim().to_owned();
            }
        }
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        // SAFETY: the child is ours and not waited for yet, so the pid is its.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// The first `count` ranks of a world.
pub(crate) fn start(
    world: u32,
    count: u32,
    transport: &str,
    role: &str,
    more: &[(&str, &str)],
) -> Vec<Rank> {
    // One of the ports after it is free, also when another test has just taken some. Where a port is
    // named, several starts are one job.
    let is_named = more.iter().any(|(name, _)| *name == "RLAUNCH_PORT");
    let master = if is_named { 1 } else { free_port() }.to_string();
    let one = |rank: u32| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rank_process", "--ignored", "--nocapture"])
            .env("TEST_ROLE", role)
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", world.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", &master)
            .env_remove("RLAUNCH_PORT")
            .env("RLAUNCH_SECRET", "s")
            .env("RLAUNCH_TRANSPORT", transport)
            .env_remove("RLAUNCH_AGENT")
            .envs(more.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Rank { child, output }
    };
    (0..count).map(one).collect()
}

/// From a rank to its test.
pub(crate) fn say(text: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "@@{}", text.replace('\n', " ")).unwrap();
    stdout.flush().unwrap();
}
