//! The launcher's ear during the bootstrap.
//!
//! Lines are read until one begins with a word of ours; what came before is noise of the host's
//! start-up files and dropped, up to [`NOISE_MAX_BYTES`]. Bytes behind the line that was heard are
//! kept: they are the agent's first HTTP/2 frames.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rlaunch_wire::handshake::{MAGIC, NOISE_MAX_BYTES, REFUSAL};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::Raw;
use crate::error::{ReachCause, ReachError};
use crate::passphrase::askpass::UNANSWERED;
use crate::target::{ByteStream, Connection, HostTarget};

/// The host asks for the executable: `MAGIC machine encoding`.
pub(crate) const PUSH: &str = "@rlaunch-push";
/// Of a line of ours.
const LINE_MAX_BYTES: usize = 1024;
/// Lines of the host's words that an error shows.
const SAID_MAX_LINES: usize = 8;
/// After the end of the stream its last words and its status may take this long.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(1000);

/// A line of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    Agent { build: String },
    Push { machine: String, encoding: String },
    Refusal { kind: String, detail: String },
}

pub(crate) struct Listener {
    raw: Raw,
    unread: Vec<u8>,
    /// Last lines of stderr, and at the end of stdout's noise.
    said: VecDeque<String>,
    stderr_open: bool,
    silence_max: Duration,
}

impl Listener {
    pub(crate) fn new(raw: Raw, silence_max: Duration) -> Self {
        Self {
            raw,
            unread: Vec::new(),
            said: VecDeque::new(),
            stderr_open: true,
            silence_max,
        }
    }

    /// The next line of ours. What was read behind it stays for the next call, or for the
    /// connection.
    pub(crate) async fn hear(&mut self) -> Result<Heard, ReachCause> {
        let mut chunk = vec![0; 16 * 1024];
        loop {
            // However much comes at a time, the bound is the same.
            let window = self.unread.len().min(NOISE_MAX_BYTES + LINE_MAX_BYTES);
            if let Some((heard, end)) = scan(&self.unread[..window]) {
                self.unread.drain(..end);
                return Ok(heard);
            }
            if self.unread.len() > NOISE_MAX_BYTES {
                return Err(ReachCause::TooMuchNoise(NOISE_MAX_BYTES / 1024));
            }
            let silence = ReachCause::Silent(self.silence_max.as_secs());
            let read = tokio::select! {
                read = self.raw.io.read(&mut chunk) => read,
                line = self.raw.diagnostics.recv(), if self.stderr_open => {
                    self.listen_to(line);
                    continue;
                }
                () = tokio::time::sleep(self.silence_max) => return Err(silence),
            };
            match read {
                Ok(length @ 1..) => self.unread.extend_from_slice(&chunk[..length]),
                Ok(0) => return Err(ReachCause::NoGreeting(String::new())),
                Err(error) => return Err(ReachCause::Broken(error.to_string())),
            }
        }
    }

    /// Writes all of it; a host that takes nothing for too long is an error.
    pub(crate) async fn say(&mut self, mut bytes: &[u8]) -> Result<(), ReachCause> {
        while !bytes.is_empty() {
            let wrote = timeout(self.silence_max, self.raw.io.write(bytes)).await;
            match wrote {
                Ok(Ok(length @ 1..)) => bytes = &bytes[length..],
                Ok(Ok(0)) => return Err(ReachCause::NoGreeting(String::new())),
                // The reason, if there is one, is to be read: the host has ended.
                Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(ReachCause::NoGreeting(String::new()));
                }
                Ok(Err(error)) => return Err(ReachCause::Broken(error.to_string())),
                Err(_) => return Err(ReachCause::Silent(self.silence_max.as_secs())),
            }
        }
        self.raw
            .io
            .flush()
            .await
            .map_err(|error| ReachCause::Broken(error.to_string()))
    }

    pub(crate) fn tell(&mut self, detail: String) {
        self.raw.details.push(detail);
    }

    pub(crate) fn into_connection(self, build: String) -> Connection {
        let Raw {
            io,
            peer_address,
            local_address,
            carrier,
            diagnostics,
            notes,
            details,
            ..
        } = self.raw;
        let io: Box<dyn ByteStream> = if self.unread.is_empty() {
            io
        } else {
            Box::new(Rewound {
                unread: self.unread,
                start: 0,
                io,
            })
        };
        Connection {
            agent_pid: None,
            io,
            peer_address,
            local_address,
            carrier,
            build,
            diagnostics,
            notes,
            details,
        }
    }

    /// Adds the host's last words to an error, and reads from them what really happened.
    pub(crate) async fn explain(mut self, target: &HostTarget, cause: ReachCause) -> ReachError {
        let ended = matches!(cause, ReachCause::NoGreeting(_) | ReachCause::Push(_));
        let mut status = None;
        if ended {
            let wait = tokio::time::Instant::now() + LAST_WORDS_WAIT;
            while self.stderr_open {
                let Ok(line) = tokio::time::timeout_at(wait, self.raw.diagnostics.recv()).await
                else {
                    break;
                };
                self.listen_to(line);
            }
            if let Some(ending) = self.raw.ending.take() {
                status = tokio::time::timeout_at(wait, ending)
                    .await
                    .ok()
                    .and_then(Result::ok);
            }
        }
        let noise = String::from_utf8_lossy(&self.unread).into_owned();
        let noise = noise
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty());
        let noise: Vec<_> = noise.collect();
        for line in &noise[noise.len().saturating_sub(SAID_MAX_LINES / 2)..] {
            self.listen_to(Some((*line).to_owned()));
        }
        let said: Vec<String> = self.said.into();
        let cause = classify(cause, status, self.raw.carrier, &said);
        let tried = self
            .raw
            .peer_address
            .map(|address| address.to_string())
            .unwrap_or_default();
        ReachError {
            said,
            ..ReachError::new(target, cause).tried(tried)
        }
    }

    fn listen_to(&mut self, line: Option<String>) {
        let Some(line) = line else {
            self.stderr_open = false;
            return;
        };
        tracing::debug!(line, "before the greeting");
        if self.said.len() == SAID_MAX_LINES {
            // What was asked tells more than what came of nobody answering.
            let asked = |line: &String| line.starts_with(UNANSWERED);
            let oldest = self.said.iter().position(|line| !asked(line));
            self.said.remove(oldest.unwrap_or(0));
        }
        self.said.push_back(line);
    }
}

