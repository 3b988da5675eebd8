//! The state of one rank's job, behind the engine's lock: peers, communicators, what is under way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_schedule::Selector;
use rlaunch_transport::shm::{Arena, Doorbell};
use rlaunch_transport::tcp::TcpEndpoint;
use rlaunch_transport::{Connection, ConnectionError, Header, Outgoing};
use rlaunch_wire::Descriptor;
use rlaunch_wire::notice::{Failed, Notice, NoticeKind};

use crate::active::Active;
use crate::control::{ControlLink, Event};
use crate::failure::{Ballots, Departure, Doing, Logbook, Others};
use crate::group::{GroupKey, Groups};
use crate::health::Watch;
use crate::known::Known;
use crate::point::{OperationId, Pair, Points};
use crate::streams::Stream;
use crate::wait::Pace;
use crate::{Error, Rank};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) rank: u32,
    pub(crate) peers: Vec<Peer>,
    /// Host of each rank of the world; ranks of one host share memory if they may.
    pub(crate) host_of: Vec<u32>,
    pub(crate) neighbours: Option<Neighbours>,
    /// Where streams come in; `None` where none are needed.
    pub(crate) network: Option<Arc<TcpEndpoint>>,
    pub(crate) control: ControlLink,
    pub(crate) watch: Watch,
    pub(crate) pace: Pace,
    pub(crate) timeout: Duration,
    pub(crate) selector: Arc<Selector>,
    pub(crate) known: Known,
    pub(crate) groups: Groups,
    /// Operations under way, but for the one that the driving thread runs for itself.
    pub(crate) active: Vec<Active>,
    pub(crate) epoch: Instant,
    pub(crate) spare: Spare,
    pub(crate) points: Points,
    /// Communicators that have failed since their point-to-point operations were last ended.
    pub(crate) failed_now: Vec<GroupKey>,
    pub(crate) ballots: Ballots,
    pub(crate) logbook: Arc<Logbook>,
    pub(crate) ending: Ending,
}

/// What matters when this rank leaves.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// Some call has returned an error, so that the program knows of one.
    pub(crate) has_told: bool,
    /// What was found of a communicator when its last handle was gone already.
    pub(crate) late: Option<Error>,
    /// The rank that told that the others go on without this one.
    pub(crate) excluded_by: Option<u32>,
    /// The launcher knows because of whom something failed here first.
    pub(crate) has_blamed: bool,
}

/// Memory of calls that are over, for those to come.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    pub(crate) scratch: Vec<u64>,
    /// Room for sums in binary32.
    pub(crate) wide: Vec<u64>,
    /// Flags of the interpreter.
    pub(crate) done: Vec<bool>,
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
    /// Why no communicator with it can work any more.
    pub(crate) failure: Option<Cause>,
    pub(crate) stream: Stream,
    /// Messages that wait for their turn, in order.
    pub(crate) outbox: VecDeque<Queued>,
    pub(crate) pair: Pair,
    /// The calls that it waits in, as it told; the newest last of each communicator.
    pub(crate) waits_in: Vec<Descriptor>,
    /// What it does in communicators, as it told, and when it did.
    pub(crate) doing: Vec<(u32, Doing)>,
    pub(crate) told_at: Option<Instant>,
    /// The call of the last message that came from it.
    pub(crate) last_heard: Option<Descriptor>,
}

/// A message that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) message: Outgoing,
    /// Told when it has been sent.
    pub(crate) owner: Option<OperationId>,
    /// The payload, where it is the message's own.
    pub(crate) _body: Option<Box<[u8]>>,
}

/// What ended a peer, as far as this rank knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    Failed(String),
    Left,
    Broken(String),
}

