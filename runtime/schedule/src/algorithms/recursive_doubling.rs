//! Recursive doubling: in round k a rank exchanges all it has with the rank whose place differs in
//! bit k.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | all_reduce | ⌊log2 P⌋, 2 more when P is no power of two | n log2 P | 2 n | short vectors: the fewest steps |
//! | all_gather | as all_reduce | n (P − 1) / P | none | short blocks where P is a power of two |
//! | scan, exscan | ⌈log2 P⌉; exscan one more | n log2 P | 2 n | short vectors |
//!
//! With Q the largest power of two up to P, the first 2 (P − Q) ranks fold first: the odd one of
//! each pair hands over what it has to the even one, sits out, and receives the result.
//!
//! A rank may not write what it is still sending, and a send may last until the peer receives. So
//! partial sums alternate between chunks of scratch; the last goes to the output. Contributions are
//! reduced in the order of ranks, and both sides of an exchange compute the same: all ranks hold the
//! same bits.

use super::Folding;
use crate::{Buffer, Program, ProgramBuilder, Slice, Spec};

pub(super) fn all_reduce(spec: &Spec, rank: u32) -> Program {
    let folding = Folding::of(spec.world);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let (own, result) = (Slice::input(0), Slice::output(0));
    let Some(place) = folding.place(rank) else {
        builder.send(rank - 1, own);
        builder.recv(rank - 1, result);
        return builder.finish();
    };
    let places = builder.scratch([0, 0]);
    let mut sums = (0..).map(|index| Slice::scratch(places.first_chunk + index % 2));
    let mut current = own;
    if folding.has_pair(rank) {
        let to = sums.next().expect("endless");
        builder.recv_reduce(rank + 1, current, to);
        current = to;
    }
    for round in 0..folding.rounds {
        // In place the input is the output: a first sum can't go there, the input is being sent.
        let is_last = round + 1 == folding.rounds && current != own;
        let to = if is_last {
            result
        } else {
            sums.next().expect("endless")
        };
        let peer_place = place ^ (1 << round);
        let peer = folding.rank(peer_place);
        builder.send(peer, current);
        if peer_place < place {
            builder.recv_reduce_left(peer, current, to);
        } else {
            builder.recv_reduce(peer, current, to);
        }
        current = to;
    }
    if current != result {
        builder.copy(current, result);
    }
    if folding.has_pair(rank) {
        builder.send(rank + 1, current);
    }
    builder.finish()
}

pub(super) fn all_gather(spec: &Spec, rank: u32) -> Program {
    let folding = Folding::of(spec.world);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let blocks = |first: u32, end: u32| Slice::new(Buffer::Output, first, end - first);
    builder.copy(Slice::input(0), Slice::output(rank));
    let Some(place) = folding.place(rank) else {
        builder.send(rank - 1, Slice::input(0));
        builder.recv(rank - 1, blocks(0, rank));
        if rank + 1 < spec.world {
            builder.recv(rank - 1, blocks(rank + 1, spec.world));
        }
        return builder.finish();
    };
    if folding.has_pair(rank) {
        builder.recv(rank + 1, Slice::output(rank + 1));
    }
    for round in 0..folding.rounds {
        let peer_place = place ^ (1 << round);
        let of_group = |place: u32| {
            let first = place >> round << round;
            blocks(
                folding.rank(first),
                folding.first_rank(first + (1 << round)),
            )
        };
        builder.send(folding.rank(peer_place), of_group(place));
        builder.recv(folding.rank(peer_place), of_group(peer_place));
    }
    if folding.has_pair(rank) {
        builder.send(rank + 1, blocks(0, rank + 1));
        if rank + 2 < spec.world {
            builder.send(rank + 1, blocks(rank + 2, spec.world));
        }
    }
    builder.finish()
}

/// In round k a rank holds the sum of the 2^k ranks up to it, or of all there are.
pub(super) fn scan(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    if rank == 0 {
        builder.copy(Slice::input(0), Slice::output(0));
    }
    sum_up_to(&mut builder, Slice::input(0), rank, rank, spec.world);
    builder.finish()
}

/// A scan of what the rank before has.
pub(super) fn exscan(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    if rank + 1 < spec.world {
        builder.send(rank + 1, Slice::input(0));
    }
    if rank == 0 {
        return builder.finish();
    }
    let own = builder.scratch([0]);
    builder.recv(rank - 1, own);
    if rank == 1 {
        builder.copy(own, Slice::output(0));
    }
    sum_up_to(&mut builder, own, rank - 1, rank, spec.world - 1);
    builder.finish()
}

/// The sum of places 0 up to `place` to the output; the first place has it already. Place `p` of
/// `places` is `rank − place + p`.
fn sum_up_to(builder: &mut ProgramBuilder, own: Slice, place: u32, rank: u32, places: u32) {
    let scratch = builder.scratch([0, 0]);
    let mut current = own;
    let mut distance = 1;
    let mut round = 0;
    while distance < places {
        if place + distance < places {
            builder.send(rank + distance, current);
        }
        if place >= distance {
            // In place the input is the output, and a first sum can't go there: it is being sent.
            let is_last = place < 2 * distance && (current != own || place + distance >= places);
            let to = if is_last {
                Slice::output(0)
            } else {
                Slice::scratch(scratch.first_chunk + round % 2)
            };
            builder.recv_reduce_left(rank - distance, current, to);
            current = to;
        }
        distance *= 2;
        round += 1;
    }
    if place > 0 && current != Slice::output(0) {
        builder.copy(current, Slice::output(0));
    }
}
