//! What one rank does, as data.

use crate::{Layout, Spec};
use std::ops::Range;

/// Where a slice lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The rank's contribution. Only read.
    Input,
    /// The rank's result. Undefined at the start; in place, the contribution lies in it
    /// ([`Spec::alias`]).
    Output,
    /// Engine memory. Its chunks are the program's own ([`Program::scratch`]).
    Scratch,
}

/// Consecutive chunks of a buffer; none at all in a barrier, whose messages carry nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    pub buffer: Buffer,
    pub first_chunk: u32,
    pub chunks: u32,
}

/// Slices of one step, and of a send and its receive, are of one length: chunk for chunk they hold
/// the same part, or parts of one length ([`Spec::length_class`]). Their chunk numbers may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// `to = local op incoming`, or `incoming op local`; `to` may be `local`.
    RecvReduce {
        from: u32,
        local: Slice,
        to: Slice,
        /// The incoming operand stands on the left.
        incoming_first: bool,
    },
    Copy {
        from: Slice,
        to: Slice,
    },
    /// `to = inputs[0] op inputs[1] op …`, rounded once; `to` may be one of the inputs.
    Reduce {
        inputs: Vec<Slice>,
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
    pub spec: Spec,
    pub rank: u32,
    /// Parts that a vector is cut in; the same on every rank. Collectives of blocks have one part
    /// for each rank instead.
    pub cut: u32,
    /// For each chunk of the scratch buffer, the part whose length it has.
    pub scratch: Vec<u32>,
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

    pub fn input(chunk: u32) -> Self {
        Self::new(Buffer::Input, chunk, 1)
    }

    pub fn output(chunk: u32) -> Self {
        Self::new(Buffer::Output, chunk, 1)
    }

    pub fn scratch(chunk: u32) -> Self {
        Self::new(Buffer::Scratch, chunk, 1)
    }

    /// Chunk numbers of this slice.
    pub fn range(&self) -> Range<u32> {
        self.first_chunk..self.first_chunk + self.chunks
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, other_range) = (self.range(), other.range());
        self.buffer == other.buffer
            && own.start.max(other_range.start) < own.end.min(other_range.end)
    }
}

impl Program {
    /// Whether the vector or the blocks may be cut in segments for which the program runs one after
    /// another: the same for all ranks of a call. Blocks can't where the algorithm puts several in
    /// one message, since a piece of each is no longer one range; nor where not every rank knows every
    /// length, and so how many segments there are.
    pub fn can_run_in_segments(&self) -> bool {
        let spec = &self.spec;
        spec.collective_is_of_vectors()
            || (spec.lengths_are_known_to_all() && spec.algorithm.sends_single_blocks())
    }

    /// How many segments of about `segment_bytes` the longest part is cut in: at least one.
    pub fn segments(&self, layout: &Layout, element_bytes: usize, segment_bytes: usize) -> usize {
        if !self.can_run_in_segments() {
            return 1;
        }
        let longest = layout.longest_part(self.cut).saturating_mul(element_bytes);
        longest.div_ceil(segment_bytes.max(1)).max(1)
    }
}

impl Action {
    /// The slices that are read.
    pub fn reads(&self) -> &[Slice] {
        match self {
            Self::Send { from, .. } | Self::Copy { from, .. } => std::slice::from_ref(from),
            Self::RecvReduce { local, .. } => std::slice::from_ref(local),
            Self::Reduce { inputs, .. } => inputs,
            Self::Recv { .. } => &[],
        }
    }

    /// The slice that is written.
    pub fn writes(&self) -> Option<Slice> {
        match *self {
            Self::Recv { to, .. }
            | Self::RecvReduce { to, .. }
            | Self::Copy { to, .. }
            | Self::Reduce { to, .. } => Some(to),
            Self::Send { .. } => None,
        }
    }

    /// The other rank, where there is one.
    pub fn peer(&self) -> Option<u32> {
        match *self {
            Self::Send { to, .. } => Some(to),
            Self::Recv { from, .. } | Self::RecvReduce { from, .. } => Some(from),
            Self::Copy { .. } | Self::Reduce { .. } => None,
        }
    }
}
