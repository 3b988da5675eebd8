//! Runs a schedule's program over the connections.
//!
//! A long vector is cut in segments, and the program runs once for each. Per ordered pair of ranks
//! messages go in one order, which both sides derive from the same numbers ([`Order`]); that
//! order is as free of deadlock as the program itself. Everything that its dependencies allow runs at
//! once, so a rank sends the first part of one segment while it waits for the last part of the
//! segment before, and what was just reduced is sent on while it is still in the cache.
//!
//! Elements are reduced straight from where the transport has them, in the operand order that the
//! program says; floats of 16 and 8 bits are rounded once per hop, and once where many operands meet.
//! An average is made where all operands meet, else it is a sum that who calls finishes.

mod differences;
mod plan;
mod reducer;

use std::sync::Arc;

use rlaunch_device::NONTEMPORAL_WORTH_BYTES;
use rlaunch_schedule::{Action, Buffer, Layout, Order, Slice};
use rlaunch_transport::{Header, Incoming, Kind, Outgoing, Progress, Sink};
use rlaunch_wire::{DType, Descriptor};

use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};
pub(crate) use plan::Plan;
pub(crate) use reducer::Reducer;

/// What one call gives to run.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) plan: Arc<Plan>,
    pub(crate) layout: Layout,
    pub(crate) segment_bytes: usize,
    pub(crate) descriptor: Descriptor,
    /// Of the elements that travel.
    pub(crate) dtype: DType,
    /// Where the collective reduces.
    pub(crate) reducer: Option<Reducer>,
    /// World rank of each rank in the program.
    pub(crate) ranks: Arc<[u32]>,
    pub(crate) input: *const u8,
    pub(crate) output: *mut u8,
}

/// One collective call under way.
#[derive(Debug)]
pub(crate) struct Interpreter {
    task: Task,
    order: Order,
    scratch: Vec<u64>,
    lanes: Vec<Lane>,
    /// Steps without a peer that have segments to do, and the next segment of each.
    local: Vec<(u32, usize)>,
    /// Steps done, segment-major.
    done: Vec<bool>,
    remaining: usize,
    streaming: bool,
}

// SAFETY: the pointers are followed only in `poll`, for buffers that `new`'s caller vouched for,
// whichever thread polls.
unsafe impl Send for Interpreter {}

/// How far the messages with one peer are.
#[derive(Debug, Default)]
struct Lane {
    sent: usize,
    received: usize,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
    /// Where a payload waits that is to be reduced as a whole.
    whole: Vec<u64>,
}

impl Interpreter {
    /// # Safety
    /// The buffers are valid for the elements that the layout names until the operation is done or
    /// ended. They are apart, or in place as the collective allows; in an all_to_all they are apart.
    pub(crate) unsafe fn new(core: &mut Core, task: Task) -> Self {
        let (program, size) = (&task.plan.program, task.dtype.size_bytes());
        let segments = program.segments(&task.layout, size, task.segment_bytes);
        let scratch_bytes = task.layout.scratch_count(program, segments) * size;
        let mut scratch = std::mem::take(&mut core.spare.scratch);
        if scratch.capacity() * 8 < scratch_bytes {
            // Not grown in place: what it holds is of no use.
            scratch = Vec::with_capacity(scratch_bytes.div_ceil(8));
        }
        let remaining = segments * program.steps.len();
        let mut done = std::mem::take(&mut core.spare.done);
        done.clear();
        done.resize(remaining, false);
        let lanes = task.plan.lanes.iter().map(|_| Lane::default()).collect();
        let local = task.plan.local.iter().map(|step| (*step, 0)).collect();
        let longest = task.layout.longest_part(program.cut) * program.cut as usize * size;
        Self {
            order: Order { segments },
            scratch,
            lanes,
            local,
            done,
            remaining,
            streaming: longest >= NONTEMPORAL_WORTH_BYTES,
            task,
        }
    }

    /// Where a slice lies, and its elements.
    fn place(&mut self, slice: Slice, segment: usize) -> (*mut u8, usize) {
        let (program, segments) = (&self.task.plan.program, self.order.segments);
        let range = self.task.layout.elements(program, slice, segment, segments);
        let base = match slice.buffer {
            Buffer::Input => self.task.input.cast_mut(),
            Buffer::Output => self.task.output,
            Buffer::Scratch => self.scratch.as_mut_ptr().cast(),
        };
        let size = self.task.dtype.size_bytes();
        // wrapping_add: a buffer without elements may have no base.
        (base.wrapping_add(range.start * size), range.len())
    }

    fn is_ready(&self, segment: usize, step: u32) -> bool {
        let steps = &self.task.plan.program.steps;
        let base = segment * steps.len();
        let mut after = steps[step as usize].after.iter();
        after.all(|before| self.done[base + *before as usize])
    }

