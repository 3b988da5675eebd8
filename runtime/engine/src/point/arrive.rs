//! What comes from a peer: each message finds its receive, is kept, or moves an operation on.

use rlaunch_transport::{Header, Incoming, Kind, Progress, Sink};
use rlaunch_wire::Descriptor;

use super::matching::Envelope;
use super::operation::{OperationId, Stage};
use super::{CREDIT_BYTES, Destination, EAGER_BYTES_MAX, Kept, Pair, Taking, cost};
use crate::Error;
use crate::core::Core;
use crate::failure::BALLOT_BYTES_MAX;
use crate::request::Status;

impl Core {
    /// Deals with a message that belongs to no collective.
    pub(crate) fn arrive_point(
        &mut self,
        rank: u32,
        header: Header,
        call: &Descriptor,
    ) -> Result<(), Error> {
        match header.kind {
            Kind::Eager => self.arrive_eager(rank, header),
            Kind::Granted => {
                self.arrive_granted(rank, header);
                Ok(())
            }
            Kind::Ballot => self.arrive_ballot(rank, header),
            _ => self.take_control(rank, header, call),
        }
    }

    fn arrive_eager(&mut self, rank: u32, header: Header) -> Result<(), Error> {
        if header.length_bytes > EAGER_BYTES_MAX as u64 {
            let cause = format!("an eager message of {} bytes", header.length_bytes);
            return Err(self.garbled(rank, cause, &header.descriptor));
        }
        let envelope = Envelope {
            source: rank,
            tag: header.tag,
        };
        if self.groups.is_over(header.descriptor.communicator) {
            self.begin_taking(rank, header, Destination::Nobody);
            return Ok(());
        }
        let context = self.points.context(header.descriptor.communicator);
        let to = match context.arrive(envelope) {
            Some(id) if self.fits(id, rank, &header) => {
                return {
                    self.take_into(rank, header, id);
                    Ok(())
                };
            }
            Some(_) => Destination::Nobody,
            None => Destination::Keep(vec![0; (header.length_bytes as usize).div_ceil(8)]),
        };
        self.begin_taking(rank, header, to);
        Ok(())
    }

    fn arrive_ballot(&mut self, rank: u32, header: Header) -> Result<(), Error> {
        if header.length_bytes > BALLOT_BYTES_MAX {
            let cause = format!("a ballot of {} bytes", header.length_bytes);
            return Err(self.garbled(rank, cause, &header.descriptor));
        }
        let body = vec![0; header.length_bytes as usize];
        self.begin_taking(rank, header, Destination::Ballot(body));
        Ok(())
    }

    fn arrive_granted(&mut self, rank: u32, header: Header) {
        let granted = &mut self.peers[rank as usize].pair.granted;
        let number = header.descriptor.sequence;
        let index = granted.iter().position(|(waits, _)| *waits == number);
        match index.and_then(|index| granted.remove(index)) {
            Some((_, id)) => self.take_into(rank, header, id),
            // Its receive was given up.
            None => self.begin_taking(rank, header, Destination::Nobody),
        }
    }

    /// A message that was announced: its receive grants, or it is kept.
    fn arrive_request(&mut self, rank: u32, header: Header) {
        if self.groups.is_over(header.descriptor.communicator) {
            return;
        }
        let envelope = Envelope {
            source: rank,
            tag: header.tag,
        };
        let context = self.points.context(header.descriptor.communicator);
        match context.arrive(envelope) {
            Some(id) => self.grant(rank, header, id),
            None => context.keep(envelope, Kept::Request(header)),
        }
    }

    /// Has the sender of a request send into the receive's buffer, if that has room.
    pub(super) fn grant(&mut self, rank: u32, header: Header, id: OperationId) {
        if !self.fits(id, rank, &header) {
            return;
        }
        if let Some(operation) = self.points.operations.find(id) {
            operation.stage = Stage::Receiving(rank);
        }
        let pair = &mut self.peers[rank as usize].pair;
        pair.granted.push_back((header.descriptor.sequence, id));
        let grant = Header {
            kind: Kind::Grant,
            ..header
        };
        self.post(rank, grant);
    }

    fn take_into(&mut self, rank: u32, header: Header, id: OperationId) {
        match self.points.operations.find(id) {
            Some(operation) => {
                operation.stage = Stage::Receiving(rank);
                self.begin_taking(rank, header, Destination::Receive(id));
            }
            None => self.begin_taking(rank, header, Destination::Nobody),
        }
    }

    /// The payload that comes next from `rank` goes there.
    fn begin_taking(&mut self, rank: u32, header: Header, mut to: Destination) {
        let place = match &mut to {
            Destination::Receive(id) => {
                let operation = self.points.operations.find(*id);
                operation.map(|operation| operation.buffer)
            }
            Destination::Keep(body) => Some(body.as_mut_ptr().cast()),
            Destination::Ballot(body) => Some(body.as_mut_ptr()),
            Destination::Nobody => None,
        };
        let sink = place.map_or(Sink::Discard, |to| {
            let streaming = false;
            Sink::Copy { to, streaming }
        });
        self.peers[rank as usize].pair.taking = Some(Taking {
            header,
            incoming: Incoming::new(sink),
            to,
        });
    }

