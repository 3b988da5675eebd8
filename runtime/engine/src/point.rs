//! Send and recv.
//!
//! A small message goes at once, on credit: the receiver keeps it until it is asked for, and at
//! most [`CREDIT_BYTES`] a pair are kept. A larger one, or one past the credit, is announced by a
//! request and sent when the receiver has granted it, straight into its buffer. So nothing a peer
//! sends can fill this rank's memory, and whatever a call waits for, what peers sent before is
//! taken from the connection.

use std::collections::VecDeque;

use rlaunch_transport::{Header, Incoming, Kind, Outgoing, Progress, Sink};
use rlaunch_wire::{Collective, DType, Descriptor};

use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};

/// Messages up to this size go without asking.
pub(crate) const EAGER_BYTES_MAX: usize = 16 * 1024;
/// Kept by a receiver for one sender.
const CREDIT_BYTES: u64 = 256 * 1024;
/// What an eager message costs besides its bytes, so that empty ones are bounded too.
const MESSAGE_COST_BYTES: u64 = 256;

/// Point-to-point state with one peer.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Arrived and not asked for yet, oldest first.
    unexpected: VecDeque<Unexpected>,
    storing: Option<(Header, Vec<u64>, Incoming)>,
    credit: u64,
    /// Taken by this rank and not given back yet.
    owed: u64,
    sends: u64,
    recvs: u64,
    /// Number of the message that the peer is ready to take.
    granted: Option<u64>,
}

#[derive(Debug)]
struct Unexpected {
    header: Header,
    /// The bytes of an eager message, in words; nothing for a request.
    body: Vec<u64>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            unexpected: VecDeque::new(),
            storing: None,
            credit: CREDIT_BYTES,
            owed: 0,
            sends: 0,
            recvs: 0,
            granted: None,
        }
    }
}

fn cost(length_bytes: u64) -> u64 {
    length_bytes + MESSAGE_COST_BYTES
}

