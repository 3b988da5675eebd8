//! Collectives between ranks that share memory: over a [`Team`], without messages or schedules.
//!
//! Small ones are one round of posts ([`flat`]); larger ones pass through staging slots in blocks
//! ([`exchange`], by a [`plan`]), or straight between the members' buffers where those lie in the
//! arena ([`direct`]). Which way a call goes follows from what is equal on all members, or was posted
//! by all.
//! Members post the descriptor of their call first, whatever the way, and compare it with the
//! others' before they use their data, so that a difference is found on every path. A member that
//! needs nobody's data compares a few calls later.

mod arrivals;
mod combine;
mod counts;
mod direct;
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
use direct::{Direct, Offer, Sources};
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
    /// What it posts, where that is no data.
    offer: Option<Box<Offer>>,
    is_posted: bool,
    /// Polled again, it must not combine its result with itself.
    is_done: bool,
}

#[derive(Debug)]
enum Way {
    Flat(Flat),
    // Boxed, so that small calls move little.
    Exchange(Box<Exchange>),
    Offered(Box<Offered>),
    Direct(Box<Direct>),
}

/// A call that may go directly, which shows when all have posted.
#[derive(Debug)]
struct Offered {
    call: Call,
    plan: Plan,
}

/// Calls left before all others came, of which this member compares none yet. Some, so that the lines of
/// those who come late are not asked for in vain at each call.
const UNSETTLED_MAX: u64 = 2;

/// Why one can't go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A member made another call.
    Differs(Difference),
    /// A member made the same call with counts that don't fit this one's.
    Counts(Difference, CountsDiffer),
    Memory(std::io::Error),
    /// A member's memory can't be copied, though it is there.
    Reach {
        member: u32,
        error: std::io::Error,
    },
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
/// mean fewer turns, until the slots of all fill the cache.
pub(crate) fn slot_bytes(has_core_each: bool) -> usize {
    if has_core_each {
        SLOT_BYTES
    } else {
        2 * SLOT_BYTES
    }
}

const SLOT_BYTES: usize = 128 * 1024;

