//! Reduce-scatter on a ring: partial sums travel to the right, and chunk `r` ends in rank `r`.
//!
//! | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|
//! | P − 1 | n (P − 1) / P | none | where bandwidth counts: no rank sends a byte more than it has to |
//!
//! Each chunk is summed along one path, so its bits depend on the world's size alone. The other
//! chunks of `Output` hold partial sums at the end.

use super::Ring;
use crate::{Buffer, Program, ProgramBuilder, Slice};

pub(super) fn program(world: u32, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(world);
    append(&mut builder, Ring { world, rank });
    builder.finish()
}

pub(super) fn append(builder: &mut ProgramBuilder, ring: Ring) {
    for step in 1..ring.world {
        let outgoing = Slice::new(Buffer::Output, ring.back(step), 1);
        let incoming = Slice::new(Buffer::Output, ring.back(step + 1), 1);
        builder.send(ring.right(), outgoing);
        builder.recv_reduce(ring.left(), incoming, incoming);
    }
}
