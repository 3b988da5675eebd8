//! What goes into a collective and what must come out.

use crate::{Given, Manner, Random};
use rlaunch_schedule::{Layout, Program, Spec, program};
use rlaunch_wire::Collective;
use std::ops::Range;

/// One call of a collective by all ranks of a world, with contributions from a seed.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub spec: Spec,
    /// Elements of a vector, or of a block; in the v-variants the most that a block has.
    pub count: usize,
    pub segments: usize,
    pub in_place: bool,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: element {element} is {found}, expected {expected}")]
pub struct WrongResult {
    pub rank: usize,
    pub element: usize,
    pub found: i64,
    pub expected: i64,
}

impl Scenario {
    pub fn programs(&self) -> Vec<Program> {
        (0..self.spec.world)
            .map(|rank| program(&self.spec, rank))
            .collect()
    }

    /// As many segments as asked for, where the programs allow it.
    pub fn manner(&self, programs: &[Program]) -> Manner {
        let can = programs.iter().all(Program::can_run_in_segments);
        let segments = if can { self.segments } else { 1 };
        let (op, in_place): (fn(i64, i64) -> i64, _) = (self.op(), self.in_place);
        Manner {
            op,
            segments,
            in_place,
        }
    }

    /// Each rank's buffers before the call. What a rank does not contribute is random too, so that it
    /// can't be right by chance.
    pub fn given(&self) -> Vec<Given> {
        let mut random = Random::new(self.seed);
        (0..self.spec.world)
            .map(|rank| {
                let layout = self.layout(rank);
                let mut draw = |ranges: Vec<Range<usize>>| -> Vec<i64> {
                    let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
                    (0..end).map(|_| random.draw() as i64).collect()
                };
                let (inputs, outputs) = (self.inputs(rank), self.outputs(rank));
                let (input, mut output) = (draw(inputs.clone()), draw(outputs.clone()));
                for (chunk, from) in (0..).zip(&inputs) {
                    if self.in_place
                        && let Some(place) = self.spec.alias(rank, chunk)
                    {
                        let to = outputs[place as usize].clone();
                        output[to].copy_from_slice(&input[from.clone()]);
                    }
                }
                Given {
                    layout,
                    input,
                    output,
                }
            })
            .collect()
    }

    /// Holds each rank's result to what the contributions say.
    pub fn verify(&self, outputs: &[Vec<i64>]) -> Result<(), WrongResult> {
        let given = self.given();
        let inputs: Vec<_> = (0..self.spec.world).map(|rank| self.inputs(rank)).collect();
        for (rank, output) in (0..).zip(outputs) {
            for (chunk, range) in (0..).zip(self.outputs(rank)) {
                for (index, element) in range.enumerate() {
                    let Some(expected) = self.expected(&given, &inputs, rank, chunk, index) else {
                        continue;
                    };
                    let found = output[element];
                    if found != expected {
                        return Err(WrongResult {
                            rank: rank as usize,
                            element,
                            found,
                            expected,
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Element `index` of a chunk of the output; none where any number is right.
    fn expected(
        &self,
        given: &[Given],
        inputs: &[Vec<Range<usize>>],
        rank: u32,
        chunk: u32,
        index: usize,
    ) -> Option<i64> {
        let Spec { world, root, .. } = self.spec;
        let of = |rank: u32, chunk: u32| {
            let range = inputs[rank as usize][chunk as usize].clone();
            given[rank as usize].input[range][index]
        };
        let sum = |ranks: Range<u32>, chunk| ranks.map(|rank| of(rank, chunk)).reduce(self.op());
        match self.spec.collective {
            Collective::AllReduce | Collective::Reduce => sum(0..world, chunk),
            Collective::Scan => sum(0..rank + 1, chunk),
            Collective::Exscan => sum(0..rank, chunk),
            Collective::ReduceScatter | Collective::ReduceScatterV => sum(0..world, rank),
            Collective::Broadcast => Some(of(root, chunk)),
            Collective::AllGather | Collective::AllGatherV => Some(of(chunk, 0)),
            Collective::Gather | Collective::GatherV => Some(of(chunk, 0)),
            Collective::Scatter | Collective::ScatterV => Some(of(root, rank)),
            Collective::AllToAll | Collective::AllToAllV => Some(of(chunk, rank)),
            _ => None,
        }
    }

    fn op(&self) -> fn(i64, i64) -> i64 {
        if self.spec.in_order {
            compose
        } else {
            i64::wrapping_add
        }
    }

    fn layout(&self, rank: u32) -> Layout {
        if self.has_lengths() {
            let (input, output) = (self.inputs(rank), self.outputs(rank));
            return Layout::Ranges { input, output };
        }
        let count = self.count;
        if self.spec.collective_is_of_vectors() {
            Layout::Vector { count }
        } else {
            Layout::Blocks { count }
        }
    }

    fn inputs(&self, rank: u32) -> Vec<Range<usize>> {
        self.ranges(self.spec.input_chunks(rank, 1), |chunk| {
            match self.spec.collective {
                Collective::AllToAllV => self.length(rank, chunk),
                Collective::AllGatherV | Collective::GatherV => self.length(0, rank),
                _ => self.length(0, chunk),
            }
        })
    }

    fn outputs(&self, rank: u32) -> Vec<Range<usize>> {
        self.ranges(self.spec.output_chunks(rank, 1), |chunk| {
            match self.spec.collective {
                Collective::AllToAllV => self.length(chunk, rank),
                Collective::ReduceScatterV | Collective::ScatterV => self.length(0, rank),
                _ => self.length(0, chunk),
            }
        })
    }

    /// Blocks one after another, in the v-variants with gaps of their own number.
    fn ranges(&self, chunks: u32, length: impl Fn(u32) -> usize) -> Vec<Range<usize>> {
        let mut end = 0;
        let mut ranges = Vec::new();
        for chunk in 0..chunks {
            let start = end + self.gap(chunk);
            end = start + length(chunk);
            ranges.push(start..end);
        }
        ranges
    }

    fn has_lengths(&self) -> bool {
        use Collective as C;
        matches!(
            self.spec.collective,
            C::AllGatherV | C::ReduceScatterV | C::GatherV | C::ScatterV | C::AllToAllV
        )
    }

    fn gap(&self, chunk: u32) -> usize {
        if self.has_lengths() {
            chunk as usize % 3
        } else {
            0
        }
    }

    /// Of the block from one rank to another.
    fn length(&self, from: u32, to: u32) -> usize {
        if !self.has_lengths() {
            return self.count;
        }
        let seed = self.seed ^ (u64::from(from) << 32 | u64::from(to));
        Random::new(seed).up_to(self.count as u64) as usize
    }
}

/// An operation that does not commute: one affine map after another, x → m x + a.
fn compose(first: i64, second: i64) -> i64 {
    let split = |map: i64| ((map as u64 >> 32) as u32 | 1, map as u32);
    let ((m, a), (n, b)) = (split(first), split(second));
    let (factor, offset) = (m.wrapping_mul(n), a.wrapping_mul(n).wrapping_add(b));
    (u64::from(factor) << 32 | u64::from(offset)) as i64
}
