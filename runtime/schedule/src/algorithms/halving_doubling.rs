//! Halving-doubling (Rabenseifner): halves of the vector are exchanged and summed, then quarters of
//! it, and so on, until every rank has the sum of one part; then the way back.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | all_reduce | 2 ⌊log2 P⌋, 2 more when P is no power of two | 2 n (P − 1) / P, n more | none | middling and long vectors, best where P is a power of two |
//! | reduce_scatter | ⌊log2 P⌋, 2 more | n (P − 1) / P, n more | n | short and middling blocks, best where P is a power of two |
//!
//! With Q the largest power of two up to P, the first 2 (P − Q) ranks fold first, as in recursive
//! doubling. An all_reduce exchanges with the next place first, so that the largest messages stay
//! near; its contributions are reduced in the order of ranks. A reduce_scatter must end with block r
//! in rank r and exchanges with the farthest place first: it reorders.

use super::Folding;
use crate::{Buffer, Program, ProgramBuilder, Slice, Spec};

pub(super) fn all_reduce(spec: &Spec, rank: u32) -> Program {
    let folding = Folding::of(spec.world);
    let parts = 1 << folding.rounds;
    let mut builder = ProgramBuilder::new(spec, rank, parts);
    let span = |buffer, first, parts| Slice::new(buffer, first, parts);
    let Some(place) = folding.place(rank) else {
        builder.send(rank - 1, span(Buffer::Input, 0, parts));
        builder.recv(rank - 1, span(Buffer::Output, 0, parts));
        return builder.finish();
    };
    let mut source = Buffer::Input;
    if folding.has_pair(rank) {
        let (own, to) = (span(source, 0, parts), span(Buffer::Output, 0, parts));
        builder.recv_reduce(rank + 1, own, to);
        source = Buffer::Output;
    }
    let (mut first, mut held) = (0, parts);
    let mut halves = Vec::new();
    for round in 0..folding.rounds {
        let peer_place = place ^ (1 << round);
        let peer = folding.rank(peer_place);
        held /= 2;
        let (low, high) = (first, first + held);
        let (kept, given) = if peer_place < place {
            (high, low)
        } else {
            (low, high)
        };
        builder.send(peer, span(source, given, held));
        let (own, to) = (span(source, kept, held), span(Buffer::Output, kept, held));
        if peer_place < place {
            builder.recv_reduce_left(peer, own, to);
        } else {
            builder.recv_reduce(peer, own, to);
        }
        halves.push((peer, kept, given, held));
        (first, source) = (kept, Buffer::Output);
    }
    for (peer, kept, given, held) in halves.into_iter().rev() {
        builder.send(peer, span(Buffer::Output, kept, held));
        builder.recv(peer, span(Buffer::Output, given, held));
    }
    if folding.has_pair(rank) {
        builder.send(rank + 1, span(Buffer::Output, 0, parts));
    }
    builder.finish()
}

pub(super) fn reduce_scatter(spec: &Spec, rank: u32) -> Program {
    let folding = Folding::of(spec.world);
    let world = spec.world;
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let Some(place) = folding.place(rank) else {
        builder.send(rank - 1, Slice::new(Buffer::Input, 0, world));
        builder.recv(rank - 1, Slice::output(0));
        return builder.finish();
    };
    let sums = builder.scratch(0..world);
    // Blocks of the places from `first` on, of input or sums.
    let blocks = |source: Buffer, first: u32, places: u32| {
        let (start, end) = (folding.rank(first), folding.first_rank(first + places));
        let offset = if source == Buffer::Input {
            0
        } else {
            sums.first_chunk
        };
        Slice::new(source, offset + start, end - start)
    };
    let mut source = Buffer::Input;
    if folding.has_pair(rank) {
        let all = folding.places();
        builder.recv_reduce(
            rank + 1,
            blocks(source, 0, all),
            blocks(sums.buffer, 0, all),
        );
        source = sums.buffer;
    }
    for round in (0..folding.rounds).rev() {
        let (half, peer_place) = (1 << round, place ^ (1 << round));
        let group = |place: u32| place >> round << round;
        let peer = folding.rank(peer_place);
        builder.send(peer, blocks(source, group(peer_place), half));
        let own = blocks(source, group(place), half);
        let to = if own.chunks == 1 && half == 1 {
            Slice::output(0)
        } else {
            blocks(sums.buffer, group(place), half)
        };
        builder.recv_reduce(peer, own, to);
        source = sums.buffer;
    }
    if folding.has_pair(rank) {
        let own = blocks(source, place, 1);
        builder.send(rank + 1, Slice::new(own.buffer, own.first_chunk + 1, 1));
        builder.copy(Slice::new(own.buffer, own.first_chunk, 1), Slice::output(0));
    }
    builder.finish()
}
