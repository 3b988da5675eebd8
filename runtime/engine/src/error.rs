//! What can go wrong in a rank, said so that the user can act on it.

use std::{fmt, time::Duration};

use rlaunch_wire::notice::Blames;
use rlaunch_wire::{CommunicatorName, Descriptor};

use crate::failure::{Doing, Others};

/// A rank and where it runs, for messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rank {
    pub rank: u32,
    pub host: String,
    pub pid: u32,
}

/// `rank 3 (host node7, pid 4242)`
impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rank {} (host {}, pid {})",
            self.rank, self.host, self.pid
        )
    }
}

/// Why a call failed. All but [`Error::Argument`], [`Error::Allocation`] and [`Error::Cancelled`] poison
/// the world, where a call of several ranks met them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two ranks made different calls at the same place of their sequence: another collective,
    /// count, type, reduction or root. Cause: the program's ranks took different branches, or hold
    /// data of different shapes. Compare the two calls that the message names.
    #[error(
        "ranks disagree: {left_rank} called {left}, but {right_rank} called {right}{}; \
             hint: all ranks must make the same calls in the same order",
        in_brackets(detail)
    )]
    Mismatch {
        left_rank: Rank,
        left: Box<Descriptor>,
        right_rank: Rank,
        right: Box<Descriptor>,
        /// Whose counts don't fit whose, where that is the difference; else empty.
        detail: String,
    },

    /// A rank's process died, or its host is gone. Cause: see that rank's own output; under
    /// rlaunch the launcher's verdict tells it.
    #[error(
        "{peer} failed: {cause}{}; this rank was in {during}{}; \
             hint: look at that rank's output",
        others.it_was(peer),
        others.and_the_rest(std::slice::from_ref(peer))
    )]
    PeerFailed {
        peer: Rank,
        cause: String,
        during: String,
        others: Others,
    },

    /// A rank finalized, or dropped its world, while others still counted on it. Cause: its
    /// program made fewer calls than the others.
    #[error(
        "{peer} has left the job{}; this rank was in {during}{}; \
             hint: all ranks must make the same calls before they finalize",
        others.it_was(peer),
        others.and_the_rest(std::slice::from_ref(peer))
    )]
    PeerLeft {
        peer: Rank,
        during: String,
        others: Others,
    },

    /// Peers did not come within the bound of the call. Cause: a stopped or very slow rank, or a
    /// program in which they never make the matching call. The same on every rank.
    #[error(
        "{by} waited {waited:.1?} in {during} for {}{}; hint: see what they do (py-spy, gdb), or \
             raise {bound}",
        list(missing, others),
        others.and_the_rest(missing)
    )]
    Timeout {
        /// Whose wait it was.
        by: Rank,
        during: String,
        waited: Duration,
        missing: Vec<Rank>,
        /// As that rank knew it.
        others: Others,
        bound: Bound,
    },

    /// The world could not be formed. The text says what to do.
    #[error("can't join the job: {0}")]
    Init(String),

    /// This call's arguments can't be right on any rank, whatever the others do: lengths that
    /// don't fit, a rank outside the world. Nothing was sent; the world stays usable.
    #[error("{0}")]
    Argument(String),

    /// A message is longer or of another type than its receiver's buffer. The same on every rank.
    #[error(
        "{sender} sent {sent}, but {receiver} receives {expected}; \
             hint: send and recv must agree on count and type"
    )]
    MessageMismatch {
        sender: Rank,
        sent: Box<Descriptor>,
        receiver: Rank,
        expected: Box<Descriptor>,
    },

    /// The connection to a peer broke in a way that is no peer's death: bytes that no rank of this
    /// version writes, no memory left for shared segments, a network error.
    #[error(
        "connection to {peer}: {cause}{}; this rank was in {during}{}; \
             hint: see whether that host is up and reaches this one",
        others.it_was(peer),
        others.and_the_rest(std::slice::from_ref(peer))
    )]
    Connection {
        peer: Rank,
        cause: String,
        during: String,
        others: Others,
    },

    /// A buffer of this size can't be had here: the machine, a memory limit of the container or job,
    /// or a limit of the process. Nothing was taken, and the communicator stays usable.
    #[error(
        "{bytes} bytes ({size}) of memory can't be had: {found}; \
             hint: ask for less, or put fewer ranks on a host"
    )]
    Allocation {
        bytes: u128,
        /// `bytes`, as people read them.
        size: String,
        /// What is there.
        found: String,
    },

    /// No memory that this rank's neighbours can see: the container's or the machine's limit.
    #[error(
        "no shared memory: {0}; hint: raise the memory limit, or set RLAUNCH_TRANSPORT=tcp on all \
             ranks to do without"
    )]
    Memory(String),

    /// The program asked to end the wait; see [`crate::set_interrupt`].
    #[error("{during} was interrupted")]
    Interrupted { during: String },

    /// A rank called `abort`, perhaps this one from another thread. Cause: the program's own. The
    /// same on every rank.
    #[error(
        "{by} aborted {}: {reason}; this rank was in {during}{}",
        CommunicatorName(*communicator),
        others.and_the_rest(&[])
    )]
    Aborted {
        by: Rank,
        communicator: u32,
        reason: String,
        during: String,
        others: Others,
    },

    /// Another rank goes on without this communicator: it calls `shrink`. Cause: it has seen a
    /// failure that this rank has not seen yet. Call `shrink` too.
    #[error(
        "{by} shrinks {}; this rank was in {during}; \
             hint: after a failure all ranks that are left call shrink",
        CommunicatorName(*communicator)
    )]
    Revoked {
        by: Rank,
        communicator: u32,
        during: String,
    },

    /// The survivors of a failure took this rank for dead: it had not answered for as long as they
    /// wait. Cause: it was stopped (SIGSTOP, a debugger, a frozen machine). It can't come back.
    #[error(
        "{by} and the others went on without this rank, which had not answered them; \
             hint: it was stopped, or its host hung: look there, or raise RLAUNCH_TIMEOUT (seconds)"
    )]
    Excluded { by: Rank },

    /// The handle belongs to the process that forked this one. Cause: a data loader's worker, or a
    /// process pool, that was forked after init uses it.
    #[error(
        "this process was forked from the one that joined, and can't speak for it; \
             hint: use the runtime in the parent only, or fork before init"
    )]
    Forked,

    /// The request was cancelled before its message came. The communicator stays usable.
    #[error("this receive was cancelled")]
    Cancelled,

    /// The world was finalized already.
    #[error("this world is finalized")]
    Finalized,
}

