//! All-reduce of two members: who has combined a share leaves it in the slot from which the other's
//! part came, and there the other fetches it.
//!
//! Lines are asked for as they will be written, when they are to be read. So a line of a slot has one
//! owner at a time, and travels half as often as where one member always writes it and the other
//! always reads it.

use std::ops::Range;

use super::Exchange;

/// Streamed past the cache at a time, while lines of the next are on their way. Each ends with a fence.
const STREAMED_BYTES: usize = 16 * 1024;

impl Exchange {
    /// This member's share of the block into its output, and into `theirs`, which holds the other's
    /// part of it.
    ///
    /// # Safety
    /// As [`Exchange::take`]; `theirs` is valid for the share, and the other leaves it alone.
    pub(super) unsafe fn take_and_return(&self, share: Range<usize>, theirs: *mut u8) {
        let Some(combine) = &self.combine else {
            return;
        };
        let is_first = self.plan.me == 0;
        let step = if self.streams {
            STREAMED_BYTES
        } else {
            share.len().max(1)
        };
        for at in (0..share.len()).step_by(step) {
            let length = step.min(share.len() - at);
            // SAFETY: inside of the share.
            unsafe {
                let (output, theirs) = (self.output.add(share.start + at), theirs.add(at));
                let own = self.own(share.start + at, output, length);
                if self.streams {
                    combine.and_return(theirs, own, theirs, is_first, length);
                    rlaunch_device::copy_nontemporal(output, theirs, length);
                } else {
                    combine.and_return(output, own, theirs, is_first, length);
                }
            }
        }
    }

    /// The other's share, which it left in this member's slot, into the output.
    ///
    /// # Safety
    /// `slot` holds the share, and the output the vector.
    pub(super) unsafe fn fetch_back(&self, to: Range<usize>, slot: *const u8) {
        // SAFETY: as the caller vouches.
        unsafe {
            let output = self.output.add(to.start);
            if !self.streams {
                rlaunch_device::copy_taking_over(output, slot, to.len());
                return;
            }
            for at in (0..to.len()).step_by(STREAMED_BYTES) {
                let length = STREAMED_BYTES.min(to.len() - at);
                rlaunch_device::take_over(slot.add(at), length);
                rlaunch_device::copy_nontemporal(output.add(at), slot.add(at), length);
            }
        }
    }
}
