//! Linear: the root exchanges with every rank itself.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | gather | 1 | n / P | none | all but short blocks in large worlds: nothing is sent twice |
//! | scatter | 1 | n (P − 1) / P by the root | none | all but short blocks in large worlds: nothing is sent twice |
//! | broadcast | 1 | n (P − 1) by the root | none | worlds of two or three |
//! | reduce | P − 1 | n | n at the root | worlds of two or three |
//!
//! The root's messages follow one another on its side; the others wait for one message time. A
//! reduce takes contributions in the order of ranks.

use crate::{Program, ProgramBuilder, Slice, Spec};

pub(super) fn gather(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    if rank != spec.root {
        builder.send(spec.root, Slice::input(0));
        return builder.finish();
    }
    for other in others(spec) {
        builder.recv(other, Slice::output(other));
    }
    builder.copy(Slice::input(0), Slice::output(rank));
    builder.finish()
}

pub(super) fn scatter(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    if rank != spec.root {
        builder.recv(spec.root, Slice::output(0));
        return builder.finish();
    }
    for other in others(spec) {
        builder.send(other, Slice::input(other));
    }
    builder.copy(Slice::input(rank), Slice::output(0));
    builder.finish()
}

pub(super) fn broadcast(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    if rank != spec.root {
        builder.recv(spec.root, Slice::output(0));
        return builder.finish();
    }
    for other in others(spec) {
        builder.send(other, Slice::input(0));
    }
    builder.copy(Slice::input(0), Slice::output(0));
    builder.finish()
}

pub(super) fn reduce(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    if rank != spec.root {
        builder.send(spec.root, Slice::input(0));
        return builder.finish();
    }
    let partial = if rank > 0 {
        builder.scratch([0])
    } else {
        Slice::EMPTY
    };
    let mut sum = Slice::input(0);
    for other in 0..spec.world {
        // In place the output is the input, and so not free before that was taken.
        let to = if other < rank {
            partial
        } else {
            Slice::output(0)
        };
        match (other == rank, other) {
            (true, 0) => continue,
            (true, _) => builder.reduce(vec![sum, Slice::input(0)], to),
            (false, 0) => builder.recv(other, to),
            (false, _) => builder.recv_reduce(other, sum, to),
        };
        sum = to;
    }
    builder.finish()
}

/// The ranks that are not the root, beginning behind it.
fn others(spec: &Spec) -> impl Iterator<Item = u32> {
    (1..spec.world).map(move |distance| (spec.root + distance) % spec.world)
}
