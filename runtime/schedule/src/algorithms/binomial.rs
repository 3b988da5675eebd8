//! Binomial tree: what the root has, or wants, is handed on by ranks that have it, or sum it, so
//! that the number of ranks served doubles with each step.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | broadcast | ⌈log2 P⌉ | n ⌈log2 P⌉ by the root, less below | none | short vectors |
//! | reduce | ⌈log2 P⌉, one more in order of ranks | n | n | short vectors |
//! | gather | ⌈log2 P⌉ | n / 2 at most | n / 2 at most | short blocks in large worlds |
//! | scatter | ⌈log2 P⌉ | n (P − 1) / P by the root, less below | n / 2 at most | short blocks in large worlds |
//!
//! Places count from the root. A place's parent lacks its lowest bit, and its subtree is the places
//! up to its lowest bit above it. In the order of ranks places count from rank 0, which hands the
//! sum to the root at the end.

use crate::{Program, ProgramBuilder, Slice, Spec};
use std::ops::Range;

pub(super) fn broadcast(spec: &Spec, rank: u32) -> Program {
    let tree = Tree::from_root(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let mut own = Slice::output(0);
    match tree.parent() {
        Some(parent) => {
            builder.recv(parent, own);
        }
        None => own = Slice::input(0),
    }
    // The largest subtree first: the most ranks wait behind it.
    for child in tree.children().rev() {
        builder.send(tree.rank_at(child), own);
    }
    if tree.place == 0 {
        builder.copy(own, Slice::output(0));
    }
    builder.finish()
}

pub(super) fn reduce(spec: &Spec, rank: u32) -> Program {
    let top = if spec.in_order { 0 } else { spec.root };
    let tree = Tree::at(spec.world, top, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let mut sum = Slice::input(0);
    for child in tree.children() {
        let to = if tree.place == 0 && top == spec.root {
            Slice::output(0)
        } else if sum == Slice::input(0) {
            builder.scratch([0])
        } else {
            sum
        };
        builder.recv_reduce(tree.rank_at(child), sum, to);
        sum = to;
    }
    if let Some(parent) = tree.parent() {
        builder.send(parent, sum);
    } else if top != spec.root {
        builder.send(spec.root, sum);
    }
    if rank == spec.root && top != rank {
        builder.recv(top, Slice::output(0));
    }
    builder.finish()
}

/// A place collects its subtree's blocks in scratch, in the order of places.
pub(super) fn gather(spec: &Spec, rank: u32) -> Program {
    let tree = Tree::from_root(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let Some(parent) = tree.parent() else {
        for child in tree.children() {
            for run in tree.runs(tree.subtree(child)) {
                builder.recv(
                    tree.rank_at(child),
                    Slice::new(crate::Buffer::Output, run.start, run.end - run.start),
                );
            }
        }
        builder.copy(Slice::input(0), Slice::output(rank));
        return builder.finish();
    };
    let own = tree.subtree(tree.place);
    if own.len() == 1 {
        builder.send(parent, Slice::input(0));
        return builder.finish();
    }
    let held = builder.scratch(own.clone().map(|place| tree.rank_at(place)));
    builder.copy(Slice::input(0), Slice::scratch(held.first_chunk));
    for child in tree.children() {
        builder.recv(tree.rank_at(child), tree.part_of(held, tree.subtree(child)));
    }
    for part in tree.messages(own) {
        builder.send(parent, tree.part_of(held, part));
    }
    builder.finish()
}

pub(super) fn scatter(spec: &Spec, rank: u32) -> Program {
    let tree = Tree::from_root(spec, rank);
    let mut builder = ProgramBuilder::new(spec, rank, 1);
    let Some(parent) = tree.parent() else {
        for child in tree.children().rev() {
            for run in tree.runs(tree.subtree(child)) {
                builder.send(
                    tree.rank_at(child),
                    Slice::new(crate::Buffer::Input, run.start, run.end - run.start),
                );
            }
        }
        builder.copy(Slice::input(rank), Slice::output(0));
        return builder.finish();
    };
    let own = tree.subtree(tree.place);
    if own.len() == 1 {
        builder.recv(parent, Slice::output(0));
        return builder.finish();
    }
    let held = builder.scratch(own.clone().map(|place| tree.rank_at(place)));
    for part in tree.messages(own) {
        builder.recv(parent, tree.part_of(held, part));
    }
    for child in tree.children().rev() {
        builder.send(tree.rank_at(child), tree.part_of(held, tree.subtree(child)));
    }
    builder.copy(Slice::scratch(held.first_chunk), Slice::output(0));
    builder.finish()
}

/// A rank's place in a tree whose place 0 is the rank `top`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    world: u32,
    top: u32,
    pub(super) place: u32,
}

impl Tree {
    pub(super) fn from_root(spec: &Spec, rank: u32) -> Self {
        Self::at(spec.world, spec.root, rank)
    }

    fn at(world: u32, top: u32, rank: u32) -> Self {
        let place = (rank + world - top) % world;
        Self { world, top, place }
    }

    pub(super) fn rank_at(&self, place: u32) -> u32 {
        (place + self.top) % self.world
    }

    /// Its rank.
    pub(super) fn parent(&self) -> Option<u32> {
        (self.place != 0).then(|| self.rank_at(self.place & (self.place - 1)))
    }

    /// Places of the children, the smallest subtree first. They differ in one bit below the lowest
    /// of the place; any bit, for place 0.
    pub(super) fn children(self) -> impl DoubleEndedIterator<Item = u32> {
        let bits = self.world.next_power_of_two().trailing_zeros();
        let bits_below = self.place.trailing_zeros().min(bits);
        let children = (0..bits_below).map(move |bit| self.place | (1 << bit));
        children.filter(move |child| *child < self.world)
    }

    pub(super) fn subtree(&self, place: u32) -> Range<u32> {
        match place {
            0 => 0..self.world,
            _ => place..(place + (1 << place.trailing_zeros())).min(self.world),
        }
    }

    /// Ranks of a range of places, which goes on at rank 0 behind the last.
    fn runs(&self, places: Range<u32>) -> Vec<Range<u32>> {
        let ranks = |part: Range<u32>| self.rank_at(part.start)..self.rank_at(part.end - 1) + 1;
        self.cut_behind_the_last(places)
            .into_iter()
            .map(ranks)
            .collect()
    }

    /// The places of this place's subtree, by the messages in which they travel to or from the
    /// parent: the root has blocks in the order of ranks, so that two are needed where they go on at
    /// rank 0.
    fn messages(&self, places: Range<u32>) -> Vec<Range<u32>> {
        if self.parent() == Some(self.top) {
            self.cut_behind_the_last(places)
        } else {
            vec![places]
        }
    }

    fn cut_behind_the_last(&self, places: Range<u32>) -> Vec<Range<u32>> {
        let first_wrapped = self.world - self.top; // the place of rank 0
        if places.start < first_wrapped && first_wrapped < places.end {
            vec![places.start..first_wrapped, first_wrapped..places.end]
        } else {
            vec![places]
        }
    }

    /// The chunks of `held`, which begins with this place's block, that hold `places`.
    fn part_of(&self, held: Slice, places: Range<u32>) -> Slice {
        let first = held.first_chunk + places.start - self.place;
        Slice::new(held.buffer, first, places.end - places.start)
    }
}
