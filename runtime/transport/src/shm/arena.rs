//! The memory that the ranks of one host share, and what lies where in it.
//!
//! ```text
//! | rank area 0 … n-1 | pair area (0,0) … (n-1,n-1) | byte ring (0,0) … (n-1,n-1) | zone 0 … n-1 |
//! rank area: | state, introduction | doorbell |
//! pair area: | written | taken | header slots | claims | helped |      from-major: pair (from, to)
//! ```
//! The memfd is sealed against shrinking before anyone maps it, so no peer can make an access
//! fault. Rank and pair areas are allocated at once; a byte ring when its sender first needs it,
//! so that pairs that never talk cost nothing. Every counter has one writer and its own cache line.
//! Zones, from which ranks take memory as they need it, have a file of their own: [`super::zone`].

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nix::fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::reach::Reach;
use super::reference::References;
use super::zone::Zones;

pub(super) const LINE_BYTES: usize = 64;
/// Header slots of a pair: messages under way before the sender must wait.
pub(super) const HEADER_SLOTS: u64 = 64;
/// Bytes of a pair under way. Two directions between two ranks fit an L2 cache of 1 MiB.
pub(super) const RING_BYTES: usize = 512 * 1024;

pub(super) const PAGE_BYTES: usize = 4096;
/// State and doorbell, each in a pair of lines: processors fetch lines by pairs.
const RANK_BYTES: usize = 4 * LINE_BYTES;
const DOORBELL_OFFSET: usize = 2 * LINE_BYTES;
const CLAIMS_OFFSET: usize =
    (2 * LINE_BYTES + HEADER_SLOTS as usize * LINE_BYTES).next_multiple_of(2 * LINE_BYTES);
const PAIR_BYTES: usize = CLAIMS_OFFSET + 4 * LINE_BYTES;

/// What a rank's neighbours can see of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    Absent = 0,
    Present = 1,
    /// Finalized: whatever is not there yet will never come.
    Left = 2,
}

/// One mapping of the shared memory.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    ranks: u32,
    memory: OwnedFd,
    pub(super) zones: Zones,
    /// Whether this process can read the others' memory; see [`super::reach`].
    pub(super) reach: OnceLock<Option<Reach>>,
    pub(super) reaches_many: AtomicBool,
}

