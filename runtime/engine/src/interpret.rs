//! Runs a schedule's [`Program`] over the connections.
//!
//! A long vector is cut in segments, and the program runs once for each: of every chunk the
//! segment takes an equal piece. Per ordered pair of ranks messages go in the order (segment,
//! step), which both sides derive from the same numbers; that order alone is as free of deadlock
//! as the program itself. Everything that its dependencies allow runs at once, so a rank sends the
//! first part of one segment while it waits for the last part of the segment before, and what was
//! just reduced is sent on while it is still in the cache.

use std::sync::Arc;

use rlaunch_device::NONTEMPORAL_WORTH_BYTES;
use rlaunch_schedule::{Action, Buffer, Program, Slice, chunk_range};
use rlaunch_transport::{Header, Incoming, Kind, Outgoing, Progress, Sink};
use rlaunch_wire::{Descriptor, Op};

use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};

/// Bytes of one message: a quarter of the shared ring, so that several are under way, and small
/// enough to stay in an L2 cache with what they are reduced with. Of 32 to 256 KiB, measured with
/// two ranks from 1 to 64 MiB, shared memory liked 128 best at the long end and did not care
/// elsewhere; TCP would take 256.
const SEGMENT_BYTES: usize = 128 * 1024;

/// One collective call under way.
#[derive(Debug)]
pub(crate) struct Interpreter {
    program: Arc<Program>,
    descriptor: Descriptor,
    count: usize,
    output: *mut u8,
    scratch: *mut u8,
    segments: usize,
    lanes: Vec<Lane>,
    copies: Vec<u32>,
    copy_at: usize,
    /// Steps done, segment-major.
    done: Vec<bool>,
    remaining: usize,
    streaming: bool,
}

/// The messages with one peer, each direction in its order.
#[derive(Debug, Default)]
struct Lane {
    peer: u32,
    sends: Vec<u32>,
    recvs: Vec<u32>,
    /// Messages completed: segment times the number a segment has, and place in it.
    sent: usize,
    received: usize,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
}

impl Interpreter {
    /// `count` elements lie at `output`; `descriptor` is the call's.
    ///
    /// # Safety
    /// `output` is valid for reads and writes of `count` elements until the operation is done or
    /// dropped.
    pub(crate) unsafe fn new(
        core: &mut Core,
        program: Arc<Program>,
        descriptor: Descriptor,
        output: *mut u8,
        count: usize,
    ) -> Self {
        let bytes = count * descriptor.dtype.size_bytes();
        let scratch = if program.needs_scratch {
            core.scratch(bytes)
        } else {
            std::ptr::null_mut()
        };
        let segments = segments(&program, bytes);
        let remaining = segments * program.steps.len();
        let mut done = std::mem::take(&mut core.done);
        done.clear();
        done.resize(remaining, false);
        let (lanes, copies) = lanes(&program);
        Self {
            program,
            descriptor,
            count,
            output,
            scratch,
            segments,
            lanes,
            copies,
            copy_at: 0,
            done,
            remaining,
            streaming: bytes >= NONTEMPORAL_WORTH_BYTES,
        }
    }

    /// Gives what is reused back.
    pub(crate) fn end(self, core: &mut Core) {
        core.done = self.done;
    }

    fn place(&self, slice: Slice, segment: usize) -> (*mut u8, usize) {
        let range = if self.segments == 1 {
            self.program.elements(slice, self.count)
        } else {
            // One chunk, of which this segment takes its piece.
            let chunk = chunk_range(self.count, self.program.chunks, slice.first_chunk);
            let piece = chunk_range(chunk.len(), self.segments as u32, segment as u32);
            chunk.start + piece.start..chunk.start + piece.end
        };
        let base = match slice.buffer {
            Buffer::Output => self.output,
            Buffer::Scratch => self.scratch,
        };
        let size = self.descriptor.dtype.size_bytes();
        // wrapping_add: an empty slice of a program without scratch has no base.
        (base.wrapping_add(range.start * size), range.len() * size)
    }

    fn is_ready(&self, segment: usize, step: u32) -> bool {
        let base = segment * self.program.steps.len();
        self.program.steps[step as usize]
            .after
            .iter()
            .all(|before| self.done[base + *before as usize])
    }

