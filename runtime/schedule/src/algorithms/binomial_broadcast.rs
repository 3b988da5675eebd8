//! Broadcast down a binomial tree.
//!
//! | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|
//! | ⌈log2 P⌉ | n ⌈log2 P⌉ by the root, less below | none | short vectors, and any length in worlds of two or three |
//!
//! Places count from the root. A place's parent lacks its lowest bit; the largest subtree is served
//! first, because the most ranks wait behind it.

use crate::{Buffer, Program, ProgramBuilder, Slice};

pub(super) fn program(world: u32, rank: u32, root: u32) -> Program {
    let mut builder = ProgramBuilder::new(1);
    let whole = Slice::new(Buffer::Output, 0, 1);
    let place = (rank + world - root) % world;
    let rank_at = |place: u32| (place + root) % world;

    // Children differ in one bit below the lowest bit of the place (any bit, for the root).
    let bits = world.next_power_of_two().trailing_zeros();
    let bits_below = place.trailing_zeros().min(bits);
    if place != 0 {
        builder.recv(rank_at(place & (place - 1)), whole);
    }
    for bit in (0..bits_below).rev() {
        let child = place | (1 << bit);
        if child < world {
            builder.send(rank_at(child), whole);
        }
    }
    builder.finish()
}
