//! All-reduce on a ring: a reduce-scatter, then an all-gather of its chunks.
//!
//! | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|
//! | 2 (P − 1) | 2 n (P − 1) / P | none | long vectors: the fewest bytes that any all-reduce can send |
//!
//! Every chunk is summed by one rank at the end of one path and then copied, so all ranks hold the
//! same bits.

use super::{Ring, ring_all_gather, ring_reduce_scatter};
use crate::{Program, ProgramBuilder};

pub(super) fn program(world: u32, rank: u32) -> Program {
    let ring = Ring { world, rank };
    let mut builder = ProgramBuilder::new(world);
    ring_reduce_scatter::append(&mut builder, ring);
    ring_all_gather::append(&mut builder, ring);
    builder.finish()
}