impl Core {
    /// The next header from `rank` that its caller must take the payload of: a collective's, a
    /// granted message's, or an eager one's with the wanted tag. All else is dealt with here.
    pub(crate) fn next_header(
        &mut self,
        rank: u32,
        wanted_tag: Option<u32>,
        call: &Descriptor,
    ) -> Result<Option<Header>, Error> {
        loop {
            if !self.store(rank, call)? {
                return Ok(None);
            }
            let peer = &mut self.peers[rank as usize];
            let connection = peer.connection.as_mut().expect("only peers have headers");
            let header = match connection.poll_header() {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.explain(rank, error, &call.to_string())),
            };
            match header.kind {
                Kind::Collective | Kind::Granted => return Ok(Some(header)),
                Kind::Eager if wanted_tag == Some(header.tag) => return Ok(Some(header)),
                Kind::Eager => self.begin_store(rank, header)?,
                Kind::Request | Kind::Grant | Kind::Credit => {
                    self.take_control(rank, header, call)?;
                }
                Kind::Leave => {
                    self.take_control(rank, header, call)?;
                    // Only the stream's end follows.
                    return Ok(None);
                }
            }
        }
    }

    fn take_control(&mut self, rank: u32, header: Header, call: &Descriptor) -> Result<(), Error> {
        let peer = &mut self.peers[rank as usize];
        let connection = peer.connection.as_mut().expect("its header was just read");
        let mut nothing = Incoming::new(Sink::Copy {
            to: std::ptr::null_mut(),
            streaming: false,
        });
        if header.length_bytes != 0 {
            let cause = String::from("a control message with a payload");
            return Err(Error::Connection {
                peer: peer.identity.clone(),
                cause,
            });
        }
        // SAFETY: the message is empty.
        if let Err(error) = unsafe { connection.poll_payload(&mut nothing) } {
            return Err(self.explain(rank, error, &call.to_string()));
        }
        match header.kind {
            Kind::Request => {
                peer.mailbox.unexpected.push_back(Unexpected {
                    header,
                    body: Vec::new(),
                });
            }
            Kind::Grant => peer.mailbox.granted = Some(header.descriptor.sequence),
            Kind::Credit => {
                peer.mailbox.credit = peer
                    .mailbox
                    .credit
                    .saturating_add(header.descriptor.count)
                    .min(CREDIT_BYTES);
            }
            Kind::Leave => peer.has_left = true,
            Kind::Collective | Kind::Eager | Kind::Granted => {}
        }
        Ok(())
    }

    fn begin_store(&mut self, rank: u32, header: Header) -> Result<(), Error> {
        let peer = &mut self.peers[rank as usize];
        if header.length_bytes > EAGER_BYTES_MAX as u64 {
            let cause = format!("an eager message of {} bytes", header.length_bytes);
            return Err(Error::Connection {
                peer: peer.identity.clone(),
                cause,
            });
        }
        let mut body = vec![0u64; (header.length_bytes as usize).div_ceil(8)];
        let to = body.as_mut_ptr().cast();
        let incoming = Incoming::new(Sink::Copy {
            to,
            streaming: false,
        });
        peer.mailbox.storing = Some((header, body, incoming));
        Ok(())
    }

    /// Goes on with an eager message being stored; false while it is not all here.
    fn store(&mut self, rank: u32, call: &Descriptor) -> Result<bool, Error> {
        let peer = &mut self.peers[rank as usize];
        let Some((header, body, mut incoming)) = peer.mailbox.storing.take() else {
            return Ok(true);
        };
        let connection = peer.connection.as_mut().expect("it is receiving");
        // SAFETY: the body was made for the header's length, and moves do not move its heap.
        match unsafe { connection.poll_payload(&mut incoming) } {
            Ok(Progress::Done) => {
                peer.mailbox
                    .unexpected
                    .push_back(Unexpected { header, body });
                Ok(true)
            }
            Ok(_) => {
                peer.mailbox.storing = Some((header, body, incoming));
                Ok(false)
            }
            Err(error) => Err(self.explain(rank, error, &call.to_string())),
        }
    }

    /// Gives credit back once it is worth a message.
    fn give_back(&mut self, rank: u32, bytes: u64, call: &Descriptor) -> Result<(), Error> {
        let mailbox = &mut self.peers[rank as usize].mailbox;
        if rank == self.rank {
            mailbox.credit += bytes;
            return Ok(());
        }
        mailbox.owed += bytes;
        if mailbox.owed >= CREDIT_BYTES / 2 {
            let count = std::mem::take(&mut mailbox.owed);
            let header = control(Descriptor { count, ..*call }, Kind::Credit, 0);
            self.post(rank, header);
        }
        Ok(())
    }

    /// Takes what other peers have sent, so that none of them is held up by this rank's wait.
    fn drain_others(&mut self, except: u32, call: &Descriptor) -> Result<(), Error> {
        for rank in 0..self.size() {
            if rank != except && rank != self.rank {
                self.next_header(rank, None, call)?;
                self.flush_outbox(rank, &call.to_string())?;
            }
        }
        Ok(())
    }
}

fn control(descriptor: Descriptor, kind: Kind, tag: u32) -> Header {
    Header {
        descriptor,
        length_bytes: 0,
        tag,
        kind,
    }
}

/// Descriptor of a point-to-point call; numbered per pair and direction.
pub(crate) fn descriptor(
    core: &Core,
    collective: Collective,
    peer: u32,
    dtype: DType,
    count: usize,
) -> Descriptor {
    let mailbox = &core.peers[peer as usize].mailbox;
    let sequence = if collective == Collective::Send {
        mailbox.sends
    } else {
        mailbox.recvs
    };
    Descriptor {
        communicator: 0,
        sequence,
        collective,
        dtype,
        op: None,
        root: peer,
        count: count as u64,
    }
}

/// Polls without progress between two looks at peers that are not part of the call.
const IDLE_POLLS_PER_DRAIN: u32 = 32;

