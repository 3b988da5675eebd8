//! Messages from this rank to itself: from buffer to buffer where the receive is posted.

use rlaunch_transport::{Header, Kind};

use super::matching::Envelope;
use super::operation::{OperationId, Stage, Started};
use super::{Context, Kept, OWN_BYTES_MAX, SendCall};
use crate::Error;
use crate::core::Core;
use crate::request::Status;

impl Core {
    /// A blocking send whose receive is not posted keeps a copy, since the receive can only come
    /// after it; others wait for their receive.
    ///
    /// # Safety
    /// As [`Core::start_send`].
    pub(super) unsafe fn start_own(&mut self, send: SendCall) -> Result<Started, Error> {
        let rank = self.rank;
        // Never sent, so it needs no number; and no credit is kept for it.
        let header = Header {
            length_bytes: send.length_bytes(),
            ..send.header(Kind::Granted, 0)
        };
        let envelope = Envelope {
            source: rank,
            tag: send.tag,
        };
        let communicator = send.call.communicator;
        if let Some(receive) = self.points.context(communicator).arrive(envelope) {
            let sender = self
                .points
                .operations
                .insert(send.into_operation(Stage::Own));
            self.deliver_own(header, sender, receive);
            return match self.take_point(sender) {
                Some(result) => result.map(Started::Done),
                None => Ok(Started::Done(Status::default())),
            };
        }
        if !send.is_blocking {
            let sender = self
                .points
                .operations
                .insert(send.into_operation(Stage::Own));
            let context = self.points.context(communicator);
            context.keep(envelope, Kept::Own(header, sender));
            return Ok(Started::Waits(sender));
        }
        let total = self.points.own_bytes.saturating_add(header.length_bytes);
        if total > OWN_BYTES_MAX {
            return Err(Error::Argument(format!(
                "a send of {} bytes to this rank itself, with {} bytes sent before and not \
                 received; start the receive first",
                header.length_bytes, self.points.own_bytes
            )));
        }
        self.points.own_bytes = total;
        let mut body = vec![0u64; (header.length_bytes as usize).div_ceil(8)];
        let (to, length) = (body.as_mut_ptr().cast(), header.length_bytes as usize);
        // SAFETY: the caller vouches for the payload; the body has room.
        unsafe { std::ptr::copy_nonoverlapping(send.payload, to, length) };
        let context = self.points.context(communicator);
        context.keep(envelope, Kept::OwnCopy(header, body));
        Ok(Started::Done(Status::default()))
    }

    pub(super) fn deliver_own(
        &mut self,
        header: Header,
        sender: OperationId,
        receive: OperationId,
    ) {
        let rank = self.rank;
        let from = self.points.operations.find(sender).map(|send| send.buffer);
        if self.fits(receive, rank, &header)
            && let Some(from) = from
            && let Some(operation) = self.points.operations.find(receive)
        {
            // SAFETY: both operations are under way, so their buffers are valid; the receive's has
            // room as just checked. `copy` allows for a program that sends a buffer to itself.
            unsafe { std::ptr::copy(from, operation.buffer, header.length_bytes as usize) };
            let status = self.status(rank, &header);
            self.end_point(receive, Ok(status));
        }
        self.end_point(sender, Ok(Status::default()));
    }
}

impl Context {
    /// The send that waits for its receive waits no longer.
    pub(super) fn remove_own(&mut self, sender: OperationId) {
        self.remove(|message| matches!(message, Kept::Own(_, id) if *id == sender));
    }
}
