//! Tiny collectives between ranks that all share memory: one exchange of slots, no messages.
//!
//! Every rank waits for every other, also where the result would not need it (broadcast): that is
//! what compares all descriptors. Reductions go in rank order on every rank, so all get the same
//! bits; floats of 16 and 8 bits are rounded once.

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{FLAT_BYTES_MAX, Team};
use rlaunch_wire::{Collective, Descriptor};

use crate::checked::Checked;
use crate::core::Core;
use crate::group::{Group, GroupKey};
use crate::wait::{Awaited, Operation};
use crate::{Call, Error};

/// One such call.
#[derive(Debug)]
pub(crate) struct FlatExchange {
    key: GroupKey,
    descriptor: Descriptor,
    bytes: [u8; Descriptor::BYTES],
    data: *const u8,
    /// Of this rank's share, and of the root's where only it has one.
    length: usize,
    output: *mut u8,
    /// Of a rank's part of the result.
    part: usize,
    is_posted: bool,
    /// Members below this have arrived with an equal descriptor.
    arrived: u32,
}

// SAFETY: the pointers are followed only in `poll`, for buffers that `new`'s caller vouched for,
// whichever thread polls.
unsafe impl Send for FlatExchange {}

/// Whether the call may go this way. The same on all ranks.
pub(crate) fn serves(group: &Group, call: &Call, checked: &Checked) -> bool {
    use Collective as C;
    let is_served = matches!(
        call.collective,
        C::Barrier | C::Broadcast | C::AllReduce | C::AllGather | C::Create | C::ReduceScatter
    );
    let is_users = |call: &Call| {
        let reduction = call.reduction.as_ref();
        reduction.is_some_and(|reduction| reduction.user.is_some())
    };
    group.is_near && is_served && share(call, checked) <= FLAT_BYTES_MAX && !is_users(call)
}

/// Bytes that a rank posts, if it posts any.
fn share(call: &Call, checked: &Checked) -> usize {
    checked.input_elements * call.dtype.size_bytes()
}

impl FlatExchange {
    /// `input` is the call's, or what was made of it.
    ///
    /// # Safety
    /// The call's buffers are valid until the exchange is done or dropped.
    pub(crate) unsafe fn new(
        key: GroupKey,
        descriptor: Descriptor,
        call: &Call,
        checked: &Checked,
        input: *const u8,
    ) -> Self {
        Self {
            key,
            descriptor,
            bytes: descriptor.encode(),
            data: input,
            length: share(call, checked),
            output: call.output,
            part: checked.result_count * call.dtype.size_bytes(),
            is_posted: false,
            arrived: 0,
        }
    }

    /// Writes the result of a complete exchange.
    fn conclude(&self, team: &Team) {
        use Collective as C;
        let (length, output) = (self.length, self.output);
        match self.descriptor.collective {
            C::Broadcast if team.me() != self.descriptor.root => {
                let from = team.posted_data(self.descriptor.root, length);
                // SAFETY: the root has posted `length` bytes; the output is valid for as many.
                unsafe { std::ptr::copy_nonoverlapping(from, output, length) };
            }
            C::AllGather | C::Create => {
                for rank in 0..team.size() {
                    let from = team.posted_data(rank, length);
                    // SAFETY: each has posted `length` bytes; the output has room for all.
                    unsafe {
                        let place = output.add(rank as usize * length);
                        std::ptr::copy_nonoverlapping(from, place, length);
                    }
                }
            }
            C::AllReduce => self.reduce(team, 0),
            C::ReduceScatter => self.reduce(team, team.me() as usize * self.part),
            _ => {}
        }
    }

    /// The parts at `offset` of all ranks' shares become the output.
    fn reduce(&self, team: &Team, offset: usize) {
        const INPUTS: usize = 16;
        let (dtype, op) = (self.descriptor.dtype, self.descriptor.op);
        let op = op.expect("a reduction has an operation");
        let count = self.part / dtype.size_bytes();
        if count == 0 {
            return;
        }
        let place = |rank| team.posted_data(rank, self.length).wrapping_add(offset);
        let size = team.size() as usize;
        let mut few = [std::ptr::null(); INPUTS];
        let many: Vec<*const u8>;
        let inputs = if size <= INPUTS {
            for (rank, input) in few.iter_mut().take(size).enumerate() {
                *input = place(rank as u32);
            }
            &few[..size]
        } else {
            many = (0..team.size()).map(place).collect();
            &many
        };
        // SAFETY: all have posted at least `offset + part` bytes; the output is valid for the part
        // and apart from the slots.
        unsafe { rlaunch_device::reduce_many_raw(dtype, op, self.output, inputs, count) };
    }
}

impl Operation for FlatExchange {
    fn call(&self) -> Descriptor {
        self.descriptor
    }

    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let team = team_mut(core, self.key);
        if !self.is_posted {
            if !team.begin() {
                return Ok(Progress::Idle);
            }
            let is_silent = self.descriptor.collective == Collective::Broadcast
                && self.descriptor.root != team.me();
            let length = if is_silent { 0 } else { self.length };
            // SAFETY: as `new`'s caller vouched.
            let posted = unsafe { team.post(&self.bytes, self.data, length) };
            posted.map_err(|error| Error::Memory(error.to_string()))?;
            self.is_posted = true;
        }
        while self.arrived < team.size() {
            if !team.has_posted(self.arrived) {
                return Ok(Progress::Idle);
            }
            let theirs = team.posted_descriptor(self.arrived);
            if theirs != self.bytes {
                let peer = core.world_rank(self.key, self.arrived);
                let theirs = Descriptor::decode(&theirs).ok_or_else(|| Error::Connection {
                    peer: core.identity(peer),
                    cause: "malformed descriptor in shared memory".into(),
                })?;
                return Err(core.mismatch(self.descriptor, peer, theirs));
            }
            self.arrived += 1;
        }
        team.note_all_posted();
        self.conclude(team);
        Ok(Progress::Done)
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        let group = core.group(self.key);
        let Some(team) = &group.team else {
            return Vec::new();
        };
        let is_late = |member: &u32| !self.is_posted || !team.has_posted(*member);
        (self.arrived..team.size())
            .filter(is_late)
            .map(|member| Awaited {
                rank: group.ranks[member as usize],
                to_send: false,
            })
            .collect()
    }
}

fn team_mut(core: &mut Core, key: GroupKey) -> &mut Team {
    let team = core.group_mut(key).team.as_mut();
    team.expect("`serves` was asked before")
}
