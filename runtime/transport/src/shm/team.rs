//! The memory of one communicator whose members share a host, and the protocol on it.
//!
//! ```text
//! area:          | control page 0 … n-1 | flat data 0 … n-1 | staging 0 … n-1 |
//! control page:  | closed, slot length, given up | counters | header slot 0 … 7 | claims | written |
//!                each in two cache lines
//! header slot:   | round | descriptor (32) | data of up to 24 bytes |
//! flat data:     8 × 4 KiB
//! staging:       | in-slot 0, 1 | out-slot 0, 1 |
//! ```
//! Everything has one writer at a time, usually its member; but see [`Team::put_to_return`] and
//! [`Team::swaps`]. Control pages are memory from the start; flat data and staging become so when
//! their member first needs them.
//!
//! **Rounds.** Every operation is a round: each member posts its descriptor, with the round's
//! number, in the header slot of that round, and compares those of all others before it returns a
//! result that depends on them. Up to 24 bytes of data travel in that line, up to
//! [`FLAT_BYTES_MAX`] beside it. A member that needs nothing from the others need not wait for them:
//! it may be up to four rounds ahead, and compares later ([`Team::settle`]), at most four rounds
//! later. A slot is used again after eight, so by then every member has read and compared it. Two
//! members use each other's slots of flat data every other time ([`Team::swaps`]).
//!
//! **Exchanges.** What does not fit passes through the staging slots, block by block, two of each
//! kind in turn. Such a round is an exchange, and none of its members ends it before all have begun
//! it. A member counts the blocks it has *put* in its in-slots, *taken* from the others' (with a
//! result in its out-slot where that is wanted), and *fetched* from the others' out-slots. A counter
//! is `exchange << 32 | blocks`, so it only grows (modulo 2⁶⁴), and that of a later exchange is above
//! all of an earlier one. [`DONE`] as the block count means all of them, for members that have fewer
//! than others. In a *chain* the in-slots of one member pass from member to member instead, each of
//! which adds to them. Buffers that lie in zones themselves need no staging: see [`direct`].

mod compare;
mod direct;
mod exchange;
mod post;

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rlaunch_wire::Descriptor;

use super::arena::{LINE_BYTES, PAGE_BYTES};
use super::doorbell::ring_all;
use super::{Area, Arena, State};

pub use compare::Difference;

/// Data that one member may post in a round.
pub const FLAT_BYTES_MAX: usize = 4096;
/// Data that travels in the header's own line.
const INLINE_BYTES_MAX: usize = LINE_BYTES - HEADER_DATA;
/// Block count of a member that needs no more of this round.
pub const DONE: u64 = u32::MAX as u64;
/// Staging slots of each kind, used in turn.
pub const SLOTS: usize = 2;

/// Header slots of a member.
const ROUNDS: u64 = 8;
/// Rounds that a member may be ahead of another, and of its own comparing. Who posts round r + 8 has
/// seen all others in round r + 5, which they post only when they have compared round r + 1.
const AHEAD: u64 = ROUNDS / 2;
const HEADER_DESCRIPTOR: usize = 8;
const HEADER_DATA: usize = HEADER_DESCRIPTOR + Descriptor::BYTES;
/// Processors fetch lines by pairs; a neighbouring slot must not come along.
const STRIDE_BYTES: usize = 2 * LINE_BYTES;
const COUNTERS_OFFSET: usize = STRIDE_BYTES;
const HEADERS_OFFSET: usize = 2 * STRIDE_BYTES;
const SLOT_WORD_OFFSET: usize = 8;
const GIVEN_UP_OFFSET: usize = 16;
const CLOSED: u32 = 1;
/// More than a processor has outstanding at a time delays what it waits for.
const PREPARED_BYTES_MAX: usize = 4096;
/// More than any measurement calls for; bounds what a damaged place can ask to map.
const SLOT_BYTES_MAX: usize = 64 << 20;

/// What a member counts; see the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Put = 0,
    Taken = 1,
    Fetched = 2,
}

/// One member's view of a team.
#[derive(Debug)]
pub struct Team {
    arena: Arc<Arena>,
    base: NonNull<u8>,
    area: Area,
    slot_bytes: usize,
    /// Local ranks, by member.
    members: Vec<u32>,
    me: u32,
    /// Rounds begun, and those of them that are exchanges.
    round: u64,
    exchange: u64,
    /// Every member is known to have begun this one.
    acknowledged: u64,
    /// The calls of all members have been compared up to this one.
    compared: u64,
    /// The others' counters when last looked at.
    seen: Vec<[Cell<u64>; 3]>,
    in_use: [Use; SLOTS],
    out_use: [Use; SLOTS],
    is_maker: bool,
    flat_is_committed: bool,
    staging_is_committed: bool,
}

