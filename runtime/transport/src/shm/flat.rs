//! Slots for collectives too small for messages: each rank puts its descriptor and data in its own
//! slot, and all read all. One cache line carries flag, descriptor and the first bytes, so 8 bytes
//! between two ranks cost one transfer of a line each way.
//!
//! ```text
//! slot: 0      8            40       64
//!       | flag | descriptor | data…  | …data
//! ```
//! Two slots are used in turn. A rank that writes operation n+2 has finished n+1, for which it saw
//! every rank's flag; so every rank had begun n+1 and thus finished reading n. This holds only if
//! in every operation each rank waits for all, which [`Flat`] leaves to its caller.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rlaunch_wire::Descriptor;

use super::{Arena, arena::LINE_BYTES, doorbell::ring};

/// Data that a slot holds.
pub const FLAT_BYTES_MAX: usize = 2048;
const DESCRIPTOR_OFFSET: usize = 8;
const DATA_OFFSET: usize = DESCRIPTOR_OFFSET + Descriptor::BYTES;
pub(super) const FLAT_SLOT_BYTES: usize =
    (DATA_OFFSET + FLAT_BYTES_MAX).next_multiple_of(LINE_BYTES);

/// One rank's view of all slots of its host.
#[derive(Debug)]
pub struct Flat {
    arena: Arc<Arena>,
    rank: u32,
    /// Operations begun.
    number: u64,
}

impl Flat {
    pub fn new(arena: Arc<Arena>, rank: u32) -> Self {
        Self {
            arena,
            rank,
            number: 0,
        }
    }

    pub fn ranks(&self) -> u32 {
        self.arena.ranks()
    }

    /// Begins the next operation with this rank's share.
    pub fn post(&mut self, descriptor: &[u8; Descriptor::BYTES], data: &[u8]) {
        assert!(
            data.len() <= FLAT_BYTES_MAX,
            "{} bytes in a flat slot",
            data.len()
        );
        self.number += 1;
        let slot = self.arena.flat_slot(self.rank, self.number);
        // SAFETY: the slot is ours to write: all have read what it held (module documentation),
        // and nobody reads it before the flag below. Lengths are within the slot.
        unsafe {
            slot.add(DESCRIPTOR_OFFSET)
                .copy_from_nonoverlapping(NonNull::from(descriptor).cast(), Descriptor::BYTES);
        }
        // SAFETY: as above; checked against FLAT_BYTES_MAX.
        unsafe {
            std::ptr::copy_nonoverlapping(
                data.as_ptr(),
                slot.add(DATA_OFFSET).as_ptr(),
                data.len(),
            );
        }
        flag(slot).store(self.number, Ordering::Release);
        for rank in (0..self.ranks()).filter(|rank| *rank != self.rank) {
            ring(&self.arena, rank);
        }
    }

    /// Whether `rank` has posted its share of the operation begun last.
    pub fn has_arrived(&self, rank: u32) -> bool {
        flag(self.arena.flat_slot(rank, self.number)).load(Ordering::Acquire) >= self.number
    }

    /// The arrived rank's descriptor, as it wrote it.
    pub fn descriptor(&self, rank: u32) -> [u8; Descriptor::BYTES] {
        debug_assert!(self.has_arrived(rank));
        let slot = self.arena.flat_slot(rank, self.number);
        // SAFETY: inside the slot; its owner does not write before we have gone on.
        unsafe { slot.add(DESCRIPTOR_OFFSET).cast().read_unaligned() }
    }

    /// The arrived rank's data, [`FLAT_BYTES_MAX`] readable bytes of which it wrote its length.
    /// Aligned to 8. Valid until this rank begins the next operation.
    pub fn data(&self, rank: u32) -> *const u8 {
        debug_assert!(self.has_arrived(rank));
        // SAFETY: inside the slot.
        unsafe {
            self.arena
                .flat_slot(rank, self.number)
                .add(DATA_OFFSET)
                .as_ptr()
        }
    }
}

fn flag<'a>(slot: NonNull<u8>) -> &'a AtomicU64 {
    // SAFETY: slots start on a cache line inside the mapping, which the caller's arena keeps; the
    // first 8 bytes are only ever used as an atomic.
    unsafe { slot.cast().as_ref() }
}
