//! One file for each algorithm. In the headers `P` is the world's size; `n` the bytes of the vector,
//! or of all blocks together; a step is one message time on the longest chain; and `scratch` the
//! engine's memory that a rank needs.

mod binomial;
mod bruck;
mod chain;
mod dissemination;
mod halving_doubling;
mod hierarchical;
mod linear;
mod pairwise;
mod recursive_doubling;
mod ring;
mod scatter_all_gather;
mod tree;

use crate::{Program, ProgramBuilder, Slice, Spec};
use rlaunch_wire::Collective;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Ring,
    RecursiveDoubling,
    HalvingDoubling,
    Tree,
    Bruck,
    Pairwise,
    Binomial,
    ScatterAllGather,
    Chain,
    Dissemination,
    Linear,
    Hierarchical,
}

/// What `rank` does. A world of one copies its input where there is an output.
///
/// # Panics
/// If `rank` or the root is outside the world, or the algorithm does not serve the collective
/// ([`Algorithm::serves`]) or its order ([`Algorithm::keeps_order`]), or it is hierarchical and the
/// hosts are not given. [`crate::Selector`] names only those that do.
pub fn program(spec: &Spec, rank: u32) -> Program {
    let Spec {
        collective,
        algorithm,
        world,
        root,
        in_order,
        ..
    } = *spec;
    assert!(rank < world, "rank {rank} is outside a world of {world}");
    assert!(root < world, "root {root} is outside a world of {world}");
    assert!(
        !in_order || algorithm.keeps_order(collective),
        "{algorithm} does not keep the order of ranks in {collective}"
    );
    let hosts = spec.hosts.as_ref();
    assert!(
        hosts.is_some_and(|hosts| hosts.world() == world) || algorithm != Algorithm::Hierarchical,
        "{algorithm} needs to know the host of each of {world} ranks"
    );
    let of_rank = of_rank(collective, algorithm)
        .unwrap_or_else(|| panic!("{algorithm} does not serve {collective}"));
    if world == 1 {
        alone(spec)
    } else {
        of_rank(spec, rank)
    }
}

type OfRank = fn(&Spec, u32) -> Program;

/// The one table of what serves what.
fn of_rank(collective: Collective, algorithm: Algorithm) -> Option<OfRank> {
    use Algorithm as A;
    use Collective as C;
    let of_rank: OfRank = match (collective, algorithm) {
        (C::Barrier, A::Dissemination) => dissemination::barrier,
        (C::Broadcast, A::Binomial) => binomial::broadcast,
        (C::Broadcast, A::Chain) => chain::broadcast,
        (C::Broadcast, A::Tree) => tree::broadcast,
        (C::Broadcast, A::ScatterAllGather) => scatter_all_gather::broadcast,
        (C::Broadcast, A::Linear) => linear::broadcast,
        (C::Broadcast, A::Hierarchical) => hierarchical::broadcast,
        (C::Reduce, A::Hierarchical) => hierarchical::reduce,
        (C::AllReduce, A::Hierarchical) => hierarchical::all_reduce,
        (C::AllGather | C::AllGatherV, A::Hierarchical) => hierarchical::all_gather,
        (C::ReduceScatter | C::ReduceScatterV, A::Hierarchical) => hierarchical::reduce_scatter,
        (C::Reduce, A::Binomial) => binomial::reduce,
        (C::Reduce, A::Chain) => chain::reduce,
        (C::Reduce, A::Tree) => tree::reduce,
        (C::Reduce, A::Linear) => linear::reduce,
        (C::AllReduce, A::Ring) => ring::all_reduce,
        (C::AllReduce, A::RecursiveDoubling) => recursive_doubling::all_reduce,
        (C::AllReduce, A::HalvingDoubling) => halving_doubling::all_reduce,
        (C::AllReduce, A::Tree) => tree::all_reduce,
        (C::AllReduce, A::Pairwise) => pairwise::all_reduce,
        (C::AllGather | C::AllGatherV, A::Ring) => ring::all_gather,
        (C::AllGather | C::AllGatherV, A::Pairwise) => pairwise::all_gather,
        (C::AllGather, A::RecursiveDoubling) => recursive_doubling::all_gather,
        (C::AllGather, A::Bruck) => bruck::all_gather,
        (C::ReduceScatter | C::ReduceScatterV, A::Ring) => ring::reduce_scatter,
        (C::ReduceScatter | C::ReduceScatterV, A::Pairwise) => pairwise::reduce_scatter,
        (C::ReduceScatter, A::HalvingDoubling) => halving_doubling::reduce_scatter,
        (C::Gather | C::GatherV, A::Linear) => linear::gather,
        (C::Gather, A::Binomial) => binomial::gather,
        (C::Scatter | C::ScatterV, A::Linear) => linear::scatter,
        (C::Scatter, A::Binomial) => binomial::scatter,
        (C::AllToAll | C::AllToAllV, A::Pairwise) => pairwise::all_to_all,
        (C::AllToAll, A::Bruck) => bruck::all_to_all,
        (C::Scan, A::RecursiveDoubling) => recursive_doubling::scan,
        (C::Scan, A::Chain) => chain::scan,
        (C::Exscan, A::RecursiveDoubling) => recursive_doubling::exscan,
        (C::Exscan, A::Chain) => chain::exscan,
        _ => return None,
    };
    Some(of_rank)
}

