//! The messages of a peer, shared out among the operations of all communicators.
//!
//! One stream comes from each peer, and its messages belong to different operations. Each operation
//! asks for its own by communicator and sequence ([`Core::arrival`], [`Core::take_part`]). A message that
//! is not the asker's is left for the operation it belongs to; if that has not taken it after a
//! while (it has not begun here, or waits for another peer), it is set aside in memory, so that
//! communicators don't wait for each other, as far as memory reaches ([`aside`]); then the stream
//! waits, as it would without.
//!
//! A message is never cut off: who gives up in the middle of one ([`Core::give_up`]) leaves the rest
//! here, to be sent as filler or received as nothing, in its turn.

mod aside;

use std::collections::VecDeque;

use rlaunch_transport::{Connection, ConnectionError, Header, Incoming, Kind, Outgoing, Progress};
use rlaunch_wire::Descriptor;

use crate::Error;
use crate::core::{Core, Queued};
use aside::{Aside, Goes, Intake};

/// Which call a message belongs to.
type Owner = (u32, u64);

/// What is under way with one peer, between operations.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The operation that has begun a message and must end it before anything else is sent.
    sending: Option<Owner>,
    /// The operation that is in the middle of a message.
    receiving: Option<Owner>,
    /// The rest of what was given up.
    abandoned: Option<Outgoing>,
    /// A message that goes aside, or nowhere.
    intake: Option<Intake>,
    aside: VecDeque<Aside>,
    aside_bytes: usize,
    /// The call of the message at the head that is nobody's and for which no room is left.
    held_up_by: Option<Descriptor>,
    /// Looks at the message at the head that was nobody's.
    looks: u32,
    /// The peer has said goodbye behind all it sent.
    has_ended: bool,
}

fn owner(call: &Descriptor) -> Owner {
    (call.communicator, call.sequence)
}

impl Core {
    /// The oldest message from `rank` (of the world) that belongs to `call`, once its header is
    /// here; the same until it was wholly taken. One of this communicator's that is of another call
    /// is a mismatch.
    pub(crate) fn arrival(
        &mut self,
        rank: u32,
        call: &Descriptor,
    ) -> Result<Option<Header>, Error> {
        if let Some(header) = self.aside_for(rank, call) {
            return self.compared(rank, call, header).map(Some);
        }
        loop {
            let head = self.head(rank, call)?;
            // This call's own may have been on its way aside, before it began; now it is there, and
            // what stands at the head is the peer's next.
            if let Some(header) = self.aside_for(rank, call) {
                return self.compared(rank, call, header).map(Some);
            }
            let Some(header) = head else {
                return Ok(None);
            };
            if header.kind == Kind::Collective
                && header.descriptor.communicator == call.communicator
            {
                return self.compared(rank, call, header).map(Some);
            }
            if !self.pass_over(rank, header, call)? {
                return Ok(None);
            }
        }
    }

    fn compared(&self, rank: u32, call: &Descriptor, header: Header) -> Result<Header, Error> {
        if header.descriptor == *call {
            Ok(header)
        } else {
            Err(self.mismatch(*call, rank, header.descriptor))
        }
    }

    /// Feeds what has arrived of the message that [`Core::arrival`] returned for this call.
    ///
    /// # Safety
    /// As [`rlaunch_transport::Connection::poll_payload`].
    pub(crate) unsafe fn take_part(
        &mut self,
        rank: u32,
        incoming: &mut Incoming,
        call: &Descriptor,
    ) -> Result<Progress, Error> {
        let stream = &mut self.peers[rank as usize].stream;
        // Another operation may be in the middle of a message on the connection itself.
        if stream.receiving != Some(owner(call))
            && let Some(at) = stream.find_aside(call)
        {
            let message = stream.aside.remove(at).expect("just found");
            let bytes = message.header.length_bytes as usize;
            stream.aside_bytes -= bytes;
            // SAFETY: the body was made for the header's length; the sink as the caller vouches.
            unsafe { incoming.feed(message.body.as_ptr().cast(), bytes) };
            return Ok(Progress::Done);
        }
        // SAFETY: as the caller vouches.
        let result = unsafe { self.connection(rank).poll_payload(incoming) };
        let stream = &mut self.peers[rank as usize].stream;
        match result {
            Ok(Progress::Done) => {
                stream.receiving = None;
                stream.looks = 0;
                stream.held_up_by = None;
                Ok(Progress::Done)
            }
            Ok(progress) => {
                stream.receiving = Some(owner(call));
                Ok(progress)
            }
            Err(error) => Err(self.explain(rank, error, call)),
        }
    }

    /// Begins a message of `call` or goes on with it. Idle while another's is under way.
    ///
    /// # Safety
    /// As [`rlaunch_transport::Connection::poll_send`]; the call gives it up by [`Core::give_up`] if
    /// it does not end it.
    pub(crate) unsafe fn send_part(
        &mut self,
        rank: u32,
        message: &mut Outgoing,
        call: &Descriptor,
    ) -> Result<Progress, Error> {
        let stream = &mut self.peers[rank as usize].stream;
        match stream.sending {
            Some(other) if other != owner(call) => return Ok(Progress::Idle),
            Some(_) => {}
            None => {
                let is_free = self.peers[rank as usize].outbox.is_empty()
                    && self.peers[rank as usize].stream.abandoned.is_none();
                if !is_free && !self.flush_outbox(rank, call)? {
                    return Ok(Progress::Idle);
                }
            }
        }
        // SAFETY: as the caller vouches.
        let result = unsafe { self.connection(rank).poll_send(message) };
        let stream = &mut self.peers[rank as usize].stream;
        match result {
            Ok(Progress::Done) => {
                stream.sending = None;
                Ok(Progress::Done)
            }
            Ok(progress) => {
                stream.sending = message.is_begun().then_some(owner(call));
                Ok(progress)
            }
            Err(error) => Err(self.explain(rank, error, call)),
        }
    }

