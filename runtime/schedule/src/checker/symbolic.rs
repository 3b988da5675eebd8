//! Runs all programs on sets of ranks instead of numbers.
//!
//! A chunk's value says which part of whose contribution it holds; to reduce is to join the
//! contributions to one part, which must be disjoint, and consecutive where the order counts. In a
//! barrier no values travel but what each step has heard of: the ranks that had arrived before it was
//! complete.

use super::ranks::Ranks;
use super::{Matches, Place, Violation};
use crate::{Action, Buffer, Program, Slice, Spec};
use rlaunch_wire::Collective;

/// `in_place`: the input is the output, as far as the collective says so.
pub(super) fn check(
    spec: &Spec,
    programs: &[Program],
    matches: &Matches,
    in_place: bool,
) -> Result<(), Violation> {
    let mut run = Run::new(spec, programs, matches, in_place);
    run.finish()?;
    for rank in 0..spec.world {
        if spec.collective == Collective::Barrier {
            run.check_barrier(rank)?;
        } else {
            run.check_result(rank)?;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    part: u32,
    ranks: Ranks,
}

struct Run<'a> {
    spec: &'a Spec,
    programs: &'a [Program],
    matches: &'a Matches,
    in_place: bool,
    /// Steps that became complete, or free to start, and were not looked at since.
    ready: Vec<Place>,
    ranks: Vec<Rank>,
}

struct Rank {
    input: Vec<Option<Value>>,
    output: Vec<Option<Value>>,
    scratch: Vec<Option<Value>>,
    steps: Vec<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Steps that must still be complete before this one starts.
    waits_for: u32,
    complete: bool,
    followers: Vec<u32>,
    heard: Ranks,
}

impl<'a> Run<'a> {
    fn new(spec: &'a Spec, programs: &'a [Program], matches: &'a Matches, in_place: bool) -> Self {
        let mut run = Self {
            spec,
            programs,
            matches,
            in_place,
            ready: Vec::new(),
            ranks: Vec::new(),
        };
        for (rank, program) in (0..).zip(programs) {
            let steps = run.steps(rank, program);
            let given = |chunk| Value {
                part: spec.input_part(rank, chunk),
                ranks: Ranks::of(rank, rank + 1),
            };
            let input = (0..spec.input_chunks(rank, program.cut)).map(|chunk| Some(given(chunk)));
            let mut state = Rank {
                input: input.collect(),
                output: vec![None; spec.output_chunks(rank, program.cut) as usize],
                scratch: vec![None; program.scratch.len()],
                steps,
            };
            for chunk in 0..state.input.len() as u32 {
                if in_place && let Some(place) = spec.alias(rank, chunk) {
                    state.output[place as usize] = Some(given(chunk));
                }
            }
            run.ranks.push(state);
        }
        run
    }

    fn steps(&mut self, rank: u32, program: &Program) -> Vec<Progress> {
        let is_barrier = self.spec.collective == Collective::Barrier;
        let mut steps: Vec<_> = (0..program.steps.len())
            .map(|_| Progress::default())
            .collect();
        for (index, step) in (0..).zip(&program.steps) {
            for &after in &step.after {
                steps[after as usize].followers.push(index);
            }
            let progress = &mut steps[index as usize];
            progress.waits_for = step.after.len() as u32;
            if is_barrier {
                progress.heard = Ranks::of(rank, rank + 1);
            }
            if step.after.is_empty() {
                self.ready.push(Place { rank, step: index });
            }
        }
        steps
    }

    fn finish(&mut self) -> Result<(), Violation> {
        while let Some(place) = self.ready.pop() {
            self.visit(place)?;
        }
        for (rank, state) in self.ranks.iter().enumerate() {
            if let Some(step) = state.steps.iter().position(|step| !step.complete) {
                return Err(Violation::Deadlock { rank, step });
            }
        }
        Ok(())
    }

    /// Moves `place` on if it is free to.
    fn visit(&mut self, place: Place) -> Result<(), Violation> {
        if self.progress(place).waits_for > 0 || self.progress(place).complete {
            return Ok(());
        }
        let action = self.action(place);
        let Some(partner) = self.matches.partner(place) else {
            self.compute(place, action)?;
            self.complete(place);
            return Ok(());
        };
        if self.progress(partner).waits_for > 0 {
            return Ok(()); // the partner comes back here when it starts
        }
        if let Some(previous) = self.matches.previous_recv(place)
            && !self.progress(previous).complete
        {
            return Ok(()); // the message before this one comes back here
        }
        let (send, recv) = match action {
            Action::Send { .. } => (place, partner),
            _ => (partner, place),
        };
        self.transfer(send, recv)
    }

    /// A step without a partner.
    fn compute(&mut self, place: Place, action: &Action) -> Result<(), Violation> {
        match action {
            Action::Copy { from, to } => {
                let values = self.read(place, *from)?;
                self.write(place, *to, values);
            }
            Action::Reduce { inputs, to } => {
                let mut values = self.read(place, inputs[0])?;
                for &input in &inputs[1..] {
                    let others = self.read(place, input)?;
                    values = self.reduce(place, values, others)?;
                }
                self.write(place, *to, values);
            }
            other => unreachable!("has a partner: {other:?}"),
        }
        Ok(())
    }

    fn transfer(&mut self, send: Place, recv: Place) -> Result<(), Violation> {
        let incoming = match self.action(send) {
            Action::Send { from, .. } => self.read(send, *from)?,
            other => unreachable!("matched as a send: {other:?}"),
        };
        match *self.action(recv) {
            Action::Recv { to, .. } => self.write(recv, to, incoming),
            Action::RecvReduce {
                local,
                to,
                incoming_first,
                ..
            } => {
                let own = self.read(recv, local)?;
                let sum = if incoming_first {
                    self.reduce(recv, incoming, own)?
                } else {
                    self.reduce(recv, own, incoming)?
                };
                self.write(recv, to, sum);
            }
            ref other => unreachable!("matched as a receive: {other:?}"),
        }
        let heard = self.progress(send).heard.clone();
        let _may_be_news = self.progress_mut(recv).heard.join(&heard);
        self.complete(send);
        self.complete(recv);
        Ok(())
    }

    fn reduce(
        &self,
        place: Place,
        left: Vec<Value>,
        right: Vec<Value>,
    ) -> Result<Vec<Value>, Violation> {
        let (rank, step) = (place.rank as usize, place.step as usize);
        let mut sum = left;
        for (chunk, (value, other)) in (0..).zip(sum.iter_mut().zip(right)) {
            if value.part != other.part {
                return Err(Violation::MixesParts { rank, step, chunk });
            }
            if self.spec.in_order && !value.ranks.is_followed_by(&other.ranks) {
                return Err(Violation::OutOfOrder { rank, step, chunk });
            }
            if !value.ranks.join(&other.ranks) {
                return Err(Violation::Twice { rank, step, chunk });
            }
        }
        Ok(sum)
    }

    fn complete(&mut self, place: Place) {
        let progress = self.progress_mut(place);
        progress.complete = true;
        let heard = progress.heard.clone();
        let followers = std::mem::take(&mut progress.followers);
        for step in followers {
            let follower = Place {
                rank: place.rank,
                step,
            };
            let progress = self.progress_mut(follower);
            progress.waits_for -= 1;
            let _may_be_news = progress.heard.join(&heard);
            self.ready.push(follower);
        }
        self.ready.extend(self.matches.next_recv(place));
    }

    fn check_barrier(&self, rank: u32) -> Result<(), Violation> {
        let mut heard = Ranks::of(rank, rank + 1);
        for step in &self.ranks[rank as usize].steps {
            let _may_be_news = heard.join(&step.heard);
        }
        if heard == Ranks::of(0, self.spec.world) {
            return Ok(());
        }
        let rank = rank as usize;
        Err(Violation::LeavesEarly { rank })
    }

    fn check_result(&self, rank: u32) -> Result<(), Violation> {
        let Spec { world, root, .. } = *self.spec;
        for (chunk, value) in (0..).zip(&self.ranks[rank as usize].output) {
            let one = |rank| Ranks::of(rank, rank + 1);
            let (part, ranks) = match self.spec.collective {
                Collective::AllReduce | Collective::Reduce => (chunk, Ranks::of(0, world)),
                Collective::Broadcast => (chunk, one(root)),
                Collective::AllGather | Collective::AllGatherV => (chunk, one(chunk)),
                Collective::Gather | Collective::GatherV => (chunk, one(chunk)),
                Collective::ReduceScatter | Collective::ReduceScatterV => {
                    (rank, Ranks::of(0, world))
                }
                Collective::Scatter | Collective::ScatterV => (rank, one(root)),
                Collective::AllToAll | Collective::AllToAllV => (rank, one(chunk)),
                Collective::Scan => (chunk, Ranks::of(0, rank + 1)),
                Collective::Exscan if rank == 0 => continue,
                Collective::Exscan => (chunk, Ranks::of(0, rank)),
                other => panic!("{other} has no result"),
            };
            if *value != Some(Value { part, ranks }) {
                let rank = rank as usize;
                return Err(Violation::WrongResult { rank, chunk });
            }
        }
        Ok(())
    }

    fn read(&self, place: Place, slice: Slice) -> Result<Vec<Value>, Violation> {
        let state = &self.ranks[place.rank as usize];
        let mut values = Vec::with_capacity(slice.chunks as usize);
        for chunk in slice.range() {
            let alias = || self.spec.alias(place.rank, chunk).filter(|_| self.in_place);
            let value = match slice.buffer {
                Buffer::Input => match alias() {
                    Some(output) => &state.output[output as usize],
                    None => &state.input[chunk as usize],
                },
                Buffer::Output => &state.output[chunk as usize],
                Buffer::Scratch => &state.scratch[chunk as usize],
            };
            let Some(value) = value else {
                let (rank, step) = (place.rank as usize, place.step as usize);
                return Err(Violation::ReadUndefined { rank, step, chunk });
            };
            values.push(value.clone());
        }
        Ok(values)
    }

    fn write(&mut self, place: Place, slice: Slice, values: Vec<Value>) {
        let state = &mut self.ranks[place.rank as usize];
        let buffer = match slice.buffer {
            Buffer::Output => &mut state.output,
            Buffer::Scratch => &mut state.scratch,
            Buffer::Input => unreachable!("nothing writes the input"),
        };
        for (chunk, value) in slice.range().zip(values) {
            buffer[chunk as usize] = Some(value);
        }
    }

    fn action(&self, place: Place) -> &'a Action {
        &self.programs[place.rank as usize].steps[place.step as usize].action
    }

    fn progress(&self, place: Place) -> &Progress {
        &self.ranks[place.rank as usize].steps[place.step as usize]
    }

    fn progress_mut(&mut self, place: Place) -> &mut Progress {
        &mut self.ranks[place.rank as usize].steps[place.step as usize]
    }
}
