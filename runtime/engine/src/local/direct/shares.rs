//! An all-reduce between buffers in the arena: each member combines its share of a block, straight
//! from all inputs into its output, then fetches the others' shares from their outputs.
//!
//! In place, a share is written where only its own member reads: the others' elements of it are read
//! by that member alone, and are overwritten here only once it has told that its share is there. While
//! others still work on block `k` this member combines its share of block `k + 1`. Bytes per member of
//! n, per byte of the vector: 1 read to combine and 1/n written; (n - 1)/n read and written to fetch,
//! from a cache if blocks are small.

use std::ops::Range;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{Stage, Team};

use super::super::plan::{Plan, share};
use super::{Buffers, Place, Sources};

/// Of one member in a block, where each has a core.
const SHARE_BYTES: usize = 128 * 1024;
/// Combined at a time: as many lines as can well be asked for ahead.
const PIECE_BYTES: usize = 4096;
/// Blocks that this member combines before it fetches results of the first of them.
const AHEAD: u64 = 1;

/// One such run.
#[derive(Debug)]
pub(crate) struct Shares {
    buffers: Buffers,
    inputs: Vec<*const u8>,
    outputs: Vec<*const u8>,
    members: u32,
    me: u32,
    bytes: usize,
    block: usize,
    blocks: u64,
    taken: u64,
    fetched: u64,
}

impl Shares {
    pub(crate) fn new(plan: &Plan, sources: Sources, buffers: Buffers) -> Self {
        let bytes = plan.input_bytes();
        let largest = SHARE_BYTES * plan.members as usize;
        let blocks = bytes.div_ceil(largest).max(1);
        let block = bytes
            .div_ceil(blocks)
            .next_multiple_of(64 * plan.members as usize);
        Self {
            members: plan.members,
            me: plan.me,
            block,
            blocks: bytes.div_ceil(block) as u64,
            bytes,
            buffers,
            inputs: sources.inputs.iter().map(Place::pointer).collect(),
            outputs: sources.outputs,
            taken: 0,
            fetched: 0,
        }
    }

    fn share(&self, owner: u32, block: u64) -> Range<usize> {
        let begin = block as usize * self.block;
        share(
            begin..self.bytes.min(begin + self.block),
            self.members,
            owner,
        )
    }

    /// `Done` once the whole result is here.
    pub(crate) fn poll(&mut self, team: &mut Team) -> Progress {
        if self.fetched == self.blocks {
            return Progress::Done;
        }
        if self.taken < self.blocks && self.taken < self.fetched + AHEAD {
            self.take();
            team.publish(Stage::Taken, self.taken);
            return Progress::Moved;
        }
        let is_there = |owner: u32| team.has_come(owner, Stage::Taken, self.fetched + 1);
        if team.others().all(is_there) {
            self.fetch(team);
            return Progress::Moved;
        }
        Progress::Idle
    }

    pub(crate) fn awaits(&self, team: &Team, member: u32) -> bool {
        self.fetched < self.blocks && !team.has_come(member, Stage::Taken, self.fetched + 1)
    }

    fn take(&mut self) {
        let own = self.share(self.me, self.taken);
        for at in own.clone().step_by(PIECE_BYTES) {
            let length = PIECE_BYTES.min(own.end - at);
            // Others have read its lines since they were last written.
            rlaunch_device::take_over(self.buffers.output.wrapping_add(at), length);
            // SAFETY: all inputs hold the vector and stay until this member has told that it read
            // them; nobody else writes this share of any output.
            unsafe { self.buffers.combine(at, &self.inputs, at, length) };
        }
        self.taken += 1;
    }

    fn fetch(&mut self, team: &Team) {
        for owner in team.others() {
            let theirs = self.share(owner, self.fetched);
            // SAFETY: the owner's share of the block is in its output, which stays until this member
            // has told that it read it; nobody reads this member's input there any more.
            unsafe {
                let from = self.outputs[owner as usize].add(theirs.start);
                self.buffers.copy(theirs.start, from, theirs.len());
            }
        }
        self.fetched += 1;
    }
}
