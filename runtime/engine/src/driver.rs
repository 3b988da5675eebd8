//! Driving: polling operations until one is done, looking around, sleeping.
//!
//! One thread at a time drives, and drives everything: its own operation, those of other threads and
//! those that were started. Between polls it takes what other threads have submitted.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rlaunch_transport::Progress;

use crate::Error;
use crate::core::{Cause, Core};
use crate::engine::Engine;
use crate::failure::Slot;
use crate::framed::poll_descriptors;
use crate::group::GroupKey;
use crate::interrupt::is_interrupted;
use crate::wait::{Awaited, DEAF_SLEEP_MAX, Idle, Operation, Wait};

/// A wait this long is told to the others, who compare it with their own calls.
pub(crate) const ANNOUNCE_AFTER: Duration = Duration::from_millis(100);
/// Between two questions whether the program wants to end the wait.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(100);
/// Polls of an operation that moves, between two looks at the others.
const MOVES_PER_LOOK: u32 = 16;

/// The operation that the driving thread runs for itself.
pub(crate) struct Own<'a> {
    pub(crate) key: GroupKey,
    pub(crate) operation: &'a mut dyn Operation,
    pub(crate) timeout: Option<Duration>,
}

/// One thread's turn at driving.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    wait: Wait,
    /// Since when the own operation has not moved.
    begun: Option<Instant>,
    moves: u32,
    is_announced: bool,
    /// It has waited long enough for the others to be told in what.
    has_looked: bool,
    /// Of the own operation, in the flight recorder.
    slot: Option<Slot>,
    next_interrupt: Option<Instant>,
    /// Works for others only: leaves as soon as somebody else would drive.
    is_background: bool,
}

impl Turn {
    /// Of a thread that works for others only.
    pub(crate) fn background() -> Self {
        Self {
            is_background: true,
            ..Self::default()
        }
    }
}

impl Engine {
    /// Polls `own` until it is done or fails, and everything else meanwhile.
    pub(crate) fn drive_own(&self, core: &mut Core, own: &mut Own<'_>) -> Result<(), Error> {
        let mut turn = Turn {
            slot: core.record_begin(own.key, own.operation),
            ..Turn::default()
        };
        let result = loop {
            match own.operation.poll(core) {
                Ok(Progress::Done) => break Ok(()),
                Ok(Progress::Moved) => {
                    turn.wait.reset();
                    turn.begun = None;
                    turn.moves += 1;
                    if turn.moves.is_multiple_of(MOVES_PER_LOOK) {
                        self.drive_others(core);
                    }
                    continue;
                }
                Ok(Progress::Idle) => {}
                Err(error) => break Err(error),
            }
            if self.drive_others(core) {
                turn.wait.reset();
                continue;
            }
            if let Err(error) = self.rest(core, Some(own), &mut turn) {
                break Err(error);
            }
        };
        own.operation.end(core);
        core.record_end(own.key, turn.slot, result.is_ok(), turn.has_looked);
        if turn.has_looked
            && let Some(group) = core.groups.get_mut(own.key)
        {
            group.waits_in = None;
        }
        result.map_err(|error| core.failure_of(own.key, error))
    }

    /// Drives what others have under way until `is_over`.
    pub(crate) fn drive_until(
        &self,
        core: &mut Core,
        turn: &mut Turn,
        mut is_over: impl FnMut(&Core) -> bool,
    ) -> Result<(), Error> {
        loop {
            let has_moved = self.drive_others(core);
            if is_over(core) {
                return Ok(());
            }
            if has_moved {
                turn.wait.reset();
            } else {
                self.rest(core, None, turn)?;
            }
        }
    }

    /// Takes what was submitted and polls everything under way once; whether anything moved.
    #[inline]
    pub(crate) fn drive_others(&self, core: &mut Core) -> bool {
        if self.submitted.load(Ordering::Relaxed) > 0 {
            self.take_submissions(core);
        }
        let has_moved = !core.active.is_empty() && core.drive();
        core.drive_points() || has_moved
    }

    /// After an idle poll.
    #[inline]
    fn rest(
        &self,
        core: &mut Core,
        own: Option<&mut Own<'_>>,
        turn: &mut Turn,
    ) -> Result<(), Error> {
        match core.pace.idle(&mut turn.wait) {
            Idle::Again => Ok(()),
            Idle::Look(now) => self.look_and_rest(core, own, turn, now),
        }
    }

    fn look_and_rest(
        &self,
        core: &mut Core,
        own: Option<&mut Own<'_>>,
        turn: &mut Turn,
        now: Instant,
    ) -> Result<(), Error> {
        let begun = *turn.begun.get_or_insert(now);
        if !turn.has_looked
            && let Some(own) = &own
        {
            core.record_wait(own.key, turn.slot);
        }
        turn.has_looked = true;
        if core.watch.is_due(now) {
            core.look_around(own.as_deref(), turn, now, begun)?;
        }
        let Some(longest) = core.pace.rest(&mut turn.wait, now) else {
            return Ok(());
        };
        self.sleep(core, own, turn, longest)
    }

