//! Writes programs: an algorithm lists its actions as one rank would do them one by one, and the
//! builder keeps only the order that data needs.
//!
//! A step waits for the last writer of what it reads, and for the last writer and all later readers
//! of what it writes. Everything else may run at once. Messages without content have no data to
//! follow; [`ProgramBuilder::order`] orders them.

use crate::{Action, Buffer, Program, Slice, Step};

/// Who touched one chunk of one buffer last.
#[derive(Debug, Clone, Default)]
struct Access {
    writer: Option<u32>,
    readers: Vec<u32>,
}

#[derive(Debug)]
pub struct ProgramBuilder {
    chunks: u32,
    steps: Vec<Step>,
    output: Vec<Access>,
    scratch: Vec<Access>,
}

impl ProgramBuilder {
    /// For a vector cut in `chunks` parts.
    pub fn new(chunks: u32) -> Self {
        assert!(chunks > 0, "a vector has at least one chunk");
        let untouched = vec![Access::default(); chunks as usize];
        Self {
            chunks,
            steps: Vec::new(),
            output: untouched.clone(),
            scratch: untouched,
        }
    }

    pub fn send(&mut self, to: u32, from: Slice) -> u32 {
        self.push(Action::Send { to, from })
    }

    pub fn recv(&mut self, from: u32, to: Slice) -> u32 {
        self.push(Action::Recv { from, to })
    }

    pub fn recv_reduce(&mut self, from: u32, local: Slice, to: Slice) -> u32 {
        self.push(Action::RecvReduce { from, local, to })
    }

    pub fn copy(&mut self, from: Slice, to: Slice) -> u32 {
        self.push(Action::Copy { from, to })
    }

    /// Makes the step `later` wait for `earlier` though no data says so.
    pub fn order(&mut self, earlier: u32, later: u32) {
        assert!(earlier < later, "a step waits for earlier steps only");
        let after = &mut self.steps[later as usize].after;
        if let Err(place) = after.binary_search(&earlier) {
            after.insert(place, earlier);
        }
    }

    pub fn finish(self) -> Program {
        let uses_scratch = |slice: Slice| slice.buffer == Buffer::Scratch && slice.chunks > 0;
        let needs_scratch = self.steps.iter().any(|step| {
            step.action.reads().is_some_and(uses_scratch)
                || step.action.writes().is_some_and(uses_scratch)
        });
        Program {
            chunks: self.chunks,
            needs_scratch,
            steps: self.steps,
        }
    }

    fn push(&mut self, action: Action) -> u32 {
        let index = self.steps.len() as u32;
        let mut after = Vec::new();
        if let Some(slice) = action.reads() {
            for access in self.accesses(slice) {
                after.extend(access.writer);
                access.readers.push(index);
            }
        }
        if let Some(slice) = action.writes() {
            for access in self.accesses(slice) {
                after.extend(access.writer.replace(index));
                after.append(&mut access.readers);
            }
        }
        after.retain(|&earlier| earlier != index); // a step may read what it writes
        after.sort_unstable();
        after.dedup();
        self.steps.push(Step { action, after });
        index
    }

    fn accesses(&mut self, slice: Slice) -> &mut [Access] {
        let range = slice.first_chunk as usize..(slice.first_chunk + slice.chunks) as usize;
        match slice.buffer {
            Buffer::Output => &mut self.output[range],
            Buffer::Scratch => &mut self.scratch[range],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(buffer: Buffer, index: u32) -> Slice {
        Slice::new(buffer, index, 1)
    }

    /// Read after write, write after read, write after write; nothing between other chunks.
    #[test]
    fn order_follows_data_alone() {
        let mut builder = ProgramBuilder::new(2);
        let first = builder.recv(1, chunk(Buffer::Output, 0));
        let reader = builder.send(1, chunk(Buffer::Output, 0));
        let other = builder.recv(1, chunk(Buffer::Output, 1));
        let writer = builder.recv(1, chunk(Buffer::Output, 0));
        let program = builder.finish();
        assert_eq!(program.steps[reader as usize].after, vec![first]);
        assert_eq!(program.steps[other as usize].after, Vec::<u32>::new());
        assert_eq!(program.steps[writer as usize].after, vec![first, reader]);
        assert!(!program.needs_scratch);
    }

    #[test]
    fn a_step_does_not_wait_for_itself() {
        let mut builder = ProgramBuilder::new(1);
        let slice = chunk(Buffer::Scratch, 0);
        builder.recv_reduce(1, slice, slice);
        let program = builder.finish();
        assert!(program.steps[0].after.is_empty() && program.needs_scratch);
    }
}