/// What a slot was last written for: the others must have read it before it is written again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Use {
    exchange: u64,
    blocks: u64,
}

// SAFETY: the base points into the arena, which is kept and is Sync; see there.
unsafe impl Send for Team {}

impl Team {
    /// Takes an area of `members[me]`'s zone, with staging slots of `slot_bytes`. One member does
    /// this, then tells the others the place.
    pub fn create(
        arena: Arc<Arena>,
        members: Vec<u32>,
        me: u32,
        slot_bytes: usize,
    ) -> io::Result<Self> {
        let slot_bytes = slot_bytes.max(1).next_multiple_of(PAGE_BYTES);
        let rank = members[me as usize];
        let area = arena.allocate(rank, area_bytes(members.len(), slot_bytes))?;
        let control = Area {
            bytes: members.len() * PAGE_BYTES,
            ..area
        };
        let made = arena.commit(control).and_then(|()| arena.locate(area));
        let base = made.inspect_err(|_| arena.free(rank, area))?;
        let mut team = Self::new(arena, base, area, slot_bytes, members, me);
        team.is_maker = true;
        team.slot_word().store(slot_bytes as u64, Ordering::Release);
        Ok(team)
    }

    /// Joins a team that another member made at `place`.
    pub fn open(arena: Arc<Arena>, place: u64, members: Vec<u32>, me: u32) -> io::Result<Self> {
        let control = Area {
            offset: place,
            bytes: members.len() * PAGE_BYTES,
        };
        let base = arena.locate(control)?;
        let mut team = Self::new(arena, base, control, 0, members, me);
        let slot_bytes = team.slot_word().load(Ordering::Acquire) as usize;
        if slot_bytes == 0 || !slot_bytes.is_multiple_of(PAGE_BYTES) || slot_bytes > SLOT_BYTES_MAX
        {
            return Err(io::Error::other(
                "no team at that place of the shared memory",
            ));
        }
        team.slot_bytes = slot_bytes;
        team.area.bytes = area_bytes(team.members.len(), slot_bytes);
        team.arena.locate(team.area)?;
        Ok(team)
    }

    fn new(
        arena: Arc<Arena>,
        base: NonNull<u8>,
        area: Area,
        slot_bytes: usize,
        members: Vec<u32>,
        me: u32,
    ) -> Self {
        Self {
            arena,
            base,
            area,
            slot_bytes,
            me,
            round: 0,
            exchange: 0,
            acknowledged: 0,
            compared: 0,
            seen: members.iter().map(|_| Default::default()).collect(),
            in_use: [Use::default(); SLOTS],
            out_use: [Use::default(); SLOTS],
            is_maker: false,
            flat_is_committed: false,
            staging_is_committed: false,
            members,
        }
    }

    /// Where the team lies, for [`Team::open`].
    pub fn place(&self) -> u64 {
        self.area.offset
    }

    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    #[inline]
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// This rank's number among the members.
    #[inline]
    pub fn me(&self) -> u32 {
        self.me
    }

    /// The members' local ranks.
    pub fn members(&self) -> &[u32] {
        &self.members
    }

    #[inline]
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Begins the next round; false while its slot may still be read, or too much is to be settled.
    #[inline]
    pub fn begin(&mut self) -> bool {
        let next = self.round + 1;
        if next > self.compared + AHEAD
            || next >= self.acknowledged + AHEAD && !self.acknowledge(next)
        {
            return false;
        }
        self.round = next;
        true
    }

    /// Looks whether the others have come far enough for round `next`. At that post alone: to look at a
    /// later one would take its line away from who is about to write it.
    fn acknowledge(&mut self, next: u64) -> bool {
        let needed = next + 1 - AHEAD;
        let has_come = |member| self.has_posted_round(member, needed);
        let have_come = self.others().all(has_come);
        if have_come {
            self.acknowledged = needed;
        }
        have_come
    }

    /// Whether `member` has posted its call of the round begun last.
    #[inline]
    pub fn has_posted(&self, member: u32) -> bool {
        self.has_posted_round(member, self.round)
    }

    #[inline]
    fn has_posted_round(&self, member: u32, round: u64) -> bool {
        self.flag(member, round).load(Ordering::Acquire) >= round
    }

