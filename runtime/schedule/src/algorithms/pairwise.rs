//! Pairwise: each rank exchanges with each other directly; in round k it sends to the rank k to the
//! right and receives from the one k to the left, so that no rank is everybody's target at once.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | all_to_all | 1 | n (P − 1) / P | none | all but short blocks in large worlds |
//! | all_gather | 1 | n (P − 1) / P | none | where every pair of ranks has a link of its own |
//! | reduce_scatter | 1 | n (P − 1) / P | n (P − 1) / P | short and middling blocks: one step, one rounding |
//! | all_reduce | 2 | 2 n (P − 1) / P | n (P − 1) / P | middling vectors in small worlds: two steps, one rounding |
//!
//! Messages do not wait for each other, so a step is one message time, yet each rank pays for
//! starting P − 1 of them. Contributions are reduced all at once in the order of ranks.

use super::Ring;
use crate::{Program, ProgramBuilder, Slice, Spec};

pub(super) fn all_to_all(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    for (right, left) in rounds(spec, rank) {
        builder.send(right, Slice::input(right));
        builder.recv(left, Slice::output(left));
    }
    builder.copy(Slice::input(rank), Slice::output(rank));
    builder.finish()
}

pub(super) fn all_gather(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    for (right, left) in rounds(spec, rank) {
        builder.send(right, Slice::input(0));
        builder.recv(left, Slice::output(left));
    }
    builder.copy(Slice::input(0), Slice::output(rank));
    builder.finish()
}

pub(super) fn reduce_scatter(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    collect(&mut builder, spec, rank, Slice::output(0));
    builder.finish()
}

pub(super) fn all_reduce(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, spec.world);
    collect(&mut builder, spec, rank, Slice::output(rank));
    for (right, left) in rounds(spec, rank) {
        builder.send(right, Slice::output(rank));
        builder.recv(left, Slice::output(left));
    }
    builder.finish()
}

/// Gives every rank its part and reduces what came of one's own.
fn collect(builder: &mut ProgramBuilder, spec: &Spec, rank: u32, to: Slice) {
    let others = builder.scratch((1..spec.world).map(|_| rank));
    let mut inputs = vec![Slice::input(rank); spec.world as usize];
    for (round, (right, left)) in (0..).zip(rounds(spec, rank)) {
        let place = Slice::scratch(others.first_chunk + round);
        builder.send(right, Slice::input(right));
        builder.recv(left, place);
        inputs[left as usize] = place;
    }
    builder.reduce(inputs, to);
}

/// Whom to send to and whom to receive from.
fn rounds(spec: &Spec, rank: u32) -> impl Iterator<Item = (u32, u32)> {
    let ring = Ring::of(spec, rank);
    (1..spec.world).map(move |distance| (ring.forward(distance), ring.back(distance)))
}
