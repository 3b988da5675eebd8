//! Tiny collectives between ranks that all share memory: one exchange of slots, no messages.
//!
//! Every rank waits for every other, also where the result would not need it (broadcast): that is
//! what lets two slots suffice, and what compares all descriptors. Reductions go in rank order on
//! every rank, so all get the same bits.

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{FLAT_BYTES_MAX, Flat};
use rlaunch_wire::{Collective, Descriptor};

use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};

/// One such call.
#[derive(Debug)]
pub(crate) struct FlatExchange {
    descriptor: Descriptor,
    bytes: [u8; Descriptor::BYTES],
    /// Local ranks below this have arrived with an equal descriptor.
    arrived: u32,
}

/// Whether `bytes` of each rank may go this way. The same on all ranks.
pub(crate) fn serves(core: &Core, bytes: usize) -> bool {
    bytes <= FLAT_BYTES_MAX
        && core
            .neighbours
            .as_ref()
            .is_some_and(|neighbours| neighbours.flat.is_some())
}

impl FlatExchange {
    /// Posts this rank's share.
    ///
    /// # Safety
    /// `data` is valid for reads of `length` bytes.
    pub(crate) unsafe fn begin(
        core: &mut Core,
        descriptor: Descriptor,
        data: *const u8,
        length: usize,
    ) -> Self {
        let bytes = descriptor.encode();
        let share = if length == 0 {
            &[]
        } else {
            // SAFETY: the caller vouches for it.
            unsafe { std::slice::from_raw_parts(data, length) }
        };
        flat_mut(core).post(&bytes, share);
        Self {
            descriptor,
            bytes,
            arrived: 0,
        }
    }
}

impl Operation for FlatExchange {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let flat = flat(core);
        while self.arrived < flat.ranks() {
            if !flat.has_arrived(self.arrived) {
                return Ok(Progress::Idle);
            }
            let theirs = flat.descriptor(self.arrived);
            if theirs != self.bytes {
                // All ranks are neighbours here, numbered alike.
                let peer = self.arrived;
                let theirs = Descriptor::decode(&theirs).ok_or_else(|| Error::Connection {
                    peer: core.identity(peer),
                    cause: "malformed descriptor in shared memory".into(),
                })?;
                return Err(core.mismatch(self.descriptor, peer, theirs));
            }
            self.arrived += 1;
        }
        Ok(Progress::Done)
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        let flat = flat(core);
        (self.arrived..flat.ranks())
            .filter(|rank| !flat.has_arrived(*rank))
            .map(|rank| Awaited {
                rank,
                to_send: false,
            })
            .collect()
    }
}

/// Writes the result of a complete exchange.
///
/// # Safety
/// The exchange is done; `output` is valid for writes of what the collective yields: `length` bytes,
/// for all_gather times the world's size. `length` is a rank's share, for reduce_scatter its result.
pub(crate) unsafe fn conclude(
    core: &Core,
    descriptor: &Descriptor,
    output: *mut u8,
    length: usize,
) {
    let flat = flat(core);
    match descriptor.collective {
        Collective::Broadcast => {
            // SAFETY: the root has posted `length` bytes; the output is valid for as many.
            unsafe { std::ptr::copy_nonoverlapping(flat.data(descriptor.root), output, length) };
        }
        Collective::AllGather => {
            for rank in 0..flat.ranks() {
                // SAFETY: each has posted `length` bytes; the output has room for all.
                unsafe {
                    let place = output.add(rank as usize * length);
                    std::ptr::copy_nonoverlapping(flat.data(rank), place, length);
                }
            }
        }
        // SAFETY: as the caller vouches.
        Collective::AllReduce => unsafe { reduce(flat, descriptor, output, 0, length) },
        Collective::ReduceScatter => {
            let offset = core.rank as usize * length;
            // SAFETY: each has posted a share for every rank; as the caller vouches.
            unsafe { reduce(flat, descriptor, output, offset, length) };
        }
        _ => {}
    }
}

/// # Safety
/// All have posted at least `offset + length` bytes; `output` is valid for `length`.
unsafe fn reduce(
    flat: &Flat,
    descriptor: &Descriptor,
    output: *mut u8,
    offset: usize,
    length: usize,
) {
    let op = descriptor.op.expect("a reduction has an operation");
    let count = length / descriptor.dtype.size_bytes();
    // SAFETY: inside the posted data.
    let mut so_far = unsafe { flat.data(0).add(offset) };
    for rank in 1..flat.ranks() {
        // SAFETY: inside the posted data.
        let next = unsafe { flat.data(rank).add(offset) };
        // SAFETY: all three are valid for `count` elements; `so_far` may be the output itself.
        unsafe { rlaunch_device::reduce_raw(descriptor.dtype, op, output, so_far, next, count) };
        so_far = output;
    }
}

fn flat(core: &Core) -> &Flat {
    let flat = core
        .neighbours
        .as_ref()
        .and_then(|neighbours| neighbours.flat.as_ref());
    flat.expect("`serves` was asked before")
}

fn flat_mut(core: &mut Core) -> &mut Flat {
    let flat = core
        .neighbours
        .as_mut()
        .and_then(|neighbours| neighbours.flat.as_mut());
    flat.expect("`serves` was asked before")
}