    fn complete(&mut self, segment: usize, step: u32) {
        let index = segment * self.task.plan.program.steps.len() + step as usize;
        debug_assert!(!self.done[index]);
        self.done[index] = true;
        self.remaining -= 1;
    }

    fn next_send(&self, lane: usize) -> Option<(usize, u32)> {
        let steps = &self.task.plan.lanes[lane].sends;
        self.order.at(steps, self.lanes[lane].sent)
    }

    fn next_recv(&self, lane: usize) -> Option<(usize, u32)> {
        let steps = &self.task.plan.lanes[lane].recvs;
        self.order.at(steps, self.lanes[lane].received)
    }

    fn peer(&self, lane: usize) -> u32 {
        self.task.ranks[self.task.plan.lanes[lane].peer as usize]
    }

    fn poll_send(&mut self, core: &mut Core, lane: usize) -> Result<bool, Error> {
        let mut moved = false;
        while let Some((segment, step)) = self.next_send(lane) {
            if self.lanes[lane].outgoing.is_none() {
                if !self.is_ready(segment, step) {
                    break;
                }
                self.lanes[lane].outgoing = Some(self.outgoing(segment, step));
            }
            let message = self.lanes[lane].outgoing.as_mut().expect("set above");
            let peer = self.task.ranks[self.task.plan.lanes[lane].peer as usize];
            // SAFETY: the payload lies in buffers that `new`'s caller vouched for; nothing writes
            // it before the step is done, by the program's dependencies.
            match unsafe { core.send_part(peer, message, &self.task.descriptor)? } {
                Progress::Done => {}
                progress => return Ok(moved || progress == Progress::Moved),
            }
            moved = true;
            self.lanes[lane].outgoing = None;
            self.lanes[lane].sent += 1;
            self.complete(segment, step);
        }
        Ok(moved)
    }

    fn outgoing(&mut self, segment: usize, step: u32) -> Outgoing {
        let Action::Send { from, .. } = self.task.plan.program.steps[step as usize].action else {
            unreachable!("lanes list sends apart");
        };
        let (payload, count) = self.place(from, segment);
        let header = Header {
            descriptor: self.task.descriptor,
            length_bytes: (count * self.task.dtype.size_bytes()) as u64,
            tag: 0,
            kind: Kind::Collective,
        };
        Outgoing::new(header, payload)
    }

    fn poll_recv(&mut self, core: &mut Core, lane: usize) -> Result<bool, Error> {
        let mut moved = false;
        while let Some((segment, step)) = self.next_recv(lane) {
            let peer = self.peer(lane);
            if self.lanes[lane].incoming.is_none() {
                if !self.is_ready(segment, step) {
                    break;
                }
                let arrived = core.arrival(peer, &self.task.descriptor);
                let Some(header) = arrived.map_err(|error| self.with_counts(core, error))? else {
                    break;
                };
                let sink = self.sink(core, lane, &header, segment, step)?;
                self.lanes[lane].incoming = Some(Incoming::new(sink));
                moved = true;
            }
            let incoming = self.lanes[lane].incoming.as_mut().expect("set above");
            // SAFETY: the sink lies in buffers that `new`'s caller vouched for, or in ours; the
            // length was compared with the header's; nothing else touches it by the program's
            // dependencies.
            match unsafe { core.take_part(peer, incoming, &self.task.descriptor)? } {
                Progress::Done => {}
                progress => return Ok(moved || progress == Progress::Moved),
            }
            moved = true;
            self.reduce_whole(lane, segment, step);
            self.lanes[lane].incoming = None;
            self.lanes[lane].received += 1;
            self.complete(segment, step);
        }
        Ok(moved)
    }

    /// Where a message goes, after its length was found to be the expected one.
    fn sink(
        &mut self,
        core: &Core,
        lane: usize,
        header: &Header,
        segment: usize,
        step: u32,
    ) -> Result<Sink, Error> {
        let plan = Arc::clone(&self.task.plan);
        let action = &plan.program.steps[step as usize].action;
        let to = action.writes().expect("a receive writes");
        let (to, count) = self.place(to, segment);
        let bytes = count * self.task.dtype.size_bytes();
        if header.length_bytes != bytes as u64 {
            return Err(self.other_length(core, self.peer(lane), header.length_bytes, count));
        }
        let streaming = self.streaming;
        let Action::RecvReduce {
            local,
            incoming_first,
            ..
        } = *action
        else {
            return Ok(Sink::Copy { to, streaming });
        };
        let (local, _) = self.place(local, segment);
        let reducer = self
            .task
            .reducer
            .as_ref()
            .expect("programs that reduce have one");
        Ok(reducer.sink(local, to, incoming_first).unwrap_or_else(|| {
            let whole = &mut self.lanes[lane].whole;
            whole.resize(bytes.div_ceil(8), 0);
            Sink::Copy {
                to: whole.as_mut_ptr().cast(),
                streaming: false,
            }
        }))
    }

