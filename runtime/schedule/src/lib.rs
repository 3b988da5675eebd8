//! Collective algorithms as data: each builds a [`Program`] per rank; engines run it, the checker
//! and the simulator judge it.
//!
//! A program is a list of [`Step`]s with the steps that must be complete before each. Between two
//! ranks messages match in the order of the steps that send and receive them. A `Send` may stay
//! incomplete until its peer receives (no buffering is promised), so a program is free of deadlock
//! only if it is so with rendezvous sends; the checker holds it to that. Slices count *chunks*: the
//! vector is cut by [`chunk_range`], so a program does not depend on the element count.

//!
//! Slices of one step, and of a send and its receive, cover the same chunk numbers; only buffers
//! differ. So an element keeps its place in the vector wherever it travels.

pub mod algorithms;
pub mod builder;
pub mod checker;
pub mod select;

pub use algorithms::program;
pub use builder::ProgramBuilder;
pub use checker::{Violation, check};
pub use select::{Algorithm, Shape, select};

use std::ops::Range;

/// Where a slice lies. `Output` is the user's result buffer and, at the start, holds the rank's own
/// contribution (all_reduce: the whole vector; all_gather: its own chunk; reduce_scatter: the whole
/// vector, whose own chunk is the result; broadcast: the root's vector). `Scratch` is engine memory
/// of the same shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    Output,
    Scratch,
}

/// Consecutive chunks of a buffer; none at all in a barrier, whose messages carry nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    pub buffer: Buffer,
    pub first_chunk: u32,
    pub chunks: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Complete when `from` may be overwritten.
    Send {
        to: u32,
        from: Slice,
    },
    Recv {
        from: u32,
        to: Slice,
    },
    /// `to = local op incoming`; `to` may be `local`. All three are of one length.
    RecvReduce {
        from: u32,
        local: Slice,
        to: Slice,
    },
    Copy {
        from: Slice,
        to: Slice,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub action: Action,
    /// Indexes of earlier steps of the same program.
    pub after: Vec<u32>,
}

/// What one rank does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The vector is cut in this many chunks.
    pub chunks: u32,
    pub needs_scratch: bool,
    pub steps: Vec<Step>,
}

impl Slice {
    /// What messages without content carry.
    pub const EMPTY: Self = Self {
        buffer: Buffer::Output,
        first_chunk: 0,
        chunks: 0,
    };

    pub fn new(buffer: Buffer, first_chunk: u32, chunks: u32) -> Self {
        Self {
            buffer,
            first_chunk,
            chunks,
        }
    }

    /// Chunk numbers of this slice.
    pub fn range(&self) -> Range<u32> {
        self.first_chunk..self.first_chunk + self.chunks
    }

    pub fn same_chunks(&self, other: &Self) -> bool {
        self.range() == other.range()
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, other_range) = (self.range(), other.range());
        self.buffer == other.buffer
            && own.start.max(other_range.start) < own.end.min(other_range.end)
    }
}

impl Program {
    /// Elements of `slice` in a vector of `count` elements.
    pub fn elements(&self, slice: Slice, count: usize) -> Range<usize> {
        let start = chunk_range(count, self.chunks, slice.first_chunk).start;
        match slice.chunks {
            0 => start..start,
            chunks => {
                let last_chunk = slice.first_chunk + chunks - 1;
                start..chunk_range(count, self.chunks, last_chunk).end
            }
        }
    }
}

impl Action {
    /// The slice that is read.
    pub fn reads(&self) -> Option<Slice> {
        match *self {
            Self::Send { from, .. } | Self::Copy { from, .. } => Some(from),
            Self::RecvReduce { local, .. } => Some(local),
            Self::Recv { .. } => None,
        }
    }

    /// The slice that is written.
    pub fn writes(&self) -> Option<Slice> {
        match *self {
            Self::Recv { to, .. } | Self::RecvReduce { to, .. } | Self::Copy { to, .. } => Some(to),
            Self::Send { .. } => None,
        }
    }
}

/// Elements of chunk `index` when `count` elements are cut in `chunks` near-equal parts: the first
/// `count % chunks` parts have one more.
pub fn chunk_range(count: usize, chunks: u32, index: u32) -> Range<usize> {
    let (chunks, index) = (chunks as usize, index as usize);
    let (base, extra) = (count / chunks, count % chunks);
    let start = index * base + index.min(extra);
    start..start + base + usize::from(index < extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks cover the vector once and in order, also when there are more chunks than elements.
    #[test]
    fn chunks_partition_the_vector() {
        for count in [0, 1, 2, 3, 7, 16, 17, 1000] {
            for chunks in 1..20 {
                let mut at = 0;
                for index in 0..chunks {
                    let range = chunk_range(count, chunks, index);
                    assert_eq!(range.start, at);
                    at = range.end;
                }
                assert_eq!(at, count);
            }
        }
    }

    #[test]
    fn elements_of_a_slice_span_its_chunks() {
        let program = Program {
            chunks: 4,
            needs_scratch: false,
            steps: Vec::new(),
        };
        assert_eq!(program.elements(Slice::new(Buffer::Output, 1, 2), 10), 3..8);
        assert_eq!(program.elements(Slice::EMPTY, 10), 0..0);
    }
}