#[derive(Debug)]
pub(crate) struct SendOperation {
    to: u32,
    call: Descriptor,
    message: Outgoing,
    stage: SendStage,
    idle_polls: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendStage {
    /// For the grant of the message of this number.
    Asking(u64),
    Sending,
    Done,
}

impl SendOperation {
    /// # Safety
    /// `payload` is valid for reads of the call's elements until the operation is done or dropped.
    pub(crate) unsafe fn new(
        core: &mut Core,
        call: Descriptor,
        to: u32,
        tag: u32,
        payload: *const u8,
    ) -> Result<Self, Error> {
        let length_bytes = call.count * call.dtype.size_bytes() as u64;
        let mailbox = &mut core.peers[to as usize].mailbox;
        let is_eager =
            length_bytes <= EAGER_BYTES_MAX as u64 && mailbox.credit >= cost(length_bytes);
        let number = mailbox.sends;
        let header = |kind| Header {
            descriptor: call,
            length_bytes,
            tag,
            kind,
        };
        if to == core.rank {
            if !is_eager {
                return Err(Error::Argument(format!(
                    "a send of {length_bytes} bytes to this rank itself would wait for ever: \
                     receive what was sent before, and keep single messages under \
                     {EAGER_BYTES_MAX} bytes"
                )));
            }
            let mut body = vec![0u64; (length_bytes as usize).div_ceil(8)];
            // SAFETY: the caller vouches for the payload; the body has room.
            unsafe {
                let to = body.as_mut_ptr().cast();
                std::ptr::copy_nonoverlapping(payload, to, length_bytes as usize);
            }
            mailbox.unexpected.push_back(Unexpected {
                header: header(Kind::Eager),
                body,
            });
        }
        mailbox.sends += 1;
        let kind = if is_eager { Kind::Eager } else { Kind::Granted };
        let message = Outgoing::new(header(kind), payload);
        let stage = match (to == core.rank, is_eager) {
            (true, _) => SendStage::Done,
            (false, true) => SendStage::Sending,
            (false, false) => SendStage::Asking(number),
        };
        if is_eager {
            mailbox.credit -= cost(length_bytes);
        } else {
            let request = Header {
                length_bytes: 0,
                ..header(Kind::Request)
            };
            core.post(to, request);
        }
        Ok(Self {
            to,
            call,
            message,
            stage,
            idle_polls: 0,
        })
    }
}

impl Operation for SendOperation {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        if self.stage == SendStage::Done {
            return Ok(Progress::Done);
        }
        if !self.message.is_begun() && !core.flush_outbox(self.to, &self.call.to_string())? {
            return Ok(Progress::Idle);
        }
        // The peer's grant, and what it sent before.
        core.next_header(self.to, None, &self.call)?;
        let mailbox = &mut core.peers[self.to as usize].mailbox;
        if let SendStage::Asking(number) = self.stage
            && mailbox.granted == Some(number)
        {
            mailbox.granted = None;
            self.stage = SendStage::Sending;
        }
        if self.stage == SendStage::Sending {
            let connection = core.peers[self.to as usize].connection.as_mut();
            let connection = connection.expect("self-sends end at once");
            // SAFETY: `new`'s caller vouches for the payload.
            match unsafe { connection.poll_send(&mut self.message) } {
                Ok(Progress::Done) => {
                    self.stage = SendStage::Done;
                    return Ok(Progress::Done);
                }
                Ok(Progress::Moved) => return Ok(Progress::Moved),
                Ok(Progress::Idle) => {}
                Err(error) => return Err(core.explain(self.to, error, &self.call.to_string())),
            }
        }
        self.idle_polls += 1;
        if self.idle_polls.is_multiple_of(IDLE_POLLS_PER_DRAIN) {
            core.drain_others(self.to, &self.call)?;
        }
        Ok(Progress::Idle)
    }

    fn awaited(&self, _core: &Core) -> Vec<Awaited> {
        match self.stage {
            SendStage::Done => Vec::new(),
            SendStage::Asking(_) => vec![Awaited {
                rank: self.to,
                to_send: false,
            }],
            SendStage::Sending => vec![Awaited {
                rank: self.to,
                to_send: true,
            }],
        }
    }
}

#[derive(Debug)]
pub(crate) struct RecvOperation {
    from: u32,
    tag: u32,
    call: Descriptor,
    buffer: *mut u8,
    stage: RecvStage,
    idle_polls: u32,
}

#[derive(Debug)]
enum RecvStage {
    Looking,
    /// For the payload of the request of this number.
    Granted(u64),
    Taking(Header, Incoming),
    Done,
}

impl RecvOperation {
    /// # Safety
    /// `buffer` is valid for writes of the call's elements until the operation is done or dropped.
    pub(crate) unsafe fn new(
        core: &mut Core,
        call: Descriptor,
        from: u32,
        tag: u32,
        buffer: *mut u8,
    ) -> Self {
        core.peers[from as usize].mailbox.recvs += 1;
        Self {
            from,
            tag,
            call,
            buffer,
            stage: RecvStage::Looking,
            idle_polls: 0,
        }
    }