    /// Reduces a payload that has come as a whole, where the operation asks for that.
    fn reduce_whole(&mut self, lane: usize, segment: usize, step: u32) {
        let Action::RecvReduce {
            local,
            to,
            incoming_first,
            ..
        } = self.task.plan.program.steps[step as usize].action
        else {
            return;
        };
        if self
            .task
            .reducer
            .as_ref()
            .is_none_or(|reducer| reducer.user.is_none())
        {
            return; // it was reduced as it came
        }
        let ((local, _), (to, count)) = (self.place(local, segment), self.place(to, segment));
        let whole = self.lanes[lane].whole.as_ptr().cast::<u8>();
        let local = local.cast_const();
        let (left, right) = if incoming_first {
            (whole, local)
        } else {
            (local, whole)
        };
        let reducer = self.task.reducer.as_ref().expect("looked at above");
        // SAFETY: all are of the step's length; `to` may be `local`, and the payload is apart.
        unsafe { reducer.combine(to, left, right, count) };
    }

    fn poll_local(&mut self) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.local.len() {
            let (step, mut segment) = self.local[at];
            if segment < self.order.segments && self.is_ready(segment, step) {
                self.compute(segment, step);
                self.complete(segment, step);
                segment += 1;
                moved = true;
            }
            if segment == self.order.segments {
                self.local.swap_remove(at);
            } else {
                self.local[at].1 = segment;
                at += 1;
            }
        }
        moved
    }

    fn compute(&mut self, segment: usize, step: u32) {
        let plan = Arc::clone(&self.task.plan);
        match &plan.program.steps[step as usize].action {
            Action::Copy { from, to } => {
                let ((from, _), (to, count)) =
                    (self.place(*from, segment), self.place(*to, segment));
                let bytes = count * self.task.dtype.size_bytes();
                if from != to && bytes > 0 {
                    // SAFETY: both lie in buffers that `new`'s caller vouched for, or the scratch.
                    unsafe { std::ptr::copy(from, to, bytes) };
                }
            }
            Action::Reduce { inputs, to } => {
                let place = |input: &Slice| self.place(*input, segment).0.cast_const();
                let inputs: Vec<*const u8> = inputs.iter().map(place).collect();
                let (to, count) = self.place(*to, segment);
                let reducer = self.task.reducer.as_ref();
                let reducer = reducer.expect("programs that reduce have one");
                // SAFETY: as above, and all are of the step's length.
                unsafe { reducer.combine_all(to, &inputs, count) };
            }
            other => unreachable!("has a peer: {other:?}"),
        }
    }
}

impl Operation for Interpreter {
    fn call(&self) -> Descriptor {
        self.task.descriptor
    }

    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let mut moved = false;
        for lane in 0..self.lanes.len() {
            moved |= self.poll_send(core, lane)?;
            moved |= self.poll_recv(core, lane)?;
        }
        if !self.local.is_empty() {
            moved |= self.poll_local();
        }
        Ok(match (self.remaining, moved) {
            (0, _) => Progress::Done,
            (_, true) => Progress::Moved,
            (_, false) => Progress::Idle,
        })
    }

    fn awaited(&self, _core: &Core) -> Vec<Awaited> {
        let mut awaited = Vec::new();
        for (lane, state) in self.lanes.iter().enumerate() {
            let rank = self.peer(lane);
            let is_open = |next: Option<(usize, u32)>, is_begun: bool| {
                next.is_some_and(|(segment, step)| is_begun || self.is_ready(segment, step))
            };
            if is_open(self.next_recv(lane), state.incoming.is_some()) {
                awaited.push(Awaited {
                    rank,
                    to_send: false,
                });
            }
            if is_open(self.next_send(lane), state.outgoing.is_some()) {
                awaited.push(Awaited {
                    rank,
                    to_send: true,
                });
            }
        }
        awaited
    }

    /// Gives back what others can use.
    fn end(&mut self, core: &mut Core) {
        for lane in 0..self.lanes.len() {
            let peer = self.peer(lane);
            let state = &mut self.lanes[lane];
            let (outgoing, incoming) = (state.outgoing.take(), state.incoming.take());
            core.give_up(peer, &self.task.descriptor, outgoing, incoming);
        }
        core.spare.done = std::mem::take(&mut self.done);
        core.spare.scratch = std::mem::take(&mut self.scratch);
    }
}
