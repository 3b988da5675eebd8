//! All-reduce and reduce of members that share cores: each block passes from the first member to the
//! last, in the first one's slots, and each adds its own to it; the last one's is the result, which
//! those who want it fetch from there.
//!
//! The members before are added in their order, so the bits are those of any other way. Of what is
//! moved only the user's own buffers are longer than the caches: the blocks under way are a few, where
//! with shares each member has slots of its own. And each member waits for one other, not for all: a
//! turn of the scheduler brings it on.
//!
//! What each counts: *put* are the blocks that it has added to (or begun), *fetched* those whose result
//! it has read. At its end it has *taken* all, whereupon the slots are free for what follows.

use rlaunch_transport::shm::{DONE, Stage, Team};

use super::Exchange;
use crate::local::plan::CHAIN_BLOCKS;

/// The member whose slots a chain uses.
const FIRST: u32 = 0;
/// Averages are finished in pieces that the first cache holds.
const PIECE_BYTES: usize = 8 * 1024;

impl Exchange {
    fn last(&self) -> u32 {
        self.plan.members - 1
    }

    /// The first member copies a block into a slot whose last result everybody has fetched.
    pub(super) fn try_begin_block(&mut self, team: &mut Team) -> bool {
        let block = self.put;
        if block == self.plan.puts || !self.is_slot_free(team, block) {
            return false;
        }
        let Some(slots) = team.chain_slots() else {
            return false;
        };
        let piece = self.plan.sent(FIRST, block);
        // SAFETY: `new`'s caller vouches for the input; nobody reads the block's place, and it fits.
        unsafe { self.copy_in(slots.as_ptr().add(self.plan.chain_place(block)), piece) };
        self.put += 1;
        team.publish_to(Stage::Put, self.put, FIRST + 1..FIRST + 2);
        true
    }

    fn is_slot_free(&self, team: &Team, block: u64) -> bool {
        let Some(before) = (block + 1)
            .checked_sub(CHAIN_BLOCKS)
            .filter(|blocks| *blocks > 0)
        else {
            return true;
        };
        let has_read = |member: u32| {
            !self.plan.fetches_of_chain(member) || team.has_come(member, Stage::Fetched, before)
        };
        let is_own_read = self.plan.fetches == 0 || self.fetched >= before;
        is_own_read && team.has_come(self.last(), Stage::Put, before) && team.others().all(has_read)
    }

    /// Any other adds its own to what the one before it has put.
    pub(super) fn try_add(&mut self, team: &mut Team) -> bool {
        let (me, block) = (self.plan.me, self.taken);
        if !team.has_come(me - 1, Stage::Put, block + 1) {
            return false;
        }
        let place = self.plan.chain_place(block);
        // SAFETY: `chain_place` lies in the slots. The member before has put the block and leaves it,
        // nobody else touches it before the next line; `new`'s caller vouches for the buffers.
        unsafe {
            let slot = team.chain_of(FIRST).as_ptr().add(place);
            if me == self.last() {
                self.add_last(slot);
            } else {
                let piece = self.plan.sent(me, block);
                if let Some(combine) = &self.combine {
                    combine.add(slot, self.input.add(piece.start), piece.len());
                }
            }
        }
        self.taken += 1;
        if me == self.last() {
            team.publish(Stage::Put, self.taken);
        } else {
            team.publish_to(Stage::Put, self.taken, me + 1..me + 2);
        }
        true
    }

    /// The last one's is the result: for the others in the slot, and for itself where it wants it.
    ///
    /// # Safety
    /// `slot` holds the block, which nobody else touches; the buffers are valid.
    unsafe fn add_last(&self, slot: *mut u8) {
        let piece = self.plan.sent(self.plan.me, self.taken);
        let Some(combine) = &self.combine else {
            return;
        };
        let wants_output = self.plan.root.is_none_or(|root| root == self.plan.me);
        // SAFETY: as the caller vouches; pieces lie in the block.
        unsafe {
            if wants_output && !combine.finishes() {
                return self.take_and_return(piece, slot);
            }
            for at in (0..piece.len()).step_by(PIECE_BYTES) {
                let length = PIECE_BYTES.min(piece.len() - at);
                let (slot, from) = (slot.add(at), piece.start + at);
                combine.add(slot, self.input.add(from), length);
                combine.finish(slot, length, self.plan.members);
                if wants_output {
                    self.copy_out(from, slot, length);
                }
            }
        }
    }

    pub(super) fn try_fetch_of_chain(&mut self, team: &mut Team) -> bool {
        let block = self.fetched;
        if block == self.plan.fetches || !team.has_come(self.last(), Stage::Put, block + 1) {
            return false;
        }
        let piece = self.plan.sent(self.plan.me, block);
        // SAFETY: the last member has left the result, which stays until we publish; the output holds
        // the vector.
        unsafe {
            let slot = team
                .chain_of(FIRST)
                .as_ptr()
                .add(self.plan.chain_place(block));
            self.copy_out(piece.start, slot, piece.len());
        }
        self.fetched += 1;
        team.publish_to(Stage::Fetched, self.fetched, self.first_but_me());
        true
    }

    /// Of this member nobody will wait for anything more in this exchange.
    pub(super) fn end_chain(&self, team: &mut Team) {
        for stage in [Stage::Taken, Stage::Fetched] {
            team.publish_to(stage, DONE, self.first_but_me());
        }
    }

    /// The member that waits for slots.
    fn first_but_me(&self) -> impl Iterator<Item = u32> + use<> {
        (self.plan.me != FIRST).then_some(FIRST).into_iter()
    }

    /// Whether `member` is one that this one waits for.
    pub(super) fn awaits_in_chain(&self, team: &Team, member: u32) -> bool {
        let (me, last) = (self.plan.me, self.last());
        let lacks_block = self.taken < self.plan.takes
            && member + 1 == me
            && !team.has_come(member, Stage::Put, self.taken + 1);
        let lacks_result = self.fetched < self.plan.fetches
            && member == last
            && !team.has_come(last, Stage::Put, self.fetched + 1);
        let blocks_slot = self.put < self.plan.puts
            && (member == last || self.plan.fetches_of_chain(member))
            && !self.is_slot_free(team, self.put);
        lacks_block || lacks_result || blocks_slot
    }
}
