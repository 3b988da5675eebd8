//! Scatter and all-gather: the root hands each rank a part of the vector down a binomial tree, and
//! the parts then go round a ring.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | broadcast | ⌈log2 P⌉ + P − 1 | about 2 n by the root, n elsewhere | none | long vectors where a chain's segments cost too much to start |
//!
//! Places count from the root, and part p is handed to place p. What a rank has from the tree it is
//! not sent again.

use super::binomial::Tree;
use crate::{Buffer, Program, ProgramBuilder, Slice, Spec};

pub(super) fn broadcast(spec: &Spec, rank: u32) -> Program {
    let (tree, world) = (Tree::from_root(spec, rank), spec.world);
    let mut builder = ProgramBuilder::new(spec, rank, world);
    let mut source = Buffer::Input;
    let span = |buffer, places: std::ops::Range<u32>| {
        Slice::new(buffer, places.start, places.end - places.start)
    };
    if let Some(parent) = tree.parent() {
        source = Buffer::Output;
        builder.recv(parent, span(source, tree.subtree(tree.place)));
    }
    for child in tree.children().rev() {
        builder.send(tree.rank_at(child), span(source, tree.subtree(child)));
    }
    let (right, left) = ((tree.place + 1) % world, (tree.place + world - 1) % world);
    for step in 1..world {
        let outgoing = (tree.place + world + 1 - step) % world;
        let incoming = (tree.place + world - step) % world;
        if !tree.subtree(right).contains(&outgoing) {
            builder.send(tree.rank_at(right), Slice::new(source, outgoing, 1));
        }
        if !tree.subtree(tree.place).contains(&incoming) {
            builder.recv(tree.rank_at(left), Slice::new(Buffer::Output, incoming, 1));
        }
    }
    if tree.place == 0 {
        builder.copy(
            span(Buffer::Input, 0..world),
            span(Buffer::Output, 0..world),
        );
    }
    builder.finish()
}