    /// An operation ends in the middle of these messages. Their buffers are not touched any more.
    pub(crate) fn give_up(
        &mut self,
        rank: u32,
        call: &Descriptor,
        outgoing: Option<Outgoing>,
        incoming: Option<Incoming>,
    ) {
        let stream = &mut self.peers[rank as usize].stream;
        if let Some(mut message) = outgoing
            && stream.sending == Some(owner(call))
        {
            stream.sending = None;
            if message.is_begun() {
                message.abandon();
                stream.abandoned = Some(message);
            }
        }
        if let Some(mut incoming) = incoming
            && stream.receiving == Some(owner(call))
        {
            stream.receiving = None;
            incoming.discard();
            let header = Header {
                descriptor: *call,
                length_bytes: 0,
                tag: 0,
                kind: Kind::Collective,
            };
            stream.intake = Some(Intake {
                header,
                body: Vec::new(),
                incoming,
                goes: Goes::Nowhere,
            });
        }
    }

    /// The header at the head of the stream, once what is being set aside has been. Messages that
    /// need no operation to deal with them are dealt with.
    pub(crate) fn head(&mut self, rank: u32, call: &Descriptor) -> Result<Option<Header>, Error> {
        let peer = &self.peers[rank as usize];
        if peer.connection.is_none() || peer.stream.has_ended {
            return Ok(None);
        }
        loop {
            if !self.take_in(rank, call)? || !self.go_on_taking(rank, call)? {
                return Ok(None);
            }
            if self.peers[rank as usize].stream.receiving.is_some() {
                return Ok(None);
            }
            let header = match self.connection(rank).poll_header() {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.explain(rank, error, call)),
            };
            // The others answer this rank's own calls.
            if matches!(
                header.kind,
                Kind::Collective | Kind::Eager | Kind::Request | Kind::Granted
            ) {
                self.peers[rank as usize].last_heard = Some(header.descriptor);
            }
            match header.kind {
                Kind::Collective if self.groups.is_over(header.descriptor.communicator) => {
                    self.begin_intake(rank, header, Goes::Nowhere);
                }
                Kind::Leave => {
                    self.begin_intake(rank, header, Goes::Nowhere);
                    self.take_in(rank, call)?;
                    let peer = &mut self.peers[rank as usize];
                    peer.has_left = true;
                    peer.stream.has_ended = true;
                    // Only the stream's end follows.
                    return Ok(None);
                }
                Kind::Collective => return Ok(Some(header)),
                _ => self.arrive_point(rank, header, call)?,
            }
        }
    }

    /// Sends what waits for this peer; true when nothing is left. Only between messages.
    pub(crate) fn flush_outbox(&mut self, rank: u32, call: &Descriptor) -> Result<bool, Error> {
        let peer = &mut self.peers[rank as usize];
        let Some(connection) = &mut peer.connection else {
            return Ok(true);
        };
        let stream = &mut peer.stream;
        if stream.sending.is_some() {
            return Ok(false);
        }
        if let Some(message) = &mut stream.abandoned {
            // SAFETY: an abandoned message's payload is not read.
            match unsafe { connection.poll_send(message) } {
                Ok(Progress::Done) => stream.abandoned = None,
                Ok(_) => return Ok(false),
                Err(ConnectionError::Closed) => stream.abandoned = None,
                Err(error) => return Err(self.explain(rank, error, call)),
            }
        }
        self.flush_queued(rank, call)
    }

    fn flush_queued(&mut self, rank: u32, call: &Descriptor) -> Result<bool, Error> {
        loop {
            let peer = &mut self.peers[rank as usize];
            let (Some(queued), Some(connection)) = (peer.outbox.front_mut(), &mut peer.connection)
            else {
                return Ok(true);
            };
            // SAFETY: a message with a payload has an owner, whose starter vouches for it until the
            // owner ends; then the message is abandoned or taken out.
            match unsafe { connection.poll_send(&mut queued.message) } {
                Ok(Progress::Done) => {
                    let owner = queued.owner;
                    peer.outbox.pop_front();
                    if let Some(owner) = owner {
                        self.end_sent(owner);
                    }
                }
                Ok(_) => return Ok(false),
                // Credits for one that has gone are of no use. Whether its end matters, the
                // receiving side tells, after what it sent.
                Err(ConnectionError::Closed) if queued.owner.is_none() => {
                    peer.outbox.pop_front();
                }
                Err(error) => return Err(self.explain(rank, error, call)),
            }
        }
    }

    /// Puts a message without payload in line.
    pub(crate) fn post(&mut self, rank: u32, header: Header) {
        let outbox = &mut self.peers[rank as usize].outbox;
        outbox.push_back(Queued::control(header));
    }

    /// Takes what has come from a peer, and sends what waits for it.
    pub(crate) fn progress_pair(&mut self, rank: u32, call: &Descriptor) -> Result<(), Error> {
        if rank == self.rank {
            return Ok(());
        }
        while let Some(header) = self.head(rank, call)? {
            if !self.pass_over(rank, header, call)? {
                break;
            }
        }
        self.flush_outbox(rank, call)?;
        Ok(())
    }

    fn connection(&mut self, rank: u32) -> &mut dyn Connection {
        let connection = self.peers[rank as usize].connection.as_mut();
        connection
            .expect("messages go between different ranks")
            .as_mut()
    }
}

impl Stream {
    /// No message is in the middle of being sent.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.sending.is_none() && self.abandoned.is_none()
    }
}

#[cfg(test)]
mod tests;
