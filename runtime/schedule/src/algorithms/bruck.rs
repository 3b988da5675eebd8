//! Bruck: in round k a rank exchanges with the ranks 2^k to its left and right; the number of blocks
//! doubles, whatever the world's size.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | all_gather | ⌈log2 P⌉ | n (P − 1) / P | n | short blocks where P is no power of two |
//! | all_to_all | ⌈log2 P⌉ | n log2 P / 2 | n log2 P | short blocks in large worlds: few messages |
//!
//! For blocks of one length only.

use super::Ring;
use crate::{Buffer, Program, ProgramBuilder, Slice, Spec};

/// Place i of scratch is the block of the rank i to the right.
pub(super) fn all_gather(spec: &Spec, rank: u32) -> Program {
    let (world, ring) = (spec.world, Ring::of(spec, rank));
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let held = builder.scratch(0..world);
    builder.copy(Slice::input(0), held_blocks(held, 0, 1));
    let mut blocks = 1;
    while blocks < world {
        let more = blocks.min(world - blocks);
        builder.send(ring.back(blocks), held_blocks(held, 0, more));
        builder.recv(ring.forward(blocks), held_blocks(held, blocks, more));
        blocks += more;
    }
    let behind = world - rank; // blocks up to the last rank's
    builder.copy(
        held_blocks(held, 0, behind),
        Slice::new(Buffer::Output, rank, behind),
    );
    if rank > 0 {
        builder.copy(
            held_blocks(held, behind, rank),
            Slice::new(Buffer::Output, 0, rank),
        );
    }
    builder.finish()
}

/// A block that must go d to the right travels in the rounds that are bits of d. It lies in the
/// input until its first journey, then where it arrived last.
pub(super) fn all_to_all(spec: &Spec, rank: u32) -> Program {
    let (world, ring) = (spec.world, Ring::of(spec, rank));
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let mut place: Vec<Slice> = (0..world)
        .map(|distance| Slice::input(ring.forward(distance)))
        .collect();
    let mut bit = 1;
    while bit < world {
        let travelling: Vec<u32> = (0..world).filter(|distance| distance & bit != 0).collect();
        let packed = builder.scratch(travelling.iter().copied());
        let arrived = builder.scratch(travelling.iter().copied());
        for (index, &distance) in (0..).zip(&travelling) {
            builder.copy(place[distance as usize], held_blocks(packed, index, 1));
            place[distance as usize] = held_blocks(arrived, index, 1);
        }
        builder.send(ring.forward(bit), packed);
        builder.recv(ring.back(bit), arrived);
        bit *= 2;
    }
    for (distance, from) in (0..).zip(place) {
        builder.copy(from, Slice::output(ring.back(distance)));
    }
    builder.finish()
}

fn held_blocks(held: Slice, first: u32, blocks: u32) -> Slice {
    Slice::new(held.buffer, held.first_chunk + first, blocks)
}
