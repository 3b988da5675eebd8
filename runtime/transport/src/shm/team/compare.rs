//! What the members call: whether it is the same, also where some left the round early, and how far
//! each has come.

use std::sync::atomic::Ordering;

use rlaunch_wire::Descriptor;

use super::{AHEAD, ROUNDS, Team};
use crate::shm::lines::prefetch;

/// Of so many members; more would delay what is needed now.
const PREFETCHED_MAX: usize = 7;

/// Two members made different calls in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    pub member: u32,
    pub mine: [u8; Descriptor::BYTES],
    pub theirs: [u8; Descriptor::BYTES],
}

impl Team {
    /// Notes that every member has posted the same call in this round, which saves looking later.
    #[inline]
    pub fn note_all_equal(&mut self) {
        self.acknowledged = self.round;
        if self.compared + 1 == self.round {
            self.compared = self.round;
        }
    }

    /// Rounds begun whose calls have not been compared with all others'.
    #[inline]
    pub fn unsettled(&self) -> u64 {
        self.round - self.compared
    }

    /// Compares what the others have posted by now in rounds that this member left early, until at most
    /// `left` of them are not compared.
    pub fn settle(&mut self, left: u64) -> Result<(), Difference> {
        while self.compared + left < self.round {
            let round = self.compared + 1;
            let mine = self.descriptor_of(self.me, round);
            for member in self.others() {
                if !self.has_posted_round(member, round) {
                    return Ok(());
                }
                let theirs = self.descriptor_of(member, round);
                if theirs != mine {
                    return Err(Difference {
                        member,
                        mine,
                        theirs,
                    });
                }
            }
            self.compared = round;
            self.acknowledged = self.acknowledged.max(round);
        }
        Ok(())
    }

    /// Asks for the posts that are compared next: those of rounds ago, which are there by now.
    #[inline]
    pub fn prefetch_unsettled(&self) {
        for member in self.others().take(PREFETCHED_MAX) {
            prefetch(self.header(member, self.compared + 1));
        }
    }

    /// The call that `member` has posted last, however far it has come; also of one that has died.
    pub fn last_post(&self, member: u32) -> Option<[u8; Descriptor::BYTES]> {
        // Nobody is further ahead, nor further behind. What it has posted last it does not write again
        // while this member stays where it is.
        let newest = self.round + AHEAD;
        let oldest = newest.saturating_sub(ROUNDS - 1).max(1);
        let is_there = |round: &u64| self.flag(member, *round).load(Ordering::Acquire) == *round;
        let last = (oldest..=newest).rev().find(is_there)?;
        Some(self.descriptor_of(member, last))
    }
}
