//! Collectives between ranks that share memory: over a [`Team`], without messages or schedules.
//!
//! Small ones are one round of posts ([`flat`]); larger ones pass through staging slots in blocks
//! ([`exchange`], by a [`plan`]). Which way a call goes follows from what is equal on all members.
//! Members post the descriptor of their call first, whatever the way, and compare it with the
//! others' before they use their data, so that a difference is found on every path. A member that
//! needs nobody's data compares a few calls later.

mod arrivals;
mod combine;
mod counts;
mod exchange;
mod flat;
mod operation;
mod plan;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{Difference, Team};
use rlaunch_wire::Descriptor;

use crate::call::Call;

use arrivals::Arrivals;
use combine::Combine;
use counts::Told;
use exchange::Exchange;
use flat::Flat;
use plan::Plan;

pub(crate) use counts::CountsDiffer;
pub(crate) use operation::TeamOperation;

/// One collective of a team, as this member takes part in it. Poll it until it is done; a member
/// takes part in one at a time.
#[derive(Debug)]
pub(crate) struct LocalOperation {
    arrivals: Arrivals,
    way: Way,
    is_posted: bool,
    /// Polled again, it must not combine its result with itself.
    is_done: bool,
}

#[derive(Debug)]
enum Way {
    Flat(Flat),
    // Boxed, so that small calls move little.
    Exchange(Box<Exchange>),
}

/// Calls left before all others came, after which this member looks at them again. Some, so that the
/// lines of those who come late are not asked for in vain at each call.
const UNSETTLED_MAX: u64 = 2;

/// Why one can't go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A member made another call.
    Differs(Difference),
    /// A member made the same call with counts that don't fit this one's.
    Counts(Difference, CountsDiffer),
    Memory(std::io::Error),
}

impl From<Difference> for Failure {
    fn from(difference: Difference) -> Self {
        Self::Differs(difference)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Memory(error)
    }
}

/// Length of a team's staging slots. Two in-slots and two out-slots of the smaller length fit a
/// core's own cache together with what is read from others. Where ranks share cores, larger ones
/// mean fewer turns.
pub(crate) fn slot_bytes(has_core_each: bool) -> usize {
    if has_core_each {
        128 * 1024
    } else {
        512 * 1024
    }
}

// SAFETY: the pointers are followed only in `poll`; `new`'s caller vouched for them on any thread.
unsafe impl Send for LocalOperation {}

impl LocalOperation {
    /// `call`'s root counts within the team. Its lengths, counts and operation were checked.
    ///
    /// # Safety
    /// The call's buffers are valid as its collective needs them until this is done, or dropped.
    #[inline]
    pub(crate) unsafe fn new(team: &Team, call: &Call, descriptor: &Descriptor) -> Self {
        let combine = call
            .reduction
            .as_ref()
            .map(|reduction| Combine::new(call.dtype, reduction));
        let way = match flat::posted_bytes(call, team.size()) {
            // SAFETY: as the caller vouches.
            Some(posted) => Way::Flat(unsafe { Flat::new(call, posted, combine) }),
            None => {
                let plan = Plan::new(call, team.size(), team.me(), team.slot_bytes());
                let bytes = call.count.saturating_mul(call.dtype.size_bytes());
                let streams = call.input != call.output.cast_const()
                    && bytes >= rlaunch_device::NONTEMPORAL_WORTH_BYTES;
                // A stage of another call has counts of its own making.
                let told = if descriptor.collective.has_counts() {
                    Told::new(call, team.size(), team.me())
                } else {
                    None
                };
                let (input, output) = (call.input, call.output);
                // SAFETY: as the caller vouches.
                let exchange =
                    unsafe { Exchange::new(plan, told, combine, input, output, streams) };
                Way::Exchange(Box::new(exchange))
            }
        };
        Self {
            arrivals: Arrivals::new(descriptor),
            way,
            is_posted: false,
            is_done: false,
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, team: &mut Team) -> Result<Progress, Failure> {
        if self.is_done {
            return Ok(Progress::Done);
        }
        if !self.is_posted {
            if team.unsettled() >= UNSETTLED_MAX {
                team.settle()?;
            }
            if !team.begin() {
                return Ok(Progress::Idle);
            }
            self.post(team)?;
            self.is_posted = true;
        }
        let progress = match &mut self.way {
            Way::Flat(flat) => flat.poll(team, &mut self.arrivals)?,
            Way::Exchange(exchange) => exchange.poll(team, &mut self.arrivals)?,
        };
        if progress == Progress::Done {
            self.is_done = true;
            // Who left earlier rounds early learns here, at the latest, that calls differed.
            if self.arrivals.are_complete(team) && team.unsettled() > 0 {
                team.settle()?;
            }
        }
        Ok(progress)
    }

    #[inline]
    fn post(&self, team: &mut Team) -> Result<(), Failure> {
        match &self.way {
            Way::Flat(flat) => flat.post(team, &self.arrivals),
            Way::Exchange(exchange) => {
                let (counts, bytes) = exchange.told();
                // SAFETY: the counts are valid for their length.
                unsafe { team.post(self.arrivals.own(), counts, bytes)? };
                exchange.begin(team)
            }
        }
    }

    /// The members without which it can't go on.
    pub(crate) fn awaited(&self, team: &Team) -> Vec<u32> {
        let awaits = |member: &u32| {
            !self.is_posted
                || match &self.way {
                    Way::Flat(flat) => flat.awaits(team, *member),
                    Way::Exchange(exchange) => {
                        !team.has_posted(*member) || exchange.awaits(team, *member)
                    }
                }
        };
        team.others().filter(awaits).collect()
    }
}

/// Where the contributions of members lie; kept, so that it is allocated at most once.
#[derive(Debug)]
struct Inputs {
    few: [*const u8; FEW],
    many: Vec<*const u8>,
}

const FEW: usize = 8;

impl Default for Inputs {
    fn default() -> Self {
        Self {
            few: [std::ptr::null(); FEW],
            many: Vec::new(),
        }
    }
}

impl Inputs {
    #[inline]
    fn gather(&mut self, members: u32, of: impl Fn(u32) -> *const u8) -> &[*const u8] {
        let members = members as usize;
        if members <= FEW {
            for (member, input) in self.few[..members].iter_mut().enumerate() {
                *input = of(member as u32);
            }
            return &self.few[..members];
        }
        self.many.clear();
        self.many.extend((0..members as u32).map(of));
        &self.many
    }
}

#[cfg(test)]
mod tests;
