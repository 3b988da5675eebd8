//! How a call waits: it polls its operation, ever less eagerly.
//!
//! With a core for each local rank it spins, soon yielding in between, then sleeps; with fewer it
//! yields at once, then sleeps. A yield that took long means that others want the cores, so the next waits sleep at once. Sleep
//! ends by the doorbell of the shared memory, or by the descriptors of the connections waited for.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use rlaunch_transport::Progress;
use rlaunch_wire::Descriptor;

use crate::Error;
use crate::core::Core;
use crate::framed::poll_descriptors;
use crate::interrupt::is_interrupted;

/// Something that takes several polls.
pub(crate) trait Operation {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error>;

    /// The ranks without which it can't go on.
    fn awaited(&self, core: &Core) -> Vec<Awaited>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) rank: u32,
    pub(crate) to_send: bool,
}

/// How eagerly to wait; learns from the waits before.
#[derive(Debug)]
pub(crate) struct Pace {
    has_core: bool,
    /// Waits that are to sleep at once.
    sleepy_waits: u32,
}

const SPIN_MAX: Duration = Duration::from_micros(100);
/// From here on a spinning rank yields between looks: there may be a core for each, and still the
/// scheduler has put the awaited peer on this one, where it can't run while this rank spins.
const SPIN_ALONE: Duration = Duration::from_micros(3);
const YIELD_MAX: Duration = Duration::from_millis(1);
/// Polls between two looks at the clock while spinning.
const POLLS_PER_CLOCK: u32 = 64;
/// A yield longer than this means that another process has used its time.
const YIELD_LONG: Duration = Duration::from_micros(200);
const SLEEPY_WAITS: u32 = 64;
const SLEEP_MIN: Duration = Duration::from_millis(1);
const SLEEP_MAX: Duration = Duration::from_millis(10);
/// A wait this long is told to the others, who compare it with their own calls.
const ANNOUNCE_AFTER: Duration = Duration::from_millis(100);

/// Between two questions whether the program wants to end the wait.
const INTERRUPT_PERIOD: Duration = Duration::from_millis(100);

impl Pace {
    pub(crate) fn new(has_core: bool) -> Self {
        Self {
            has_core,
            sleepy_waits: 0,
        }
    }
}

/// One wait, from its first idle poll on.
struct Wait {
    begun: Instant,
    is_announced: bool,
    next_interrupt: Instant,
    sleep: Duration,
    yields: bool,
}

impl Core {
    /// Polls until the operation is done or fails; a failure is the world's.
    pub(crate) fn run(
        &mut self,
        call: &Descriptor,
        operation: &mut impl Operation,
    ) -> Result<(), Error> {
        let mut idle_polls = 0u32;
        let mut wait: Option<Wait> = None;
        loop {
            match operation.poll(self) {
                Ok(Progress::Done) => return Ok(()),
                Ok(Progress::Moved) => {
                    idle_polls = 0;
                    if wait.is_some() {
                        wait = None;
                    }
                    continue;
                }
                Ok(Progress::Idle) => {}
                Err(error @ Error::Argument(_)) => return Err(error),
                Err(error) => return Err(self.fail(error)),
            }
            idle_polls += 1;
            if self.pace.has_core && !idle_polls.is_multiple_of(POLLS_PER_CLOCK) {
                std::hint::spin_loop();
                continue;
            }
            let state = wait.get_or_insert_with(|| self.begin_wait());
            if let Err(error) = self.idle(call, operation, state) {
                return Err(self.fail(error));
            }
        }
    }

    fn begin_wait(&mut self) -> Wait {
        let yields = !self.pace.has_core && self.pace.sleepy_waits == 0;
        self.pace.sleepy_waits = self.pace.sleepy_waits.saturating_sub(1);
        let begun = Instant::now();
        Wait {
            begun,
            is_announced: false,
            next_interrupt: begun + INTERRUPT_PERIOD,
            sleep: SLEEP_MIN,
            yields,
        }
    }

