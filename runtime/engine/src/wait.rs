//! How eagerly to wait: ever less.
//!
//! With a core for each local rank a wait spins, soon yielding in between, then sleeps; with fewer
//! it yields at once, then sleeps. A yield that took long means that others want the cores, so the
//! next waits sleep at once: few at first, and more each time that it shows again.

use std::time::{Duration, Instant};

use rlaunch_transport::Progress;
use rlaunch_wire::Descriptor;

use crate::Error;
use crate::core::Core;
use crate::failure::About;
use crate::request::Status;

/// Something that takes several polls.
pub(crate) trait Operation: Send {
    /// The call that it serves, for messages and to compare.
    fn call(&self) -> Descriptor;

    /// What the flight recorder tells beside the call.
    fn about(&self) -> About {
        let call = self.call();
        About {
            bytes: call.count * call.dtype.size_bytes() as u64,
            ..About::default()
        }
    }

    /// Does what can be done now. Completion shows again at the next poll.
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error>;

    /// The ranks (of the world) without which it can't go on.
    fn awaited(&self, core: &Core) -> Vec<Awaited>;

    /// Whether it can go on only when all of those have come, so that it may wait for them one by one.
    fn awaits_all(&self, _core: &Core) -> bool {
        false
    }

    /// Called once, when it is over, done or not: gives back what others need. Its buffers are not
    /// touched afterwards.
    fn end(&mut self, _core: &mut Core) {}

    /// Of one that is done.
    fn status(&self) -> Status {
        Status::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) rank: u32,
    pub(crate) to_send: bool,
}

/// What is learnt from the waits before.
#[derive(Debug)]
pub(crate) struct Pace {
    has_core: bool,
    /// Waits that are to sleep at once.
    sleepy_waits: u32,
    /// How many that will be after the next long yield.
    next_sleepy: u32,
    /// Yields since the last long one.
    short_yields: u32,
    /// Yields for which one more long one shows a process that never rests.
    suspicious_yields: u32,
}

/// One wait, from the last progress on.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    polls: u32,
    begun: Option<Instant>,
    yields: bool,
    sleep: Duration,
    /// The time at the end of the last yield, which hardly differs from that of the next look.
    looked: Option<Instant>,
}

/// What to do after an idle poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// Poll again; the clock was not looked at.
    Again,
    /// There is time to look around, then [`Pace::rest`].
    Look(Instant),
}

const SPIN_MAX: Duration = Duration::from_micros(100);
/// From here on a spinning rank yields between looks: there may be a core for each, and still the
/// scheduler has put the awaited peer on this one, where it can't run while this rank spins.
const SPIN_ALONE: Duration = Duration::from_micros(3);
const YIELD_MAX: Duration = Duration::from_millis(1);
/// Polls between two looks at the clock while spinning.
const POLLS_PER_CLOCK: u32 = 64;
/// A yield longer than this may mean that another process has used its time, which is some milliseconds;
/// neighbours take less for their blocks of a long vector.
const YIELD_LONG: Duration = Duration::from_micros(1500);
/// A process that never rests makes every few yields long. One alone was something that happens now and
/// then on any machine: two that are no further apart than this are taken for such a process.
const YIELDS_APART: u32 = 16;
/// Waits that sleep at once beside such a process; doubled where the next yields are so again. A yield
/// costs some milliseconds there, a sleep some microseconds more than a yield.
const SLEEPY_WAITS_MIN: u32 = 64;
const SLEEPY_WAITS_MAX: u32 = 1024;
/// So many short yields show that no other process wants the cores any more.
const CALM_YIELDS: u32 = 256;
const SLEEP_MIN: Duration = Duration::from_millis(1);
const SLEEP_MAX: Duration = Duration::from_millis(10);

impl Wait {
    /// Since the last progress.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| now - begun)
    }

    /// Something moved.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.polls = 0;
        self.begun = None;
        self.looked = None;
    }
}

impl Pace {
    pub(crate) fn new(has_core: bool) -> Self {
        Self {
            has_core,
            sleepy_waits: 0,
            next_sleepy: SLEEPY_WAITS_MIN,
            short_yields: 0,
            suspicious_yields: 0,
        }
    }

