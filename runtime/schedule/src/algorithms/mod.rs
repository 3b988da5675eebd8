//! One file for each algorithm. In the headers `P` is the world's size, `n` the vector's bytes, and
//! a step is one message time on the longest chain.

mod binomial_broadcast;
mod dissemination_barrier;
mod recursive_doubling;
mod ring_all_gather;
mod ring_all_reduce;
mod ring_reduce_scatter;

use crate::{Algorithm, Program};
use rlaunch_wire::Collective;

/// What `rank` does in a world of `world` ranks. `root` counts for broadcast alone.
///
/// A world of one has nothing to do: its program is empty.
///
/// # Panics
/// If `rank` or `root` is outside the world, or `algorithm` does not serve `collective`
/// ([`Algorithm::serves`]; [`crate::select`] names only those that do).
pub fn program(
    collective: Collective,
    algorithm: Algorithm,
    world: u32,
    rank: u32,
    root: u32,
) -> Program {
    assert!(rank < world, "rank {rank} is outside a world of {world}");
    assert!(root < world, "root {root} is outside a world of {world}");
    match (collective, algorithm) {
        (Collective::AllReduce, Algorithm::Ring) => ring_all_reduce::program(world, rank),
        (Collective::AllReduce, Algorithm::RecursiveDoubling) => {
            recursive_doubling::program(world, rank)
        }
        (Collective::AllGather, Algorithm::Ring) => ring_all_gather::program(world, rank),
        (Collective::ReduceScatter, Algorithm::Ring) => ring_reduce_scatter::program(world, rank),
        (Collective::Broadcast, Algorithm::Binomial) => {
            binomial_broadcast::program(world, rank, root)
        }
        (Collective::Barrier, Algorithm::Dissemination) => {
            dissemination_barrier::program(world, rank)
        }
        _ => panic!("{algorithm} does not serve {collective}"),
    }
}

/// Neighbours and chunk numbers on a ring.
#[derive(Debug, Clone, Copy)]
struct Ring {
    world: u32,
    rank: u32,
}

impl Ring {
    fn right(self) -> u32 {
        (self.rank + 1) % self.world
    }

    fn left(self) -> u32 {
        self.back(1)
    }

    /// The place `distance` before this rank; `distance <= world`.
    fn back(self, distance: u32) -> u32 {
        (self.rank + self.world - distance) % self.world
    }
}
