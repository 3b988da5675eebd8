//! The whole job stopped and continued, as ^Z and `fg` do with a program.
//!
//! Each rank leads a session, whose process group is orphaned: SIGTSTP is for those that handle it
//! (they get [`HANDLE_TIME`]), and what really stops is SIGSTOP, to everything below the keeper.
//! What was stopped before stays so when the others continue.

use std::time::{Duration, Instant};

use nix::libc;

use super::ending::send_all;
use super::messages::{Event, Suspended};
use super::run::{Keeper, Phase};
use crate::processes::descendants;

/// Between SIGTSTP and SIGSTOP.
const HANDLE_TIME: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Suspension {
    /// Who was stopped before: number and start time.
    stopped_before: Vec<(i32, u64)>,
    /// Until SIGSTOP was sent.
    stop_at: Option<Instant>,
}

impl Suspension {
    pub(super) fn due(&self) -> Option<Instant> {
        self.stop_at
    }
}

impl Keeper {
    /// A job that is being ended is not suspended; the launcher hears that it is, for it waits.
    pub(super) fn suspend(&mut self, now: Instant) {
        if self.phase != Phase::Running || self.suspension.is_some() {
            return self.tell(Event::Suspended(Suspended {}));
        }
        let stopped = descendants(self.own_pid);
        let stopped = stopped.iter().filter(|process| process.is_stopped());
        self.suspension = Some(Suspension {
            stopped_before: stopped.map(|process| process.identity()).collect(),
            stop_at: Some(now + HANDLE_TIME),
        });
        self.signal_ranks(libc::SIGTSTP);
    }

    pub(super) fn advance_suspension(&mut self, now: Instant) {
        let Some(suspension) = &mut self.suspension else {
            return;
        };
        if suspension.stop_at.is_none_or(|at| now < at) {
            return;
        }
        suspension.stop_at = None;
        // Twice: a process that forks quickly may have made a child meanwhile.
        for _ in 0..2 {
            send_all(descendants(self.own_pid).iter(), libc::SIGSTOP);
        }
        self.tell(Event::Suspended(Suspended {}));
    }

    pub(super) fn resume(&mut self) {
        // Reaped first, so that what the suspension stopped is known as such.
        self.reap_all();
        let Some(suspension) = self.suspension.take() else {
            return;
        };
        let processes = descendants(self.own_pid);
        let ours = processes
            .iter()
            .filter(|process| !suspension.stopped_before.contains(&process.identity()));
        send_all(ours, libc::SIGCONT);
    }
}