/// The ranks that share memory with this one.
#[derive(Debug)]
pub(crate) struct Neighbours {
    pub(crate) arena: Arc<Arena>,
    pub(crate) doorbell: Doorbell,
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
            failure: None,
            stream: Stream::default(),
            outbox: VecDeque::new(),
            pair: Pair::default(),
            waits_in: Vec::new(),
            doing: Vec::new(),
            told_at: None,
            last_heard: None,
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
            _body: None,
        }
    }

    /// With a payload of its own.
    pub(crate) fn with_body(header: Header, body: Box<[u8]>) -> Self {
        let header = Header {
            length_bytes: body.len() as u64,
            ..header
        };
        Self {
            message: Outgoing::new(header, body.as_ptr()),
            owner: None,
            _body: Some(body),
        }
    }

    pub(crate) fn of(message: Outgoing, owner: OperationId) -> Self {
        Self {
            message,
            owner: Some(owner),
            _body: None,
        }
    }
}

impl Cause {
    pub(crate) fn error(&self, peer: Rank, during: String, others: Others) -> Error {
        match self {
            Self::Failed(cause) => Error::PeerFailed {
                peer,
                cause: cause.clone(),
                during,
                others,
            },
            Self::Left => Error::PeerLeft {
                peer,
                during,
                others,
            },
            Self::Broken(cause) => Error::Connection {
                peer,
                cause: cause.clone(),
                during,
                others,
            },
        }
    }
}

impl Core {
    pub(crate) fn size(&self) -> u32 {
        self.peers.len() as u32
    }

    pub(crate) fn identity(&self, rank: u32) -> Rank {
        self.peers[rank as usize].identity.clone()
    }

    /// Returns the communicator's error, if it has one. Looks at the control link now and then.
    #[inline]
    pub(crate) fn check(&mut self, key: GroupKey) -> Result<(), Error> {
        if self.watch.is_due_coarse() {
            self.look();
        }
        if self.watch.someone_waits {
            self.compare_waits();
        }
        self.note_abort(key);
        let group = self.groups.get(key).ok_or(Error::Finalized)?;
        group.poison.clone().map_or(Ok(()), Err)
    }

    /// An abort from another thread becomes the communicator's error.
    #[inline]
    pub(crate) fn note_abort(&mut self, key: GroupKey) {
        let Some(group) = self.groups.get(key) else {
            return;
        };
        let Some(reason) = group.shared.aborted() else {
            return;
        };
        if group.poison.is_some() {
            return;
        }
        let error = Error::Aborted {
            by: self.identity(self.rank),
            communicator: group.id(),
            reason: reason.to_owned(),
            during: group.during(),
            others: self.others(key, &[]),
        };
        self.fail(key, error);
    }

    /// Makes `error` the communicator's, and tells the others. Returns the communicator's error,
    /// which an earlier one stays.
    pub(crate) fn fail(&mut self, key: GroupKey, error: Error) -> Error {
        let (me, Some(group)) = (self.rank, self.groups.get_mut(key)) else {
            return error;
        };
        if let Some(earlier) = &group.poison {
            return earlier.clone();
        }
        group.poison = Some(error.clone());
        let id = group.id();
        self.failed_now.push(key);
        self.logbook.print_after(&error);
        let notice = Notice::encoded(crate::notices::of_failure(&error, id));
        self.control.broadcast(me, notice);
        error
    }

    /// A failure that the others know already.
    pub(crate) fn poison(&mut self, key: GroupKey, error: Error) {
        if let Some(group) = self.groups.get_mut(key)
            && group.poison.is_none()
        {
            self.logbook.print_after(&error);
            let blames = error.blames().filter(|blames| blames.rank != self.rank);
            group.poison = Some(error);
            self.failed_now.push(key);
            if let Some(blames) = blames.filter(|_| !self.ending.has_blamed) {
                self.ending.has_blamed = true;
                self.control
                    .tell_launcher(self.rank, NoticeKind::Blames(blames));
            }
        }
    }

    /// Nothing that needs this rank can work any more: its communicators fail. The others are told.
    pub(crate) fn fail_peer(&mut self, rank: u32, cause: &Cause) {
        if !self.lose_peer(rank, cause) {
            return;
        }
        let text = match cause {
            Cause::Failed(text) | Cause::Broken(text) => text.clone(),
            Cause::Left => String::new(),
        };
        let failed = Failed {
            rank,
            cause: text,
            has_left: *cause == Cause::Left,
            communicator: None,
        };
        let notice = Notice::encoded(NoticeKind::Failed(failed));
        self.control.broadcast(self.rank, notice);
        self.report_departed();
    }

