//! Collective algorithms as data: each builds a [`Program`] per rank; engines run it, the checker
//! and the simulator judge it.
//!
//! A program is a list of [`Step`]s with the steps that must be complete before each. Between two
//! ranks messages match in the order of the steps that send and receive them. A `Send` may stay
//! incomplete until its peer receives (no buffering is promised), so a program is free of deadlock
//! only if it is so with rendezvous sends; the checker holds it to that. Slices count *chunks*: the
//! vector is cut by [`chunk_range`], so a program does not depend on the element count.

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

/// Consecutive chunks of a buffer.
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

/// Elements of chunk `index` when `count` elements are cut in `chunks` near-equal parts: the first
/// `count % chunks` parts have one more.
pub fn chunk_range(count: usize, chunks: u32, index: u32) -> Range<usize> {
    let (chunks, index) = (chunks as usize, index as usize);
    let (base, extra) = (count / chunks, count % chunks);
    let start = index * base + index.min(extra);
    start..start + base + usize::from(index < extra)
}
