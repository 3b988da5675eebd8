//! Judges the programs of all ranks together: may any engine run them, and is the result right?
//!
//! 1. [`structure`]: indexes and ranks exist; slices of a step are of one length.
//! 2. [`matching`]: the k-th send from a to b meets the k-th receive of b from a, of the same length.
//! 3. [`hazards`]: two steps of a rank that touch the same memory, one of them writing, are ordered;
//!    also when the call is in place.
//! 4. [`symbolic`]: run with sends that last until they are received, nothing stays waiting, and every
//!    rank ends with each contribution exactly once, in its place, and where it matters in the order
//!    of ranks; once with buffers apart and once in place.
//!
//! Programs without hazards compute the same in every order that their edges allow, and so do their
//! matches, so one run of step 4 stands for all.

mod hazards;
mod matching;
mod ranks;
mod structure;
mod symbolic;

pub use matching::{Matches, Place};

use crate::{Buffer, Program, Slice};

/// Why programs may not run. A step is named by its rank and its index in that rank's program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    #[error("rank {rank} step {step}: waits for step {after}, which is not an earlier one")]
    NotEarlier {
        rank: usize,
        step: usize,
        after: u32,
    },
    #[error("rank {rank} step {step}: exchanges with rank {peer}, which is itself or nobody")]
    NoSuchPeer { rank: usize, step: usize, peer: u32 },
    #[error("rank {rank} step {step}: a slice ends past the last chunk")]
    PastTheEnd { rank: usize, step: usize },
    #[error("rank {rank} step {step}: its slices are of different lengths")]
    SlicesDiffer { rank: usize, step: usize },
    #[error("rank {rank} step {step}: writes the input")]
    WritesInput { rank: usize, step: usize },
    #[error("rank {rank} cuts the vector in {cut} parts, rank 0 in {expected}")]
    CutDiffers {
        rank: usize,
        cut: u32,
        expected: u32,
    },
    #[error("rank {rank} has the program of rank {of_rank}, or of another call than rank 0's")]
    NotItsProgram { rank: usize, of_rank: u32 },
    #[error("rank {from} sends {sends} messages to rank {to}, which receives {receives}")]
    Unmatched {
        from: usize,
        to: usize,
        sends: usize,
        receives: usize,
    },
    #[error(
        "rank {from} step {send} meets rank {to} step {recv}, but they are of different lengths"
    )]
    MatchDiffers {
        from: usize,
        send: usize,
        to: usize,
        recv: usize,
    },
    #[error("rank {rank}: steps {first} and {second} touch the same memory in no order")]
    Hazard {
        rank: usize,
        first: usize,
        second: usize,
    },
    #[error("rank {rank} step {step} waits for ever")]
    Deadlock { rank: usize, step: usize },
    #[error("rank {rank} step {step}: chunk {chunk} is read while nothing is written there")]
    ReadUndefined {
        rank: usize,
        step: usize,
        chunk: u32,
    },
    #[error("rank {rank} step {step}: a contribution enters a sum twice, in chunk {chunk} of it")]
    Twice {
        rank: usize,
        step: usize,
        chunk: u32,
    },
    #[error("rank {rank} step {step}: different parts are summed, in chunk {chunk} of the slice")]
    MixesParts {
        rank: usize,
        step: usize,
        chunk: u32,
    },
    #[error("rank {rank} step {step}: the order of ranks is lost, in chunk {chunk} of the slice")]
    OutOfOrder {
        rank: usize,
        step: usize,
        chunk: u32,
    },
    #[error("rank {rank}: chunk {chunk} ends with contributions of the wrong ranks")]
    WrongResult { rank: usize, chunk: u32 },
    #[error("rank {rank} leaves the barrier without having heard of all ranks")]
    LeavesEarly { rank: usize },
}

/// Checks the programs of ranks 0, 1, … of one call.
///
/// # Panics
/// If there is no program.
pub fn check(programs: &[Program]) -> Result<(), Violation> {
    assert!(!programs.is_empty(), "a world has at least one rank");
    let spec = &programs[0].spec;
    for (rank, program) in programs.iter().enumerate() {
        if program.spec != *spec || program.rank as usize != rank {
            let of_rank = program.rank;
            return Err(Violation::NotItsProgram { rank, of_rank });
        }
    }
    structure::check(programs)?;
    let matches = Matches::of(programs)?;
    hazards::check(programs)?;
    symbolic::check(spec, programs, &matches, false)?;
    symbolic::check(spec, programs, &matches, true)
}

/// Numbers for the lengths of a slice's chunks.
fn classes(program: &Program, slice: Slice) -> impl Iterator<Item = u64> {
    slice.range().map(move |chunk| match slice.buffer {
        Buffer::Scratch => program.spec.part_class(program.scratch[chunk as usize]),
        buffer => program.spec.length_class(program.rank, buffer, chunk),
    })
}

#[cfg(test)]
mod tests;
