//! Dissemination: in round k a rank tells the one 2^k to the right that all it has heard of have
//! arrived.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | barrier | ⌈log2 P⌉ | none, ⌈log2 P⌉ empty messages | none | any world: all ranks leave after the same number of steps |

use crate::{Program, ProgramBuilder, Slice, Spec};

pub(super) fn barrier(spec: &Spec, rank: u32) -> Program {
    let world = spec.world;
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let mut heard = Vec::new();
    let mut distance = 1;
    while distance < world {
        let send = builder.send((rank + distance) % world, Slice::EMPTY);
        let recv = builder.recv((rank + world - distance) % world, Slice::EMPTY);
        for &earlier in &heard {
            builder.order(earlier, send);
        }
        heard.push(recv);
        distance *= 2;
    }
    builder.finish()
}
