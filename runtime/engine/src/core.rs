//! The state of one rank's world, behind the lock of [`crate::World`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_schedule::{Algorithm, Spec};
use rlaunch_transport::shm::{Arena, Doorbell, Team};
use rlaunch_transport::tcp::TcpEndpoint;
use rlaunch_transport::{Connection, ConnectionError, Header, Outgoing, Progress};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

use crate::control::{ControlLink, Event};
use crate::health::Watch;
use crate::interpret::Plan;
use crate::point::{OperationId, Pair, Points};
use crate::wait::Pace;
use crate::{Error, Rank};
use rlaunch_wire::notice::{Disagreement, Failed, Notice, NoticeKind};

/// Calls remembered to be compared with what others wait in.
pub(crate) const HISTORY_CALLS: u64 = 16;

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) rank: u32,
    pub(crate) peers: Vec<Peer>,
    pub(crate) neighbours: Option<Neighbours>,
    /// Where streams come in; `None` where none are needed.
    pub(crate) network: Option<Arc<TcpEndpoint>>,
    pub(crate) control: ControlLink,
    pub(crate) watch: Watch,
    pub(crate) pace: Pace,
    pub(crate) timeout: Duration,
    pub(crate) algorithm: Option<Algorithm>,
    /// Hosts, as far as the choice of algorithms is concerned.
    pub(crate) hosts: u32,
    /// The first error; every later call returns it.
    pub(crate) poison: Option<Error>,
    /// Collective calls begun.
    pub(crate) calls: u64,
    pub(crate) history: VecDeque<Descriptor>,
    pub(crate) plans: HashMap<Spec, Arc<Plan>>,
    pub(crate) scratch: Vec<u64>,
    /// Flags of the interpreter, kept to be allocated once.
    pub(crate) done: Vec<bool>,
    pub(crate) points: Points,
}

/// Another rank (or this one, without a connection).
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) identity: Rank,
    pub(crate) connection: Option<Box<dyn Connection>>,
    /// Its number in the shared memory, where it is a neighbour.
    pub(crate) local: Option<u32>,
    /// Nothing more comes from it: it said so behind all it sent.
    pub(crate) has_left: bool,
    /// It said so over the control link, which its last messages may not have overtaken yet.
    pub(crate) is_leaving: bool,
    /// Polls without a result since it was seen to have left.
    pub(crate) polls_since_left: u32,
    /// Messages that wait for their turn, in order.
    pub(crate) outbox: VecDeque<Queued>,
    pub(crate) pair: Pair,
    /// The calls that it waits in, as it told; the newest last.
    pub(crate) waits_in: Vec<Descriptor>,
}

/// A message that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) message: Outgoing,
    /// Told when it has been sent.
    pub(crate) owner: Option<OperationId>,
}

/// The ranks that share memory with this one.
#[derive(Debug)]
pub(crate) struct Neighbours {
    pub(crate) arena: Arc<Arena>,
    pub(crate) doorbell: Doorbell,
    /// All ranks of this host, in rank order.
    pub(crate) team: Team,
    /// All ranks of the world are neighbours.
    pub(crate) is_world: bool,
}

impl Peer {
    pub(crate) fn new(identity: Rank) -> Self {
        Self {
            identity,
            connection: None,
            local: None,
            has_left: false,
            is_leaving: false,
            polls_since_left: 0,
            outbox: VecDeque::new(),
            pair: Pair::default(),
            waits_in: Vec::new(),
        }
    }
}

impl Queued {
    /// Without payload.
    pub(crate) fn control(header: Header) -> Self {
        let header = Header {
            length_bytes: 0,
            ..header
        };
        Self {
            message: Outgoing::new(header, std::ptr::null()),
            owner: None,
        }
    }

    pub(crate) fn of(message: Outgoing, owner: OperationId) -> Self {
        Self {
            message,
            owner: Some(owner),
        }
    }
}

impl Core {
    pub(crate) fn size(&self) -> u32 {
        self.peers.len() as u32
    }

    /// Numbers a collective call and looks whether the world still stands.
    pub(crate) fn begin(
        &mut self,
        collective: Collective,
        dtype: DType,
        op: Option<Op>,
        root: u32,
        count: usize,
    ) -> Result<Descriptor, Error> {
        let descriptor = Descriptor {
            communicator: 0,
            sequence: self.calls,
            collective,
            dtype,
            op,
            root,
            count: count as u64,
        };
        self.calls += 1;
        if self.history.len() as u64 == HISTORY_CALLS {
            self.history.pop_front();
        }
        self.history.push_back(descriptor);
        self.check(&descriptor)?;
        Ok(descriptor)
    }

    /// Returns the world's error, if it has one. Looks at the control link now and then.
    pub(crate) fn check(&mut self, during: &Descriptor) -> Result<(), Error> {
        if self.poison.is_none() && self.watch.is_due_coarse() {
            self.look(during);
        }
        if self.watch.someone_waits {
            self.compare_waits();
        }
        self.poison.clone().map_or(Ok(()), Err)
    }

