//! One receive: from what was kept, or straight from the connection.

use rlaunch_transport::{Header, Incoming, Kind, Progress, Sink};
use rlaunch_wire::Descriptor;

use super::{IDLE_POLLS_PER_DRAIN, control, cost};
use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};

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
