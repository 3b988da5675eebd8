//! The keeper's loop: orders, deaths and deadlines, one at a time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::Inherited;
use super::messages::{self, Event, FromKeeper, Gone, Leftover, Order, ToKeeper};
use super::ranks::Rank;
use crate::processes::{Process, descendants};
use crate::sweep::{self, Survivor};
use crate::sys::{Reaped, reap};

/// After the last rank's end, what it left may finish by itself this long: a `tee` of the last
/// lines, say.
const LEAVE_GRACE: Duration = Duration::from_millis(500);
/// Between TERM and KILL for what ranks left behind, at most.
const LEFTOVER_KILL_MAX: Duration = Duration::from_secs(2);
/// Leftovers told of by name.
const LEFTOVERS_NAMED_MAX: usize = 64;

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
        own_pid: nix::unistd::getpid().as_raw(),
    };
    while !(keeper.phase == Phase::Gone && keeper.socket.is_none()) {
        keeper.turn()?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
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

struct Keeper {
    /// None once the agent is gone.
    socket: Option<OwnedFd>,
    signals: SignalFd,
    inherited: Inherited,
    ranks: Vec<Rank>,
    sealed: bool,
    /// As waitpid said last.
    no_children: bool,
    leftover_kill: Duration,
    phase: Phase,
    own_pid: i32,
}

impl Keeper {
    fn turn(&mut self) -> io::Result<()> {
        let (order_waits, settled) = self.wait()?;
        for index in settled {
            let event = self.ranks[index].settle();
            self.tell_all(event);
        }
        self.take_signals()?;
        if order_waits {
            self.take_order()?;
        }
        self.reap_all();
        self.advance(Instant::now());
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
        let deadline = match self.phase {
            Phase::Running | Phase::Gone => return PollTimeout::NONE,
            Phase::Leaving { term_at } => term_at,
            Phase::Terminating { kill_at } => kill_at,
            Phase::Killing { next_round, .. } => next_round,
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
            Some(Order::Terminate(ms)) => self.terminate(Duration::from_millis(ms.into())),
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
        match Rank::start(rank, plan, &standard, self.inherited) {
            Ok(rank) => {
                self.ranks.push(rank);
                self.no_children = false;
            }
            Err(event) => self.tell(event),
        }
        Ok(())
    }

    fn reap_all(&mut self) {
        loop {
            match reap() {
                Reaped::Changed { pid, status } => {
                    // A number may come again after its process was reaped, so only the living.
                    let rank = self
                        .ranks
                        .iter_mut()
                        .find(|rank| rank.pid == pid && !rank.ended);
                    let mut events = rank.map(|rank| rank.changed(status)).unwrap_or_default();
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

    fn advance(&mut self, now: Instant) {
        let ranks_ended =
            (self.sealed || self.socket.is_none()) && self.ranks.iter().all(|rank| rank.ended);
        if ranks_ended && self.no_children && self.phase != Phase::Gone {
            return self.gone();
        }
        match self.phase {
            Phase::Running if ranks_ended => {
                self.phase = Phase::Leaving {
                    term_at: now + LEAVE_GRACE,
                };
            }
            Phase::Leaving { term_at } if now >= term_at => {
                self.name_leftovers("was left behind by a rank");
                self.terminate(self.leftover_kill);
            }
            Phase::Terminating { kill_at } => {
                let kill_at = if ranks_ended {
                    kill_at.min(now + self.leftover_kill)
                } else {
                    kill_at
                };
                self.phase = Phase::Terminating { kill_at };
                if now >= kill_at {
                    if ranks_ended {
                        self.name_leftovers("did not end by SIGTERM");
                    }
                    self.kill(now);
                }
            }
            Phase::Killing { since, next_round } if now >= next_round => {
                if now >= since + sweep::GIVE_UP_AFTER {
                    self.give_up();
                } else {
                    self.kill_round();
                    self.phase = Phase::Killing {
                        since,
                        next_round: now + sweep::ROUND_PERIOD,
                    };
                }
            }
            _ => {}
        }
    }

    /// TERM to all below; CONT too, for a stopped process takes TERM only when it continues.
    fn terminate(&mut self, kill_after: Duration) {
        let asked = Instant::now() + kill_after;
        let kill_at = match self.phase {
            Phase::Killing { .. } | Phase::Gone => return,
            Phase::Terminating { kill_at } => kill_at.min(asked),
            Phase::Running | Phase::Leaving { .. } => asked,
        };
        self.phase = Phase::Terminating { kill_at };
        self.note_sent(libc::SIGTERM);
        let processes = descendants(self.own_pid);
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            send_all(processes.iter(), signal);
        }
    }

    fn signal_ranks(&mut self, signal: i32) {
        if !(1..=64).contains(&signal) {
            return;
        }
        self.note_sent(signal);
        let sessions: Vec<i32> = self
            .ranks
            .iter()
            .filter(|rank| !rank.ended)
            .map(|rank| rank.pid)
            .collect();
        let processes = descendants(self.own_pid);
        send_all(
            processes
                .iter()
                .filter(|process| sessions.contains(&process.session)),
            signal,
        );
    }

    fn kill(&mut self, now: Instant) {
        self.kill_round();
        self.phase = Phase::Killing {
            since: now,
            next_round: now + sweep::ROUND_PERIOD,
        };
    }

    fn kill_round(&mut self) {
        self.note_sent(libc::SIGKILL);
        sweep::kill_round(self.own_pid);
    }

    fn note_sent(&mut self, signal: i32) {
        for rank in self.ranks.iter_mut().filter(|rank| !rank.ended) {
            rank.note_sent(signal);
        }
    }

    /// Nobody to report to: all goes, at once.
    fn agent_gone(&mut self) {
        self.socket = None;
        if !matches!(self.phase, Phase::Killing { .. } | Phase::Gone) {
            self.kill(Instant::now());
        }
    }

    fn name_leftovers(&mut self, why: &str) {
        for process in descendants(self.own_pid).iter().take(LEFTOVERS_NAMED_MAX) {
            if !process.is_zombie() {
                self.tell(Event::Leftover(Leftover {
                    pid: process.pid,
                    command: process.command(),
                    state: process.state_name().to_owned(),
                    why: why.to_owned(),
                }));
            }
        }
    }

    fn give_up(&mut self) {
        for survivor in sweep::survivors(self.own_pid)
            .into_iter()
            .take(LEFTOVERS_NAMED_MAX)
        {
            let Survivor {
                pid,
                command,
                state,
                why,
            } = survivor;
            if self.socket.is_none() {
                eprintln!("rlaunch: process {pid} ({command}) is left: it {why}");
            }
            let state = state.to_owned();
            self.tell(Event::Leftover(Leftover {
                pid,
                command,
                state,
                why,
            }));
        }
        self.gone();
    }

    fn gone(&mut self) {
        self.phase = Phase::Gone;
        self.tell(Event::Gone(Gone {}));
    }

    fn tell_all(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.tell(event);
        }
    }

    fn tell(&mut self, event: Event) {
        let Some(socket) = &self.socket else {
            return;
        };
        let message = FromKeeper { event: Some(event) };
        if messages::send(socket, &message, &[]).is_err() {
            self.agent_gone();
        }
    }
}

fn send_all<'a>(processes: impl Iterator<Item = &'a Process>, signal: i32) {
    for process in processes {
        process.signal(signal).ok();
    }
}
