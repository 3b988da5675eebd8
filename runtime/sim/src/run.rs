//! The event loop.

use crate::{Network, Random};
use rlaunch_schedule::checker::{Matches, Place};
use rlaunch_schedule::{Action, Buffer, Program, Slice, Violation};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Pieces of a message: enough that steps interleave, few enough to be fast.
const PIECES: u32 = 3;

const ELEMENT_BYTES: u64 = size_of::<i64>() as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub seed: u64,
    /// The longest time that a step or a piece is put off at random.
    pub jitter_ns: u64,
    /// Sends of up to so many bytes are buffered, each with a chance of one half.
    pub buffered_bytes_max: u64,
}

impl Settings {
    /// Nothing random, every send lasts until it is received.
    pub fn calm() -> Self {
        Self {
            seed: 0,
            jitter_ns: 0,
            buffered_bytes_max: 0,
        }
    }

    /// Delays longer than a message takes, and half of all sends buffered.
    pub fn wild(seed: u64) -> Self {
        Self {
            seed,
            jitter_ns: 50_000,
            buffered_bytes_max: u64::MAX,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub messages: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Each rank's `Output` at the end.
    pub outputs: Vec<Vec<i64>>,
    /// When the last rank was done.
    pub time_ns: u64,
    /// By (from, to).
    pub traffic: BTreeMap<(u32, u32), Traffic>,
}

/// Why a run has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    #[error("rank {rank} step {step} waits for ever")]
    Deadlock { rank: usize, step: usize },
    #[error("messages do not match: {0}")]
    Unmatched(#[from] Violation),
}

/// Runs the programs of all ranks on `outputs`, their vectors (of one length), with wrapping sums.
/// `Scratch` begins with numbers that no correct program reads.
///
/// # Panics
/// If there are not as many vectors as programs, or an index in a program is out of range (the
/// checker finds those).
pub fn run(
    programs: &[Program],
    outputs: Vec<Vec<i64>>,
    network: &Network,
    settings: &Settings,
) -> Result<Outcome, Stuck> {
    assert_eq!(
        programs.len(),
        outputs.len(),
        "each rank has a program and a vector"
    );
    let matches = Matches::of(programs)?;
    let mut simulation = Simulation::new(programs, &matches, outputs, network, settings);
    while let Some(Reverse((time_ns, _, event))) = simulation.events.pop() {
        simulation.now_ns = time_ns;
        match event {
            Event::Start(place) => simulation.start(place),
            Event::Piece { recv, piece } => simulation.piece(recv, piece),
        }
    }
    simulation.outcome()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start(Place),
    Piece { recv: Place, piece: u32 },
}

struct Simulation<'a> {
    programs: &'a [Program],
    matches: &'a Matches,
    network: &'a Network,
    settings: &'a Settings,
    random: Random,
    now_ns: u64,
    /// By time; of one time in random order.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    ranks: Vec<Rank>,
    traffic: BTreeMap<(u32, u32), Traffic>,
}

struct Rank {
    output: Vec<i64>,
    scratch: Vec<i64>,
    steps: Vec<Progress>,
}

#[derive(Debug, Clone, Default)]
struct Progress {
    waits_for: usize,
    started: bool,
    /// The message of this receive is under way.
    arriving: bool,
    complete: bool,
    /// What a buffered send took with it, and when it is there.
    buffered: Option<(Vec<i64>, u64)>,
}

impl<'a> Simulation<'a> {
    fn new(
        programs: &'a [Program],
        matches: &'a Matches,
        outputs: Vec<Vec<i64>>,
        network: &'a Network,
        settings: &'a Settings,
    ) -> Self {
        let mut random = Random::new(settings.seed);
        let rank = |(program, output): (&Program, Vec<i64>)| Rank {
            scratch: output.iter().map(|_| random.draw() as i64).collect(),
            output,
            steps: program
                .steps
                .iter()
                .map(|step| Progress {
                    waits_for: step.after.len(),
                    ..Progress::default()
                })
                .collect(),
        };
        let ranks = programs.iter().zip(outputs).map(rank).collect();
        let mut simulation = Self {
            programs,
            matches,
            network,
            settings,
            random,
            now_ns: 0,
            events: BinaryHeap::new(),
            ranks,
            traffic: BTreeMap::new(),
        };
        for (rank, program) in (0..).zip(programs) {
            for (step, _) in (0..)
                .zip(&program.steps)
                .filter(|(_, step)| step.after.is_empty())
            {
                simulation.schedule(0, Event::Start(Place { rank, step }));
            }
        }
        simulation
    }

    fn schedule(&mut self, time_ns: u64, event: Event) {
        let jitter_ns = self.random.up_to(self.settings.jitter_ns);
        let tie = if self.settings.jitter_ns > 0 {
            self.random.draw()
        } else {
            0
        };
        self.events.push(Reverse((time_ns + jitter_ns, tie, event)));
    }

