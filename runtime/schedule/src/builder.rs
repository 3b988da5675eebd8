//! Writes programs: an algorithm lists its actions as one rank would do them one by one, and the
//! builder keeps only the order that data needs.
//!
//! A step waits for the last writer of what it reads, and for the last writer and all later readers
//! of what it writes. In place, input and output are the same memory, so who writes a chunk of
//! output waits for the readers of the input that may lie there; a copy of that input to its own
//! place is exempt, for in place it does nothing. Everything else may run at once. Messages without
//! content have no data to follow; [`ProgramBuilder::order`] orders them.

use crate::{Action, Buffer, Program, Slice, Spec, Step};

/// Who touched one chunk of one buffer last.
#[derive(Debug, Clone, Default)]
struct Access {
    writer: Option<u32>,
    readers: Vec<u32>,
}

#[derive(Debug)]
pub struct ProgramBuilder {
    program: Program,
    output: Vec<Access>,
    scratch: Vec<Access>,
    /// For each chunk of output, the readers of the input that may be the same memory.
    alias_readers: Vec<Vec<u32>>,
}

impl ProgramBuilder {
    /// `cut`: parts of a vector; 1 for collectives of blocks.
    pub fn new(spec: &Spec, rank: u32, cut: u32) -> Self {
        assert!(cut > 0, "a vector has at least one part");
        let chunks = spec.output_chunks(rank, cut) as usize;
        Self {
            program: Program {
                spec: spec.clone(),
                rank,
                cut,
                scratch: Vec::new(),
                steps: Vec::new(),
            },
            output: vec![Access::default(); chunks],
            scratch: Vec::new(),
            alias_readers: vec![Vec::new(); chunks],
        }
    }

    /// New chunks of scratch, as long as these parts.
    pub fn scratch(&mut self, parts: impl IntoIterator<Item = u32>) -> Slice {
        let first = self.program.scratch.len() as u32;
        self.program.scratch.extend(parts);
        let end = self.program.scratch.len();
        self.scratch.resize(end, Access::default());
        Slice::new(Buffer::Scratch, first, end as u32 - first)
    }

    pub fn send(&mut self, to: u32, from: Slice) -> u32 {
        self.push(Action::Send { to, from })
    }

    pub fn recv(&mut self, from: u32, to: Slice) -> u32 {
        self.push(Action::Recv { from, to })
    }

    /// `to = local op incoming`, the order that suits a peer with a higher rank.
    pub fn recv_reduce(&mut self, from: u32, local: Slice, to: Slice) -> u32 {
        self.push(Action::RecvReduce {
            from,
            local,
            to,
            incoming_first: false,
        })
    }

    /// `to = incoming op local`.
    pub fn recv_reduce_left(&mut self, from: u32, local: Slice, to: Slice) -> u32 {
        self.push(Action::RecvReduce {
            from,
            local,
            to,
            incoming_first: true,
        })
    }

    pub fn copy(&mut self, from: Slice, to: Slice) -> u32 {
        self.push(Action::Copy { from, to })
    }

    /// `to = inputs[0] op inputs[1] op …`.
    pub fn reduce(&mut self, inputs: Vec<Slice>, to: Slice) -> u32 {
        self.push(Action::Reduce { inputs, to })
    }

    /// Makes the step `later` wait for `earlier` though no data says so.
    pub fn order(&mut self, earlier: u32, later: u32) {
        assert!(earlier < later, "a step waits for earlier steps only");
        let after = &mut self.program.steps[later as usize].after;
        if let Err(place) = after.binary_search(&earlier) {
            after.insert(place, earlier);
        }
    }

    pub fn finish(self) -> Program {
        self.program
    }

    fn push(&mut self, action: Action) -> u32 {
        let index = self.program.steps.len() as u32;
        let (spec, rank) = (&self.program.spec, self.program.rank);
        let stays = stays_in_place(spec, rank, &action);
        let mut after = Vec::new();
        for slice in action.reads() {
            for chunk in slice.range() {
                let access = match slice.buffer {
                    Buffer::Input => {
                        if !stays && let Some(output) = spec.alias(rank, chunk) {
                            self.alias_readers[output as usize].push(index);
                        }
                        continue;
                    }
                    Buffer::Output => &mut self.output[chunk as usize],
                    Buffer::Scratch => &mut self.scratch[chunk as usize],
                };
                after.extend(access.writer);
                access.readers.push(index);
            }
        }
        if let Some(slice) = action.writes() {
            for chunk in slice.range() {
                let access = match slice.buffer {
                    Buffer::Input => panic!("the input is only read"),
                    Buffer::Output => &mut self.output[chunk as usize],
                    Buffer::Scratch => &mut self.scratch[chunk as usize],
                };
                after.extend(access.writer.replace(index));
                after.append(&mut access.readers);
                if slice.buffer == Buffer::Output && !stays {
                    after.append(&mut self.alias_readers[chunk as usize]);
                }
            }
        }
        after.retain(|&earlier| earlier != index); // a step may read what it writes
        after.sort_unstable();
        after.dedup();
        self.program.steps.push(Step { action, after });
        index
    }
}

/// Whether `action` copies input to where it lies already when the call is in place.
pub(crate) fn stays_in_place(spec: &Spec, rank: u32, action: &Action) -> bool {
    match action {
        Action::Copy { from, to }
            if from.buffer == Buffer::Input && to.buffer == Buffer::Output =>
        {
            let pairs = from.range().zip(to.range());
            pairs
                .into_iter()
                .all(|(from, to)| spec.alias(rank, from) == Some(to))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use rlaunch_wire::Collective;

    fn builder(collective: Collective) -> ProgramBuilder {
        ProgramBuilder::new(&Spec::new(collective, Algorithm::Ring, 2), 0, 2)
    }

    /// Read after write, write after read, write after write; nothing between other chunks.
    #[test]
    fn order_follows_data_alone() {
        let mut builder = builder(Collective::AllReduce);
        let first = builder.recv(1, Slice::output(0));
        let reader = builder.send(1, Slice::output(0));
        let other = builder.recv(1, Slice::output(1));
        let writer = builder.recv(1, Slice::output(0));
        let program = builder.finish();
        assert_eq!(program.steps[reader as usize].after, vec![first]);
        assert_eq!(program.steps[other as usize].after, Vec::<u32>::new());
        assert_eq!(program.steps[writer as usize].after, vec![first, reader]);
    }

    #[test]
    fn a_step_does_not_wait_for_itself() {
        let mut builder = builder(Collective::AllReduce);
        let slice = builder.scratch([0]);
        builder.recv_reduce(1, slice, slice);
        let program = builder.finish();
        assert!(program.steps[0].after.is_empty() && program.scratch == [0]);
    }

    /// In place the output is the input: who writes one waits for who reads the other.
    #[test]
    fn output_waits_for_readers_of_the_input_in_its_place() {
        let mut builder = builder(Collective::AllReduce);
        let copy = builder.copy(Slice::input(0), Slice::output(0));
        let send = builder.send(1, Slice::input(0));
        let own = builder.recv_reduce(1, Slice::input(1), Slice::output(1));
        let writer = builder.recv(1, Slice::output(0));
        let program = builder.finish();
        assert_eq!(program.steps[own as usize].after, Vec::<u32>::new());
        assert_eq!(program.steps[writer as usize].after, vec![copy, send]);
    }
}