/// What sets how long a wait may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `RLAUNCH_TIMEOUT`, or the configuration.
    Job,
    /// [`crate::Communicator::set_timeout`].
    Communicator,
    /// The call's own timeout.
    Call,
}

impl Bound {
    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Job => 0,
            Self::Communicator => 1,
            Self::Call => 2,
        }
    }

    pub(crate) fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Communicator,
            2 => Self::Call,
            _ => Self::Job,
        }
    }
}

/// What to raise.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Job => "RLAUNCH_TIMEOUT (seconds)",
            Self::Communicator => "what set_timeout gave the communicator",
            Self::Call => "the call's own timeout",
        })
    }
}

impl Error {
    /// Because of which rank it is, for the launcher.
    pub(crate) fn blames(&self) -> Option<Blames> {
        let (peer, aborted) = match self {
            Self::PeerFailed { peer, .. } | Self::PeerLeft { peer, .. } => (peer, None),
            Self::Aborted {
                by,
                communicator,
                reason,
                ..
            } => {
                let name = CommunicatorName(*communicator);
                (by, Some(format!("{name}: {reason}")))
            }
            _ => return None,
        };
        Some(Blames {
            rank: peer.rank,
            aborted,
        })
    }

    /// What the other ranks of the communicator were doing, where the error is about it.
    pub fn others(&self) -> Option<&Others> {
        match self {
            Self::PeerFailed { others, .. }
            | Self::PeerLeft { others, .. }
            | Self::Timeout { others, .. }
            | Self::Connection { others, .. }
            | Self::Aborted { others, .. } => Some(others),
            _ => None,
        }
    }

    /// A mismatch with more to say.
    pub(crate) fn detailed(mut self, text: String) -> Self {
        if let Self::Mismatch { detail, .. } = &mut self {
            *detail = text;
        }
        self
    }
}

/// Of two ranks of a v-variant.
pub(crate) fn counts_differ(from: u32, sent: u64, to: u32, expected: u64) -> String {
    format!("rank {from} sends {sent} elements to rank {to}, which expects {expected}")
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!(" ({text})")
}

fn list(ranks: &[Rank], others: &Others) -> String {
    const SHOWN_MAX: usize = 8;
    let show = |rank: &Rank| match others.of(rank.rank) {
        Doing::Unknown => rank.to_string(),
        doing => format!("{rank}, {doing}"),
    };
    let mut text: Vec<String> = ranks.iter().take(SHOWN_MAX).map(show).collect();
    if ranks.len() > SHOWN_MAX {
        text.push(format!("{} more", ranks.len() - SHOWN_MAX));
    }
    if text.is_empty() {
        "its peers".into()
    } else {
        text.join(", ")
    }
}