    /// Makes `error` the world's, and tells the others. Returns the world's error, which an earlier
    /// one stays.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        if let Some(earlier) = &self.poison {
            return earlier.clone();
        }
        let kind = match &error {
            Error::Mismatch {
                left_rank,
                left,
                right_rank,
                right,
            } => NoticeKind::Disagreement(Disagreement {
                left_rank: left_rank.rank,
                left: left.encode().to_vec(),
                right_rank: right_rank.rank,
                right: right.encode().to_vec(),
            }),
            Error::PeerFailed { peer, cause, .. } => NoticeKind::Failed(Failed {
                rank: peer.rank,
                cause: cause.clone(),
                has_left: false,
            }),
            Error::PeerLeft { peer, .. } => NoticeKind::Failed(Failed {
                rank: peer.rank,
                cause: String::new(),
                has_left: true,
            }),
            other => NoticeKind::Failed(Failed {
                rank: self.rank,
                cause: format!("it gave up: {other}"),
                has_left: false,
            }),
        };
        self.control.broadcast(self.rank, Notice::encoded(kind));
        self.poison = Some(error.clone());
        error
    }

    /// This rank's call against another's; the lower rank stands first in the message.
    pub(crate) fn mismatch(&self, mine: Descriptor, peer: u32, theirs: Descriptor) -> Error {
        let (me, other) = (self.identity(self.rank), self.identity(peer));
        let (mine, theirs) = (Box::new(mine), Box::new(theirs));
        if self.rank < peer {
            Error::Mismatch {
                left_rank: me,
                left: mine,
                right_rank: other,
                right: theirs,
            }
        } else {
            Error::Mismatch {
                left_rank: other,
                left: theirs,
                right_rank: me,
                right: mine,
            }
        }
    }

    pub(crate) fn identity(&self, rank: u32) -> Rank {
        self.peers[rank as usize].identity.clone()
    }

    /// What a broken connection means. Waits a little for a better word: the launcher knows how a
    /// process ended, and a peer that left may have done so because of a third one.
    pub(crate) fn explain(
        &mut self,
        rank: u32,
        error: ConnectionError,
        during: &Descriptor,
    ) -> Error {
        let peer = self.identity(rank);
        let during = &during.to_string();
        match error {
            ConnectionError::Closed => {
                self.linger(during);
                if let Some(poison) = &self.poison {
                    return poison.clone();
                }
                let departed = &self.peers[rank as usize];
                if departed.has_left || departed.is_leaving {
                    return Error::PeerLeft {
                        peer,
                        during: during.into(),
                    };
                }
                let cause = "its process ended (connection closed)".into();
                Error::PeerFailed {
                    peer,
                    cause,
                    during: during.into(),
                }
            }
            other => {
                if matches!(other, ConnectionError::Unreachable { .. }) {
                    // As a process that has ended looks to who first turns to it.
                    self.linger(during);
                    if let Some(poison) = &self.poison {
                        return poison.clone();
                    }
                }
                Error::Connection {
                    peer,
                    cause: other.to_string(),
                }
            }
        }
    }

    /// Gives the control link this long to tell the cause of what was just seen.
    pub(crate) fn linger(&mut self, during: &str) {
        const LINGER: Duration = Duration::from_millis(250);
        let deadline = Instant::now() + LINGER;
        while self.poison.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || matches!(self.control, ControlLink::None) {
                return;
            }
            let descriptors: Vec<_> = self
                .control
                .descriptors()
                .into_iter()
                .map(|fd| (fd, libc::POLLIN))
                .collect();
            crate::framed::poll_descriptors(&descriptors, left);
            self.poll_control(during);
        }
    }

    pub(crate) fn poll_control(&mut self, during: &str) {
        let mut events = Vec::new();
        self.control.poll(&mut events);
        for event in events {
            self.handle(event, during);
        }
    }

    fn handle(&mut self, event: Event, during: &str) {
        match event {
            Event::Notice { from, payload } => self.handle_notice(from, &payload, during),
            Event::PeerFailed(failed) => {
                let peer = Rank {
                    rank: failed.rank,
                    host: failed.host,
                    pid: failed.pid,
                };
                let during = during.into();
                let error = Error::PeerFailed {
                    peer,
                    cause: failed.cause,
                    during,
                };
                self.poison.get_or_insert(error);
            }
            Event::Lost => self.handle_lost_link(during),
        }
    }

    /// Sends what waits for this peer; true when nothing is left. Only between messages.
    pub(crate) fn flush_outbox(&mut self, rank: u32, during: &Descriptor) -> Result<bool, Error> {
        loop {
            let peer = &mut self.peers[rank as usize];
            let Some(queued) = peer.outbox.front_mut() else {
                return Ok(true);
            };
            let Some(connection) = &mut peer.connection else {
                return Ok(true);
            };
            // SAFETY: a message with a payload has an owner, whose starter vouches for it until the
            // owner ends; then the message is abandoned or taken out.
            match unsafe { connection.poll_send(&mut queued.message) } {
                Ok(Progress::Done) => {
                    let owner = queued.owner;
                    peer.outbox.pop_front();
                    if let Some(owner) = owner {
                        self.end_sent(owner);
                    }
                }
                Ok(_) => return Ok(false),
                // Credits for one that has gone are of no use. Whether its end matters, the
                // receiving side tells, after what it sent.
                Err(ConnectionError::Closed) if queued.owner.is_none() => {
                    peer.outbox.pop_front();
                }
                Err(error) => return Err(self.explain(rank, error, during)),
            }
        }
    }

    /// Makes `error` that of a communicator.
    pub(crate) fn fail_communicator(&mut self, _communicator: u32, error: Error) -> Error {
        self.fail(error)
    }

    /// The rank's number in a communicator.
    pub(crate) fn rank_in(&self, _communicator: u32, rank: u32) -> u32 {
        rank
    }

    /// The members of a communicator, as ranks of the world.
    pub(crate) fn members(&self, _communicator: u32) -> Vec<u32> {
        (0..self.size()).collect()
    }
}