    fn idle(
        &mut self,
        call: &Descriptor,
        operation: &mut impl Operation,
        wait: &mut Wait,
    ) -> Result<(), Error> {
        let now = Instant::now();
        let waited = now - wait.begun;
        if self.watch.is_due(now) {
            self.look(call);
            if let Some(error) = &self.poison {
                return Err(error.clone());
            }
            self.refuse_departed(&operation.awaited(self), call)?;
            if waited >= ANNOUNCE_AFTER && !wait.is_announced {
                wait.is_announced = true;
                self.announce_wait();
            }
            if now >= wait.next_interrupt {
                wait.next_interrupt = now + INTERRUPT_PERIOD;
                if is_interrupted() {
                    return Err(Error::Interrupted {
                        during: call.to_string(),
                    });
                }
            }
            if waited >= self.timeout {
                return Err(self.timed_out(call, operation, waited));
            }
        }
        if self.pace.has_core && waited < SPIN_MAX {
            if waited >= SPIN_ALONE {
                std::thread::yield_now();
            }
            return Ok(());
        }
        if wait.yields && waited < YIELD_MAX {
            std::thread::yield_now();
            if now.elapsed() > YIELD_LONG {
                wait.yields = false;
                self.pace.sleepy_waits = SLEEPY_WAITS;
            }
            return Ok(());
        }
        self.sleep(operation, wait)
    }

    fn sleep(&mut self, operation: &mut impl Operation, wait: &mut Wait) -> Result<(), Error> {
        let mut descriptors: Vec<(RawFd, libc::c_short)> = Vec::new();
        let mut is_near = false;
        for awaited in operation.awaited(self) {
            let connection = self.peers[awaited.rank as usize].connection.as_ref();
            is_near |= !connection
                .is_some_and(|connection| connection.wait_on(awaited.to_send, &mut descriptors));
        }
        let longest = wait.sleep;
        wait.sleep = (wait.sleep * 2).min(SLEEP_MAX);
        match self
            .neighbours
            .as_ref()
            .map(|neighbours| neighbours.doorbell.clone())
        {
            Some(doorbell) if is_near && descriptors.is_empty() => {
                let ticket = doorbell.ticket();
                // Whatever came before the ticket rang no bell.
                if self.is_idle(operation)? {
                    doorbell.sleep(ticket, longest);
                } else {
                    doorbell.cancel();
                }
            }
            _ => {
                // Neighbours ring a bell that poll doesn't hear.
                let longest = if is_near {
                    SLEEP_MIN.min(longest)
                } else {
                    longest
                };
                let links = self.control.descriptors();
                descriptors.extend(links.into_iter().map(|link| (link, libc::POLLIN)));
                poll_descriptors(&descriptors, longest);
            }
        }
        Ok(())
    }

    /// One more poll. Completion must not be lost, so it shows again at the next poll.
    fn is_idle(&mut self, operation: &mut impl Operation) -> Result<bool, Error> {
        Ok(operation.poll(self)? == Progress::Idle)
    }

    /// Who has finalized and sent nothing more will never come.
    fn refuse_departed(&mut self, awaited: &[Awaited], call: &Descriptor) -> Result<(), Error> {
        for awaited in awaited {
            let peer = &mut self.peers[awaited.rank as usize];
            if !peer.has_left {
                continue;
            }
            peer.polls_since_left += 1;
            if peer.polls_since_left < 2 {
                continue;
            }
            let during = call.to_string();
            self.linger(&during);
            if let Some(error) = &self.poison {
                return Err(error.clone());
            }
            return Err(Error::PeerLeft {
                peer: self.identity(awaited.rank),
                during,
            });
        }
        Ok(())
    }

    fn timed_out(&self, call: &Descriptor, operation: &impl Operation, waited: Duration) -> Error {
        let mut missing: Vec<u32> = operation
            .awaited(self)
            .iter()
            .map(|awaited| awaited.rank)
            .collect();
        missing.sort_unstable();
        missing.dedup();
        let missing = missing
            .into_iter()
            .map(|rank| self.identity(rank))
            .collect();
        Error::Timeout {
            during: call.to_string(),
            waited,
            missing,
        }
    }
}