    pub(crate) fn has_core(&self) -> bool {
        self.has_core
    }

    /// Nothing moved in this poll.
    #[inline]
    pub(crate) fn idle(&mut self, wait: &mut Wait) -> Idle {
        wait.polls = wait.polls.wrapping_add(1);
        if self.has_core && !wait.polls.is_multiple_of(POLLS_PER_CLOCK) {
            std::hint::spin_loop();
            return Idle::Again;
        }
        let now = wait.looked.take().unwrap_or_else(Instant::now);
        if wait.begun.is_none() {
            wait.begun = Some(now);
            wait.yields = !self.has_core && self.sleepy_waits == 0;
            // A timer that is due before the next tick is one more to be set; without a core of its
            // own a rank sleeps often, and is rung awake.
            wait.sleep = if self.has_core { SLEEP_MIN } else { SLEEP_MAX };
            self.sleepy_waits = self.sleepy_waits.saturating_sub(1);
        }
        Idle::Look(now)
    }

    /// Gives others the core for a moment; returns how long to sleep where that is better.
    pub(crate) fn rest(&mut self, wait: &mut Wait, now: Instant) -> Option<Duration> {
        let waited = wait.waited(now);
        if self.has_core && waited < SPIN_MAX {
            if waited >= SPIN_ALONE {
                std::thread::yield_now();
            }
            return None;
        }
        if wait.yields && waited < YIELD_MAX {
            std::thread::yield_now();
            let after = Instant::now();
            wait.looked = Some(after);
            wait.yields = self.is_short(after - now);
            return None;
        }
        let longest = wait.sleep;
        wait.sleep = (wait.sleep * 2).min(SLEEP_MAX);
        Some(longest)
    }
}

impl Pace {
    /// Learns from a yield; false where the rest of this wait is better slept.
    #[inline]
    fn is_short(&mut self, taken: Duration) -> bool {
        if taken > YIELD_LONG {
            if self.suspicious_yields > 0 {
                self.sleepy_waits = self.next_sleepy;
                self.next_sleepy = (self.next_sleepy * 2).min(SLEEPY_WAITS_MAX);
                self.short_yields = 0;
            }
            self.suspicious_yields = YIELDS_APART;
            return false;
        }
        self.suspicious_yields = self.suspicious_yields.saturating_sub(1);
        self.short_yields += 1;
        if self.short_yields == CALM_YIELDS {
            self.next_sleepy = SLEEPY_WAITS_MIN;
            self.short_yields = 0;
        }
        true
    }
}

/// The longest sleep of a rank whose neighbours ring a bell that it doesn't hear.
pub(crate) const DEAF_SLEEP_MAX: Duration = SLEEP_MIN;

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(50);

    fn yields(pace: &mut Pace, taken: Duration, times: u32) {
        for _ in 0..times {
            assert_eq!(pace.is_short(taken), taken == SHORT);
        }
    }

    #[test]
    fn one_long_yield_now_and_then_is_no_reason_to_sleep() {
        let mut pace = Pace::new(false);
        for _ in 0..5 {
            yields(&mut pace, 2 * YIELD_LONG, 1);
            yields(&mut pace, SHORT, YIELDS_APART);
            assert_eq!(pace.sleepy_waits, 0);
        }
    }

    #[test]
    fn two_that_are_near_each_other_are_and_longer_each_time() {
        let mut pace = Pace::new(false);
        yields(&mut pace, 2 * YIELD_LONG, 1);
        for waits in [64, 128, 256, 512, 1024, 1024] {
            yields(&mut pace, SHORT, YIELDS_APART - 1);
            yields(&mut pace, 2 * YIELD_LONG, 1);
            assert_eq!(pace.sleepy_waits, waits);
            // The waits that follow sleep at once, until these are over.
            let mut wait = Wait::default();
            pace.idle(&mut wait);
            assert!(!wait.yields && pace.sleepy_waits == waits - 1);
        }
        yields(&mut pace, SHORT, CALM_YIELDS);
        yields(&mut pace, 2 * YIELD_LONG, 2);
        assert_eq!(pace.sleepy_waits, SLEEPY_WAITS_MIN);
    }
}
