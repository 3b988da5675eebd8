//! A pass that copies what others give this member into its output.
//!
//! Each byte is read once from where its owner has it, here or in its own process, and written once.
//! A part that its owner helps with ([`super::help`]) is copied piece by piece, as pieces are claimed.

use std::ops::Range;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{End, Team};

use super::super::Failure;
use super::super::plan::Plan;
use super::help::Joint;
use super::{Buffers, Place, STEP_BYTES, Sources, blame, reads};

/// One such pass.
#[derive(Debug)]
pub(crate) struct Copies {
    buffers: Buffers,
    parts: Vec<Part>,
    /// The first that is not done, and how much of it is.
    next: usize,
    done: usize,
}

#[derive(Debug)]
struct Part {
    giver: u32,
    from: Place,
    to: Range<usize>,
    joint: Option<Joint>,
    /// It lies in this core's cache, if in any.
    is_own: bool,
}

impl Copies {
    pub(crate) fn new(plan: &Plan, sources: &Sources, buffers: Buffers) -> Self {
        Self {
            parts: parts(plan, sources, buffers.output),
            next: 0,
            done: 0,
            buffers,
        }
    }

    /// The next step; `Done` once nothing is left to this member to read.
    pub(crate) fn poll(&mut self, team: &Team) -> Result<Progress, Failure> {
        let mut left = STEP_BYTES;
        while left > 0 {
            let Some(part) = self.parts.get(self.next) else {
                return Ok(Progress::Done);
            };
            let Some(range) = part.take(team, self.done, left) else {
                (self.next, self.done) = (self.next + 1, 0);
                continue;
            };
            if let Err(error) = part.copy(team, &self.buffers, &range) {
                return blame(team, part.giver, error, team.has_given_up(part.giver));
            }
            self.done = range.end;
            left = left.saturating_sub(range.len());
        }
        Ok(Progress::Moved)
    }

    /// Whether `member` still has to write a piece. Ask when nothing is left to read.
    pub(crate) fn awaits(&self, team: &Team, member: u32) -> bool {
        let mut of_member = self.parts.iter().filter(|part| part.giver == member);
        of_member.any(|part| {
            let joint = part.joint.as_ref();
            joint.is_some_and(|joint| !joint.is_all_written(team))
        })
    }
}

impl Part {
    /// What of the part to copy next, if `done` is; `None` where nothing is left to this member.
    fn take(&self, team: &Team, done: usize, at_most: usize) -> Option<Range<usize>> {
        if let Some(joint) = &self.joint {
            return match done {
                0 => Some(joint.pieces.range(0)),
                _ => joint.claim(team, End::Front),
            };
        }
        let length = at_most.min(self.to.len() - done);
        (length > 0).then_some(done..done + length)
    }

    fn copy(&self, team: &Team, buffers: &Buffers, range: &Range<usize>) -> std::io::Result<()> {
        let to = self.to.start + range.start;
        // SAFETY: the part lies in its owner's buffer, which stays until this member has told that it
        // read it, and its place in the output, apart. Nobody else writes this piece of it.
        unsafe {
            match self.from {
                Place::Here(from) if self.is_own && !buffers.streams => {
                    let to = buffers.output.add(to);
                    std::ptr::copy_nonoverlapping(from.add(range.start), to, range.len());
                }
                Place::Here(from) => buffers.copy(to, from.add(range.start), range.len()),
                Place::There(from) => {
                    let (from, to) = (from + range.start as u64, buffers.output.add(to));
                    let giver = team.members()[self.giver as usize];
                    let reach = team
                        .arena()
                        .reach()
                        .ok_or(std::io::ErrorKind::Unsupported)?;
                    reach.read(giver, from, to, range.len())?;
                }
                Place::Nowhere => {}
            }
        }
        Ok(())
    }
}

/// What is copied, beginning with the next member's, so that not all read from one at a time.
fn parts(plan: &Plan, sources: &Sources, output: *mut u8) -> Vec<Part> {
    let me = plan.me;
    let mut parts = Vec::with_capacity(sources.inputs.len());
    for distance in 1..=plan.members {
        let giver = (me + distance) % plan.members;
        let mut to = plan.part_from(giver);
        let is_own = giver == me && plan.root.is_none_or(|root| root == me);
        if !is_own && !reads(plan, me, giver) {
            continue;
        }
        let from = sources.inputs[giver as usize];
        if is_own {
            let given = plan.part_for(me).len();
            to.end = to.end.min(to.start + given);
            if from == Place::Here(output.wrapping_add(to.start)) {
                continue;
            }
        }
        if !to.is_empty() {
            let joint = if is_own {
                None
            } else {
                Joint::new(plan, sources, me, giver)
            };
            parts.push(Part {
                giver,
                from,
                to,
                joint,
                is_own,
            });
        }
    }
    parts
}
