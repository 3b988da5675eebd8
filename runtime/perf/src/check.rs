//! One call on fresh contributions, and how much of its outcome is wrong.

use crate::buffers::Block;
use crate::calls::Kind;
use crate::data::{Data, Who};
use crate::test::{Layout, Test, uneven};

/// Where a rank's input and output lie: in place both in the output's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) is_in_place: bool,
    pub(crate) input: usize,
    pub(crate) output: usize,
}

/// A run of expected elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    at: usize,
    elements: usize,
    origin: Origin,
    first: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Reduced,
    /// What this rank sends, from element `first` on.
    Moved(u32),
}

/// One rank's view of a checked call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) kind: Kind,
    pub(crate) data: Data,
    pub(crate) rank: u32,
    pub(crate) layout: Layout,
}

/// What stands in the output before: found again where a call wrote nothing.
const UNWRITTEN: u8 = 0x5A;

impl Check {
    /// Writes this rank's contribution, and something recognisable into the output.
    pub(crate) fn fill(&self, input: &mut Block, output: &mut Block, offsets: Offsets) {
        let size = self.kind.dtype.size_bytes();
        let whole = output.bytes();
        output.slice_mut(0, whole).fill(UNWRITTEN);
        let block = if offsets.is_in_place { output } else { input };
        let into = block.slice_mut(offsets.input * size, self.layout.input * size);
        let is_sender = match self.kind.test {
            Test::Broadcast | Test::Scatter => self.rank == self.kind.root,
            _ => true,
        };
        match is_sender {
            true if self.kind.test.reduces() => {
                let who = Who::Rank(self.rank);
                self.data.reduced(who, 0, self.layout.input).copy_to(into);
            }
            true => self
                .data
                .moved(self.rank, 0, self.layout.input)
                .copy_to(into),
            false => {} // nobody may read it
        }
    }

    /// Wrong elements of this rank's output; one more where something lies behind its end.
    pub(crate) fn count_wrong(&self, output: &Block, offset: usize) -> u64 {
        let size = self.kind.dtype.size_bytes();
        let mut wrong = u64::from(!output.is_guard_intact());
        for segment in self.segments() {
            let (first, elements) = (segment.first, segment.elements);
            let expected = match segment.origin {
                Origin::Reduced => self.data.reduced(Who::All, first, elements),
                Origin::Moved(source) => self.data.moved(source, first, elements),
            };
            let begin = (offset + segment.at) * size;
            for (at, run) in expected.runs() {
                let found = output.slice(begin + at, run.len());
                wrong += match segment.origin {
                    Origin::Reduced => self.data.count_wrong(found, run),
                    Origin::Moved(_) => differing(found, run, size),
                };
            }
        }
        wrong
    }

    fn segments(&self) -> Vec<Segment> {
        let (rank, world) = (self.rank as usize, self.data.world as usize);
        let (count, root) = (self.layout.count, self.kind.root);
        let whole = |origin, first| {
            vec![Segment {
                at: 0,
                elements: count,
                origin,
                first,
            }]
        };
        let parts = |first: &dyn Fn(usize) -> usize| {
            let part = |source: usize| Segment {
                at: source * count,
                elements: count,
                origin: Origin::Moved(source as u32),
                first: first(source),
            };
            (0..world).map(part).collect()
        };
        match self.kind.test {
            Test::AllReduce => whole(Origin::Reduced, 0),
            Test::Reduce if self.rank == root => whole(Origin::Reduced, 0),
            Test::ReduceScatter => whole(Origin::Reduced, rank * count),
            Test::Broadcast => whole(Origin::Moved(root), 0),
            Test::Scatter => whole(Origin::Moved(root), rank * count),
            Test::SendRecv => whole(Origin::Moved(((rank + world - 1) % world) as u32), 0),
            Test::AllGather | Test::Hypercube => parts(&|_| 0),
            Test::Gather if self.rank == root => parts(&|_| 0),
            Test::AllToAll => parts(&|_| rank * count),
            Test::AllToAllV => self.uneven_segments(),
            Test::Latency if world > 1 && rank == 0 => whole(Origin::Moved(world as u32 - 1), 0),
            Test::Latency if world > 1 && rank == world - 1 => whole(Origin::Moved(0), 0),
            Test::Reduce | Test::Gather | Test::Barrier | Test::Latency => Vec::new(),
        }
    }

    fn uneven_segments(&self) -> Vec<Segment> {
        let (rank, world) = (self.rank as usize, self.data.world as usize);
        let count = self.layout.count;
        let mut at = 0;
        let mut segments = Vec::new();
        for source in 0..world {
            let elements = uneven(count, source, rank);
            segments.push(Segment {
                at,
                elements,
                origin: Origin::Moved(source as u32),
                first: (0..rank).map(|to| uneven(count, source, to)).sum(),
            });
            at += elements;
        }
        segments
    }
}

fn differing(found: &[u8], expected: &[u8], size: usize) -> u64 {
    if found == expected {
        return 0;
    }
    let pairs = found.chunks_exact(size).zip(expected.chunks_exact(size));
    pairs.filter(|(a, b)| a != b).count() as u64
}
