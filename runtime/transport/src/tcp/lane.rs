//! One socket of a connection, and what of a striped message is on its way over it.

use std::net::TcpStream;

use super::frame::{Chunk, Frame};
use super::read_ahead::ReadAhead;
use super::socket::{delivered_bytes_per_s, limit_unsent_bytes, send};
use crate::{ConnectionError, HEADER_BYTES, Incoming, Outgoing};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) stream: TcpStream,
    pub(super) ahead: ReadAhead,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    /// The next frame belongs to what is not yet wanted.
    is_parked: bool,
    /// Unsent bytes that the kernel takes at most.
    unsent_bytes_max: usize,
}

#[derive(Debug)]
struct Sending {
    frame: [u8; HEADER_BYTES],
    frame_sent_bytes: usize,
    /// Of the message's payload.
    next: usize,
    end: usize,
}

#[derive(Debug)]
struct Receiving {
    next: usize,
    end: usize,
}

/// Longer than a sender is off its core, most often; short against a message that is worth several
/// sockets.
const UNSENT_MS: usize = 4;
/// A few chunks, so that the kernel always has whole segments to send.
const UNSENT_BYTES_MIN: usize = 192 * 1024;
const UNSENT_BYTES_MAX: usize = 4 << 20;

/// Stands for the rest of a payload that its sender has given up.
pub(super) static FILLER: [u8; 16 * 1024] = [0; 16 * 1024];

impl Lane {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            ahead: ReadAhead::new(),
            sending: None,
            receiving: None,
            is_parked: false,
            unsent_bytes_max: 0,
        }
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Whether reading on makes sense before the current message is done.
    pub(super) fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// Has the kernel take no more unsent bytes than leave in a few milliseconds at the socket's rate:
    /// what it has taken, no other socket can send.
    pub(super) fn keep_short(&mut self) {
        let rate = delivered_bytes_per_s(&self.stream);
        let wanted = (rate / 1000 * UNSENT_MS).clamp(UNSENT_BYTES_MIN, UNSENT_BYTES_MAX);
        // Small changes are not worth a call.
        if wanted.abs_diff(self.unsent_bytes_max) > self.unsent_bytes_max / 4 {
            self.unsent_bytes_max = wanted;
            limit_unsent_bytes(&self.stream, wanted);
        }
    }

    /// Takes a part of the payload to send.
    pub(super) fn begin(&mut self, chunk: Chunk) {
        assert!(self.sending.is_none(), "one chunk at a time");
        self.sending = Some(Sending {
            frame: Frame::Chunk(chunk).encode(),
            frame_sent_bytes: 0,
            next: chunk.offset as usize,
            end: (chunk.offset + chunk.length) as usize,
        });
    }

    /// Takes back a chunk of which nothing has left.
    pub(super) fn withdraw(&mut self) {
        let begun = self.sending.take();
        debug_assert!(begun.is_none_or(|sending| sending.frame_sent_bytes == 0));
    }

    /// Sends on of the chunk; whether bytes left.
    ///
    /// # Safety
    /// The message's payload is valid for its length, unless abandoned.
    pub(super) unsafe fn poll_chunk(
        &mut self,
        message: &Outgoing,
    ) -> Result<bool, ConnectionError> {
        let Some(sending) = &mut self.sending else {
            return Ok(false);
        };
        let remaining = sending.end - sending.next;
        // SAFETY: the chunk lies in the payload; the caller vouches for it.
        let payload = unsafe { part(message, sending.next, remaining) };
        let head = &sending.frame[sending.frame_sent_bytes..];
        let Some(sent) = send(&self.stream, head, payload)? else {
            return Ok(false);
        };
        let of_frame = sent.min(head.len());
        sending.frame_sent_bytes += of_frame;
        sending.next += sent - of_frame;
        if sending.next == sending.end {
            self.sending = None;
        }
        Ok(true)
    }

    /// Takes what has come of striped message `number`; whether bytes moved.
    ///
    /// # Safety
    /// The sink is valid for `length`.
    pub(super) unsafe fn take_chunks(
        &mut self,
        incoming: &mut Incoming,
        number: u64,
        length: usize,
    ) -> Result<bool, ConnectionError> {
        if self.receiving.is_none() && !self.begin_chunk(number, length)? {
            return Ok(false);
        }
        let Some(chunk) = &mut self.receiving else {
            return Ok(false);
        };
        let (at, remaining) = (chunk.next, chunk.end - chunk.next);
        // SAFETY: the chunk lies in the message as was checked; the caller vouches for the sink.
        let taken = unsafe { self.ahead.take(&self.stream, incoming, at, remaining)? };
        chunk.next += taken;
        if chunk.next == chunk.end {
            self.receiving = None;
        }
        Ok(taken > 0)
    }

    /// Reads the header of the next chunk, if it is of this message.
    fn begin_chunk(&mut self, number: u64, length: usize) -> Result<bool, ConnectionError> {
        self.is_parked = false;
        match self.ahead.frame(&self.stream)? {
            Some(Frame::Chunk(chunk)) if chunk.message == number => {
                let end = (chunk.offset + chunk.length) as usize;
                if end > length {
                    return Err(ConnectionError::Malformed("a chunk past its message's end"));
                }
                self.ahead.skip_header();
                self.receiving = Some(Receiving {
                    next: chunk.offset as usize,
                    end,
                });
                Ok(true)
            }
            Some(Frame::Chunk(chunk)) if chunk.message < number => Err(ConnectionError::Malformed(
                "a chunk of a message that is complete",
            )),
            Some(_) => {
                self.is_parked = true;
                Ok(false)
            }
            None => Ok(false),
        }
    }
}

/// `bytes` of the message's payload from `at` on, or filler once it is abandoned.
///
/// # Safety
/// The payload is valid for `at + bytes` unless abandoned, for as long as the result is used.
pub(super) unsafe fn part(message: &Outgoing, at: usize, bytes: usize) -> &[u8] {
    if bytes == 0 {
        &[]
    } else if message.is_abandoned() {
        &FILLER[..bytes.min(FILLER.len())]
    } else {
        // SAFETY: the caller vouches for the payload.
        unsafe { std::slice::from_raw_parts(message.payload.add(at), bytes) }
    }
}