    fn complete(&mut self, segment: usize, step: u32) {
        let index = segment * self.program.steps.len() + step as usize;
        debug_assert!(!self.done[index]);
        self.done[index] = true;
        self.remaining -= 1;
    }

    /// The next message of a direction: its segment and step.
    fn next(&self, steps: &[u32], completed: usize) -> Option<(usize, u32)> {
        if steps.is_empty() || completed == steps.len() * self.segments {
            return None;
        }
        Some((completed / steps.len(), steps[completed % steps.len()]))
    }

    fn poll_send(&mut self, core: &mut Core, lane: usize) -> Result<bool, Error> {
        let mut moved = false;
        while let Some((segment, step)) = self.next(&self.lanes[lane].sends, self.lanes[lane].sent)
        {
            let peer = self.lanes[lane].peer;
            if self.lanes[lane].outgoing.is_none() {
                let during = &self.descriptor;
                if !self.is_ready(segment, step)
                    || (!core.peers[peer as usize].outbox.is_empty()
                        && !core.flush_outbox(peer, during)?)
                {
                    break;
                }
                let Action::Send { from, .. } = self.program.steps[step as usize].action else {
                    unreachable!("lanes list sends apart");
                };
                let (payload, length) = self.place(from, segment);
                let header = Header {
                    descriptor: self.descriptor,
                    length_bytes: length as u64,
                    tag: 0,
                    kind: Kind::Collective,
                };
                self.lanes[lane].outgoing = Some(Outgoing::new(header, payload));
            }
            let message = self.lanes[lane].outgoing.as_mut().expect("set above");
            let connection = core.peers[peer as usize].connection.as_mut();
            let connection = connection.expect("programs name only other ranks");
            // SAFETY: the payload lies in buffers that `new`'s caller vouched for; nothing writes
            // it before the step is done, by the program's dependencies.
            match unsafe { connection.poll_send(message) } {
                Ok(Progress::Done) => {}
                Ok(progress) => return Ok(moved || progress == Progress::Moved),
                Err(error) => return Err(self.explain(core, peer, error)),
            }
            moved = true;
            self.lanes[lane].outgoing = None;
            self.lanes[lane].sent += 1;
            self.complete(segment, step);
        }
        Ok(moved)
    }

    fn poll_recv(&mut self, core: &mut Core, lane: usize) -> Result<bool, Error> {
        let mut moved = false;
        while let Some((segment, step)) =
            self.next(&self.lanes[lane].recvs, self.lanes[lane].received)
        {
            let peer = self.lanes[lane].peer;
            if self.lanes[lane].incoming.is_none() {
                if !self.is_ready(segment, step) {
                    break;
                }
                let Some(header) = core.next_header(peer, &self.descriptor)? else {
                    break;
                };
                let sink = self.sink(core, peer, &header, segment, step)?;
                self.lanes[lane].incoming = Some(Incoming::new(sink));
                moved = true;
            }
            let incoming = self.lanes[lane].incoming.as_mut().expect("set above");
            let connection = core.peers[peer as usize].connection.as_mut();
            let connection = connection.expect("programs name only other ranks");
            // SAFETY: the sink lies in buffers that `new`'s caller vouched for; the length was
            // compared with the header's; nothing else touches it by the program's dependencies.
            match unsafe { connection.poll_payload(incoming) } {
                Ok(Progress::Done) => {}
                Ok(progress) => return Ok(moved || progress == Progress::Moved),
                Err(error) => return Err(self.explain(core, peer, error)),
            }
            moved = true;
            self.lanes[lane].incoming = None;
            self.lanes[lane].received += 1;
            self.complete(segment, step);
        }
        Ok(moved)
    }

