//! Two binary trees, each for half of the vector: a rank that has children in one is a leaf of the
//! other, so that every link carries data in both directions.
//!
//! | collective | steps | bytes sent by a rank | scratch | wins |
//! |---|---|---|---|---|
//! | all_reduce | about 2 log2 P and two segments' time for each more | 2 n | n | middling and long vectors in large worlds |
//! | broadcast | about log2 P and two segments' time for each more | n | none | middling and long vectors in large worlds |
//! | reduce | as broadcast | n | n | middling and long vectors in large worlds |
//!
//! A tree's ranks are numbered from left to right, so each sums the ranks below it, itself, and those
//! above it in their order. The second tree is the mirror image of the first; where the number of
//! ranks is odd it is the first, moved by one rank, unless the order of ranks counts. In a broadcast
//! and a reduce the root stands above both trees, which the other ranks make.

use crate::{Program, ProgramBuilder, Slice, Spec};

pub(super) fn all_reduce(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 2);
    let places = [builder.scratch([0, 0]), builder.scratch([1, 1])];
    for part in 0..2 {
        let node = Node::of(spec.world, rank, part, spec.in_order);
        let mut sum = Slice::input(part);
        let mut free = places[part as usize].range();
        for child in node.children.into_iter().flatten() {
            let to = if node.parent.is_none() {
                Slice::output(part) // the top has one child
            } else {
                Slice::scratch(free.next().expect("a chunk for each child"))
            };
            collect(&mut builder, rank, child, sum, to);
            sum = to;
        }
        let result = Slice::output(part);
        if let Some(parent) = node.parent {
            builder.send(parent, sum);
            builder.recv(parent, result);
        } else if sum != result {
            builder.copy(sum, result);
        }
        for child in node.children.into_iter().flatten() {
            builder.send(child, result);
        }
    }
    builder.finish()
}

pub(super) fn broadcast(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 2);
    for part in 0..2 {
        let Some(node) = Node::below_root(spec, rank, part) else {
            builder.send(Node::top_below_root(spec, part), Slice::input(part));
            builder.copy(Slice::input(part), Slice::output(part));
            continue;
        };
        builder.recv(node.parent.unwrap_or(spec.root), Slice::output(part));
        for child in node.children.into_iter().flatten() {
            builder.send(child, Slice::output(part));
        }
    }
    builder.finish()
}

pub(super) fn reduce(spec: &Spec, rank: u32) -> Program {
    let mut builder = ProgramBuilder::new(spec, rank, 2);
    for part in 0..2 {
        let Some(node) = Node::below_root(spec, rank, part) else {
            let top = Node::top_below_root(spec, part);
            builder.recv_reduce(top, Slice::input(part), Slice::output(part));
            continue;
        };
        let mut sum = Slice::input(part);
        for child in node.children.into_iter().flatten() {
            let to = if sum == Slice::input(part) {
                builder.scratch([part])
            } else {
                sum
            };
            collect(&mut builder, rank, child, sum, to);
            sum = to;
        }
        builder.send(node.parent.unwrap_or(spec.root), sum);
    }
    builder.finish()
}

/// Adds a child's sum on its side.
fn collect(builder: &mut ProgramBuilder, rank: u32, child: u32, sum: Slice, to: Slice) {
    if child < rank {
        builder.recv_reduce_left(child, sum, to);
    } else {
        builder.recv_reduce(child, sum, to);
    }
}

/// A rank's neighbours in one of the trees.
#[derive(Debug, Clone, Copy)]
struct Node {
    parent: Option<u32>,
    children: [Option<u32>; 2],
}

impl Node {
    /// In the tree for `part` over all ranks.
    fn of(world: u32, rank: u32, part: u32, in_order: bool) -> Self {
        match part {
            0 => Self::in_first(world, rank),
            _ if world.is_multiple_of(2) || in_order => {
                let mirror = |rank: u32| world - 1 - rank;
                Self::in_first(world, mirror(rank)).map(mirror)
            }
            _ => {
                let node = Self::in_first(world, (rank + world - 1) % world);
                node.map(|place| (place + 1) % world)
            }
        }
    }

    /// In the tree over all but the root, whose places count from the rank behind it; none for the
    /// root.
    fn below_root(spec: &Spec, rank: u32, part: u32) -> Option<Self> {
        let place = (rank + spec.world - spec.root) % spec.world;
        let node = Self::of(spec.world - 1, place.checked_sub(1)?, part, false);
        Some(node.map(|place| (place + 1 + spec.root) % spec.world))
    }

    /// The rank that the root exchanges with.
    fn top_below_root(spec: &Spec, part: u32) -> u32 {
        let mut rank = (spec.root + 1) % spec.world;
        while let Some(parent) = Self::below_root(spec, rank, part).and_then(|node| node.parent) {
            rank = parent;
        }
        rank
    }

    /// The first tree: place 0 is the top and has one child, a power of two; a place whose lowest
    /// bit is b has its children b / 2 to the left and to the right, or nearer where the world ends.
    fn in_first(world: u32, place: u32) -> Self {
        let bit = match place {
            0 => world.next_power_of_two(),
            _ => 1 << place.trailing_zeros(),
        };
        let parent = (place != 0).then(|| {
            let above = (place ^ bit) | (bit << 1);
            if above < world { above } else { place ^ bit }
        });
        let left = (place != 0 && bit > 1).then(|| place - bit / 2);
        let mut step = bit / 2;
        while step > 0 && place + step >= world {
            step /= 2;
        }
        let right = (step > 0).then(|| place + step);
        Self {
            parent,
            children: [left, right],
        }
    }

    fn map(self, rank: impl Fn(u32) -> u32) -> Self {
        Self {
            parent: self.parent.map(&rank),
            children: self.children.map(|child| child.map(&rank)),
        }
    }
}
