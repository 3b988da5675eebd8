//! What members post in a round: their calls, with as much data as fits. See the team's own
//! documentation.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use rlaunch_wire::Descriptor;

use super::{
    FLAT_BYTES_MAX, FLAT_MEMBER_BYTES, HEADER_DATA, HEADER_DESCRIPTOR, INLINE_BYTES_MAX,
    LINE_BYTES, PREPARED_BYTES_MAX, ROUNDS, Team, flat_offset,
};
use crate::shm::lines::{copy_short, copy_to_hand_on, hand_on, prefetch_to_write};

impl Team {
    /// Tells the others of this rank's call in the round begun last, with its share of data.
    ///
    /// # Safety
    /// `data` is valid for reads of `bytes`, at most [`FLAT_BYTES_MAX`].
    #[inline]
    pub unsafe fn post(
        &mut self,
        descriptor: &[u8; Descriptor::BYTES],
        data: *const u8,
        bytes: usize,
    ) -> io::Result<()> {
        assert!(bytes <= FLAT_BYTES_MAX, "{bytes} bytes in a flat slot");
        let header = self.header(self.me, self.round);
        // SAFETY: the slot is ours to write: all have read what it held (`begin`), and nobody
        // reads it before the flag below.
        unsafe {
            header
                .add(HEADER_DESCRIPTOR)
                .copy_from_nonoverlapping(NonNull::from(descriptor).cast(), Descriptor::BYTES);
        }
        if bytes <= INLINE_BYTES_MAX {
            // SAFETY: as above; the rest of the line has room.
            unsafe { copy_short(data, header.add(HEADER_DATA).as_ptr(), bytes) };
        } else {
            self.commit_flat()?;
            let slot = self.flat(self.me, self.round);
            // SAFETY: as above; checked against the slot's length.
            unsafe { copy_to_hand_on(data, slot, bytes) };
        }
        self.flag(self.me, self.round)
            .store(self.round, Ordering::Release);
        hand_on(header);
        self.ring();
        self.prepare_next(bytes);
        Ok(())
    }

    /// The lines of the next post, last with those who read them, come while this rank waits.
    #[inline]
    fn prepare_next(&self, bytes: usize) {
        prefetch_to_write(self.header(self.me, self.round + 1));
        if bytes > INLINE_BYTES_MAX && !self.swaps() {
            let slot = self.flat(self.me, self.round + 1);
            for line in 0..bytes.min(PREPARED_BYTES_MAX).div_ceil(LINE_BYTES) {
                // SAFETY: inside the slot, which is longer.
                prefetch_to_write(unsafe { slot.add(line * LINE_BYTES) });
            }
        }
    }

    /// The data of a member that has posted `bytes`. Aligned to 8; valid until this rank begins the
    /// next round.
    #[inline]
    pub fn posted_data(&self, member: u32, bytes: usize) -> *const u8 {
        debug_assert!(self.has_posted(member));
        if bytes <= INLINE_BYTES_MAX {
            // SAFETY: inside the slot.
            return unsafe { self.header(member, self.round).add(HEADER_DATA).as_ptr() };
        }
        let slot = self.flat(member, self.round);
        if self.swaps() && member != self.me {
            for line in 0..bytes.div_ceil(LINE_BYTES) {
                // SAFETY: inside the slot, which is longer.
                prefetch_to_write(unsafe { slot.add(line * LINE_BYTES) });
            }
        }
        slot.as_ptr()
    }

    /// Two members swap slots of flat data each time they come round. So who reads a slot writes it
    /// next: its lines, asked for to be written, travel once where they would travel twice.
    #[inline]
    pub(super) fn swaps(&self) -> bool {
        self.members.len() == 2
    }

    fn commit_flat(&mut self) -> io::Result<()> {
        if !self.flat_is_committed {
            let members = self.members.len();
            if self.swaps() {
                self.commit(flat_offset(members, 0), members * FLAT_MEMBER_BYTES)?;
            } else {
                self.commit(flat_offset(members, self.me), FLAT_MEMBER_BYTES)?;
            }
            self.flat_is_committed = true;
        }
        Ok(())
    }

    fn flat(&self, member: u32, round: u64) -> NonNull<u8> {
        let slot = (round % ROUNDS) as usize;
        let is_swapped = self.swaps() && (round / ROUNDS) % 2 == 1;
        let owner = if is_swapped { 1 - member } else { member };
        self.at(flat_offset(self.members.len(), owner) + slot * FLAT_BYTES_MAX)
    }
}
