//! The keeper's loop: orders, deaths and deadlines, one at a time.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::Inherited;
use super::ending::{ASK_PERIOD, LEFTOVER_KILL_MAX};
use super::messages::{self, Event, FromKeeper, Order, ToKeeper};
use super::ranks::Rank;
use super::suspend::Suspension;
use crate::record::KeeperLines;
use crate::sys::{Reaped, reap};

/// Serves the agent until nothing is left and the agent is gone.
pub(super) fn run(socket: OwnedFd, inherited: Inherited) -> io::Result<()> {
    // What is blocked here is unblocked in each child. HUP, INT and the like say nothing to the
    // keeper; TERM ends the job.
    SigSet::all().thread_set_mask()?;
    let mut watched = SigSet::empty();
    watched.add(Signal::SIGCHLD);
    watched.add(Signal::SIGTERM);
    let signals = SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let mut keeper = Keeper {
        socket: Some(socket),
        signals,
        inherited,
        ranks: Vec::new(),
        sealed: false,
        no_children: true,
        leftover_kill: LEFTOVER_KILL_MAX,
        phase: Phase::Running,
        suspension: None,
        asked: HashMap::new(),
        own_pid: nix::unistd::getpid().as_raw(),
        record: None,
    };
    while !(keeper.phase == Phase::Gone && keeper.socket.is_none()) {
        keeper.turn()?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// All ranks have ended; what they left may finish until then.
    Leaving {
        term_at: Instant,
    },
    /// TERM was sent.
    Terminating {
        kill_at: Instant,
    },
    Killing {
        since: Instant,
        next_round: Instant,
    },
    /// Nothing is left, or only what cannot be ended.
    Gone,
}

pub(super) struct Keeper {
    /// None once the agent is gone.
    pub(super) socket: Option<OwnedFd>,
    pub(super) signals: SignalFd,
    pub(super) inherited: Inherited,
    pub(super) ranks: Vec<Rank>,
    pub(super) sealed: bool,
    /// As waitpid said last.
    pub(super) no_children: bool,
    pub(super) leftover_kill: Duration,
    pub(super) phase: Phase,
    pub(super) suspension: Option<Suspension>,
    /// Who got TERM, by number and start time, and the program that it ran then.
    pub(super) asked: HashMap<(i32, u64), String>,
    pub(super) own_pid: i32,
    /// What `rlaunch reap` reads, should this process be killed.
    pub(super) record: Option<KeeperLines>,
}

impl Keeper {
    fn turn(&mut self) -> io::Result<()> {
        let (order_waits, settled) = self.wait()?;
        for index in settled {
            let pid = self.ranks[index].pid;
            let event = self.ranks[index].settle();
            self.note_pid(index, pid);
            self.tell_all(event);
        }
        self.take_signals()?;
        if order_waits {
            self.take_order()?;
        }
        self.reap_all();
        let now = Instant::now();
        self.advance_suspension(now);
        self.advance(now);
        Ok(())
    }

    /// Waits for anything. Whether an order waits, and which ranks' exec has come out.
    fn wait(&self) -> io::Result<(bool, Vec<usize>)> {
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut waits = vec![readable(self.signals.as_fd())];
        waits.extend(self.socket.as_ref().map(|socket| readable(socket.as_fd())));
        let first_rank = waits.len();
        let mut indices = Vec::new();
        for (index, rank) in self.ranks.iter().enumerate() {
            if let Some(outcome) = rank.outcome() {
                indices.push(index);
                waits.push(readable(outcome));
            }
        }
        match poll(&mut waits, self.timeout()) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok((false, Vec::new())),
            Err(error) => return Err(error.into()),
        }
        let fired = |wait: &PollFd<'_>| wait.any().unwrap_or(true);
        let order_waits = self.socket.is_some() && fired(&waits[1]);
        let ranks = indices.into_iter().zip(&waits[first_rank..]);
        Ok((
            order_waits,
            ranks
                .filter(|(_, wait)| fired(wait))
                .map(|(index, _)| index)
                .collect(),
        ))
    }

    fn timeout(&self) -> PollTimeout {
        let phase = match self.phase {
            Phase::Running | Phase::Gone => None,
            Phase::Leaving { term_at } => Some(term_at),
            // Until then whoever is left is looked at again, see `ask_to_end`.
            Phase::Terminating { kill_at } if self.have_ranks_ended() => {
                Some(kill_at.min(Instant::now() + ASK_PERIOD))
            }
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Killing { next_round, .. } => Some(next_round),
        };
        let suspension = self.suspension.as_ref().and_then(Suspension::due);
        let Some(deadline) = phase.into_iter().chain(suspension).min() else {
            return PollTimeout::NONE;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, lest the loop spin through the last millisecond; bounded by the type.
        let left = (left + Duration::from_millis(1)).min(Duration::from_secs(3600));
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    fn take_signals(&mut self) -> io::Result<()> {
        while let Some(info) = self.signals.read_signal()? {
            if info.ssi_signo == libc::SIGTERM.unsigned_abs() {
                self.agent_gone();
            }
        }
        Ok(())
    }

    fn take_order(&mut self) -> io::Result<()> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        let (message, descriptors) = match messages::receive::<ToKeeper>(socket) {
            Ok(Some(received)) => received,
            Ok(None) => {
                self.agent_gone();
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                self.agent_gone();
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        match message.order {
            Some(Order::Spawn(rank)) => self.spawn(rank, descriptors)?,
            Some(Order::Sealed(leftover_kill_ms)) => {
                self.sealed = true;
                let kill = Duration::from_millis(leftover_kill_ms.into());
                self.leftover_kill = kill.min(LEFTOVER_KILL_MAX);
            }
            Some(Order::Signal(signal)) => self.signal_ranks(signal),
            Some(Order::Suspend(true)) => self.suspend(Instant::now()),
            Some(Order::Suspend(false)) => self.resume(),
            Some(Order::Terminate(ms)) => self.terminate(Duration::from_millis(ms.into())),
            Some(Order::Record(path)) => {
                let file = descriptors.into_iter().next();
                self.record = file.map(|file| KeeperLines {
                    path: std::ffi::OsString::from_vec(path).into(),
                    file: file.into(),
                });
            }
            None => {}
        }
        Ok(())
    }

    fn spawn(&mut self, rank: u32, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let mut descriptors = descriptors.into_iter();
        let plan = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
        let standard: [OwnedFd; 3] = descriptors
            .collect::<Vec<_>>()
            .try_into()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let plan = messages::unpack(plan)?;
        if self.phase != Phase::Running {
            let (what, path) = ("fork".to_owned(), Vec::new());
            let errno = libc::ECANCELED;
            self.tell(Event::Failed(messages::Failed {
                rank,
                what,
                path,
                errno,
            }));
            return Ok(());
        }
        match Rank::start(rank, plan, standard, &self.inherited) {
            Ok(rank) => {
                self.ranks.push(rank);
                self.note_pid(self.ranks.len() - 1, 0);
                self.no_children = false;
            }
            Err(event) => self.tell(event),
        }
        Ok(())
    }

    /// In the record, where it is another one than `before`.
    fn note_pid(&self, index: usize, before: i32) {
        let rank = &self.ranks[index];
        if let Some(record) = self.record.as_ref().filter(|_| rank.pid != before) {
            record.forked(rank.number, rank.pid, rank.shares_session);
        }
    }

    pub(super) fn reap_all(&mut self) {
        loop {
            match reap() {
                Reaped::Changed { pid, status } => {
                    // A number may come again after its process was reaped, so only the living.
                    let mut ranks = self.ranks.iter();
                    let rank = ranks.position(|rank| rank.pid == pid && !rank.ended);
                    let suspended = self.suspension.is_some();
                    let mut events = Vec::new();
                    if let Some(index) = rank {
                        events = self.ranks[index].changed(status, suspended);
                        self.note_pid(index, pid);
                        let rank = &self.ranks[index];
                        if let Some(record) = self.record.as_ref().filter(|_| rank.ended) {
                            record.reaped(rank.number);
                        }
                    }
                    if matches!(self.phase, Phase::Killing { .. }) {
                        events.retain(|event| !matches!(event, Event::Stopped(_)));
                    }
                    self.tell_all(events);
                }
                Reaped::NothingNow => {
                    self.no_children = false;
                    return;
                }
                Reaped::NoChildren => {
                    self.no_children = true;
                    return;
                }
            }
        }
    }

    fn tell_all(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.tell(event);
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        let Some(socket) = &self.socket else {
            return;
        };
        let message = FromKeeper { event: Some(event) };
        if messages::send(socket, &message, &[]).is_err() {
            self.agent_gone();
        }
    }
}