    fn start(&mut self, place: Place) {
        self.progress(place).started = true;
        match self.action(place) {
            Action::Copy { from, to } => {
                let values = self.buffer(place, from).to_vec();
                self.buffer(place, to).copy_from_slice(&values);
                self.complete(place);
            }
            Action::Send { to, from } => {
                let bytes = self.buffer(place, from).len() as u64 * ELEMENT_BYTES;
                let traffic = self.traffic.entry((place.rank, to)).or_default();
                traffic.messages += 1;
                traffic.bytes += bytes;
                let may_buffer = bytes <= self.settings.buffered_bytes_max
                    && self.settings.buffered_bytes_max > 0;
                if may_buffer && self.random.up_to(1) == 1 {
                    let link = self.network.link(place.rank, to);
                    let arrival_ns = self.now_ns + link.latency_ns + link.duration_ns(bytes);
                    let values = self.buffer(place, from).to_vec();
                    self.progress(place).buffered = Some((values, arrival_ns));
                    self.complete(place);
                }
                self.begin_transfer(self.partner(place));
            }
            Action::Recv { .. } | Action::RecvReduce { .. } => self.begin_transfer(place),
        }
    }

    /// Sets the message of `recv` on its way if both sides started and it is the next of its pair.
    fn begin_transfer(&mut self, recv: Place) {
        let send = self.partner(recv);
        let previous_open = match self.matches.previous_recv(recv) {
            Some(previous) => !self.progress(previous).complete,
            None => false,
        };
        let free = self.progress(recv).started && self.progress(send).started && !previous_open;
        if !free || std::mem::replace(&mut self.progress(recv).arriving, true) {
            return;
        }
        let link = self.network.link(send.rank, recv.rank);
        let first_piece_ns = match self.progress(send).buffered {
            Some((_, arrival_ns)) => arrival_ns.max(self.now_ns),
            None => self.now_ns + link.latency_ns + self.piece_ns(recv),
        };
        self.schedule(first_piece_ns, Event::Piece { recv, piece: 0 });
    }

    /// Time between pieces that travel while the sender waits.
    fn piece_ns(&mut self, recv: Place) -> u64 {
        let send = self.partner(recv);
        let slice = self.action(recv).writes().expect("a receive writes");
        let bytes = self.buffer(recv, slice).len() as u64 * ELEMENT_BYTES;
        self.network.link(send.rank, recv.rank).duration_ns(bytes) / u64::from(PIECES)
    }

    fn piece(&mut self, recv: Place, piece: u32) {
        let send = self.partner(recv);
        let Action::Send { from, .. } = self.action(send) else {
            unreachable!("a receive is matched with a send")
        };
        let range = piece_range(self.buffer(send, from).len(), piece);
        let buffered = self.progress(send).buffered.as_ref();
        let buffered = buffered.map(|(values, _)| values[range.clone()].to_vec());
        let mut incoming =
            buffered.unwrap_or_else(|| self.buffer(send, from)[range.clone()].to_vec());
        let to = match self.action(recv) {
            Action::RecvReduce { local, to, .. } => {
                let local = &self.buffer(recv, local)[range.clone()];
                for (value, own) in incoming.iter_mut().zip(local) {
                    *value = own.wrapping_add(*value);
                }
                to
            }
            other => other.writes().expect("a receive writes"),
        };
        self.buffer(recv, to)[range].copy_from_slice(&incoming);

        if piece + 1 < PIECES {
            let buffered = self.progress(send).buffered.is_some();
            let piece_ns = if buffered { 0 } else { self.piece_ns(recv) };
            self.schedule(
                self.now_ns + piece_ns,
                Event::Piece {
                    recv,
                    piece: piece + 1,
                },
            );
            return;
        }
        self.complete(recv);
        if self.progress(send).buffered.take().is_none() {
            self.complete(send);
        }
        if let Some(next) = self.matches.next_recv(recv) {
            self.begin_transfer(next);
        }
    }

    fn complete(&mut self, place: Place) {
        self.progress(place).complete = true;
        let programs = self.programs;
        let steps = &programs[place.rank as usize].steps;
        for (step, follower) in (0..).zip(steps).skip(place.step as usize + 1) {
            if !follower.after.contains(&place.step) {
                continue;
            }
            let follower = Place {
                rank: place.rank,
                step,
            };
            self.progress(follower).waits_for -= 1;
            if self.progress(follower).waits_for == 0 {
                self.schedule(self.now_ns, Event::Start(follower));
            }
        }
    }

    fn outcome(self) -> Result<Outcome, Stuck> {
        for (rank, state) in self.ranks.iter().enumerate() {
            if let Some(step) = state.steps.iter().position(|step| !step.complete) {
                return Err(Stuck::Deadlock { rank, step });
            }
        }
        let outputs = self.ranks.into_iter().map(|rank| rank.output).collect();
        Ok(Outcome {
            outputs,
            time_ns: self.now_ns,
            traffic: self.traffic,
        })
    }

    fn partner(&self, place: Place) -> Place {
        self.matches
            .partner(place)
            .expect("sends and receives were matched")
    }

    fn action(&self, place: Place) -> Action {
        self.programs[place.rank as usize].steps[place.step as usize].action
    }

    fn progress(&mut self, place: Place) -> &mut Progress {
        &mut self.ranks[place.rank as usize].steps[place.step as usize]
    }

    fn buffer(&mut self, place: Place, slice: Slice) -> &mut [i64] {
        let rank = &mut self.ranks[place.rank as usize];
        let range = self.programs[place.rank as usize].elements(slice, rank.output.len());
        match slice.buffer {
            Buffer::Output => &mut rank.output[range],
            Buffer::Scratch => &mut rank.scratch[range],
        }
    }
}

fn piece_range(count: usize, piece: u32) -> Range<usize> {
    rlaunch_schedule::chunk_range(count, PIECES, piece)
}