/// Whether members share cores, as the team's maker knew it; the same on all of them.
fn shares_cores(team: &Team) -> bool {
    team.slot_bytes() > SLOT_BYTES
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
        let posted = flat::posted_bytes(call, team.size());
        let (way, offer) = match posted {
            Some(posted) => {
                let combine = combine(call);
                // SAFETY: as the caller vouches.
                (Way::Flat(unsafe { Flat::new(call, posted, combine) }), None)
            }
            // A stage of another call has counts of its own making.
            None if descriptor.collective.has_counts() => Self::counted(team, call),
            None => Self::large(team, call),
        };
        Self {
            arrivals: Arrivals::new(descriptor),
            way,
            offer,
            is_posted: false,
            is_done: false,
        }
    }

    fn large(team: &Team, call: &Call) -> (Way, Option<Box<Offer>>) {
        let plan = Plan::new(call, team.size(), team.me(), team.slot_bytes());
        let offer = Offer::new(team, call, &plan);
        let way = if offer.is_open(&plan) {
            let call = call.clone();
            Way::Offered(Box::new(Offered { call, plan }))
        } else {
            // SAFETY: as `new`'s caller vouches.
            Way::Exchange(Box::new(unsafe { exchange(team, call, plan, None) }))
        };
        (way, Some(Box::new(offer)))
    }

    /// A v-variant, whose members post their counts.
    fn counted(team: &Team, call: &Call) -> (Way, Option<Box<Offer>>) {
        let plan = Plan::new(call, team.size(), team.me(), team.slot_bytes());
        let told = Told::new(call, team.size(), team.me());
        // SAFETY: as `new`'s caller vouches.
        let exchange = unsafe { exchange(team, call, plan, told) };
        (Way::Exchange(Box::new(exchange)), None)
    }

    #[inline]
    pub(crate) fn poll(&mut self, team: &mut Team) -> Result<Progress, Failure> {
        if self.is_done {
            return Ok(Progress::Done);
        }
        if !self.is_posted {
            if team.unsettled() > UNSETTLED_MAX {
                team.settle(UNSETTLED_MAX)?;
            }
            if !team.begin() {
                return Ok(Progress::Idle);
            }
            self.post(team)?;
            self.is_posted = true;
            if team.unsettled() > UNSETTLED_MAX {
                team.prefetch_unsettled();
            }
        }
        if let Way::Offered(offered) = &self.way {
            if !self.arrivals.poll(team, None)? {
                return Ok(Progress::Idle);
            }
            self.way = offered.decide(team)?;
        }
        let progress = match &mut self.way {
            Way::Flat(flat) => flat.poll(team, &mut self.arrivals)?,
            Way::Exchange(exchange) => exchange.poll(team, &mut self.arrivals)?,
            Way::Direct(direct) => direct.poll(team)?,
            Way::Offered(_) => Progress::Idle,
        };
        if progress == Progress::Done {
            self.is_done = true;
            // Who left earlier rounds early learns here, at the latest, that calls differed.
            if self.arrivals.are_complete(team) && team.unsettled() > 0 {
                team.settle(0)?;
            }
        }
        Ok(progress)
    }

    #[inline]
    fn post(&self, team: &mut Team) -> Result<(), Failure> {
        if let Way::Flat(flat) = &self.way {
            return flat.post(team, &self.arrivals);
        }
        let offer = self.offer.as_ref().map_or(&[][..], |offer| offer.posted());
        let (data, bytes) = match &self.way {
            Way::Exchange(exchange) if exchange.told().1 > 0 => exchange.told(),
            _ => (offer.as_ptr().cast(), size_of_val(offer)),
        };
        // SAFETY: both are valid for their lengths, which fit.
        unsafe { team.post(self.arrivals.own(), data, bytes)? };
        match &self.way {
            Way::Exchange(exchange) => exchange.begin(team),
            _ => Ok(()),
        }
    }

    /// It is over. Where it is not done, others may still read what this member gave them, or write
    /// what it was to get.
    pub(crate) fn end(&self, team: &Team) {
        let Some(offer) = self.offer.as_ref() else {
            return;
        };
        if !self.is_posted || self.is_done {
            return;
        }
        if offer.is_helped() {
            match &self.way {
                Way::Offered(offered) => direct::withdraw_offer(team, &offered.plan),
                Way::Direct(direct) => direct.withdraw(team),
                Way::Flat(_) | Way::Exchange(_) => {}
            }
        }
        if offer.is_read() {
            team.give_up();
        }
    }

    /// Whether it needs all of those that it awaits, whatever their order.
    pub(crate) fn awaits_all(&self) -> bool {
        self.is_posted && matches!(self.way, Way::Flat(_) | Way::Offered(_))
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
                    Way::Offered(_) => !team.has_posted(*member),
                    Way::Direct(direct) => direct.awaits(team, *member),
                }
        };
        team.others().filter(awaits).collect()
    }
}

impl Offered {
    fn decide(&self, team: &mut Team) -> Result<Way, Failure> {
        let (call, plan) = (&self.call, &self.plan);
        // SAFETY: `new`'s caller vouched for the call's buffers.
        unsafe {
            if let Some(sources) = Sources::find(team, call, plan)? {
                let direct = Direct::begin(team, call, plan.clone(), sources, streams(call));
                return Ok(Way::Direct(Box::new(direct)));
            }
            let exchange = exchange(team, call, plan.clone(), None);
            exchange.begin(team)?;
            Ok(Way::Exchange(Box::new(exchange)))
        }
    }
}

/// # Safety
/// As [`LocalOperation::new`].
unsafe fn exchange(team: &Team, call: &Call, plan: Plan, told: Option<Told>) -> Exchange {
    let (input, output, combine) = (call.input, call.output, combine(call));
    let is_stepwise = combine.as_ref().is_some_and(Combine::is_stepwise);
    let plan = if is_stepwise && shares_cores(team) {
        plan.chained(team.slot_bytes())
    } else {
        plan
    };
    // SAFETY: as the caller vouches.
    unsafe { Exchange::new(plan, told, combine, input, output, streams(call)) }
}

/// Whether results are too long to be worth room in the cache, and their place is not in it already.
fn streams(call: &Call) -> bool {
    let bytes = call.count.saturating_mul(call.dtype.size_bytes());
    call.input != call.output.cast_const() && bytes >= rlaunch_device::NONTEMPORAL_WORTH_BYTES
}

#[inline]
fn combine(call: &Call) -> Option<Combine> {
    let reduction = call.reduction.as_ref();
    reduction.map(|reduction| Combine::new(call.dtype, reduction))
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
