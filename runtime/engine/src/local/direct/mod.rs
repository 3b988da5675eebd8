//! Calls whose buffers lie in the arena: members read straight from each other's, without staging.
//!
//! Nobody writes to a buffer of another. So a member that is stopped in the middle of a call can't
//! destroy, when it goes on, what others have made of their memory since; and a call only needs what
//! others *read* to be in the arena: results may lie anywhere, but for an all-reduce, whose members
//! read the others' shares of the result ([`shares`]; two combine all of a short one twice). All other
//! calls are one pass over what the others give ([`pull`]).
//!
//! A member's call ends when it has its result and everybody has read what it gives. One that fails
//! gives up instead, see [`Team::give_up`]: then no reader's call ends well, and each learns why as
//! of any failure.

mod offer;
mod pull;
mod shares;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{DONE, Stage, Team};
use rlaunch_wire::Collective;

use super::combine::Combine;
use super::plan::Plan;
use crate::Call;

pub(crate) use offer::{Offer, Sources};

use offer::{combines_whole, reads};
use pull::Pull;
use shares::Shares;

/// One such call, once all members have posted theirs.
#[derive(Debug)]
pub(crate) struct Direct {
    plan: Plan,
    part: Part,
    has_read: bool,
}

/// What this member does.
#[derive(Debug)]
enum Part {
    Shares(Shares),
    Pull(Pull),
}

/// Of a call: what its parts work on.
#[derive(Debug)]
struct Buffers {
    combine: Option<Combine>,
    output: *mut u8,
    /// Results are too long to be worth room in the cache.
    streams: bool,
}

impl Direct {
    /// Call once all members have posted, and [`Sources::find`] found that the call goes this way.
    ///
    /// # Safety
    /// The call's buffers are valid as its collective needs them until this is done, or dropped.
    pub(crate) unsafe fn begin(
        team: &mut Team,
        call: &Call,
        plan: Plan,
        sources: Sources,
        streams: bool,
    ) -> Self {
        team.begin_direct();
        let reduction = call.reduction.as_ref();
        let buffers = Buffers {
            combine: reduction.map(|reduction| Combine::new(call.dtype, reduction)),
            output: call.output,
            streams,
        };
        let part = if plan.collective == Collective::AllReduce && !combines_whole(&plan) {
            Part::Shares(Shares::new(&plan, sources, buffers))
        } else {
            Part::Pull(Pull::new(&plan, &sources.inputs, buffers))
        };
        Self {
            plan,
            part,
            has_read: false,
        }
    }

    /// Goes on as far as can be in a moment; `Done` once this member may use its buffers again.
    pub(crate) fn poll(&mut self, team: &mut Team) -> Progress {
        let mut progress = Progress::Idle;
        if !self.has_read {
            progress = match &mut self.part {
                Part::Shares(shares) => shares.poll(team),
                Part::Pull(pull) => pull.poll(),
            };
            if progress != Progress::Done {
                return progress;
            }
            // The notice of that failure is under way.
            if team.has_anyone_given_up() {
                return Progress::Idle;
            }
            self.has_read = true;
            team.publish(Stage::Fetched, DONE);
            progress = Progress::Moved;
        }
        if team.others().any(|other| self.awaits(team, other)) {
            return progress;
        }
        team.end_exchange();
        Progress::Done
    }

    /// Whether `member` is one that this one waits for.
    pub(crate) fn awaits(&self, team: &Team, member: u32) -> bool {
        if self.has_read {
            let reads_ours = reads(&self.plan, member, self.plan.me);
            return reads_ours && !team.has_come(member, Stage::Fetched, DONE);
        }
        let awaits_share = match &self.part {
            Part::Shares(shares) => shares.awaits(team, member),
            Part::Pull(_) => false,
        };
        awaits_share || team.has_given_up(member)
    }
}