    /// Sleeps until something may have come for an operation, or another thread has something.
    fn sleep(
        &self,
        core: &mut Core,
        own: Option<&mut Own<'_>>,
        turn: &Turn,
        longest: Duration,
    ) -> Result<(), Error> {
        let mut awaited = Vec::new();
        if let Some(own) = &own {
            awaited.extend(own.operation.awaited(core));
        }
        let of_own = awaited.len();
        core.awaited_by_active(&mut awaited);
        core.awaited_by_points(&mut awaited);
        let is_own_alone = core.active.is_empty() && awaited.len() == of_own;
        // Who needs all of them sleeps until one has come, not until each has rung.
        let only = own
            .as_ref()
            .filter(|own| is_own_alone && own.operation.awaits_all(core))
            .and_then(|_| core.peers[awaited.last()?.rank as usize].local);
        let (mut descriptors, is_near) = core.wait_on(&awaited);
        self.is_sleeping.store(true, Ordering::SeqCst);
        if self.submitted.load(Ordering::SeqCst) > 0
            || (turn.is_background && self.following.load(Ordering::SeqCst) > 0)
        {
            self.is_sleeping.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let doorbell = core
            .neighbours
            .as_ref()
            .map(|neighbours| neighbours.doorbell.clone());
        match doorbell {
            Some(doorbell) if is_near && descriptors.is_empty() => {
                let ticket = doorbell.ticket(only);
                // Whatever came before the ticket rang no bell.
                let is_idle = core.is_idle(own)?;
                if is_idle && self.is_sleeping.load(Ordering::SeqCst) {
                    doorbell.sleep(ticket, longest);
                } else {
                    doorbell.cancel();
                }
            }
            _ => {
                // Neighbours ring a bell that poll doesn't hear.
                let longest = if is_near {
                    DEAF_SLEEP_MAX.min(longest)
                } else {
                    longest
                };
                let links = core.control.descriptors();
                descriptors.extend(links.into_iter().map(|link| (link, libc::POLLIN)));
                descriptors.push((self.waker.descriptor(), libc::POLLIN));
                poll_descriptors(&descriptors, longest);
                self.waker.reset();
            }
        }
        self.is_sleeping.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Core {
    /// What happens about once a millisecond of a wait.
    fn look_around(
        &mut self,
        own: Option<&Own<'_>>,
        turn: &mut Turn,
        now: Instant,
        begun: Instant,
    ) -> Result<(), Error> {
        if let Some(own) = own
            && let Some(group) = self.groups.get_mut(own.key)
        {
            group.waits_in = Some(own.operation.call());
        }
        self.look();
        for (key, awaited) in self.active_waits() {
            self.note_abort(key);
            self.refuse_departed(key, &awaited);
        }
        for (key, awaited) in self.started_waits() {
            self.note_abort(key);
            self.refuse_departed(key, &awaited);
        }
        self.end_overdue(now);
        self.end_overdue_points(now);
        let oldest = self.oldest_move().unwrap_or(now);
        let oldest = if own.is_some() {
            oldest.min(begun)
        } else {
            oldest
        };
        if now - oldest >= ANNOUNCE_AFTER && !turn.is_announced {
            turn.is_announced = true;
            self.announce(&[]);
        }
        let Some(own) = own else {
            return Ok(());
        };
        self.note_abort(own.key);
        let awaited = own.operation.awaited(self);
        self.refuse_departed(own.key, &awaited);
        if let Some(error) = self
            .groups
            .get(own.key)
            .and_then(|group| group.poison.clone())
        {
            return Err(error);
        }
        let next_interrupt = turn.next_interrupt.get_or_insert(begun + INTERRUPT_PERIOD);
        if now >= *next_interrupt {
            *next_interrupt = now + INTERRUPT_PERIOD;
            if is_interrupted() {
                let during = own.operation.call().to_string();
                return Err(Error::Interrupted { during });
            }
        }
        if now - begun >= self.timeout_of(own.key, own.timeout) {
            let waited = now - begun;
            return Err(self.timed_out(own.key, own.operation, own.timeout, waited));
        }
        Ok(())
    }

    /// What to sleep on for these ranks, and whether some ring the doorbell instead.
    fn wait_on(&self, awaited: &[Awaited]) -> (Vec<(RawFd, libc::c_short)>, bool) {
        let mut descriptors = Vec::new();
        let mut is_near = false;
        for awaited in awaited {
            let connection = self.peers[awaited.rank as usize].connection.as_ref();
            is_near |= !connection
                .is_some_and(|connection| connection.wait_on(awaited.to_send, &mut descriptors));
        }
        (descriptors, is_near)
    }

    /// One more poll of everything.
    fn is_idle(&mut self, own: Option<&mut Own<'_>>) -> Result<bool, Error> {
        if let Some(own) = own
            && own.operation.poll(self)? != Progress::Idle
        {
            return Ok(false);
        }
        let is_idle = self.active.is_empty() || !self.drive();
        Ok(!self.drive_points() && is_idle)
    }

    /// Who has finalized and sent nothing more will never come: the communicator fails.
    fn refuse_departed(&mut self, key: GroupKey, awaited: &[Awaited]) {
        for awaited in awaited {
            let peer = &mut self.peers[awaited.rank as usize];
            if !peer.has_left {
                continue;
            }
            peer.polls_since_left += 1;
            if peer.polls_since_left < 2 {
                continue;
            }
            self.linger(awaited.rank);
            let is_whole = |core: &Self| {
                let group = core.groups.get(key);
                group.is_some_and(|group| group.poison.is_none())
            };
            if is_whole(self) {
                self.ask_around(&[key]);
            }
            if is_whole(self) {
                let error = self.departure(key, awaited.rank, &Cause::Left);
                self.fail(key, error);
            }
            return;
        }
    }
}
