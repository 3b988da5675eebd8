//! The event loop.

use crate::{Network, Random};
use rlaunch_schedule::checker::{Matches, Place};
use rlaunch_schedule::{Action, Buffer, Layout, Order, Program, Slice, Violation};
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

/// What one rank brings into a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub layout: Layout,
    pub input: Vec<i64>,
    /// What lies in the output before the call.
    pub output: Vec<i64>,
}

/// How the call is made; equal for all ranks.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    pub op: fn(i64, i64) -> i64,
    /// Segments that the programs run in.
    pub segments: usize,
    /// The input lies in the output, as far as the collective says so.
    pub in_place: bool,
}

/// Runs the programs of all ranks. `Scratch` begins with numbers that no correct program reads.
///
/// # Panics
/// If there are not as many ranks as programs, or an index in a program is out of range (the
/// checker finds those).
pub fn run(
    programs: &[Program],
    given: Vec<Given>,
    manner: Manner,
    network: &Network,
    settings: &Settings,
) -> Result<Outcome, Stuck> {
    assert_eq!(programs.len(), given.len(), "each rank has a program");
    let order = Order {
        segments: manner.segments,
    };
    let (programs, segments): (Vec<_>, Vec<_>) =
        programs.iter().map(|program| order.unroll(program)).unzip();
    let matches = Matches::of(&programs)?;
    let setting = Setting {
        programs: &programs,
        segments: &segments,
        matches: &matches,
        manner,
        network,
        settings,
    };
    let mut simulation = Simulation::new(setting, given);
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

/// What stays.
#[derive(Clone, Copy)]
struct Setting<'a> {
    programs: &'a [Program],
    /// The segment of each step of each program.
    segments: &'a [Vec<usize>],
    matches: &'a Matches,
    manner: Manner,
    network: &'a Network,
    settings: &'a Settings,
}

struct Simulation<'a> {
    setting: Setting<'a>,
    random: Random,
    now_ns: u64,
    /// By time; of one time in random order.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    ranks: Vec<Rank>,
    traffic: BTreeMap<(u32, u32), Traffic>,
}

struct Rank {
    layout: Layout,
    input: Vec<i64>,
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
    followers: Vec<u32>,
    /// What a buffered send took with it, and when it is there.
    buffered: Option<(Vec<i64>, u64)>,
}

impl<'a> Simulation<'a> {
    fn new(setting: Setting<'a>, given: Vec<Given>) -> Self {
        let mut simulation = Self {
            setting,
            random: Random::new(setting.settings.seed),
            now_ns: 0,
            events: BinaryHeap::new(),
            ranks: Vec::new(),
            traffic: BTreeMap::new(),
        };
        for ((rank, program), given) in (0..).zip(setting.programs).zip(given) {
            let count = given.layout.scratch_count(program, setting.manner.segments);
            simulation.ranks.push(Rank {
                layout: given.layout,
                input: given.input,
                output: given.output,
                scratch: (0..count)
                    .map(|_| simulation.random.draw() as i64)
                    .collect(),
                steps: progress(program),
            });
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
        let jitter_ns = self.random.up_to(self.setting.settings.jitter_ns);
        let tie = if self.setting.settings.jitter_ns > 0 {
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
                let values = self.buffer(place, *from).to_vec();
                self.buffer(place, *to).copy_from_slice(&values);
                self.complete(place);
            }
            Action::Reduce { inputs, to } => {
                let mut sum = self.buffer(place, inputs[0]).to_vec();
                for &input in &inputs[1..] {
                    let op = self.setting.manner.op;
                    let operands = sum.iter_mut().zip(self.buffer(place, input).iter());
                    operands.for_each(|(sum, value)| *sum = op(*sum, *value));
                }
                self.buffer(place, *to).copy_from_slice(&sum);
                self.complete(place);
            }
            Action::Send { to, from } => self.start_send(place, *to, *from),
            Action::Recv { .. } | Action::RecvReduce { .. } => self.begin_transfer(place),
        }
    }

    fn start_send(&mut self, place: Place, to: u32, from: Slice) {
        let bytes = self.buffer(place, from).len() as u64 * ELEMENT_BYTES;
        let traffic = self.traffic.entry((place.rank, to)).or_default();
        traffic.messages += 1;
        traffic.bytes += bytes;
        let buffered_bytes_max = self.setting.settings.buffered_bytes_max;
        let may_buffer = bytes <= buffered_bytes_max && buffered_bytes_max > 0;
        if may_buffer && self.random.up_to(1) == 1 {
            let link = self.setting.network.link(place.rank, to);
            let arrival_ns = self.now_ns + link.latency_ns + link.duration_ns(bytes);
            let values = self.buffer(place, from).to_vec();
            self.progress(place).buffered = Some((values, arrival_ns));
            self.complete(place);
        }
        self.begin_transfer(self.partner(place));
    }

    /// Sets the message of `recv` on its way if both sides started and it is the next of its pair.
    fn begin_transfer(&mut self, recv: Place) {
        let send = self.partner(recv);
        let previous_open = match self.setting.matches.previous_recv(recv) {
            Some(previous) => !self.progress(previous).complete,
            None => false,
        };
        let free = self.progress(recv).started && self.progress(send).started && !previous_open;
        if !free || std::mem::replace(&mut self.progress(recv).arriving, true) {
            return;
        }
        let link = self.setting.network.link(send.rank, recv.rank);
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
        self.setting
            .network
            .link(send.rank, recv.rank)
            .duration_ns(bytes)
            / u64::from(PIECES)
    }

