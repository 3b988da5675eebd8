//! Exchanges: counters and staging slots. See the team's own documentation.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::{DONE, SLOTS, Stage, Team, Use};
use crate::shm::doorbell::ring_all;

/// Exchanges between two times at which every counter is brought up to date.
const REFRESH_PERIOD: u64 = 1 << 20;

impl Team {
    /// Makes the round begun last an exchange. Call once, before its slots and counters are used.
    pub fn begin_exchange(&mut self) -> io::Result<()> {
        self.commit_staging()?;
        self.exchange = self.exchange.wrapping_add(1);
        Ok(())
    }

    /// What was seen of counters must not grow old either.
    pub(super) fn look_at_all(&self) {
        for member in self.others() {
            for stage in [Stage::Put, Stage::Taken, Stage::Fetched] {
                let now = self.counter(member, stage).load(Ordering::Acquire);
                self.seen[member as usize][stage as usize].set(now);
            }
        }
    }

    /// As if that many exchanges had been; before any, on every member.
    #[cfg(test)]
    pub(super) fn start_at(&mut self, exchange: u64) {
        self.exchange = exchange;
        self.in_use = [Use {
            exchange,
            blocks: 0,
        }; SLOTS];
        self.out_use = self.in_use;
        for stage in [Stage::Put, Stage::Taken, Stage::Fetched] {
            self.publish(stage, 0);
        }
    }

    /// Ends the exchange, once all members have posted. Nothing of it is touched afterwards.
    pub fn end_exchange(&mut self) {
        // A counter that stood still while others went halfway around would seem ahead of them.
        if self.exchange.is_multiple_of(REFRESH_PERIOD) {
            for stage in [Stage::Put, Stage::Taken, Stage::Fetched] {
                self.publish(stage, DONE);
            }
            self.look_at_all();
        }
    }

    /// Tells the others how many blocks this rank has come in this exchange.
    #[inline]
    pub fn publish(&mut self, stage: Stage, blocks: u64) {
        let value = counter_value(self.exchange, blocks);
        self.counter(self.me, stage).store(value, Ordering::Release);
        self.ring();
    }

    /// The same, where only these members may wait for it.
    #[inline]
    pub fn publish_to(&mut self, stage: Stage, blocks: u64, members: impl Iterator<Item = u32>) {
        let value = counter_value(self.exchange, blocks);
        self.counter(self.me, stage).store(value, Ordering::Release);
        let ranks = members.map(|member| self.members[member as usize]);
        ring_all(&self.arena, self.local(), ranks);
    }

    /// Whether `member` has come that far in this exchange.
    #[inline]
    pub fn has_come(&self, member: u32, stage: Stage, blocks: u64) -> bool {
        self.has_reached(member, stage, counter_value(self.exchange, blocks))
    }

    fn has_reached(&self, member: u32, stage: Stage, wanted: u64) -> bool {
        let seen = &self.seen[member as usize][stage as usize];
        if is_at_least(seen.get(), wanted) {
            return true;
        }
        seen.set(self.counter(member, stage).load(Ordering::Acquire));
        is_at_least(seen.get(), wanted)
    }

    /// This rank's in-slot for its block number `block`; `None` while others may still read it.
    pub fn in_slot(&mut self, block: u64) -> Option<NonNull<u8>> {
        let slot = self.slot_number(block);
        if !self.is_free(self.in_use[slot], Stage::Taken) {
            return None;
        }
        self.in_use[slot] = self.use_for(block);
        Some(self.staging(self.me, slot))
    }

    /// This rank's out-slot for its result number `block`; `None` while others may still read it.
    pub fn out_slot(&mut self, block: u64) -> Option<NonNull<u8>> {
        let slot = self.slot_number(block);
        if !self.is_free(self.out_use[slot], Stage::Fetched) {
            return None;
        }
        self.out_use[slot] = self.use_for(block);
        Some(self.staging(self.me, SLOTS + slot))
    }

    /// All of this rank's in-slots as one range, for the first member of a chain; `None` while others
    /// may still read what they held before. Every member of a chain ends it by publishing that it has
    /// taken all.
    pub fn chain_slots(&mut self) -> Option<NonNull<u8>> {
        let whole = Use {
            exchange: self.exchange,
            blocks: DONE,
        };
        if self.in_use[0] != whole {
            let are_free = |last: &Use| self.is_free(*last, Stage::Taken);
            if !self.in_use.iter().all(are_free) {
                return None;
            }
            self.in_use = [whole; SLOTS];
        }
        Some(self.chain_of(self.me))
    }

    /// The in-slots of a chain's first member, [`SLOTS`] times a slot's length. Written by one member
    /// after the other.
    pub fn chain_of(&self, first: u32) -> NonNull<u8> {
        self.staging(first, 0)
    }

    fn use_for(&self, block: u64) -> Use {
        Use {
            exchange: self.exchange,
            blocks: block + 1,
        }
    }

    fn is_free(&self, last: Use, stage: Stage) -> bool {
        // This exchange could only begin when all had begun the last one, and so had ended those
        // before.
        if self.exchange.wrapping_sub(last.exchange) >= 2 {
            return true;
        }
        let wanted = counter_value(last.exchange, last.blocks);
        (0..self.size()).all(|member| member == self.me || self.has_reached(member, stage, wanted))
    }

    /// The in-slot where a member that has put `block` put it.
    pub fn put_by(&self, member: u32, block: u64) -> *const u8 {
        self.staging(member, self.slot_number(block)).as_ptr()
    }

    /// The same, for a result to be left there before this rank has taken the block: in exchanges where
    /// one other member alone reads the slot, and its owner fetches the result from it.
    pub fn put_to_return(&self, member: u32, block: u64) -> NonNull<u8> {
        self.staging(member, self.slot_number(block))
    }

    /// The out-slot where a member that has taken `block` left its result.
    pub fn result_of(&self, member: u32, block: u64) -> *const u8 {
        self.staging(member, SLOTS + self.slot_number(block))
            .as_ptr()
    }

    /// Exchanges of one block each use both slots in turn, so that none waits for the one before.
    fn slot_number(&self, block: u64) -> usize {
        (self.exchange.wrapping_add(block) % SLOTS as u64) as usize
    }
}

fn counter_value(exchange: u64, blocks: u64) -> u64 {
    debug_assert!(blocks <= DONE);
    (exchange << 32).wrapping_add(blocks)
}

/// Counters wrap around; what lies less than half of their range ahead is later.
fn is_at_least(counter: u64, wanted: u64) -> bool {
    counter.wrapping_sub(wanted).cast_signed() >= 0
}
