//! All-gather on a ring: each rank passes on what it received, beginning with its own chunk.
//!
//! | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|
//! | P − 1 | n (P − 1) / P | none | where bandwidth counts, and whenever each rank has fast links to two neighbours only |

use super::Ring;
use crate::{Buffer, Program, ProgramBuilder, Slice};

pub(super) fn program(world: u32, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(world);
    append(&mut builder, Ring { world, rank });
    builder.finish()
}

pub(super) fn append(builder: &mut ProgramBuilder, ring: Ring) {
    for step in 0..ring.world - 1 {
        builder.send(ring.right(), Slice::new(Buffer::Output, ring.back(step), 1));
        builder.recv(
            ring.left(),
            Slice::new(Buffer::Output, ring.back(step + 1), 1),
        );
    }
}
