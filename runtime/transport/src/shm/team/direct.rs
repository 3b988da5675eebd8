//! Exchanges without staging: members read each other's buffers, which lie in zones.
//!
//! Such an exchange counts with the others, so that all rules of slots hold across it. A member ends
//! it only when nobody reads its buffers any more. One whose call fails can't wait for that: it *gives
//! up*, for good, before its caller may touch the buffers again. Who reads looks, after its last read,
//! whether the owner had given up by then; if so, what it read may be anything. (The memory itself is
//! there as long as a reader has the arena.)

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::{GIVEN_UP_OFFSET, HEADERS_OFFSET, ROUNDS, STRIDE_BYTES, Team};
use crate::shm::Claims;
use crate::shm::arena::PAGE_BYTES;

const GIVEN_UP: u32 = 1;
const CLAIMS_OFFSET: usize = HEADERS_OFFSET + ROUNDS as usize * STRIDE_BYTES;
const WRITTEN_OFFSET: usize = CLAIMS_OFFSET + STRIDE_BYTES;
const _: () = assert!(WRITTEN_OFFSET + STRIDE_BYTES <= PAGE_BYTES);

impl Team {
    /// Makes the round begun last an exchange that no slot is used in. Call once.
    pub fn begin_direct(&mut self) {
        self.exchange = self.exchange.wrapping_add(1);
    }

    /// The number of this rank in the arena, whose zone its buffers are in.
    pub fn local_rank(&self) -> u32 {
        self.members[self.me as usize]
    }

    /// What others have yet to read of this member's buffers may be anything from now on.
    pub fn give_up(&self) {
        self.given_up(self.me).store(GIVEN_UP, Ordering::Relaxed);
        // Whoever sees a later write of this rank to its buffers sees the flag.
        fence(Ordering::SeqCst);
    }

    /// Whether any other member had given up when the reads before this call were made.
    pub fn has_anyone_given_up(&self) -> bool {
        fence(Ordering::Acquire);
        self.others().any(|member| self.has_given_up(member))
    }

    pub fn has_given_up(&self, member: u32) -> bool {
        self.given_up(member).load(Ordering::Relaxed) == GIVEN_UP
    }

    /// Of what is given between `member` and the root in this exchange, if it has begun here, else in
    /// the next.
    pub fn claims(&self, member: u32, has_begun: bool) -> Claims<'_> {
        let exchange = self.exchange.wrapping_add(u64::from(!has_begun));
        Claims {
            claims: self.shared_word(member, CLAIMS_OFFSET),
            written: self.shared_word(member, WRITTEN_OFFSET),
            turn: exchange as u32,
        }
    }

    /// The helper has written a piece; see [`Claims::tell_written`].
    pub fn tell_written(&self, member: u32) {
        self.claims(member, true).tell_written();
        self.ring();
    }

    fn shared_word(&self, member: u32, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the area, aligned to 8, and only ever used as an atomic.
        unsafe {
            self.at(member as usize * PAGE_BYTES + offset)
                .cast()
                .as_ref()
        }
    }

    fn given_up(&self, member: u32) -> &AtomicU32 {
        let offset = member as usize * PAGE_BYTES + GIVEN_UP_OFFSET;
        // SAFETY: inside the area, aligned to 4, and only ever used as an atomic.
        unsafe { self.at(offset).cast().as_ref() }
    }
}
