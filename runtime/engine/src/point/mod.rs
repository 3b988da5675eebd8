//! Send and recv.
//!
//! A small message goes at once, on credit: the receiver keeps it until it is asked for, and at
//! most [`CREDIT_BYTES`] a pair are kept. A larger one, or one past the credit, is announced by a
//! request and sent when the receiver has granted it, straight into its buffer. So nothing a peer
//! sends can fill this rank's memory, and whatever a call waits for, what peers sent before is
//! taken from the connection.

mod matching;
mod recv;
mod send;

use std::collections::VecDeque;

use rlaunch_transport::{Header, Incoming, Kind, Progress, Sink};
use rlaunch_wire::{Collective, DType, Descriptor};

use crate::Error;
use crate::core::Core;

pub(crate) use recv::RecvOperation;
pub(crate) use send::SendOperation;

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
            if rank != except && rank != self.rank && !self.peers[rank as usize].has_left {
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
