//! What can be seen in one step alone.

use super::{Violation, classes};
use crate::{Action, Buffer, Program, Slice};

pub(super) fn check(programs: &[Program]) -> Result<(), Violation> {
    let expected = programs[0].cut;
    for (rank, program) in programs.iter().enumerate() {
        if program.cut != expected {
            return Err(Violation::CutDiffers {
                rank,
                cut: program.cut,
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
    if let Some(peer) = step.action.peer()
        && (peer as usize >= world || peer as usize == rank)
    {
        return Err(Violation::NoSuchPeer {
            rank,
            step: index,
            peer,
        });
    }
    let past_the_end = |slice: Slice| {
        let chunks = match slice.buffer {
            Buffer::Input => program.spec.input_chunks(program.rank, program.cut),
            Buffer::Output => program.spec.output_chunks(program.rank, program.cut),
            Buffer::Scratch => program.scratch.len() as u32,
        };
        u64::from(slice.first_chunk) + u64::from(slice.chunks) > u64::from(chunks)
    };
    let written = step.action.writes();
    let mut reads = step.action.reads().iter().copied();
    if reads.clone().chain(written).any(past_the_end) {
        return Err(Violation::PastTheEnd { rank, step: index });
    }
    if written.is_some_and(|slice| slice.buffer == Buffer::Input) {
        return Err(Violation::WritesInput { rank, step: index });
    }
    let differs =
        |slice: Slice| written.is_some_and(|to| !classes(program, slice).eq(classes(program, to)));
    if reads.any(differs) {
        return Err(Violation::SlicesDiffer { rank, step: index });
    }
    if matches!(&step.action, Action::Reduce { inputs, .. } if inputs.is_empty()) {
        return Err(Violation::SlicesDiffer { rank, step: index });
    }
    Ok(())
}