    fn piece(&mut self, recv: Place, piece: u32) {
        let send = self.partner(recv);
        let Action::Send { from, .. } = *self.action(send) else {
            unreachable!("a receive is matched with a send")
        };
        let range = piece_range(self.buffer(send, from).len(), piece);
        let buffered = self.progress(send).buffered.as_ref();
        let buffered = buffered.map(|(values, _)| values[range.clone()].to_vec());
        let mut incoming =
            buffered.unwrap_or_else(|| self.buffer(send, from)[range.clone()].to_vec());
        let action = self.action(recv);
        if let Action::RecvReduce {
            local,
            incoming_first,
            ..
        } = *action
        {
            let op = self.setting.manner.op;
            let local = &self.buffer(recv, local)[range.clone()];
            for (value, own) in incoming.iter_mut().zip(local) {
                *value = if incoming_first {
                    op(*value, *own)
                } else {
                    op(*own, *value)
                };
            }
        }
        let to = action.writes().expect("a receive writes");
        self.buffer(recv, to)[range].copy_from_slice(&incoming);

        if piece + 1 < PIECES {
            let is_buffered = self.progress(send).buffered.is_some();
            let piece_ns = if is_buffered { 0 } else { self.piece_ns(recv) };
            let piece = piece + 1;
            self.schedule(self.now_ns + piece_ns, Event::Piece { recv, piece });
            return;
        }
        self.complete(recv);
        if self.progress(send).buffered.take().is_none() {
            self.complete(send);
        }
        if let Some(next) = self.setting.matches.next_recv(recv) {
            self.begin_transfer(next);
        }
    }

    fn complete(&mut self, place: Place) {
        let progress = self.progress(place);
        progress.complete = true;
        for step in std::mem::take(&mut progress.followers) {
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
        let (programs, in_place) = (self.setting.programs, self.setting.manner.in_place);
        let result = |(rank, program): (Rank, &Program)| match block_in_input(program) {
            Some(chunk) if in_place => {
                let block = rank.layout.elements(program, Slice::input(chunk), 0, 1);
                let place = rank.layout.elements(program, Slice::output(0), 0, 1);
                let mut output = rank.output;
                output[place].copy_from_slice(&rank.input[block]);
                output
            }
            _ => rank.output,
        };
        let outputs = self.ranks.into_iter().zip(programs).map(result).collect();
        Ok(Outcome {
            outputs,
            time_ns: self.now_ns,
            traffic: self.traffic,
        })
    }

    fn partner(&self, place: Place) -> Place {
        let partner = self.setting.matches.partner(place);
        partner.expect("sends and receives were matched")
    }

    fn action(&self, place: Place) -> &'a Action {
        &self.setting.programs[place.rank as usize].steps[place.step as usize].action
    }

    fn progress(&mut self, place: Place) -> &mut Progress {
        &mut self.ranks[place.rank as usize].steps[place.step as usize]
    }

    /// The elements of a slice; in place, the input's are where the output has them.
    fn buffer(&mut self, place: Place, slice: Slice) -> &mut [i64] {
        let program = &self.setting.programs[place.rank as usize];
        let segment = self.setting.segments[place.rank as usize][place.step as usize];
        let segments = self.setting.manner.segments;
        let rank = &mut self.ranks[place.rank as usize];
        let slice = match slice.buffer {
            Buffer::Input | Buffer::Output if self.setting.manner.in_place => {
                in_place(program, slice)
            }
            _ => slice,
        };
        let range = rank.layout.elements(program, slice, segment, segments);
        match slice.buffer {
            Buffer::Input => &mut rank.input[range],
            Buffer::Output => &mut rank.output[range],
            Buffer::Scratch => &mut rank.scratch[range],
        }
    }
}

/// The slice that a slice is when the call is in place: one block lies in the many.
fn in_place(program: &Program, slice: Slice) -> Slice {
    let alias = program.spec.alias(program.rank, slice.first_chunk);
    match (slice.buffer, block_in_input(program), alias) {
        (Buffer::Output, Some(chunk), _) => Slice::input(chunk),
        (Buffer::Input, None, Some(chunk)) => Slice::new(Buffer::Output, chunk, slice.chunks),
        _ => slice,
    }
}

/// Where the output is one block of several that the input has: the block.
fn block_in_input(program: &Program) -> Option<u32> {
    let (spec, rank) = (&program.spec, program.rank);
    let is_one_of_many = spec.input_chunks(rank, 1) > 1 && spec.output_chunks(rank, 1) == 1;
    (is_one_of_many && spec.alias(rank, rank).is_some()).then_some(rank)
}

fn progress(program: &Program) -> Vec<Progress> {
    let mut steps: Vec<Progress> = Vec::with_capacity(program.steps.len());
    for (index, step) in (0..).zip(&program.steps) {
        for &after in &step.after {
            steps[after as usize].followers.push(index);
        }
        steps.push(Progress {
            waits_for: step.after.len(),
            ..Progress::default()
        });
    }
    steps
}

fn piece_range(count: usize, piece: u32) -> Range<usize> {
    rlaunch_schedule::chunk_range(count, PIECES, piece)
}
