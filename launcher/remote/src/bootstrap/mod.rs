//! From a fresh carrier to an agent that has greeted.
//!
//! [`command`] is what a host's login shell is asked to run; [`start`] then reads what comes back,
//! pushes the executable if the host asks for it, and ends with a [`Connection`]. [`greet`] does
//! the last step alone, for carriers that start an agent by themselves.
//!
//! Who speaks when, on the one stream:
//! ```text
//! host      rc-file noise … \n@rlaunch-push x86_64 gzip\n                    \n@rlaunch-agent BUILD\n HTTP/2 …
//! launcher                                               N\n N bytes of gzip                          HTTP/2 …
//! ```
//! The launcher writes nothing that was not asked for, so that neither a start-up file nor the
//! shell's own reading ahead can swallow a byte that belongs to the agent.

mod greeting;
mod push;
mod script;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::error::{ReachCause, ReachError};
use crate::executable::Agents;
use crate::target::{ByteStream, Connection, HostTarget};

use greeting::{Heard, Listener};

/// A carrier with something at its far end that has not spoken yet.
pub(crate) struct Raw {
    pub(crate) io: Box<dyn ByteStream>,
    pub(crate) peer_address: Option<IpAddr>,
    pub(crate) local_address: Option<IpAddr>,
    pub(crate) carrier: &'static str,
    pub(crate) diagnostics: mpsc::Receiver<String>,
    /// How the far end ended, told once it did.
    pub(crate) ending: Option<oneshot::Receiver<String>>,
    pub(crate) notes: Vec<String>,
    pub(crate) details: Vec<String>,
}

/// The command line for the host's login shell.
pub(crate) fn command(agents: &Agents) -> String {
    script::command(agents)
}

/// Waits for the greeting of an agent of this build.
pub(crate) async fn greet(
    target: &HostTarget,
    raw: Raw,
    build: &str,
    silence_max: Duration,
) -> Result<Connection, ReachError> {
    let mut listener = Listener::new(raw, silence_max);
    match listener.hear().await {
        Ok(Heard::Agent { build: got }) if got == build => Ok(listener.into_connection(got)),
        Ok(heard) => Err(ReachError::new(target, other_build(build, heard))),
        Err(cause) => Err(listener.explain(target, cause).await),
    }
}

/// Waits for the host's word, pushes what it asks for, and waits for the agent's greeting.
pub(crate) async fn start(
    target: &HostTarget,
    raw: Raw,
    agents: &Agents,
    silence_max: Duration,
) -> Result<Connection, ReachError> {
    let mut listener = Listener::new(raw, silence_max);
    match talk(&mut listener, agents).await {
        Ok(build) => Ok(listener.into_connection(build)),
        Err(cause) => Err(listener.explain(target, cause).await),
    }
}

/// Whatever a host prints: at most one line of it is ours, and it ends where a line ends.
#[cfg(any(test, fuzzing))]
pub(crate) fn take_garbage(bytes: &[u8]) {
    greeting::take_garbage(bytes);
}

/// At most one push; a host that asks twice is broken.
async fn talk(listener: &mut Listener, agents: &Agents) -> Result<String, ReachCause> {
    let mut heard = listener.hear().await?;
    if let Heard::Push { machine, encoding } = heard {
        let agent = agents
            .for_machine(&machine)
            .ok_or_else(|| ReachCause::Architecture {
                host: machine.clone(),
                have: agents.machines(),
            })?;
        let sent_bytes = push::send(listener, agent, &encoding).await?;
        listener.tell(format!(
            "agent {} pushed ({} KiB)",
            agent.build,
            sent_bytes.div_ceil(1024)
        ));
        heard = listener.hear().await?;
    }
    match heard {
        Heard::Agent { build } if agents.has_build(&build) => Ok(build),
        Heard::Refusal { kind, detail } => Err(refusal(&kind, detail, agents)),
        other => Err(other_build(&agents.builds(), other)),
    }
}

fn refusal(kind: &str, detail: String, agents: &Agents) -> ReachCause {
    match kind {
        "machine" => ReachCause::Architecture {
            host: detail,
            have: agents.machines(),
        },
        "folder" => ReachCause::NoFolder(detail),
        _ => ReachCause::Push(detail),
    }
}

fn other_build(expected: &str, heard: Heard) -> ReachCause {
    let got = match heard {
        Heard::Agent { build } => build,
        Heard::Push { machine, .. } => format!("a request for the executable, from {machine}"),
        Heard::Refusal { kind, detail } => format!("{kind} {detail}"),
    };
    ReachCause::OtherBuild {
        expected: expected.to_owned(),
        got,
    }
}