    /// Takes the oldest message with the tag, if one has arrived.
    fn look(&mut self, core: &mut Core) -> Result<bool, Error> {
        let mailbox = &mut core.peers[self.from as usize].mailbox;
        let found = mailbox
            .unexpected
            .iter()
            .position(|message| message.header.tag == self.tag);
        if let Some(message) = found.and_then(|index| mailbox.unexpected.remove(index)) {
            let header = message.header;
            self.compare(core, &header)?;
            if header.kind == Kind::Request {
                core.post(self.from, control(header.descriptor, Kind::Grant, self.tag));
                self.stage = RecvStage::Granted(header.descriptor.sequence);
                return Ok(true);
            }
            let length = header.length_bytes as usize;
            // SAFETY: the body was made for the length, and `compare` found it to be the buffer's.
            unsafe {
                std::ptr::copy_nonoverlapping(message.body.as_ptr().cast(), self.buffer, length);
            }
            core.give_back(self.from, cost(header.length_bytes), &self.call)?;
            self.stage = RecvStage::Done;
            return Ok(true);
        }
        if self.from == core.rank {
            return Err(Error::Argument(format!(
                "recv from this rank itself: nothing with tag {} was sent before, and nobody else \
                 can send it",
                self.tag
            )));
        }
        let Some(header) = core.next_header(self.from, Some(self.tag), &self.call)? else {
            let mailbox = &core.peers[self.from as usize].mailbox;
            return Ok(mailbox
                .unexpected
                .iter()
                .any(|message| message.header.tag == self.tag));
        };
        // Something that came before it may have the same tag.
        let mailbox = &core.peers[self.from as usize].mailbox;
        if mailbox
            .unexpected
            .iter()
            .any(|message| message.header.tag == self.tag)
        {
            return Ok(true);
        }
        if header.kind != Kind::Eager {
            return Ok(false);
        }
        self.compare(core, &header)?;
        self.take(header);
        Ok(true)
    }

    fn take(&mut self, header: Header) {
        let sink = Sink::Copy {
            to: self.buffer,
            streaming: false,
        };
        self.stage = RecvStage::Taking(header, Incoming::new(sink));
    }

    /// Count and type must be those of the send.
    fn compare(&self, core: &Core, header: &Header) -> Result<(), Error> {
        let sent = header.descriptor;
        if (sent.count, sent.dtype) == (self.call.count, self.call.dtype) {
            return Ok(());
        }
        Err(Error::MessageMismatch {
            peer: core.identity(self.from),
            sent: Box::new(sent),
            expected: Box::new(self.call),
        })
    }
}

impl Operation for RecvOperation {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        if self.from != core.rank {
            core.flush_outbox(self.from, &self.call.to_string())?;
        }
        match &mut self.stage {
            RecvStage::Done => return Ok(Progress::Done),
            RecvStage::Looking => {
                if self.look(core)? {
                    return Ok(match self.stage {
                        RecvStage::Done => Progress::Done,
                        _ => Progress::Moved,
                    });
                }
            }
            RecvStage::Granted(number) => {
                let number = *number;
                if let Some(header) = core.next_header(self.from, None, &self.call)?
                    && header.kind == Kind::Granted
                    && header.descriptor.sequence == number
                {
                    self.compare(core, &header)?;
                    self.take(header);
                    return Ok(Progress::Moved);
                }
            }
            RecvStage::Taking(header, incoming) => {
                let header = *header;
                let connection = core.peers[self.from as usize].connection.as_mut();
                let connection = connection.expect("self-receives end at once");
                // SAFETY: `new`'s caller vouches for the buffer, whose length `compare` checked.
                match unsafe { connection.poll_payload(incoming) } {
                    Ok(Progress::Done) => {
                        if header.kind == Kind::Eager {
                            core.give_back(self.from, cost(header.length_bytes), &self.call)?;
                        }
                        self.stage = RecvStage::Done;
                        core.flush_outbox(self.from, &self.call.to_string())?;
                        return Ok(Progress::Done);
                    }
                    Ok(Progress::Moved) => return Ok(Progress::Moved),
                    Ok(Progress::Idle) => return Ok(Progress::Idle),
                    Err(error) => {
                        return Err(core.explain(self.from, error, &self.call.to_string()));
                    }
                }
            }
        }
        self.idle_polls += 1;
        if self.idle_polls.is_multiple_of(IDLE_POLLS_PER_DRAIN) {
            core.drain_others(self.from, &self.call)?;
        }
        Ok(Progress::Idle)
    }

    fn awaited(&self, _core: &Core) -> Vec<Awaited> {
        match self.stage {
            RecvStage::Done => Vec::new(),
            _ => vec![Awaited {
                rank: self.from,
                to_send: false,
            }],
        }
    }
}
