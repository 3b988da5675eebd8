//! The socket that serves this host's ranks (`rlaunch_wire::rank`).
//!
//! An abstract Unix socket with a name that cannot be guessed: nothing is left behind, and only
//! this user is let in (SO_PEERCRED). One task reads a connection, one writes it: a rank that
//! does not read fills its own queue, is cut off at the bound, and delays nobody.

use std::collections::BTreeMap;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener};
use std::sync::{Arc, Mutex, MutexGuard};

use prost::bytes::Bytes;
use rlaunch_wire::rank::{PeerFailed, ToRankMessage};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};

use super::outgoing::Outgoing;
use super::rank_connection;

/// Bytes that may wait for one rank. It may compute for hours without reading; a few broadcasts
/// and the world's cards fit.
const QUEUE_MAX_BYTES: usize = 16 << 20;

/// What ranks are told of the job.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) job_id: Vec<u8>,
    pub(crate) secret: Vec<u8>,
    pub(crate) world_size: u32,
    pub(crate) host: String,
}

/// What a rank did, for the driver.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RankEvent {
    Joined {
        rank: u32,
        card: Vec<u8>,
    },
    Left {
        rank: u32,
    },
    /// It has waited for the world as long as it may.
    Overdue {
        rank: u32,
    },
}

/// Who is connected; shared between the connections and the driver.
#[derive(Clone)]
pub(crate) struct Ranks(Arc<Mutex<Members>>);

#[derive(Default)]
struct Members {
    by_rank: BTreeMap<u32, Member>,
    /// For those that come later; one for each rank of the job at most.
    failures: BTreeMap<u32, Bytes>,
}

#[derive(Default)]
struct Member {
    joined: bool,
    pid: u32,
    connection: Option<Connected>,
}

pub(crate) struct Connected {
    pub(crate) queue: mpsc::UnboundedSender<Bytes>,
    /// Shared with the writer, which subtracts.
    pub(crate) queued_bytes: Arc<Mutex<usize>>,
    /// Asks the reader to take at once what the socket holds, and to say when it has.
    pub(crate) drain: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl Ranks {
    pub(crate) fn new(ranks: impl Iterator<Item = u32>) -> Self {
        let by_rank = ranks.map(|rank| (rank, Member::default())).collect();
        Self(Arc::new(Mutex::new(Members {
            by_rank,
            ..Members::default()
        })))
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // A panic of another task while it held this left nothing half done.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Enters a connection, or says why not.
    pub(crate) fn enter(&self, rank: u32, pid: u32, connected: Connected) -> Result<(), String> {
        let mut members = self.members();
        let Members { by_rank, failures } = &mut *members;
        let Some(member) = by_rank.get_mut(&rank) else {
            return Err(format!("this host has no rank {rank} of the job"));
        };
        if member.joined || member.connection.is_some() {
            return Err(format!(
                "rank {rank} has joined already, as process {}: one process of a rank may call init",
                member.pid
            ));
        }
        for failure in failures.values() {
            connected.queue(failure);
        }
        member.pid = pid;
        member.connection = Some(connected);
        Ok(())
    }

    /// The first join of this rank?
    pub(crate) fn join(&self, rank: u32) -> bool {
        self.members()
            .by_rank
            .get_mut(&rank)
            .is_some_and(|member| !std::mem::replace(&mut member.joined, true))
    }

    /// Its connection has ended.
    pub(crate) fn disconnect(&self, rank: u32) {
        if let Some(member) = self.members().by_rank.get_mut(&rank) {
            member.connection = None;
        }
    }

    /// Queues a message for every connected rank but `except`. Those whose queue is full are cut
    /// off, and named.
    pub(crate) fn tell_all(&self, message: &ToRankMessage, except: Option<u32>) -> Vec<u32> {
        let frame = rank_connection::frame(message);
        let mut cut_off = Vec::new();
        for (rank, member) in self.members().by_rank.iter_mut() {
            let told = |connected: &Connected| connected.queue(&frame);
            if Some(*rank) != except && !member.connection.as_ref().is_none_or(told) {
                member.connection = None;
                cut_off.push(*rank);
            }
        }
        cut_off
    }

    /// To one rank, if it is connected and has room.
    pub(crate) fn tell(&self, rank: u32, message: &ToRankMessage) {
        let frame = rank_connection::frame(message);
        if let Some(member) = self.members().by_rank.get(&rank)
            && let Some(connected) = &member.connection
        {
            connected.queue(&frame);
        }
    }

    /// A rank that connects after a failure of a peer hears of it right after its welcome.
    pub(crate) fn remember_failure(&self, failed: &PeerFailed) {
        let frame = rank_connection::frame(&ToRankMessage::PeerFailed(failed.clone()));
        self.members().failures.insert(failed.rank, frame);
    }

    /// Lets the rank's connection take what the dead rank sent last: a Leave before its exit.
    pub(crate) async fn drain(&self, rank: u32) {
        let (sender, drained) = oneshot::channel();
        let asked = self
            .members()
            .by_rank
            .get(&rank)
            .and_then(|member| member.connection.as_ref())
            .is_some_and(|connected| connected.drain.send(sender).is_ok());
        if asked {
            drained.await.ok();
        }
    }
}

impl Connected {
    /// False: no room, or the writer is gone.
    pub(crate) fn queue(&self, frame: &Bytes) -> bool {
        let mut bytes = self
            .queued_bytes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *bytes += frame.len();
        *bytes <= QUEUE_MAX_BYTES && self.queue.send(frame.clone()).is_ok()
    }
}

/// The listener and its name, without the leading NUL.
pub(crate) fn bind() -> io::Result<(UnixListener, String)> {
    let name = format!("rlaunch-{}", crate::random::hex::<16>());
    let listener = StdListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, name))
}

/// Serves connections until dropped.
pub(crate) async fn serve(
    listener: UnixListener,
    ranks: Ranks,
    facts: Facts,
    events: mpsc::Sender<RankEvent>,
    outgoing: Outgoing,
) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let facts = facts.clone();
                    let (ranks, events, outgoing) = (ranks.clone(), events.clone(), outgoing.clone());
                    connections.spawn(rank_connection::run(stream, ranks, facts, events, outgoing));
                }
                // Out of descriptors: some will be free soon.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}
