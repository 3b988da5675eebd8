//! What was received of a stream and not yet taken.
//!
//! Frame headers and small messages are read ahead, one system call for many; a payload that is to
//! be reduced goes through here too and is reduced while it is in the cache.

use std::net::TcpStream;

use super::frame::Frame;
use super::socket::receive;
use crate::{ConnectionError, HEADER_BYTES, Incoming, Sink};

#[derive(Debug)]
pub(super) struct ReadAhead {
    /// Words, so that elements in it are aligned. Empty until first used.
    words: Box<[u64]>,
    start: usize,
    end: usize,
    /// The socket gave less than was asked for: nothing more is there for now.
    is_drained: bool,
    /// Whether the last two payloads were reduced, the last one first.
    reductions: [bool; 2],
}

/// A segment of a schedule with its header and the next one, and still at home in an L2 cache
/// beside what it is reduced with.
pub(super) const BUFFER_BYTES: usize = 132 * 1024;
/// Read along with a header where nothing is known of what follows: many small messages, and of a
/// large one not much that would be copied twice. What is only copied is better received straight
/// into its place.
const UNKNOWN_BYTES: usize = 8 * 1024;
/// The same where a reduction is likely, whose payload has to come in here anyway.
const REDUCTION_BYTES: usize = 64 * 1024 + HEADER_BYTES;
/// A copy of at least this much is received straight into its place.
const DIRECT_BYTES_MIN: usize = 4096;

impl ReadAhead {
    pub(super) fn new() -> Self {
        Self {
            words: Box::default(),
            start: 0,
            end: 0,
            is_drained: false,
            reductions: [false; 2],
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let bytes = self.words.len() * 8;
        // SAFETY: the words are initialised, and bytes have no alignment or invalid values.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), bytes) }
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether another attempt right now would find nothing; spares a system call.
    pub(super) fn is_drained(&self) -> bool {
        self.is_drained && self.len() < HEADER_BYTES
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Moves what is left to the start, which is aligned for every element type.
    fn compact(&mut self) {
        if self.start > 0 {
            let range = self.start..self.end;
            self.bytes().copy_within(range, 0);
            (self.start, self.end) = (0, self.len());
        }
    }

    /// Receives up to `limit` bytes behind what is here; false if nothing is there.
    pub(super) fn fill(
        &mut self,
        stream: &TcpStream,
        limit: usize,
    ) -> Result<bool, ConnectionError> {
        if self.words.is_empty() {
            self.words = vec![0; BUFFER_BYTES / 8].into_boxed_slice();
        }
        if self.start == self.end {
            self.clear();
        }
        let end = self.end;
        let limit = limit.min(BUFFER_BYTES - end);
        let count = receive(stream, &mut self.bytes()[end..end + limit], &mut [])?;
        self.end += count.unwrap_or(0);
        self.is_drained = count.unwrap_or(0) < limit;
        Ok(count.is_some())
    }

    /// The frame that comes next, once its header is here; it stays until [`ReadAhead::skip_header`].
    pub(super) fn frame(&mut self, stream: &TcpStream) -> Result<Option<Frame>, ConnectionError> {
        if self.len() < HEADER_BYTES {
            if BUFFER_BYTES - self.start < HEADER_BYTES {
                self.compact();
            }
            // Schedules take the same kind every time, or reduce and copy by turns.
            let limit = if self.reductions[1] {
                REDUCTION_BYTES
            } else {
                UNKNOWN_BYTES
            };
            if !self.fill(stream, limit)? || self.len() < HEADER_BYTES {
                return Ok(None);
            }
        }
        let start = self.start;
        let bytes = &self.bytes()[start..start + HEADER_BYTES];
        Frame::decode(bytes.try_into().expect("a header's length"))
            .map(Some)
            .ok_or(ConnectionError::Malformed("header"))
    }

    pub(super) fn skip_header(&mut self) {
        assert!(self.len() >= HEADER_BYTES, "a header was read before");
        self.start += HEADER_BYTES;
    }

    /// Moves what is there of the payload's `remaining` bytes from `at` on to its sink; how many.
    /// Nothing is there if it is 0.
    ///
    /// # Safety
    /// The sink is valid up to `at + remaining`.
    pub(super) unsafe fn take(
        &mut self,
        stream: &TcpStream,
        incoming: &mut Incoming,
        at: usize,
        remaining: usize,
    ) -> Result<usize, ConnectionError> {
        if incoming.taken_bytes == 0 {
            let is_reduction = matches!(incoming.sink, Sink::Reduce { .. });
            self.reductions = [is_reduction, self.reductions[0]];
        }
        // SAFETY: as the caller vouches.
        let fed = unsafe { self.feed(incoming, at, remaining) };
        if fed > 0 {
            return Ok(fed);
        }
        if let Sink::Copy { to, .. } = incoming.sink
            && remaining >= DIRECT_BYTES_MIN
        {
            // SAFETY: as the caller vouches.
            let count = unsafe { self.receive_direct(stream, to.add(at), remaining)? };
            incoming.taken_bytes += count;
            return Ok(count);
        }
        // A reduction can leave a part of an element behind.
        self.compact();
        // The header that follows comes along.
        if !self.fill(stream, remaining + HEADER_BYTES)? {
            return Ok(0);
        }
        // SAFETY: as the caller vouches.
        let fed = unsafe { self.feed(incoming, at, remaining) };
        Ok(fed)
    }

    /// Feeds from what is here.
    ///
    /// # Safety
    /// As [`ReadAhead::take`].
    unsafe fn feed(&mut self, incoming: &mut Incoming, at: usize, remaining: usize) -> usize {
        let mut bytes = self.len().min(remaining);
        if let Sink::Reduce { dtype, .. } = incoming.sink {
            bytes -= bytes % dtype.size_bytes();
            if bytes > 0 && !self.start.is_multiple_of(dtype.size_bytes()) {
                self.compact();
            }
        }
        if bytes > 0 {
            let start = self.start;
            let from = self.bytes()[start..start + bytes].as_ptr();
            // SAFETY: these bytes are here; the caller vouches for the sink.
            unsafe { incoming.feed_at(at, from, bytes) };
            self.start += bytes;
        }
        bytes
    }

    /// Receives straight into a copy's place, and the header behind it in here.
    ///
    /// # Safety
    /// `to` is valid for writes of `remaining` bytes.
    unsafe fn receive_direct(
        &mut self,
        stream: &TcpStream,
        to: *mut u8,
        remaining: usize,
    ) -> Result<usize, ConnectionError> {
        debug_assert_eq!(self.len(), 0, "what is here was fed before");
        self.clear();
        // SAFETY: valid as the caller vouches; the bytes are only written, by the kernel.
        let place = unsafe { std::slice::from_raw_parts_mut(to, remaining) };
        let ahead_bytes = self.words.len().min(HEADER_BYTES / 8) * 8;
        let count = receive(stream, place, &mut self.bytes()[..ahead_bytes])?.unwrap_or(0);
        self.end = count.saturating_sub(remaining);
        self.is_drained = count < remaining + ahead_bytes;
        Ok(count.min(remaining))
    }
}
