//! Steps of one rank that touch the same memory must be ordered, if one of them writes.
//!
//! Input counts as the output that it is when the call is in place, except for a copy to its own
//! place, which then does nothing.

use super::Violation;
use crate::builder::stays_in_place;
use crate::{Buffer, Program, Slice};

pub(super) fn check(programs: &[Program]) -> Result<(), Violation> {
    for (rank, program) in programs.iter().enumerate() {
        check_program(rank, program)?;
    }
    Ok(())
}

/// Earlier steps that touched a chunk: each must be an ancestor of a later one that conflicts. Only
/// those since the last write need a look, the write itself included: what came before it is an
/// ancestor of it, or was found.
#[derive(Default, Clone)]
struct Touched {
    writer: Option<usize>,
    readers: Vec<usize>,
}

struct Memory {
    output: Vec<Touched>,
    scratch: Vec<Touched>,
    /// Readers of the input that is this chunk of output, in place.
    alias_readers: Vec<Vec<usize>>,
}

fn check_program(rank: usize, program: &Program) -> Result<(), Violation> {
    let mut before = Ancestors::of(program);
    let chunks = program.spec.output_chunks(program.rank, program.cut) as usize;
    let mut memory = Memory {
        output: vec![Touched::default(); chunks],
        scratch: vec![Touched::default(); program.scratch.len()],
        alias_readers: vec![Vec::new(); chunks],
    };
    for (index, step) in program.steps.iter().enumerate() {
        let stays = stays_in_place(&program.spec, program.rank, &step.action);
        let mut conflicts = Vec::new();
        for &slice in step.action.reads() {
            memory.read(program, slice, index, stays, &mut conflicts);
        }
        if let Some(slice) = step.action.writes() {
            memory.write(slice, index, stays, &mut conflicts);
        }
        conflicts.retain(|&first| first != index && !before.contains(index, first));
        if let Some(&first) = conflicts.first() {
            return Err(Violation::Hazard {
                rank,
                first,
                second: index,
            });
        }
    }
    Ok(())
}

impl Memory {
    fn read(
        &mut self,
        program: &Program,
        slice: Slice,
        index: usize,
        stays: bool,
        conflicts: &mut Vec<usize>,
    ) {
        for chunk in slice.range() {
            if slice.buffer == Buffer::Input {
                if !stays && let Some(output) = program.spec.alias(program.rank, chunk) {
                    self.alias_readers[output as usize].push(index);
                }
                continue;
            }
            let touched = self.at(slice.buffer, chunk);
            conflicts.extend(touched.writer);
            touched.readers.push(index);
        }
    }

    fn write(&mut self, slice: Slice, index: usize, stays: bool, conflicts: &mut Vec<usize>) {
        for chunk in slice.range() {
            let touched = self.at(slice.buffer, chunk);
            conflicts.extend(touched.writer.replace(index));
            conflicts.append(&mut touched.readers);
            if slice.buffer == Buffer::Output && !stays {
                conflicts.append(&mut self.alias_readers[chunk as usize]);
            }
        }
    }

    fn at(&mut self, buffer: Buffer, chunk: u32) -> &mut Touched {
        match buffer {
            Buffer::Scratch => &mut self.scratch[chunk as usize],
            _ => &mut self.output[chunk as usize],
        }
    }
}

/// What must be complete before a step starts. Looked for when asked: programs of a thousand ranks can
/// have a million steps, and conflicts are mostly with steps just before.
struct Ancestors<'a> {
    program: &'a Program,
    /// In which search a step was last seen.
    seen: Vec<u32>,
    search: u32,
    open: Vec<usize>,
}

impl<'a> Ancestors<'a> {
    fn of(program: &'a Program) -> Self {
        Self {
            program,
            seen: vec![0; program.steps.len()],
            search: 0,
            open: Vec::new(),
        }
    }

    fn contains(&mut self, step: usize, ancestor: usize) -> bool {
        self.search += 1;
        self.open.clear();
        self.open.push(step);
        while let Some(at) = self.open.pop() {
            for &after in &self.program.steps[at].after {
                let after = after as usize;
                if after == ancestor {
                    return true;
                }
                // Steps come after what they wait for.
                if after > ancestor && self.seen[after] != self.search {
                    self.seen[after] = self.search;
                    self.open.push(after);
                }
            }
        }
        false
    }
}
