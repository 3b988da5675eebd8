//! Which programs are meant, and what the buffers of each collective hold.
//!
//! | collective | input | output |
//! |---|---|---|
//! | all_reduce, scan, exscan | vector | vector |
//! | broadcast | vector, root only | vector |
//! | reduce | vector | vector, root only |
//! | all_gather | own block | a block of each rank |
//! | gather | own block | a block of each rank, root only |
//! | reduce_scatter | a block for each rank | own block |
//! | scatter | a block for each rank, root only | own block |
//! | all_to_all | a block for each rank | a block of each rank |
//! | barrier | nothing | nothing |
//!
//! A vector is cut evenly in [`crate::Program::cut`] parts, its chunks; a block is one chunk, and
//! part `r` is the block of rank `r`. The v-variants differ only in lengths, which a
//! [`crate::Layout`] tells at run time.

use crate::{Algorithm, Buffer, Fold, Hosts};
use rlaunch_wire::Collective;

/// What all ranks of one collective call agree on, as far as programs depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spec {
    pub collective: Collective,
    pub algorithm: Algorithm,
    pub world: u32,
    /// Counts for broadcast, reduce, gather and scatter; 0 elsewhere.
    pub root: u32,
    /// Contributions are reduced in the order of ranks, as operations need that do not commute.
    /// Only for algorithms that can ([`Algorithm::keeps_order`]).
    pub in_order: bool,
    /// For [`Algorithm::Hierarchical`], which needs them; none elsewhere.
    pub hosts: Option<Hosts>,
}

/// What a buffer of a rank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    Nothing,
    Vector,
    Block,
    Blocks,
}

impl Spec {
    pub fn new(collective: Collective, algorithm: Algorithm, world: u32) -> Self {
        Self {
            collective,
            algorithm,
            world,
            root: 0,
            in_order: false,
            hosts: None,
        }
    }

    pub fn with_root(self, root: u32) -> Self {
        Self { root, ..self }
    }

    pub fn with_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }

    /// As [`Algorithm::folds`] says of such a fold.
    pub fn with_fold(self, fold: Fold) -> Self {
        self.with_order(fold != Fold::Any)
    }

    pub fn with_hosts(self, hosts: Hosts) -> Self {
        Self {
            hosts: Some(hosts),
            ..self
        }
    }

    /// Whether the call has a root.
    pub fn has_root(&self) -> bool {
        has_root(self.collective)
    }

    /// Chunks of `rank`'s input in programs that cut vectors in `cut` parts.
    pub fn input_chunks(&self, rank: u32, cut: u32) -> u32 {
        self.chunks(self.input(rank), cut)
    }

    /// Chunks of `rank`'s output.
    pub fn output_chunks(&self, rank: u32, cut: u32) -> u32 {
        self.chunks(self.output(rank), cut)
    }

    /// Whether the input or output is one vector, in which every element keeps its place.
    pub fn collective_is_of_vectors(&self) -> bool {
        is_of_vectors(self.collective)
    }

    /// Whether every rank knows the length of every part.
    pub fn lengths_are_known_to_all(&self) -> bool {
        !matches!(
            self.collective,
            Collective::GatherV | Collective::ScatterV | Collective::AllToAllV
        )
    }

    /// The part that a chunk of `rank`'s input is. `cut` as in the program.
    pub(crate) fn input_part(&self, rank: u32, chunk: u32) -> u32 {
        match self.input(rank) {
            Holding::Block => rank,
            _ => chunk,
        }
    }

    /// A number for the length of a chunk of `Input` or `Output`: chunks with equal numbers are of
    /// equal length on every rank.
    pub fn length_class(&self, rank: u32, buffer: Buffer, chunk: u32) -> u64 {
        use Collective as C;
        let (world, own) = (u64::from(self.world), u64::from(rank));
        let holding = match buffer {
            Buffer::Input => self.input(rank),
            _ => self.output(rank),
        };
        match (self.collective, holding) {
            _ if self.blocks_are_alike() => 0,
            // From the first to the second: every pair has a length of its own.
            (C::AllToAllV, _) if buffer == Buffer::Input => own * world + u64::from(chunk),
            (C::AllToAllV, _) => u64::from(chunk) * world + own,
            (_, Holding::Block) => own,
            _ => u64::from(chunk),
        }
    }

    /// The same for a chunk of scratch that is as long as part `part`.
    pub(crate) fn part_class(&self, part: u32) -> u64 {
        if self.blocks_are_alike() {
            0
        } else {
            u64::from(part)
        }
    }

    fn blocks_are_alike(&self) -> bool {
        use Collective as C;
        matches!(
            self.collective,
            C::AllToAll | C::AllGather | C::ReduceScatter | C::Gather | C::Scatter
        )
    }

    /// Where chunk `chunk` of `rank`'s input lies in its output when the call is in place. For
    /// all_to_all nowhere: there the engine gives programs a copy of the input.
    pub fn alias(&self, rank: u32, chunk: u32) -> Option<u32> {
        match (self.input(rank), self.output(rank)) {
            (Holding::Vector, Holding::Vector) => Some(chunk),
            (Holding::Block, Holding::Blocks) => Some(rank),
            (Holding::Blocks, Holding::Block) if chunk == rank => Some(0),
            _ => None,
        }
    }

    fn input(&self, rank: u32) -> Holding {
        use Collective as C;
        match self.collective {
            C::AllReduce | C::Reduce | C::Scan | C::Exscan => Holding::Vector,
            C::Broadcast if rank == self.root => Holding::Vector,
            C::AllGather | C::AllGatherV | C::Gather | C::GatherV => Holding::Block,
            C::ReduceScatter | C::ReduceScatterV | C::AllToAll | C::AllToAllV => Holding::Blocks,
            C::Scatter | C::ScatterV if rank == self.root => Holding::Blocks,
            _ => Holding::Nothing,
        }
    }

    fn output(&self, rank: u32) -> Holding {
        use Collective as C;
        match self.collective {
            C::AllReduce | C::Broadcast | C::Scan | C::Exscan => Holding::Vector,
            C::Reduce if rank == self.root => Holding::Vector,
            C::AllGather | C::AllGatherV | C::AllToAll | C::AllToAllV => Holding::Blocks,
            C::Gather | C::GatherV if rank == self.root => Holding::Blocks,
            C::ReduceScatter | C::ReduceScatterV | C::Scatter | C::ScatterV => Holding::Block,
            _ => Holding::Nothing,
        }
    }

    fn chunks(&self, holding: Holding, cut: u32) -> u32 {
        match holding {
            Holding::Nothing => 0,
            Holding::Vector => cut,
            Holding::Block => 1,
            Holding::Blocks => self.world,
        }
    }
}

pub(crate) fn is_of_vectors(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::AllReduce
            | Collective::Reduce
            | Collective::Broadcast
            | Collective::Scan
            | Collective::Exscan
    )
}

/// Whether contributions are combined by an operation.
pub fn reduces(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::AllReduce
            | Collective::Reduce
            | Collective::ReduceScatter
            | Collective::ReduceScatterV
            | Collective::Scan
            | Collective::Exscan
    )
}

fn has_root(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Broadcast
            | Collective::Reduce
            | Collective::Gather
            | Collective::GatherV
            | Collective::Scatter
            | Collective::ScatterV
    )
}
