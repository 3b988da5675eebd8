//! Runs all programs on sets of ranks instead of numbers.
//!
//! A chunk's value is the set of ranks whose contribution it holds; to reduce is to join two sets,
//! which must be disjoint. Beside the values travels what each step has heard of: the ranks that had
//! arrived before it was complete, which is all that a barrier computes.

use super::{Matches, Place, Violation};
use crate::{Action, Buffer, Program, Slice};
use rlaunch_wire::Collective;

pub(super) fn check(
    collective: Collective,
    root: u32,
    programs: &[Program],
    matches: &Matches,
) -> Result<(), Violation> {
    let mut run = Run::new(collective, programs, matches);
    run.finish()?;
    for rank in 0..programs.len() {
        run.check_result(collective, root, rank)?;
    }
    Ok(())
}

/// Ranks, as bits.
type Set = Vec<u64>;

struct Run<'a> {
    programs: &'a [Program],
    matches: &'a Matches,
    /// Steps that became complete, or free to start, and were not looked at since.
    ready: Vec<Place>,
    ranks: Vec<Rank>,
    set_words: usize,
}

struct Rank {
    output: Vec<Set>,
    scratch: Vec<Set>,
    steps: Vec<Progress>,
}

struct Progress {
    /// Steps that must still be complete before this one starts.
    waits_for: u32,
    complete: bool,
    followers: Vec<u32>,
    heard: Set,
}

impl<'a> Run<'a> {
    fn new(collective: Collective, programs: &'a [Program], matches: &'a Matches) -> Self {
        let set_words = programs.len().div_ceil(64);
        let mut run = Self {
            programs,
            matches,
            ready: Vec::new(),
            ranks: Vec::new(),
            set_words,
        };
        for (rank, program) in (0..).zip(programs) {
            let own = run.set([rank]);
            let steps = program.steps.iter().map(|step| Progress {
                waits_for: step.after.len() as u32,
                complete: false,
                followers: Vec::new(),
                heard: own.clone(),
            });
            let mut steps: Vec<_> = steps.collect();
            for (index, step) in (0..).zip(&program.steps) {
                for &after in &step.after {
                    steps[after as usize].followers.push(index);
                }
                if step.after.is_empty() {
                    run.ready.push(Place { rank, step: index });
                }
            }
            let nothing = run.set([]);
            let given = |chunk| match collective {
                Collective::AllGather if chunk != rank => nothing.clone(),
                _ => own.clone(),
            };
            let output = (0..program.chunks).map(given).collect();
            let scratch = vec![nothing.clone(); program.chunks as usize];
            run.ranks.push(Rank {
                output,
                scratch,
                steps,
            });
        }
        run
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
            if let Action::Copy { from, to } = action {
                let values = self.read(place, from)?;
                self.write(place, to, values);
            }
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

    fn transfer(&mut self, send: Place, recv: Place) -> Result<(), Violation> {
        let incoming = match self.action(send) {
            Action::Send { from, .. } => self.read(send, from)?,
            other => unreachable!("matched as a send: {other:?}"),
        };
        match self.action(recv) {
            Action::Recv { to, .. } => self.write(recv, to, incoming),
            Action::RecvReduce { local, to, .. } => {
                let mut values = self.read(recv, local)?;
                for (chunk, (value, other)) in local.range().zip(values.iter_mut().zip(&incoming)) {
                    if value.iter().zip(other).any(|(a, b)| a & b != 0) {
                        let (rank, step) = (recv.rank as usize, recv.step as usize);
                        return Err(Violation::Twice { rank, step, chunk });
                    }
                    join(value, other);
                }
                self.write(recv, to, values);
            }
            other => unreachable!("matched as a receive: {other:?}"),
        }
        let heard = self.progress(send).heard.clone();
        join(&mut self.progress_mut(recv).heard, &heard);
        self.complete(send);
        self.complete(recv);
        Ok(())
    }

    fn complete(&mut self, place: Place) {
        let progress = self.progress_mut(place);
        progress.complete = true;
        let (heard, followers) = (progress.heard.clone(), progress.followers.clone());
        for step in followers {
            let follower = Place {
                rank: place.rank,
                step,
            };
            let progress = self.progress_mut(follower);
            progress.waits_for -= 1;
            join(&mut progress.heard, &heard);
            self.ready.push(follower);
        }
        self.ready.extend(self.matches.next_recv(place));
    }

    fn check_result(
        &self,
        collective: Collective,
        root: u32,
        rank: usize,
    ) -> Result<(), Violation> {
        let all = self.set(0..self.programs.len() as u32);
        let state = &self.ranks[rank];
        if collective == Collective::Barrier {
            let mut heard = self.set([rank as u32]);
            state
                .steps
                .iter()
                .for_each(|step| join(&mut heard, &step.heard));
            let left_early = heard != all;
            return if left_early {
                Err(Violation::LeavesEarly { rank })
            } else {
                Ok(())
            };
        }
        for (chunk, value) in (0..).zip(&state.output) {
            let expected = match collective {
                Collective::AllReduce => all.clone(),
                Collective::AllGather => self.set([chunk]),
                Collective::Broadcast => self.set([root]),
                Collective::ReduceScatter if chunk as usize == rank => all.clone(),
                Collective::ReduceScatter => continue,
                other => panic!("{other} is no collective"),
            };
            if *value != expected {
                return Err(Violation::WrongResult { rank, chunk });
            }
        }
        Ok(())
    }

    fn read(&self, place: Place, slice: Slice) -> Result<Vec<Set>, Violation> {
        let state = &self.ranks[place.rank as usize];
        let buffer = match slice.buffer {
            Buffer::Output => &state.output,
            Buffer::Scratch => &state.scratch,
        };
        let mut values = Vec::with_capacity(slice.chunks as usize);
        for chunk in slice.range() {
            let value = &buffer[chunk as usize];
            if value.iter().all(|word| *word == 0) {
                let (rank, step) = (place.rank as usize, place.step as usize);
                return Err(Violation::ReadUndefined { rank, step, chunk });
            }
            values.push(value.clone());
        }
        Ok(values)
    }

    fn write(&mut self, place: Place, slice: Slice, values: Vec<Set>) {
        let state = &mut self.ranks[place.rank as usize];
        let buffer = match slice.buffer {
            Buffer::Output => &mut state.output,
            Buffer::Scratch => &mut state.scratch,
        };
        for (chunk, value) in slice.range().zip(values) {
            buffer[chunk as usize] = value;
        }
    }

    fn set(&self, ranks: impl IntoIterator<Item = u32>) -> Set {
        let mut set = vec![0; self.set_words];
        for rank in ranks {
            set[rank as usize / 64] |= 1 << (rank % 64);
        }
        set
    }

    fn action(&self, place: Place) -> Action {
        self.programs[place.rank as usize].steps[place.step as usize].action
    }

    fn progress(&self, place: Place) -> &Progress {
        &self.ranks[place.rank as usize].steps[place.step as usize]
    }

    fn progress_mut(&mut self, place: Place) -> &mut Progress {
        &mut self.ranks[place.rank as usize].steps[place.step as usize]
    }
}

fn join(set: &mut Set, other: &Set) {
    for (word, other) in set.iter_mut().zip(other) {
        *word |= other;
    }
}
