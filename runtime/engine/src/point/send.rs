//! Starting a send: eager on credit, else by request and grant.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_transport::{Header, Kind, Outgoing, Progress};
use rlaunch_wire::Descriptor;

use super::matching::Pattern;
use super::operation::{OperationId, PointOperation, Stage, Started};
use super::{EAGER_BYTES_MAX, cost};
use crate::Error;
use crate::completion::Completion;
use crate::core::{Core, Queued};
use crate::request::Status;

/// A send as called. `to` is a rank of the world.
#[derive(Debug)]
pub(crate) struct SendCall {
    pub(crate) call: Descriptor,
    pub(crate) to: u32,
    pub(crate) tag: u32,
    pub(crate) payload: *const u8,
    /// The caller waits for it at once, and for nothing before it.
    pub(crate) is_blocking: bool,
    pub(crate) completion: Option<Arc<Completion>>,
    /// Of one that is started: instead of the communicator's.
    pub(crate) timeout: Option<Duration>,
}

// SAFETY: the pointer is followed only while the send is under way, for which its starter vouches.
unsafe impl Send for SendCall {}

impl SendCall {
    pub(super) fn length_bytes(&self) -> u64 {
        self.call.count * self.call.dtype.size_bytes() as u64
    }

    pub(super) fn header(&self, kind: Kind, number: u64) -> Header {
        let root = 0;
        let descriptor = Descriptor {
            sequence: number,
            root,
            ..self.call
        };
        let length_bytes = match kind {
            Kind::Request => 0,
            _ => self.length_bytes(),
        };
        Header {
            descriptor,
            length_bytes,
            tag: self.tag,
            kind,
        }
    }

    pub(super) fn pattern(&self) -> Pattern {
        Pattern {
            source: Some(self.to),
            tag: Some(self.tag),
        }
    }

    pub(super) fn into_operation(self, stage: Stage) -> PointOperation {
        PointOperation {
            call: self.call,
            pattern: self.pattern(),
            buffer: self.payload.cast_mut(),
            stage,
            begun: self.completion.is_some().then(Instant::now),
            timeout: self.timeout,
            slot: None,
            completion: self.completion,
        }
    }
}

impl Core {
    /// # Safety
    /// The payload is valid for reads of the call's elements and unchanged until the operation
    /// ends.
    pub(crate) unsafe fn start_send(&mut self, send: SendCall) -> Result<Started, Error> {
        if send.to == self.rank {
            // SAFETY: as the caller vouches.
            return unsafe { self.start_own(send) };
        }
        let (to, length_bytes) = (send.to, send.length_bytes());
        let peer = &mut self.peers[to as usize];
        let number = peer.pair.sends;
        peer.pair.sends += 1;
        if length_bytes > EAGER_BYTES_MAX as u64 || peer.pair.credit < cost(length_bytes) {
            let request = send.header(Kind::Request, number);
            let id = self
                .points
                .operations
                .insert(send.into_operation(Stage::Asking(to)));
            let peer = &mut self.peers[to as usize];
            peer.pair.asking.push_back((number, id));
            peer.outbox.push_back(Queued::control(request));
            return Ok(Started::Waits(id));
        }
        peer.pair.credit -= cost(length_bytes);
        let mut message = Outgoing::new(send.header(Kind::Eager, number), send.payload);
        if peer.outbox.is_empty()
            && peer.stream.is_between_messages()
            && let Some(connection) = &mut peer.connection
        {
            // SAFETY: the caller vouches for the payload.
            match unsafe { connection.poll_send(&mut message) } {
                Ok(Progress::Done) => {
                    if let Some(completion) = send.completion {
                        completion.complete(Ok(Status::default()));
                    }
                    return Ok(Started::Done(Status::default()));
                }
                Ok(_) => {}
                Err(error) => return Err(self.explain(to, error, &send.call)),
            }
        }
        let id = self
            .points
            .operations
            .insert(send.into_operation(Stage::Queued(to)));
        let outbox = &mut self.peers[to as usize].outbox;
        outbox.push_back(Queued::of(message, id));
        Ok(Started::Waits(id))
    }

    /// The receiver of a request is ready.
    pub(super) fn send_granted(&mut self, rank: u32, grant: Header) {
        let peer = &mut self.peers[rank as usize];
        let number = grant.descriptor.sequence;
        let asking = &mut peer.pair.asking;
        let index = asking.iter().position(|(asks, _)| *asks == number);
        let Some((_, id)) = index.and_then(|index| asking.remove(index)) else {
            // It was given up; its communicator has failed, and the receiver learns of that.
            return;
        };
        let Some(operation) = self.points.operations.find(id) else {
            return;
        };
        operation.stage = Stage::Queued(rank);
        let size_bytes = operation.call.dtype.size_bytes() as u64;
        let header = Header {
            kind: Kind::Granted,
            length_bytes: operation.call.count * size_bytes,
            ..grant
        };
        let message = Outgoing::new(header, operation.buffer);
        peer.outbox.push_back(Queued::of(message, id));
    }

    /// The payload is its user's again: what has not left goes out as filler, or not at all.
    pub(super) fn abandon_send(&mut self, rank: u32, id: OperationId) {
        let peer = &mut self.peers[rank as usize];
        let outbox = &mut peer.outbox;
        let Some(index) = outbox.iter().position(|queued| queued.owner == Some(id)) else {
            return;
        };
        if outbox[index].message.is_begun() {
            outbox[index].message.abandon();
            outbox[index].owner = None;
            // Who reads the payload in this memory learns at once that it has become filler. What is
            // wrong with the connection, the next call finds too.
            if let Some(connection) = &mut peer.connection {
                // SAFETY: an abandoned message's payload is not read.
                let _ = unsafe { connection.poll_send(&mut outbox[index].message) };
            }
            return;
        }
        let Some(queued) = outbox.remove(index) else {
            return;
        };
        if queued.message.header.kind == Kind::Eager {
            let pair = &mut self.peers[rank as usize].pair;
            pair.credit += cost(queued.message.header.length_bytes);
        }
    }
}
