//! All-reduce by recursive doubling: in round k a rank exchanges its whole partial sum with the rank
//! whose number differs in bit k.
//!
//! | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|
//! | log2 P, and 2 more when P is no power of two | n log2 P | n | short vectors: the fewest steps |
//!
//! With Q the largest power of two up to P, the first 2 (P − Q) ranks fold first: the odd one of
//! each pair hands its vector to the even one, sits out, and receives the result.
//!
//! A rank may not write what it is still sending, and a send may last until the peer receives. So
//! partial sums alternate between `Output` and `Scratch`; where the last one lands in `Scratch` it
//! is copied. Both sides of an exchange compute the same pair of partial sums, one the other way
//! round: with commutative operations all ranks hold the same bits (of NaNs, only that they are).

use crate::{Buffer, Program, ProgramBuilder, Slice};

pub(super) fn program(world: u32, rank: u32) -> Program {
    let rounds = world.ilog2();
    let pairs_folded = world - (1 << rounds);
    let folds = rank < 2 * pairs_folded;
    let mut builder = ProgramBuilder::new(1);
    let (output, scratch) = (
        Slice::new(Buffer::Output, 0, 1),
        Slice::new(Buffer::Scratch, 0, 1),
    );

    if folds && rank % 2 == 1 {
        builder.send(rank - 1, output);
        builder.recv(rank - 1, output);
        return builder.finish();
    }

    let (mut current, mut next) = (output, scratch);
    if folds {
        // With an odd number of rounds, folding into scratch makes the last round end in output.
        let to = if rounds % 2 == 1 { scratch } else { output };
        builder.recv_reduce(rank + 1, output, to);
        if to == scratch {
            std::mem::swap(&mut current, &mut next);
        }
    }
    let place = if folds { rank / 2 } else { rank - pairs_folded };
    for round in 0..rounds {
        let peer_place = place ^ (1 << round);
        let peer = if peer_place < pairs_folded {
            2 * peer_place
        } else {
            peer_place + pairs_folded
        };
        builder.send(peer, current);
        builder.recv_reduce(peer, current, next);
        std::mem::swap(&mut current, &mut next);
    }
    if folds {
        builder.send(rank + 1, current);
    }
    if current == scratch {
        builder.copy(scratch, output);
    }
    builder.finish()
}
