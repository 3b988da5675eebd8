//! A pass over what others give this member: copied, or combined, into its output.
//!
//! Each byte is read once from where its owner has it and written once: a member of n reads n parts,
//! and n - 1 of them are others'.

use std::ops::Range;

use rlaunch_transport::Progress;
use rlaunch_wire::Collective;

use super::super::plan::{Pattern, Plan};
use super::{Buffers, reads};

/// What is read between two looks at others' calls.
const STEP_BYTES: usize = 256 * 1024;

/// One such pass.
#[derive(Debug)]
pub(crate) struct Pull {
    buffers: Buffers,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Copy {
        pieces: Vec<Piece>,
        /// The first that is not done, and how much of it is.
        next: usize,
        done: usize,
    },
    /// In the order of members.
    Combine {
        inputs: Vec<*const u8>,
        bytes: usize,
        done: usize,
    },
}

#[derive(Debug)]
struct Piece {
    from: *const u8,
    to: Range<usize>,
}

impl Pull {
    /// `inputs`: by member, its part for this one.
    pub(crate) fn new(plan: &Plan, inputs: &[*const u8], buffers: Buffers) -> Self {
        let work = match plan.pattern {
            Pattern::Gather | Pattern::Scatter | Pattern::Broadcast => Work::Copy {
                pieces: pieces(plan, inputs, buffers.output),
                next: 0,
                done: 0,
            },
            _ => {
                let members = combined(plan);
                let bytes = plan.part_from(plan.me).len();
                Work::Combine {
                    bytes: if members == 0 { 0 } else { bytes },
                    inputs: inputs[..members as usize].to_vec(),
                    done: 0,
                }
            }
        };
        Self { buffers, work }
    }

    /// The next step; `Done` once all is read.
    pub(crate) fn poll(&mut self) -> Progress {
        match &mut self.work {
            Work::Copy { pieces, next, done } => {
                let mut left = STEP_BYTES;
                while left > 0 {
                    let Some(piece) = pieces.get(*next) else {
                        return Progress::Done;
                    };
                    let length = left.min(piece.to.len() - *done);
                    // SAFETY: the piece lies in its owner's buffer, which stays until this member
                    // has told that it read it, and its place in the output, apart.
                    unsafe {
                        let to = piece.to.start + *done;
                        self.buffers.copy(to, piece.from.add(*done), length);
                    }
                    (*done, left) = (*done + length, left - length);
                    if *done == piece.to.len() {
                        (*next, *done) = (*next + 1, 0);
                    }
                }
                Progress::Moved
            }
            Work::Combine {
                inputs,
                bytes,
                done,
            } => {
                let length = STEP_BYTES.min(*bytes - *done);
                if length > 0 {
                    // SAFETY: as above; this member's own input may be its output.
                    unsafe { self.buffers.combine(*done, inputs, *done, length) };
                }
                *done += length;
                if done == bytes {
                    Progress::Done
                } else {
                    Progress::Moved
                }
            }
        }
    }
}

/// How many members, from the first on, this one combines the parts of.
fn combined(plan: &Plan) -> u32 {
    match plan.collective {
        Collective::Scan => plan.me + 1,
        Collective::Exscan => plan.me,
        Collective::Reduce if plan.root != Some(plan.me) => 0,
        _ => plan.members,
    }
}

/// What is copied, beginning with the next member's, so that not all read from one at a time.
fn pieces(plan: &Plan, inputs: &[*const u8], output: *mut u8) -> Vec<Piece> {
    let me = plan.me;
    let mut pieces = Vec::with_capacity(inputs.len());
    for distance in 1..=plan.members {
        let member = (me + distance) % plan.members;
        let mut to = plan.part_from(member);
        let is_own = member == me && plan.root.is_none_or(|root| root == me);
        if !is_own && !reads(plan, me, member) {
            continue;
        }
        let from = inputs[member as usize];
        if is_own {
            let given = plan.part_for(me).len();
            to.end = to.end.min(to.start + given);
            if output.wrapping_add(to.start).cast_const() == from {
                continue;
            }
        }
        if !to.is_empty() {
            pieces.push(Piece { from, to });
        }
    }
    pieces
}

impl Buffers {
    /// # Safety
    /// `from` is valid for `bytes`, the output for as many from `to` on, and they are apart.
    pub(super) unsafe fn copy(&self, to: usize, from: *const u8, bytes: usize) {
        // SAFETY: as the caller vouches.
        unsafe {
            let to = self.output.add(to);
            if self.streams {
                rlaunch_device::copy_nontemporal(to, from, bytes);
            } else {
                rlaunch_device::copy_between_cores(to, from, bytes);
            }
        }
    }

    /// Combines `bytes` at `from` in the inputs into the output at `to`.
    ///
    /// # Safety
    /// The inputs are valid for `bytes` from `from` on, the output from `to` on; it is apart from
    /// them or equal.
    pub(super) unsafe fn combine(
        &self,
        to: usize,
        inputs: &[*const u8],
        from: usize,
        bytes: usize,
    ) {
        const FEW: usize = 8;
        let Some(combine) = &self.combine else {
            return;
        };
        let at = |input: &*const u8| input.wrapping_add(from);
        let mut few = [std::ptr::null(); FEW];
        let many: Vec<_>;
        let inputs = if inputs.len() <= FEW {
            for (to, input) in few.iter_mut().zip(inputs) {
                *to = at(input);
            }
            &few[..inputs.len()]
        } else {
            many = inputs.iter().map(at).collect();
            &many[..]
        };
        // SAFETY: as the caller vouches.
        unsafe { combine.many(self.output.add(to), inputs, bytes) };
    }
}
