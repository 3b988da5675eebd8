//! Tiny collectives between ranks that all share memory: one exchange of slots, no messages.
//!
//! Every rank waits for every other, also where the result would not need it (broadcast): that is
//! what lets two slots suffice, and what compares all descriptors. Reductions go in rank order on
//! every rank, so all get the same bits.

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{FLAT_BYTES_MAX, Team};
use rlaunch_wire::{Collective, Descriptor};

use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};

/// One such call.
#[derive(Debug)]
pub(crate) struct FlatExchange {
    descriptor: Descriptor,
    bytes: [u8; Descriptor::BYTES],
    data: *const u8,
    length: usize,
    is_posted: bool,
    /// Members below this have arrived with an equal descriptor.
    arrived: u32,
}

/// Whether `bytes` of each rank may go this way. The same on all ranks.
pub(crate) fn serves(core: &Core, bytes: usize) -> bool {
    bytes <= FLAT_BYTES_MAX
        && core
            .neighbours
            .as_ref()
            .is_some_and(|neighbours| neighbours.is_world)
}

impl FlatExchange {
    /// # Safety
    /// `data` is valid for reads of `length` bytes until the exchange is done.
    pub(crate) unsafe fn new(descriptor: Descriptor, data: *const u8, length: usize) -> Self {
        Self {
            descriptor,
            bytes: descriptor.encode(),
            data,
            length,
            is_posted: false,
            arrived: 0,
        }
    }
}

impl Operation for FlatExchange {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let team = team_mut(core);
        if !self.is_posted {
            if !team.begin() {
                return Ok(Progress::Idle);
            }
            // SAFETY: as `new`'s caller vouched.
            let posted = unsafe { team.post(&self.bytes, self.data, self.length) };
            posted.map_err(|error| Error::Memory(error.to_string()))?;
            self.is_posted = true;
        }
        while self.arrived < team.size() {
            if !team.has_posted(self.arrived) {
                return Ok(Progress::Idle);
            }
            let theirs = team.posted_descriptor(self.arrived);
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
        team.note_all_posted();
        Ok(Progress::Done)
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        let team = team(core);
        let is_late = |member: &u32| !self.is_posted || !team.has_posted(*member);
        (self.arrived..team.size())
            .filter(is_late)
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
    let team = team(core);
    match descriptor.collective {
        Collective::Broadcast => {
            // SAFETY: the root has posted `length` bytes; the output is valid for as many.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    team.posted_data(descriptor.root, length),
                    output,
                    length,
                )
            };
        }
        Collective::AllGather => {
            for rank in 0..team.size() {
                // SAFETY: each has posted `length` bytes; the output has room for all.
                unsafe {
                    let place = output.add(rank as usize * length);
                    std::ptr::copy_nonoverlapping(team.posted_data(rank, length), place, length);
                }
            }
        }
        // SAFETY: as the caller vouches.
        Collective::AllReduce => unsafe { reduce(team, descriptor, output, 0, length, length) },
        Collective::ReduceScatter => {
            let offset = core.rank as usize * length;
            // SAFETY: each has posted a share for every rank; as the caller vouches.
            unsafe {
                reduce(
                    team,
                    descriptor,
                    output,
                    offset,
                    length,
                    length * team.size() as usize,
                )
            };
        }
        _ => {}
    }
}

/// # Safety
/// All have posted `posted` bytes, at least `offset + length`; `output` is valid for `length`.
unsafe fn reduce(
    team: &Team,
    descriptor: &Descriptor,
    output: *mut u8,
    offset: usize,
    length: usize,
    posted: usize,
) {
    let op = descriptor.op.expect("a reduction has an operation");
    let count = length / descriptor.dtype.size_bytes();
    // SAFETY: inside the posted data.
    let mut so_far = unsafe { team.posted_data(0, posted).add(offset) };
    for rank in 1..team.size() {
        // SAFETY: inside the posted data.
        let next = unsafe { team.posted_data(rank, posted).add(offset) };
        // SAFETY: all three are valid for `count` elements; `so_far` may be the output itself.
        unsafe { rlaunch_device::reduce_raw(descriptor.dtype, op, output, so_far, next, count) };
        so_far = output;
    }
}

fn team(core: &Core) -> &Team {
    let neighbours = core.neighbours.as_ref();
    &neighbours.expect("`serves` was asked before").team
}

fn team_mut(core: &mut Core) -> &mut Team {
    let neighbours = core.neighbours.as_mut();
    &mut neighbours.expect("`serves` was asked before").team
}
