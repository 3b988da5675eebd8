//! The moves of which the stages are made: of pieces of a block.

use std::ops::Range;

use rlaunch_transport::shm::Team;

use super::Exchange;

/// Results that have two places are made in pieces that the first cache holds.
const PIECE_BYTES: usize = 8 * 1024;

impl Exchange {
    /// # Safety
    /// As [`Exchange::put`].
    pub(super) unsafe fn copy_in(&self, to: *mut u8, piece: Range<usize>) {
        // SAFETY: the piece lies in the input, which is valid, and fits.
        unsafe {
            let from = self.input.add(piece.start);
            match &self.combine {
                Some(combine) => combine.prepare(to, from, piece.len()),
                None => rlaunch_device::copy_between_cores(to, from, piece.len()),
            }
        }
    }

    /// This member's share of the block, into its out-slot and the output.
    ///
    /// # Safety
    /// As [`Exchange::take`]; `place` is the share's in slots.
    pub(super) unsafe fn take_share(
        &mut self,
        team: &Team,
        share: Range<usize>,
        place: usize,
        result: *mut u8,
        wants_output: bool,
    ) {
        for at in (0..share.len()).step_by(PIECE_BYTES) {
            let length = PIECE_BYTES.min(share.len() - at);
            // SAFETY: inside of the share.
            unsafe {
                let (from, place, result) = (share.start + at, place + at, result.add(at));
                let everyone = 0..self.plan.members;
                if wants_output && !self.streams {
                    // In place the output's lines are ours already, those of the slot are not.
                    let output = self.output.add(from);
                    self.combine(team, everyone, from, output, place, length);
                    rlaunch_device::copy_between_cores(result, output, length);
                } else {
                    self.combine(team, everyone, from, result, place, length);
                    if wants_output {
                        self.copy_out(from, result, length);
                    }
                }
            }
        }
    }

    /// Combines what `members` have put (at `place` in their slots) with this one's own at `from`
    /// in the input, into `to` in the output.
    ///
    /// # Safety
    /// As [`Exchange::take`].
    pub(super) unsafe fn reduce(
        &mut self,
        team: &Team,
        members: Range<u32>,
        from: Range<usize>,
        to: Range<usize>,
        place: usize,
    ) {
        // SAFETY: as the caller vouches; both ranges have one length.
        unsafe {
            let output = self.output.add(to.start);
            self.combine(team, members, from.start, output, place, to.len());
        }
    }

    /// Combines `length` bytes at `place` in the slots of `members`, and at `from` in the input of
    /// this one, into `to`.
    ///
    /// # Safety
    /// As [`Exchange::take`].
    pub(super) unsafe fn combine(
        &mut self,
        team: &Team,
        members: Range<u32>,
        from: usize,
        to: *mut u8,
        place: usize,
        length: usize,
    ) {
        let (me, block) = (self.plan.me, self.taken);
        // SAFETY: as the caller vouches.
        let own = unsafe {
            if members.contains(&me) {
                self.own(from, to, length)
            } else {
                to.cast_const()
            }
        };
        let contributions = self.inputs.gather(members.end, |member| {
            if member == me {
                own
            } else {
                team.put_by(member, block).wrapping_add(place)
            }
        });
        if let Some(combine) = &self.combine {
            // SAFETY: as the caller vouches.
            unsafe { combine.many(to, contributions, length) };
        }
    }

    /// This member's own contribution: its input, or what it prepared of it at `to`.
    ///
    /// # Safety
    /// The input at `from` and `to` are valid for `bytes`; `to` will be overwritten.
    pub(super) unsafe fn own(&self, from: usize, to: *mut u8, bytes: usize) -> *const u8 {
        // SAFETY: as the caller vouches.
        let input = unsafe { self.input.add(from) };
        match &self.combine {
            Some(combine) if combine.prepares() => {
                // SAFETY: as the caller vouches.
                unsafe { combine.prepare(to, input, bytes) };
                to.cast_const()
            }
            _ => input,
        }
    }

    /// # Safety
    /// `from` is valid for `bytes`, the output for as many from `to` on.
    pub(super) unsafe fn copy_out(&self, to: usize, from: *const u8, bytes: usize) {
        // SAFETY: as the caller vouches; slots and input are apart from the output.
        unsafe {
            let to = self.output.add(to);
            if self.streams {
                rlaunch_device::copy_nontemporal(to, from, bytes);
            } else {
                std::ptr::copy_nonoverlapping(from, to, bytes);
            }
        }
    }
}
