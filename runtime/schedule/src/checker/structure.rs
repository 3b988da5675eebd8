//! What can be seen in one step alone.

use super::Violation;
use crate::{Action, Buffer, Program, Slice};

pub(super) fn check(programs: &[Program]) -> Result<(), Violation> {
    let expected = programs[0].chunks;
    for (rank, program) in programs.iter().enumerate() {
        if program.chunks != expected {
            return Err(Violation::ChunksDiffer {
                rank,
                chunks: program.chunks,
                expected,
            });
        }
        for index in 0..program.steps.len() {
            check_step(programs.len(), rank, program, index)?;
        }
    }
    Ok(())
}

fn check_step(world: usize, rank: usize, program: &Program, index: usize) -> Result<(), Violation> {
    let step = &program.steps[index];
    if let Some(&after) = step.after.iter().find(|&&after| after as usize >= index) {
        return Err(Violation::NotEarlier {
            rank,
            step: index,
            after,
        });
    }
    if let Some(peer) = peer(&step.action)
        && (peer as usize >= world || peer as usize == rank)
    {
        return Err(Violation::NoSuchPeer {
            rank,
            step: index,
            peer,
        });
    }
    let (reads, writes) = (step.action.reads(), step.action.writes());
    let past_the_end = |slice: Slice| {
        u64::from(slice.first_chunk) + u64::from(slice.chunks) > u64::from(program.chunks)
    };
    if reads.is_some_and(past_the_end) || writes.is_some_and(past_the_end) {
        return Err(Violation::PastTheEnd { rank, step: index });
    }
    if let (Some(read), Some(written)) = (reads, writes)
        && !read.same_chunks(&written)
    {
        return Err(Violation::SlicesDiffer { rank, step: index });
    }
    let in_scratch = |slice: Slice| slice.buffer == Buffer::Scratch && slice.chunks > 0;
    if !program.needs_scratch && (reads.is_some_and(in_scratch) || writes.is_some_and(in_scratch)) {
        return Err(Violation::ScratchNotAskedFor { rank, step: index });
    }
    Ok(())
}

fn peer(action: &Action) -> Option<u32> {
    match *action {
        Action::Send { to, .. } => Some(to),
        Action::Recv { from, .. } | Action::RecvReduce { from, .. } => Some(from),
        Action::Copy { .. } => None,
    }
}
