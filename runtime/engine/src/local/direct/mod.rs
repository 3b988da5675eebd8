//! Calls whose members read straight from each other's buffers, without staging: where these lie in the
//! arena, or where the kernel copies between processes and parts are only copied.
//!
//! Members read. So a member that is stopped in the middle of a call can't destroy, when it goes on,
//! what others have made of their memory since ([`help`] is the one exception, with rules of its own);
//! and a call only needs what others *read* to be within reach: results may lie anywhere, but for an
//! all-reduce, whose members read the others' shares of the result ([`shares`]; two combine all of a
//! short one twice). All other calls are one pass over what the others give ([`copy`], [`pull`]).
//!
//! A member's call ends when it has its result and everybody has read what it gives. One that fails
//! gives up instead, see [`Team::give_up`]: then no reader's call ends well, and each learns why as
//! of any failure.

mod copy;
mod help;
mod offer;
mod pull;
mod shares;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{DONE, Stage, Team};
use rlaunch_wire::Collective;

use super::Failure;
use super::combine::Combine;
use super::plan::Plan;
use crate::Call;

pub(crate) use offer::{Offer, Sources};

use copy::Copies;
use help::Help;
use offer::{Place, combines_whole, copies, reads};
use pull::Pull;
use shares::Shares;

/// What is read between two looks at others' calls.
const STEP_BYTES: usize = 256 * 1024;

/// One such call, once all members have posted theirs.
#[derive(Debug)]
pub(crate) struct Direct {
    plan: Plan,
    part: Part,
    help: Help,
    has_read: bool,
}

/// What this member does.
#[derive(Debug)]
enum Part {
    Shares(Shares),
    Copies(Copies),
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
        let help = Help::new(&plan, call, &sources);
        let part = if plan.collective == Collective::AllReduce && !combines_whole(&plan) {
            Part::Shares(Shares::new(&plan, sources, buffers))
        } else if copies(&plan) {
            Part::Copies(Copies::new(&plan, &sources, buffers))
        } else {
            Part::Pull(Pull::new(&plan, &sources.inputs, buffers))
        };
        Self {
            plan,
            part,
            help,
            has_read: false,
        }
    }

    /// Goes on as far as can be in a moment; `Done` once this member may use its buffers again.
    pub(crate) fn poll(&mut self, team: &mut Team) -> Result<Progress, Failure> {
        let mut progress = Progress::Idle;
        if !self.has_read {
            progress = match &mut self.part {
                Part::Shares(shares) => shares.poll(team),
                Part::Copies(copies) => copies.poll(team)?,
                Part::Pull(pull) => pull.poll(),
            };
            if progress != Progress::Done {
                return Ok(progress);
            }
            // The notice of that failure is under way.
            if team.has_anyone_given_up() {
                return Ok(Progress::Idle);
            }
            self.has_read = true;
            team.publish(Stage::Fetched, DONE);
            progress = Progress::Moved;
        }
        if self.help.poll(team)? == Progress::Moved {
            return Ok(Progress::Moved);
        }
        if team.others().any(|other| self.awaits(team, other)) {
            return Ok(progress);
        }
        team.end_exchange();
        Ok(Progress::Done)
    }

    /// It failed: nobody writes to this member's output any more.
    pub(crate) fn withdraw(&self, team: &Team) {
        help::withdraw(team, &self.plan, true);
    }

    /// Whether `member` is one that this one waits for.
    pub(crate) fn awaits(&self, team: &Team, member: u32) -> bool {
        if self.has_read {
            let is_read_by = reads(&self.plan, member, self.plan.me);
            return is_read_by && !team.has_come(member, Stage::Fetched, DONE)
                || matches!(&self.part, Part::Copies(copies) if copies.awaits(team, member));
        }
        let awaits_share = match &self.part {
            Part::Shares(shares) => shares.awaits(team, member),
            Part::Copies(_) | Part::Pull(_) => false,
        };
        awaits_share || team.has_given_up(member)
    }
}

/// The same of a call that this member has posted, and whose way is not yet known.
pub(crate) fn withdraw_offer(team: &Team, plan: &Plan) {
    help::withdraw(team, plan, false);
}

/// A member's memory could not be copied. Where its process or its call has ended, word of that is
/// under way, and tells more.
fn blame(
    team: &Team,
    member: u32,
    error: std::io::Error,
    has_ended: bool,
) -> Result<Progress, Failure> {
    let is_gone = error.raw_os_error() == Some(libc::ESRCH);
    let reach = team.arena().reach();
    let local = team.members()[member as usize];
    if has_ended || is_gone || !reach.is_some_and(|reach| reach.is_there(local)) {
        return Ok(Progress::Idle);
    }
    Err(Failure::Reach { member, error })
}