/// The stream ended before the agent spoke: the host's last words tell the common reasons.
fn classify(
    cause: ReachCause,
    status: Option<String>,
    carrier: &'static str,
    said: &[String],
) -> ReachCause {
    let ReachCause::NoGreeting(_) = cause else {
        return cause;
    };
    let spoke = |words: &str| said.iter().any(|line| line.contains(words));
    if spoke("version `GLIBC") {
        return ReachCause::OldLibrary;
    }
    if said
        .iter()
        .any(|line| line.contains("/rlaunch") && line.contains("not found"))
    {
        return ReachCause::NoLibrary;
    }
    match status {
        Some(status) if !matches!(carrier, "local" | "ssh2") => ReachCause::ProgramEnded {
            program: carrier.to_owned(),
            status,
        },
        Some(status) => ReachCause::NoGreeting(format!(", with {status}")),
        None => ReachCause::NoGreeting(String::new()),
    }
}

/// The first whole line of ours, and where it ends. An unknown line with our first letters counts
/// as noise.
fn scan(bytes: &[u8]) -> Option<(Heard, usize)> {
    let mut start = 0;
    while let Some(length) = bytes[start..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[start..start + length];
        start += length + 1;
        if line.starts_with(b"@rlaunch-")
            && let Some(heard) = std::str::from_utf8(line).ok().and_then(parse)
        {
            return Some((heard, start));
        }
    }
    None
}

#[cfg(any(test, fuzzing))]
pub(super) fn take_garbage(bytes: &[u8]) {
    if let Some((_, end)) = scan(bytes) {
        assert_eq!(bytes[end - 1], b'\n');
        assert!(bytes[..end].windows(9).any(|window| window == b"@rlaunch-"));
        // What is behind it changes nothing.
        assert_eq!(scan(&bytes[..end]), scan(bytes));
    }
}

fn parse(line: &str) -> Option<Heard> {
    let (word, rest) = line.trim_end().split_once(' ')?;
    let halves = || rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        MAGIC => Some(Heard::Agent {
            build: rest.to_owned(),
        }),
        PUSH => {
            let (machine, encoding) = halves();
            Some(Heard::Push {
                machine: machine.to_owned(),
                encoding: encoding.to_owned(),
            })
        }
        REFUSAL => {
            let (kind, detail) = halves();
            Some(Heard::Refusal {
                kind: kind.to_owned(),
                detail: detail.to_owned(),
            })
        }
        _ => None,
    }
}

/// A stream of which some bytes were read already.
struct Rewound {
    unread: Vec<u8>,
    start: usize,
    io: Box<dyn ByteStream>,
}

impl AsyncRead for Rewound {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.start == self.unread.len() {
            return Pin::new(&mut self.io).poll_read(context, buffer);
        }
        let length = buffer.remaining().min(self.unread.len() - self.start);
        let end = self.start + length;
        buffer.put_slice(&self.unread[self.start..end]);
        self.start = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
