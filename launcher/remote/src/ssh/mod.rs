//! The ssh2 carrier: one session, one thread, one channel.
//!
//! libssh2 locks the whole session at each call, so a session serves one channel, and the thread
//! that opened it moves its bytes too ([`pump`]). The launcher's side of the channel is a socket
//! pair. The thread ends when either side does: it is never joined, for the launcher must not wait
//! for a host.

mod certificate;
mod identity;
mod keyfile;
mod known_hosts;
mod login;
mod pump;
mod session;
mod unlock;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ssh2::{Channel, Session};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::bootstrap::Raw;
use crate::diagnostics::{self, Lines};
use crate::error::{ReachCause, ReachError};
use crate::passphrase::Passphrase;
use crate::settings::Settings;
use crate::target::HostTarget;

pub use identity::has_public as has_public_key;
pub(crate) use unlock::opens;

/// Whatever stands in a known_hosts file: a key is known only by its own line.
#[cfg(any(test, fuzzing))]
pub(crate) fn take_garbage_hosts(text: &str) {
    known_hosts::take_garbage(text);
}

/// Whatever stands in a key file, its public part or its certificate.
#[cfg(any(test, fuzzing))]
pub(crate) fn take_garbage_key(text: &str) {
    let file = keyfile::parse(text);
    let _ = file.in_hardware();
    if let Some(blob) = keyfile::parse_public(text) {
        let certificate = certificate::parse(&blob);
        let now = std::time::SystemTime::now();
        let _ = certificate.map(|certificate| certificate.trouble("alice", now));
    }
}

/// What the thread needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) target: HostTarget,
    pub(crate) settings: Settings,
    /// `-i`.
    pub(crate) identity_files: Vec<PathBuf>,
    /// Of key files, as far as they are known.
    pub(crate) passphrases: HashMap<PathBuf, Passphrase>,
    pub(crate) accept_new: bool,
    pub(crate) connect_timeout: Duration,
    /// For each exchange after the handshake.
    pub(crate) step_timeout: Duration,
    pub(crate) command: String,
}

/// Why it failed, and what might do better.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ReachError,
    /// Why the ssh program might.
    pub(crate) program_may_help: Option<String>,
    /// Encrypted keys that the host would take, or might.
    pub(crate) locked: Vec<PathBuf>,
}

impl Failure {
    fn new(plan: &Plan, tried: &str, cause: ReachCause) -> Self {
        Self::of(ReachError::new(&plan.target, cause).tried(tried))
    }

    fn of(error: ReachError) -> Self {
        Self {
            error,
            program_may_help: None,
            locked: Vec::new(),
        }
    }
}

/// A channel on which the command runs.
struct Opened {
    session: Session,
    channel: Channel,
    reached: Reached,
}

/// What is known once the command runs.
struct Reached {
    peer_address: SocketAddr,
    local_address: Option<IpAddr>,
    notes: Vec<String>,
}

/// The thread's ends of what connects it with the launcher.
struct Ends {
    answer: oneshot::Sender<Result<Reached, Failure>>,
    stream: StdUnixStream,
    lines: Lines,
    ending: oneshot::Sender<String>,
}

/// Connects, logs in and starts the command.
pub(crate) async fn open(plan: Plan) -> Result<Raw, Failure> {
    let target = plan.target.clone();
    let limit = plan.connect_timeout + 2 * plan.step_timeout;
    let failed = |cause| Failure::of(ReachError::new(&target, cause));
    let broken = |error: io::Error| failed(ReachCause::Local(error.to_string()));

    let (here, stream) = StdUnixStream::pair().map_err(broken)?;
    here.set_nonblocking(true).map_err(broken)?;
    stream.set_nonblocking(true).map_err(broken)?;
    let here = UnixStream::from_std(here).map_err(broken)?;
    let (lines, diagnostics) = diagnostics::channel();
    let (answer, answered) = oneshot::channel();
    let (ending, ended) = oneshot::channel();
    let ends = Ends {
        answer,
        stream,
        lines,
        ending,
    };
    let thread = std::thread::Builder::new().name(format!("ssh {target}"));
    thread.spawn(move || run(&plan, ends)).map_err(broken)?;

    // Each step of the thread has its own limit; only a resolver that hangs comes up to this one.
    let reached = match tokio::time::timeout(limit, answered).await {
        Ok(Ok(result)) => result?,
        Ok(Err(_)) => return Err(failed(ReachCause::Broken("the ssh thread ended".into()))),
        Err(_) => return Err(failed(ReachCause::TimedOut(limit.as_secs()))),
    };
    Ok(Raw {
        io: Box::new(here),
        peer_address: Some(reached.peer_address.ip()),
        local_address: reached.local_address,
        carrier: "ssh2",
        diagnostics,
        ending: Some(ended),
        notes: reached.notes,
        details: Vec::new(),
    })
}

/// Whether anybody still listens does not matter to a send: if not, the launcher has given up.
fn run(plan: &Plan, ends: Ends) {
    let opened = match open_channel(plan) {
        Ok(opened) => opened,
        Err(failure) => return drop(ends.answer.send(Err(failure))),
    };
    if ends.answer.send(Ok(opened.reached)).is_ok() {
        let ended = pump::run(
            &opened.session,
            opened.channel,
            ends.stream,
            ends.lines,
            plan.settings.alive_interval,
        );
        tracing::debug!(host = %plan.target, ended, "ssh channel ended");
        let _ = ends.ending.send(ended);
    }
}

fn open_channel(plan: &Plan) -> Result<Opened, Failure> {
    let deadline = Instant::now() + plan.connect_timeout;
    let session::Connected {
        session,
        peer_address,
        local_address,
        notes,
        tried,
    } = session::connect(plan, deadline)?;
    session.set_timeout(milliseconds(plan.step_timeout));
    login::login(plan, &session, &tried)?;
    let started = session.channel_session().and_then(|mut channel| {
        channel.exec(&plan.command)?;
        Ok(channel)
    });
    let channel = started.map_err(|error| {
        Failure::new(
            plan,
            &tried,
            ReachCause::NoCommand(error.message().to_owned()),
        )
    })?;
    Ok(Opened {
        session,
        channel,
        reached: Reached {
            peer_address,
            local_address,
            notes,
        },
    })
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis())
        .unwrap_or(u32::MAX)
        .max(1)
}