    /// The same without telling, and not before [`Core::report_departed`]; false if it was known.
    pub(crate) fn lose_peer(&mut self, rank: u32, cause: &Cause) -> bool {
        let peer = &mut self.peers[rank as usize];
        if peer.failure.is_some() {
            return false;
        }
        peer.failure = Some(cause.clone());
        self.watch.departed.push(Departure {
            rank,
            cause: cause.clone(),
            communicator: None,
        });
        true
    }

    /// What a communicator of these ranks of the world would fail with at once.
    pub(crate) fn known_failure(&self, ranks: &[u32]) -> Option<Error> {
        ranks.iter().find_map(|rank| {
            let cause = self.peers[*rank as usize].failure.as_ref()?;
            Some(cause.error(self.identity(*rank), "no call".into(), Others::none()))
        })
    }

    /// What a broken connection means, for this call and for all communicators with that peer.
    /// Waits a little for a better word: the launcher knows how a process ended, and a peer that
    /// left may have done so because of a third one.
    pub(crate) fn explain(
        &mut self,
        rank: u32,
        error: ConnectionError,
        call: &Descriptor,
    ) -> Error {
        let cause = match error {
            ConnectionError::Closed => {
                self.linger(rank);
                let departed = &self.peers[rank as usize];
                if let Some(known) = &departed.failure {
                    known.clone()
                } else if departed.has_left || departed.is_leaving {
                    Cause::Left
                } else {
                    Cause::Failed("its process ended (connection closed)".into())
                }
            }
            other => {
                if matches!(other, ConnectionError::Unreachable { .. }) {
                    // As a process that has ended looks to who first turns to it.
                    self.linger(rank);
                }
                let known = self.peers[rank as usize].failure.clone();
                known.unwrap_or_else(|| Cause::Broken(other.to_string()))
            }
        };
        if let Some(key) = self.groups.find(call.communicator)
            && let Some(error) = &self.group(key).poison
        {
            return error.clone();
        }
        let key = self.groups.find(call.communicator);
        if cause != Cause::Left {
            self.fail_peer(rank, &cause);
        } else if let Some(key) = key {
            self.ask_around(&[key]);
        }
        let others = key.map_or_else(Others::none, |key| self.others(key, &[rank]));
        cause.error(self.identity(rank), call.to_string(), others)
    }

    /// Of bytes that no rank of this version writes.
    pub(crate) fn garbled(&self, rank: u32, cause: String, call: &Descriptor) -> Error {
        let key = self.groups.find(call.communicator);
        let others = key.map_or_else(Others::none, |key| self.others(key, &[rank]));
        Cause::Broken(cause).error(self.identity(rank), call.to_string(), others)
    }

    /// Gives the control link this long to tell why `rank` is out.
    pub(crate) fn linger(&mut self, rank: u32) {
        const LINGER: Duration = Duration::from_millis(250);
        let deadline = Instant::now() + LINGER;
        let before = self.groups.poisoned();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let has_failed = self.peers[rank as usize].failure.is_some();
            let is_known = has_failed || self.groups.poisoned() > before;
            if is_known || left.is_zero() || matches!(self.control, ControlLink::None) {
                return;
            }
            let descriptors: Vec<_> = self
                .control
                .descriptors()
                .into_iter()
                .map(|fd| (fd, libc::POLLIN))
                .collect();
            crate::framed::poll_descriptors(&descriptors, left);
            self.poll_control();
        }
    }

    pub(crate) fn poll_control(&mut self) {
        let mut events = Vec::new();
        self.control.poll(&mut events);
        for event in events {
            match event {
                Event::Notice { from, payload } => self.handle_notice(from, &payload),
                Event::PeerFailed(failed) => self.handle_peer_failed(failed),
                Event::Lost => self.handle_lost_link(),
            }
        }
        self.report_departed();
    }
}