    /// Where this message goes, after it was found to be the expected one.
    fn sink(
        &self,
        core: &Core,
        peer: u32,
        header: &Header,
        segment: usize,
        step: u32,
    ) -> Result<Sink, Error> {
        if header.kind != Kind::Collective || header.descriptor != self.descriptor {
            return Err(core.mismatch(self.descriptor, peer, header.descriptor));
        }
        let (sink, length) = match self.program.steps[step as usize].action {
            Action::Recv { to, .. } => {
                let (to, length) = self.place(to, segment);
                (
                    Sink::Copy {
                        to,
                        streaming: self.streaming,
                    },
                    length,
                )
            }
            Action::RecvReduce { local, to, .. } => {
                let ((local, _), (to, length)) =
                    (self.place(local, segment), self.place(to, segment));
                let op = self.descriptor.op.unwrap_or(Op::Sum);
                (
                    Sink::Reduce {
                        dtype: self.descriptor.dtype,
                        op,
                        local,
                        to,
                    },
                    length,
                )
            }
            Action::Send { .. } | Action::Copy { .. } => unreachable!("lanes list receives apart"),
        };
        if header.length_bytes != length as u64 {
            return Err(Error::Connection {
                peer: core.identity(peer),
                cause: format!(
                    "a part of {} bytes where {length} are due; do all ranks set the same \
                     RLAUNCH_ALGO?",
                    header.length_bytes
                ),
            });
        }
        Ok(sink)
    }

    fn poll_copies(&mut self) -> bool {
        let mut moved = false;
        while let Some((segment, step)) = self.next(&self.copies, self.copy_at) {
            if !self.is_ready(segment, step) {
                break;
            }
            let Action::Copy { from, to } = self.program.steps[step as usize].action else {
                unreachable!("copies are listed apart");
            };
            let ((from, _), (to, length)) = (self.place(from, segment), self.place(to, segment));
            // SAFETY: both lie in buffers that `new`'s caller vouched for (or the scratch).
            unsafe { std::ptr::copy(from, to, length) };
            self.copy_at += 1;
            self.complete(segment, step);
            moved = true;
        }
        moved
    }

    fn explain(
        &self,
        core: &mut Core,
        peer: u32,
        error: rlaunch_transport::ConnectionError,
    ) -> Error {
        core.explain(peer, error, &self.descriptor)
    }
}

impl Operation for Interpreter {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let mut moved = false;
        for lane in 0..self.lanes.len() {
            moved |= self.poll_send(core, lane)?;
            moved |= self.poll_recv(core, lane)?;
        }
        moved |= self.poll_copies();
        Ok(match (self.remaining, moved) {
            (0, _) => Progress::Done,
            (_, true) => Progress::Moved,
            (_, false) => Progress::Idle,
        })
    }

    fn awaited(&self, _core: &Core) -> Vec<Awaited> {
        let mut awaited = Vec::new();
        for lane in &self.lanes {
            if let Some((segment, step)) = self.next(&lane.recvs, lane.received)
                && (lane.incoming.is_some() || self.is_ready(segment, step))
            {
                awaited.push(Awaited {
                    rank: lane.peer,
                    to_send: false,
                });
            }
            if let Some((segment, step)) = self.next(&lane.sends, lane.sent)
                && (lane.outgoing.is_some() || self.is_ready(segment, step))
            {
                awaited.push(Awaited {
                    rank: lane.peer,
                    to_send: true,
                });
            }
        }
        awaited
    }
}

/// A program whose messages are single chunks can be cut; others move whole vectors by few,
/// which is chosen for short vectors only.
fn segments(program: &Program, bytes: usize) -> usize {
    let is_single = |slice: Option<Slice>| slice.is_none_or(|slice| slice.chunks == 1);
    let divisible = program.chunks > 0
        && program
            .steps
            .iter()
            .all(|step| is_single(step.action.reads()) && is_single(step.action.writes()));
    if !divisible {
        return 1;
    }
    bytes
        .div_ceil(program.chunks as usize)
        .div_ceil(SEGMENT_BYTES)
        .max(1)
}

fn lanes(program: &Program) -> (Vec<Lane>, Vec<u32>) {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut copies = Vec::new();
    for (index, step) in program.steps.iter().enumerate() {
        let index = index as u32;
        let (peer, is_send) = match step.action {
            Action::Send { to, .. } => (to, true),
            Action::Recv { from, .. } | Action::RecvReduce { from, .. } => (from, false),
            Action::Copy { .. } => {
                copies.push(index);
                continue;
            }
        };
        let at = lanes
            .iter()
            .position(|lane| lane.peer == peer)
            .unwrap_or_else(|| {
                lanes.push(Lane {
                    peer,
                    ..Lane::default()
                });
                lanes.len() - 1
            });
        if is_send {
            lanes[at].sends.push(index)
        } else {
            lanes[at].recvs.push(index)
        }
    }
    (lanes, copies)
}
