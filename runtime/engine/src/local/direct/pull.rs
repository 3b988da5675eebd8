//! A pass that combines what all give this member into its output, in the order of members.
//!
//! Each byte is read once from where its owner has it and written once: a member of n reads n parts,
//! and n - 1 of them are others'.

use rlaunch_transport::Progress;
use rlaunch_wire::Collective;

use super::super::plan::Plan;
use super::{Buffers, Place, STEP_BYTES};

/// One such pass.
#[derive(Debug)]
pub(crate) struct Pull {
    buffers: Buffers,
    inputs: Vec<*const u8>,
    bytes: usize,
    done: usize,
}

impl Pull {
    /// `inputs`: by member, its part for this one; none is in memory that only its owner has.
    pub(crate) fn new(plan: &Plan, inputs: &[Place], buffers: Buffers) -> Self {
        let members = combined(plan);
        let bytes = plan.part_from(plan.me).len();
        Self {
            bytes: if members == 0 { 0 } else { bytes },
            inputs: inputs[..members as usize]
                .iter()
                .map(Place::pointer)
                .collect(),
            done: 0,
            buffers,
        }
    }

    /// The next step; `Done` once all is read.
    pub(crate) fn poll(&mut self) -> Progress {
        let length = STEP_BYTES.min(self.bytes - self.done);
        if length > 0 {
            // SAFETY: the inputs lie in their owners' buffers, which stay until this member has told
            // that it read them; this member's own may be its output, else that is apart.
            unsafe {
                self.buffers
                    .combine(self.done, &self.inputs, self.done, length);
            }
        }
        self.done += length;
        if self.done == self.bytes {
            Progress::Done
        } else {
            Progress::Moved
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