    /// Goes on with the payload under way; false while it is not all here.
    pub(crate) fn go_on_taking(&mut self, rank: u32, call: &Descriptor) -> Result<bool, Error> {
        let peer = &mut self.peers[rank as usize];
        let Some(taking) = &mut peer.pair.taking else {
            return Ok(true);
        };
        let connection = peer.connection.as_mut().expect("it is receiving");
        // SAFETY: a receive's starter vouches for its buffer until the operation ends, and then the
        // rest is discarded; a kept body has the header's length, and stays where it is on the heap.
        match unsafe { connection.poll_payload(&mut taking.incoming) } {
            Ok(Progress::Done) => {}
            Ok(_) => return Ok(false),
            Err(error) => return Err(self.explain(rank, error, call)),
        }
        let Some(Taking { header, to, .. }) = peer.pair.taking.take() else {
            return Ok(true);
        };
        match to {
            Destination::Receive(id) => {
                self.end_point(id, Ok(self.status(rank, &header)));
                self.give_back_for(rank, &header);
            }
            Destination::Keep(body) => self.arrive_stored(rank, header, body),
            Destination::Ballot(body) => self.take_ballot(rank, &header, body),
            Destination::Nobody => self.give_back_for(rank, &header),
        }
        Ok(true)
    }

    /// A receive may have been posted while the message was being stored.
    fn arrive_stored(&mut self, rank: u32, header: Header, body: Vec<u64>) {
        let envelope = Envelope {
            source: rank,
            tag: header.tag,
        };
        let context = self.points.context(header.descriptor.communicator);
        match context.arrive(envelope) {
            Some(id) => self.deliver(rank, header, &body, id),
            None => context.keep(envelope, Kept::Eager(header, body)),
        }
    }

    /// A message that was stored goes to its receive.
    pub(super) fn deliver(&mut self, rank: u32, header: Header, body: &[u64], id: OperationId) {
        if self.fits(id, rank, &header) {
            if let Some(operation) = self.points.operations.find(id) {
                let (from, length) = (body.as_ptr().cast(), header.length_bytes as usize);
                // SAFETY: the body was made for the length; the buffer has room as just checked,
                // and is valid until the operation ends.
                unsafe { std::ptr::copy_nonoverlapping(from, operation.buffer, length) };
            }
            self.end_point(id, Ok(self.status(rank, &header)));
        }
        self.give_back_for(rank, &header);
    }

    /// Whether the receive has room for the message and is of its type; else it ends with an error
    /// that names both.
    pub(super) fn fits(&mut self, id: OperationId, rank: u32, header: &Header) -> bool {
        let Some(operation) = self.points.operations.find(id) else {
            return false;
        };
        let (sent, expected) = (header.descriptor, operation.call);
        if sent.dtype == expected.dtype && sent.count <= expected.count {
            return true;
        }
        let error = Error::MessageMismatch {
            sender: self.identity(rank),
            sent: Box::new(sent),
            receiver: self.identity(self.rank),
            expected: Box::new(expected),
        };
        self.end_point(id, Err(error.clone()));
        self.fail_communicator(expected.communicator, error);
        false
    }

    pub(super) fn status(&self, rank: u32, header: &Header) -> Status {
        Status {
            source: self.rank_in(header.descriptor.communicator, rank),
            tag: header.tag,
            count: header.descriptor.count as usize,
            dtype: Some(header.descriptor.dtype),
        }
    }

    fn take_control(&mut self, rank: u32, header: Header, call: &Descriptor) -> Result<(), Error> {
        if header.length_bytes != 0 && header.kind != Kind::Request && header.kind != Kind::Grant {
            return Err(self.garbled(rank, "a control message with a payload".into(), call));
        }
        let peer = &mut self.peers[rank as usize];
        let connection = peer.connection.as_mut().expect("its header was just read");
        let mut nothing = Incoming::new(Sink::Discard);
        // SAFETY: nothing is written.
        if let Err(error) = unsafe { connection.poll_payload(&mut nothing) } {
            return Err(self.explain(rank, error, call));
        }
        match header.kind {
            Kind::Request => self.arrive_request(rank, header),
            Kind::Grant => self.send_granted(rank, header),
            Kind::Credit => {
                let pair = &mut peer.pair;
                let credit = pair.credit.saturating_add(header.descriptor.count);
                pair.credit = credit.min(CREDIT_BYTES);
            }
            Kind::Leave | Kind::Collective | Kind::Eager | Kind::Ballot | Kind::Granted => {}
        }
        Ok(())
    }

    /// Of an eager message that was taken: its credit.
    pub(super) fn give_back_for(&mut self, rank: u32, header: &Header) {
        if header.kind != Kind::Eager {
            return;
        }
        let pair = &mut self.peers[rank as usize].pair;
        pair.owed += cost(header.length_bytes);
        if pair.owed < CREDIT_BYTES / 2 {
            return;
        }
        let count = std::mem::take(&mut pair.owed);
        let descriptor = Descriptor {
            count,
            ..header.descriptor
        };
        let credit = Header {
            descriptor,
            length_bytes: 0,
            tag: 0,
            kind: Kind::Credit,
        };
        self.post(rank, credit);
    }

    /// Of a message that nobody will ask for any more.
    pub(super) fn drop_kept(&mut self, rank: u32, message: Kept) {
        match message {
            Kept::Eager(header, _) => self.give_back_for(rank, &header),
            Kept::OwnCopy(header, _) => self.points.own_bytes -= header.length_bytes,
            Kept::Request(_) | Kept::Own(..) => {}
        }
    }
}

impl Pair {
    /// The receive's buffer is its user's again: what is under way into it goes nowhere. True if
    /// something is.
    #[must_use]
    pub(super) fn forget_receive(&mut self, id: OperationId) -> bool {
        self.granted.retain(|(_, granted)| *granted != id);
        let Some(taking) = &mut self.taking else {
            return false;
        };
        let is_under_way = matches!(taking.to, Destination::Receive(to) if to == id);
        if is_under_way {
            taking.incoming.discard();
            taking.to = Destination::Nobody;
        }
        is_under_way
    }
}
