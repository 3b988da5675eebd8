//! The carriers against a real sshd, with the smallest agent in the place of the real one.
#![allow(clippy::unwrap_used, reason = "a test ends by a panic")]

/// The sshd, or the end of the test with a visible word.
macro_rules! sshd {
    ($settings:expr) => {
        match Sshd::start($settings) {
            Some(sshd) => sshd,
            None => return,
        }
    };
}

mod host_keys;
mod jumps;
mod key_agent;
mod login;
mod program;

mod sshd;
mod streams;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use key_agent::KeyAgent;
use rlaunch_remote::{
    CarrierChoice, Connection, HostTarget, Passphrases, ReachCause, ReachError, RemoteOptions,
    connect, connect_all,
};
use sshd::{Sshd, echo_agent, eventually, free_port};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn reach(sshd: &Sshd, options: &RemoteOptions) -> Result<Connection, ReachError> {
    connect(&sshd.target(), CarrierChoice::Auto, options).await
}

/// What the agent sent together with its greeting comes first; then all bytes come back.
async fn converse(connection: Connection, bytes: usize) -> Connection {
    let Connection { mut io, .. } = connection;
    let mut first = [0; 6];
    io.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"hello\n");
    let payload: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
    let (mut read, mut write) = tokio::io::split(io);
    let sent = payload.clone();
    let writer = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.flush().await.unwrap();
        write
    });
    let mut back = vec![0; payload.len()];
    read.read_exact(&mut back).await.unwrap();
    assert!(back == payload);
    let io = Box::new(read.unsplit(writer.await.unwrap()));
    Connection { io, ..connection }
}

/// Somebody who types these words one after the other, and what was asked.
fn typing(words: &'static [&'static str]) -> (Passphrases, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&asked);
    let passphrases = Passphrases::asking(move |prompt| {
        let mut record = record.lock().unwrap();
        record.push(prompt.to_owned());
        let word = words.get(record.len() - 1);
        word.map(|word| (*word).to_owned())
            .ok_or_else(|| std::io::Error::other("nobody answers"))
    });
    (passphrases, asked)
}

fn processes_in(folder: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let executables = entries.filter_map(|entry| fs::read_link(entry.path().join("exe")).ok());
    executables.filter(|path| path.starts_with(folder)).count()
}

/// Runs the command that an error's hint gives.
fn follow(error: &ReachError, program: &str) {
    let hint = error.hint().unwrap();
    let start = hint
        .find(program)
        .unwrap_or_else(|| panic!("{program} in {hint}"));
    let command = hint[start..].lines().next().unwrap();
    let status = Command::new("sh")
        .args(["-c", command])
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{command}");
}

fn says(error: &ReachError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in: {text}");
    }
}
