//! Chain: what the root has, or wants, goes from rank to rank; long vectors in many segments that
//! follow one another, so that all links are busy at once.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | broadcast | P − 1 and a segment's time for each more | n | none | long vectors in small worlds |
//! | reduce | as broadcast | n | n | long vectors in small worlds |
//! | scan, exscan | as broadcast | n | none; exscan 2 n | long vectors: no rank sends a byte twice |
//!
//! Places count from the root. In the order of ranks a reduce has two chains that meet at the root,
//! one from each end.

use crate::{Program, ProgramBuilder, Slice, Spec};

pub(super) fn broadcast(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let world = spec.world;
    let place = (rank + world - spec.root) % world;
    let mut own = Slice::input(0);
    if place > 0 {
        own = Slice::output(0);
        builder.recv((rank + world - 1) % world, own);
    }
    if place + 1 < world {
        builder.send((rank + 1) % world, own);
    }
    if place == 0 {
        builder.copy(own, Slice::output(0));
    }
    builder.finish()
}

pub(super) fn reduce(spec: &Spec, rank: u32) -> Program {
    if spec.in_order {
        return reduce_in_order(spec, rank);
    }
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let world = spec.world;
    let place = (rank + world - spec.root) % world;
    let mut sum = Slice::input(0);
    if place + 1 < world {
        let to = if place == 0 {
            Slice::output(0)
        } else {
            builder.scratch([0])
        };
        builder.recv_reduce((rank + 1) % world, sum, to);
        sum = to;
    }
    if place > 0 {
        builder.send((rank + world - 1) % world, sum);
    }
    builder.finish()
}

fn reduce_in_order(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let (has_below, has_above) = (rank > 0, rank + 1 < spec.world);
    let mut sum = Slice::input(0);
    if rank <= spec.root && has_below {
        let to = if rank < spec.root || has_above {
            builder.scratch([0])
        } else {
            Slice::output(0)
        };
        builder.recv_reduce_left(rank - 1, sum, to);
        sum = to;
    }
    if rank >= spec.root && has_above {
        let to = if rank == spec.root {
            Slice::output(0)
        } else {
            builder.scratch([0])
        };
        builder.recv_reduce(rank + 1, sum, to);
        sum = to;
    }
    if rank < spec.root {
        builder.send(rank + 1, sum);
    }
    if rank > spec.root {
        builder.send(rank - 1, sum);
    }
    builder.finish()
}

pub(super) fn scan(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let (own, result) = (Slice::input(0), Slice::output(0));
    if rank == 0 {
        builder.send(1, own);
        builder.copy(own, result);
        return builder.finish();
    }
    builder.recv_reduce_left(rank - 1, own, result);
    if rank + 1 < spec.world {
        builder.send(rank + 1, result);
    }
    builder.finish()
}

pub(super) fn exscan(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let (own, result) = (Slice::input(0), Slice::output(0));
    if rank == 0 {
        builder.send(1, own);
    } else if rank + 1 == spec.world {
        builder.recv(rank - 1, result);
    } else {
        // In place the output is the input, which is needed until the sum is made.
        let (before, sum) = (builder.scratch([0]), builder.scratch([0]));
        builder.recv(rank - 1, before);
        builder.reduce(vec![before, own], sum);
        builder.send(rank + 1, sum);
        builder.copy(before, result);
    }
    builder.finish()
}