// SAFETY: the mapping is valid in all threads; what lies in it is reached by atomics, or is handed
// over by them.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Makes the memory for `ranks` ranks.
    pub fn create(ranks: u32) -> io::Result<Arc<Self>> {
        let memory = memfd_create(
            "rlaunch",
            MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
        )?;
        let zone_bytes = Zones::choose_bytes(fixed_bytes(ranks), ranks);
        let total = fixed_bytes(ranks) + ranks as usize * zone_bytes;
        nix::unistd::ftruncate(&memory, total as i64)?;
        fallocate(
            &memory,
            FallocateFlags::empty(),
            0,
            rings_offset(ranks) as i64,
        )?;
        fcntl(
            &memory,
            FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW),
        )?;
        Self::map(memory, ranks)
    }

    /// Maps memory that another rank made; refuses one that could still shrink under us.
    pub fn map(memory: OwnedFd, ranks: u32) -> io::Result<Arc<Self>> {
        let bytes = fixed_bytes(ranks);
        let seals = SealFlag::from_bits_truncate(fcntl(&memory, FcntlArg::F_GET_SEALS)?);
        let size = nix::sys::stat::fstat(&memory)?.st_size as usize;
        let zones = size
            .checked_sub(bytes)
            .and_then(|rest| Zones::new(bytes, rest, ranks));
        let Some(zones) = zones.filter(|_| seals.contains(SealFlag::F_SEAL_SHRINK)) else {
            return Err(io::Error::other(
                "shared memory of unexpected size or without seal",
            ));
        };
        let length = NonZeroUsize::new(bytes).expect("an arena has at least one rank");
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe {
            mmap(
                None,
                length,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
                &memory,
                0,
            )?
        };
        Ok(Arc::new(Self {
            base: base.cast(),
            bytes,
            ranks,
            memory,
            zones,
            reach: OnceLock::new(),
            reaches_many: AtomicBool::new(false),
        }))
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(super) fn memory(&self) -> &OwnedFd {
        &self.memory
    }

    pub fn state(&self, rank: u32) -> State {
        match self.word(self.rank_offset(rank)).load(Ordering::Acquire) {
            1 => State::Present,
            2 => State::Left,
            _ => State::Absent,
        }
    }

    pub fn set_state(&self, rank: u32, state: State) {
        self.word(self.rank_offset(rank))
            .store(state as u32, Ordering::Release);
    }

    /// What a rank tells of its process: its id, where a number lies in its memory, and the number.
    pub(super) fn introduction(&self, rank: u32) -> (&AtomicU32, &AtomicU64, &AtomicU64) {
        let offset = self.rank_offset(rank);
        (
            self.word(offset + 4),
            self.counter(offset + 8),
            self.counter(offset + 16),
        )
    }

    /// Not zero once a rank knows that it can read and write the others' memory.
    pub(super) fn reaches(&self, rank: u32) -> &AtomicU32 {
        self.word(self.rank_offset(rank) + 24)
    }

    /// The doorbell's futex word and the flag that its owner sleeps.
    pub(super) fn doorbell(&self, rank: u32) -> (&AtomicU32, &AtomicU32) {
        let offset = self.rank_offset(rank) + DOORBELL_OFFSET;
        (self.word(offset), self.word(offset + 4))
    }

    /// Bytes that the sender has put in the ring, ever.
    pub(super) fn written(&self, from: u32, to: u32) -> &AtomicU64 {
        self.counter(self.pair_offset(from, to))
    }

    /// Bytes, and header slots, that the receiver has taken, ever.
    pub(super) fn taken(&self, from: u32, to: u32) -> (&AtomicU64, &AtomicU64) {
        let offset = self.pair_offset(from, to) + LINE_BYTES;
        (self.counter(offset), self.counter(offset + 8))
    }

    /// What a pair tells of messages that the receiver takes from the sender's own memory.
    pub(super) fn references(&self, from: u32, to: u32) -> References<'_> {
        let offset = self.pair_offset(from, to);
        References {
            withdrawn: self.counter(offset + 8),
            done: self.counter(offset + LINE_BYTES + 16),
            destination: self.counter(offset + LINE_BYTES + 24),
            ready: self.counter(offset + LINE_BYTES + 32),
            claims: self.counter(offset + CLAIMS_OFFSET),
            written: self.counter(offset + CLAIMS_OFFSET + 2 * LINE_BYTES),
        }
    }

    pub(super) fn header_slot(&self, from: u32, to: u32, number: u64) -> NonNull<u8> {
        let slot = (number % HEADER_SLOTS) as usize;
        self.at(self.pair_offset(from, to) + (2 + slot) * LINE_BYTES)
    }

    pub(super) fn ring(&self, from: u32, to: u32) -> NonNull<u8> {
        self.at(self.ring_offset(from, to))
    }

    /// Takes the pair's ring from the system, so that no later write can fault.
    pub(super) fn allocate_ring(&self, from: u32, to: u32) -> io::Result<()> {
        let offset = self.ring_offset(from, to) as i64;
        Ok(fallocate(
            &self.memory,
            FallocateFlags::empty(),
            offset,
            RING_BYTES as i64,
        )?)
    }

    fn rank_offset(&self, rank: u32) -> usize {
        assert!(rank < self.ranks, "local rank {rank} of {}", self.ranks);
        rank as usize * RANK_BYTES
    }

    fn pair_offset(&self, from: u32, to: u32) -> usize {
        pairs_offset(self.ranks) + self.pair(from, to) * PAIR_BYTES
    }

    fn ring_offset(&self, from: u32, to: u32) -> usize {
        rings_offset(self.ranks) + self.pair(from, to) * RING_BYTES
    }

    fn pair(&self, from: u32, to: u32) -> usize {
        assert!(
            from < self.ranks && to < self.ranks,
            "pair {from}, {to} of {}",
            self.ranks
        );
        from as usize * self.ranks as usize + to as usize
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.bytes);
        // SAFETY: every offset comes from the layout above, which `bytes` was computed from.
        unsafe { self.base.add(offset) }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the mapping, aligned to 4, and only ever used as an atomic.
        unsafe { self.at(offset).cast().as_ref() }
    }

    fn counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the mapping, aligned to 8, and only ever used as an atomic.
        unsafe { self.at(offset).cast().as_ref() }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.unmap_zones();
        // SAFETY: this mapping was made by us with this length, and no reference outlives self.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}

fn pairs_offset(ranks: u32) -> usize {
    (ranks as usize * RANK_BYTES).next_multiple_of(PAGE_BYTES)
}

fn rings_offset(ranks: u32) -> usize {
    let pairs = ranks as usize * ranks as usize;
    (pairs_offset(ranks) + pairs * PAIR_BYTES).next_multiple_of(PAGE_BYTES)
}

fn fixed_bytes(ranks: u32) -> usize {
    rings_offset(ranks) + ranks as usize * ranks as usize * RING_BYTES
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn an_arena_has_no_name_and_cannot_shrink() {
        let arena = Arena::create(3).unwrap();
        assert!(nix::unistd::ftruncate(arena.memory(), 0).is_err());
        let path = std::fs::read_link(format!("/proc/self/fd/{}", arena.memory().as_raw_fd()));
        assert!(path.unwrap().to_str().unwrap().starts_with("/memfd:"));
    }

    #[test]
    fn unsealed_memory_is_refused() {
        let memory = memfd_create("x", MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::ftruncate(&memory, fixed_bytes(2) as i64).unwrap();
        assert!(Arena::map(memory, 2).is_err());
    }

    #[test]
    fn areas_do_not_overlap() {
        let arena = Arena::create(4).unwrap();
        let mut ranges = Vec::new();
        for a in 0..4 {
            ranges.push((arena.rank_offset(a), RANK_BYTES));
            for b in 0..4 {
                ranges.push((arena.pair_offset(a, b), PAIR_BYTES));
                ranges.push((arena.ring_offset(a, b), RING_BYTES));
            }
        }
        ranges.sort_unstable();
        assert!(
            ranges
                .windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
        );
        let (offset, bytes) = *ranges.last().unwrap();
        assert_eq!(offset + bytes, arena.bytes);
    }
}
