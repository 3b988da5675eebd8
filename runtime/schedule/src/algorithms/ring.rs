//! Ring: partial sums, or blocks, travel to the right-hand neighbour.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | all_reduce | 2 (P − 1) | 2 n (P − 1) / P | none | long vectors: the fewest bytes that any all_reduce can send, to one neighbour only |
//! | reduce_scatter | P − 1 | n (P − 1) / P | 2 n / P (v: n) | long blocks where links to neighbours are the fast ones |
//! | all_gather | P − 1 | n (P − 1) / P | none | long blocks where links to neighbours are the fast ones |
//!
//! Every part is summed along one path, which starts at the right of the rank that ends with it: all
//! ranks hold the same bits, which depend on the world's size alone, but the order is not that of
//! ranks.

use super::Ring;
use crate::{Program, ProgramBuilder, Slice, Spec};
use rlaunch_wire::Collective;

pub(super) fn all_reduce(spec: &Spec, rank: u32) -> Program {
    let ring = Ring::of(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, spec.world);
    for step in 1..spec.world {
        let (outgoing, incoming) = (ring.back(step), ring.back(step + 1));
        let own = if step == 1 {
            Slice::input
        } else {
            Slice::output
        };
        builder.send(ring.right(), own(outgoing));
        builder.recv_reduce(ring.left(), Slice::input(incoming), Slice::output(incoming));
    }
    pass_on(&mut builder, ring, Slice::output(rank));
    builder.finish()
}

pub(super) fn all_gather(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    builder.copy(Slice::input(0), Slice::output(rank));
    pass_on(&mut builder, Ring::of(spec, rank), Slice::input(0));
    builder.finish()
}

/// Two chunks of scratch take turns; blocks of several lengths have one each.
pub(super) fn reduce_scatter(spec: &Spec, rank: u32) -> Program {
    let ring = Ring::of(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let has_lengths = spec.collective == Collective::ReduceScatterV;
    let partial = builder.scratch(0..if has_lengths { spec.world } else { 2 });
    let place = |step: u32| {
        let chunk = if has_lengths {
            ring.back(step + 1)
        } else {
            step % 2
        };
        Slice::scratch(partial.first_chunk + chunk)
    };
    for step in 1..spec.world {
        let incoming = ring.back(step + 1);
        let own = match step {
            1 => Slice::input(ring.back(1)),
            _ => place(step - 1),
        };
        builder.send(ring.right(), own);
        let to = if incoming == rank {
            Slice::output(0)
        } else {
            place(step)
        };
        builder.recv_reduce(ring.left(), Slice::input(incoming), to);
    }
    builder.finish()
}

/// Each rank sends on what it received last, beginning with its own chunk.
fn pass_on(builder: &mut ProgramBuilder, ring: Ring, own: Slice) {
    let mut latest = own;
    for step in 1..ring.world {
        builder.send(ring.right(), latest);
        latest = Slice::output(ring.back(step));
        builder.recv(ring.left(), latest);
    }
}