impl Algorithm {
    pub const ALL: &'static [Self] = &[
        Self::Ring,
        Self::RecursiveDoubling,
        Self::HalvingDoubling,
        Self::Tree,
        Self::Bruck,
        Self::Pairwise,
        Self::Binomial,
        Self::ScatterAllGather,
        Self::Chain,
        Self::Dissemination,
        Self::Linear,
        Self::Hierarchical,
    ];

    pub fn serves(self, collective: Collective) -> bool {
        of_rank(collective, self).is_some()
    }

    /// Those that serve `collective`; none for `Send` and `Recv`.
    pub fn serving(collective: Collective) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |one| one.serves(collective))
    }

    /// Whether contributions can be reduced in the order of ranks ([`Spec::in_order`]), as
    /// operations need that do not commute. True where nothing is reduced.
    pub fn keeps_order(self, collective: Collective) -> bool {
        match (self, collective) {
            (Self::Ring | Self::Hierarchical, _) => !crate::reduces(collective),
            (Self::HalvingDoubling, Collective::ReduceScatter) => false,
            (Self::Tree, Collective::Reduce) => false,
            _ => true,
        }
    }

    /// Whether every message that carries blocks carries one.
    pub fn sends_single_blocks(self) -> bool {
        matches!(
            self,
            Self::Ring | Self::Pairwise | Self::Linear | Self::Hierarchical
        )
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::RecursiveDoubling => "recursive_doubling",
            Self::HalvingDoubling => "halving_doubling",
            Self::Tree => "tree",
            Self::Bruck => "bruck",
            Self::Pairwise => "pairwise",
            Self::Binomial => "binomial",
            Self::ScatterAllGather => "scatter_all_gather",
            Self::Chain => "chain",
            Self::Dissemination => "dissemination",
            Self::Linear => "linear",
            Self::Hierarchical => "hierarchical",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no algorithm; known are {}", known_names())]
pub struct UnknownAlgorithm {
    pub name: String,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let found = Self::ALL.iter().find(|algorithm| algorithm.name() == name);
        found.copied().ok_or_else(|| UnknownAlgorithm {
            name: name.to_owned(),
        })
    }
}

fn known_names() -> String {
    let names = Algorithm::ALL.iter().map(|algorithm| algorithm.name());
    names.collect::<Vec<_>>().join(", ")
}

/// A world of one.
fn alone(spec: &Spec) -> Program {
    let mut builder = ProgramBuilder::new(spec, 0, 1);
    let has_both = spec.input_chunks(0, 1) > 0 && spec.output_chunks(0, 1) > 0;
    if has_both && spec.collective != Collective::Exscan {
        builder.copy(Slice::input(0), Slice::output(0));
    }
    builder.finish()
}

/// Neighbours and chunk numbers on a ring.
#[derive(Debug, Clone, Copy)]
struct Ring {
    world: u32,
    rank: u32,
}

impl Ring {
    fn of(spec: &Spec, rank: u32) -> Self {
        Self {
            world: spec.world,
            rank,
        }
    }

    fn right(self) -> u32 {
        self.forward(1)
    }

    fn left(self) -> u32 {
        self.back(1)
    }

    /// The place `distance` behind this rank.
    fn forward(self, distance: u32) -> u32 {
        (self.rank + distance) % self.world
    }

    /// The place `distance` before this rank; `distance <= world`.
    fn back(self, distance: u32) -> u32 {
        (self.rank + self.world - distance) % self.world
    }
}

/// A world made a power of two: of the first ranks each even one takes the odd one behind it into
/// its place.
#[derive(Debug, Clone, Copy)]
struct Folding {
    world: u32,
    rounds: u32,
    pairs: u32,
}

impl Folding {
    fn of(world: u32) -> Self {
        let rounds = world.ilog2();
        let pairs = world - (1 << rounds);
        Self {
            world,
            rounds,
            pairs,
        }
    }

    fn places(&self) -> u32 {
        1 << self.rounds
    }

    /// None for a rank that sits out.
    fn place(&self, rank: u32) -> Option<u32> {
        match rank {
            _ if rank >= 2 * self.pairs => Some(rank - self.pairs),
            _ if rank.is_multiple_of(2) => Some(rank / 2),
            _ => None,
        }
    }

    /// Whether the rank behind this one sits out in its favour.
    fn has_pair(&self, rank: u32) -> bool {
        rank < 2 * self.pairs
    }

    fn rank(&self, place: u32) -> u32 {
        if place < self.pairs {
            2 * place
        } else {
            place + self.pairs
        }
    }

    /// The first rank of a place, or the world's size behind the last.
    fn first_rank(&self, place: u32) -> u32 {
        if place == self.places() {
            self.world
        } else {
            self.rank(place)
        }
    }
}
