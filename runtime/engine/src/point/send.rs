//! One send: eager on credit, else by request and grant.

use rlaunch_transport::{Header, Kind, Outgoing, Progress};
use rlaunch_wire::Descriptor;

use super::{EAGER_BYTES_MAX, IDLE_POLLS_PER_DRAIN, Unexpected, cost};
use crate::Error;
use crate::core::Core;
use crate::wait::{Awaited, Operation};

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
        // The peer's grant, and what it sent before. First, since a peer that can't get rid of its
        // messages would not take ours.
        core.next_header(self.to, None, &self.call)?;
        if !self.message.is_begun() && !core.flush_outbox(self.to, &self.call.to_string())? {
            return Ok(Progress::Idle);
        }
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
