//! Steps of one rank that touch the same memory must be ordered, if one of them writes.

use super::Violation;
use crate::{Action, Program};

pub(super) fn check(programs: &[Program]) -> Result<(), Violation> {
    for (rank, program) in programs.iter().enumerate() {
        let before = Ancestors::of(program);
        for (second, step) in program.steps.iter().enumerate() {
            for (first, earlier) in program.steps[..second].iter().enumerate() {
                if conflict(&earlier.action, &step.action) && !before.contains(second, first) {
                    return Err(Violation::Hazard {
                        rank,
                        first,
                        second,
                    });
                }
            }
        }
    }
    Ok(())
}

fn conflict(first: &Action, second: &Action) -> bool {
    let overlap = |a: Option<crate::Slice>, b: Option<crate::Slice>| {
        a.zip(b).is_some_and(|(a, b)| a.overlaps(&b))
    };
    overlap(first.writes(), second.writes())
        || overlap(first.writes(), second.reads())
        || overlap(first.reads(), second.writes())
}

/// For each step, one bit for every step that is complete before it starts.
struct Ancestors {
    words: usize,
    bits: Vec<u64>,
}

impl Ancestors {
    fn of(program: &Program) -> Self {
        let words = program.steps.len().div_ceil(64);
        let mut bits = vec![0; words * program.steps.len()];
        for (index, step) in program.steps.iter().enumerate() {
            let (earlier, own) = bits.split_at_mut(index * words);
            for &after in &step.after {
                let after = after as usize;
                for word in 0..words {
                    own[word] |= earlier[after * words + word];
                }
                own[after / 64] |= 1 << (after % 64);
            }
        }
        Self { words, bits }
    }

    fn contains(&self, step: usize, ancestor: usize) -> bool {
        self.bits[step * self.words + ancestor / 64] & (1 << (ancestor % 64)) != 0
    }
}