    /// The descriptor of a member that has posted, as it wrote it.
    #[inline]
    pub fn posted_descriptor(&self, member: u32) -> [u8; Descriptor::BYTES] {
        debug_assert!(self.has_posted(member));
        self.descriptor_of(member, self.round)
    }

    #[inline]
    fn descriptor_of(&self, member: u32, round: u64) -> [u8; Descriptor::BYTES] {
        let header = self.header(member, round);
        // SAFETY: inside the slot; its owner does not write before we have gone on.
        unsafe { header.add(HEADER_DESCRIPTOR).cast().read_unaligned() }
    }

    /// Every member but this one.
    #[inline]
    pub fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.me;
        (0..self.size()).filter(move |member| *member != me)
    }

    #[inline]
    fn ring(&self) {
        let others = self.members.iter().enumerate();
        let others = others.filter(|(member, _)| *member != self.me as usize);
        ring_all(&self.arena, self.local(), others.map(|(_, rank)| *rank));
    }

    /// This rank's number in the shared memory.
    #[inline]
    fn local(&self) -> u32 {
        self.members[self.me as usize]
    }

    fn commit_staging(&mut self) -> io::Result<()> {
        if !self.staging_is_committed {
            let offset = staging_offset(self.members.len(), self.me, self.slot_bytes);
            self.commit(offset, 2 * SLOTS * self.slot_bytes)?;
            self.staging_is_committed = true;
        }
        Ok(())
    }

    fn commit(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let offset = self.area.offset + offset as u64;
        self.arena.commit(Area { offset, bytes })
    }

    fn staging(&self, member: u32, slot: usize) -> NonNull<u8> {
        let offset = staging_offset(self.members.len(), member, self.slot_bytes);
        self.at(offset + slot * self.slot_bytes)
    }

    fn header(&self, member: u32, round: u64) -> NonNull<u8> {
        let slot = (round % ROUNDS) as usize;
        self.at(member as usize * PAGE_BYTES + HEADERS_OFFSET + slot * STRIDE_BYTES)
    }

    fn flag(&self, member: u32, round: u64) -> &AtomicU64 {
        // SAFETY: inside the area, aligned to a line, and only ever used as an atomic.
        unsafe { self.header(member, round).cast().as_ref() }
    }

    fn counter(&self, member: u32, stage: Stage) -> &AtomicU64 {
        let offset = member as usize * PAGE_BYTES + COUNTERS_OFFSET + stage as usize * 8;
        // SAFETY: inside the area, aligned to 8, and only ever used as an atomic.
        unsafe { self.at(offset).cast().as_ref() }
    }

    fn closed(&self, member: u32) -> &AtomicU32 {
        // SAFETY: inside the area, aligned to a page, and only ever used as an atomic.
        unsafe { self.at(member as usize * PAGE_BYTES).cast().as_ref() }
    }

    fn slot_word(&self) -> &AtomicU64 {
        // SAFETY: inside the area, aligned to 8, and only ever used as an atomic.
        unsafe { self.at(SLOT_WORD_OFFSET).cast().as_ref() }
    }

    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.area.bytes);
        // SAFETY: every offset comes from the layout above, which the area's length was computed
        // from.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.closed(self.me).store(CLOSED, Ordering::Release);
        if self.is_maker {
            let rank = self.members[self.me as usize];
            self.arena.retire(rank, self.area, &self.members);
        }
    }
}

/// Whether all members of the team at `base` are done with it.
pub(super) fn is_closed(arena: &Arena, base: NonNull<u8>, members: &[u32]) -> bool {
    members.iter().enumerate().all(|(member, rank)| {
        // SAFETY: inside the team's area, as in `Team::closed`.
        let closed: &AtomicU32 = unsafe { base.add(member * PAGE_BYTES).cast().as_ref() };
        closed.load(Ordering::Acquire) == CLOSED || arena.state(*rank) == State::Left
    })
}

const FLAT_MEMBER_BYTES: usize = ROUNDS as usize * FLAT_BYTES_MAX;

fn flat_offset(members: usize, member: u32) -> usize {
    members * PAGE_BYTES + member as usize * FLAT_MEMBER_BYTES
}

fn staging_offset(members: usize, member: u32, slot_bytes: usize) -> usize {
    members * (PAGE_BYTES + FLAT_MEMBER_BYTES) + member as usize * 2 * SLOTS * slot_bytes
}

fn area_bytes(members: usize, slot_bytes: usize) -> usize {
    staging_offset(members, members as u32, slot_bytes)
}

#[cfg(test)]
mod tests;
