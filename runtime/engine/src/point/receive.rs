//! Starting a receive: from what was kept, or posted for what comes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_wire::Descriptor;

use super::Kept;
use super::matching::{Envelope, Pattern};
use super::operation::{PointOperation, Stage, Started};
use crate::Error;
use crate::completion::Completion;
use crate::core::Core;

/// A receive as called.
#[derive(Debug)]
pub(crate) struct RecvCall {
    pub(crate) call: Descriptor,
    pub(crate) pattern: Pattern,
    pub(crate) buffer: *mut u8,
    pub(crate) completion: Option<Arc<Completion>>,
    /// Of one that is started: instead of the communicator's.
    pub(crate) timeout: Option<Duration>,
}

// SAFETY: the pointer is followed only while the receive is under way, for which its starter
// vouches.
unsafe impl Send for RecvCall {}

impl Core {
    /// # Safety
    /// The buffer is valid for writes of the call's elements, and not used otherwise, until the
    /// operation ends.
    pub(crate) unsafe fn start_recv(&mut self, recv: RecvCall) -> Result<Started, Error> {
        let (communicator, pattern) = (recv.call.communicator, recv.pattern);
        let id = self.points.operations.insert(PointOperation {
            call: recv.call,
            pattern,
            buffer: recv.buffer,
            stage: Stage::Posted,
            begun: recv.completion.is_some().then(Instant::now),
            timeout: recv.timeout,
            slot: None,
            completion: recv.completion,
        });
        let context = self.points.context(communicator);
        let Some((Envelope { source, .. }, message)) = context.find(pattern) else {
            context.post(pattern, id);
            return Ok(Started::Waits(id));
        };
        match message {
            Kept::Eager(header, body) => self.deliver(source, header, &body, id),
            Kept::Request(header) => self.grant(source, header, id),
            Kept::OwnCopy(header, body) => {
                self.points.own_bytes -= header.length_bytes;
                self.deliver(source, header, &body, id);
            }
            Kept::Own(header, sender) => self.deliver_own(header, sender, id),
        }
        match self.take_point(id) {
            Some(result) => result.map(Started::Done),
            None => Ok(Started::Waits(id)),
        }
    }
}
