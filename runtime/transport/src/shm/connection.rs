//! Messages between two ranks through their header slots and byte ring.
//!
//! A header slot is one cache line and carries the flag that publishes it, so a message of up to 8
//! bytes costs one line. Longer payloads go through the byte ring; what of them is there when the
//! header is published, the slot says itself, so a message that fits needs no other counter. Each
//! payload starts on a cache line. The receiver consumes in place and gives back the room.

use std::ffi::c_short;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::arena::{HEADER_SLOTS, LINE_BYTES, RING_BYTES};
use super::reference::{Given, Taken};
use super::{Arena, State, doorbell::ring};
use crate::{
    Capabilities, Connection, ConnectionError, HEADER_BYTES, Header, Incoming, OneSided, Outgoing,
    Progress,
};

/// One rank's end of the channel to a neighbour.
#[derive(Debug)]
pub struct ShmConnection {
    pub(super) arena: Arc<Arena>,
    pub(super) me: u32,
    pub(super) peer: u32,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

#[derive(Debug, Default)]
pub(super) struct Sender {
    pub(super) given: Given,
    ring_is_allocated: bool,
    headers: u64,
    written: u64,
    /// The receiver's counters when last looked at.
    headers_taken: u64,
    taken: u64,
}

#[derive(Debug, Default)]
pub(super) struct Receiver {
    pub(super) references: Taken,
    headers: u64,
    taken: u64,
    /// The sender's counter when last looked at.
    written: u64,
    current: Option<Current>,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    header: Header,
    /// The payload itself if it is inline.
    inline: [u8; INLINE_BYTES],
    is_reference: bool,
}

const INLINE_BYTES: usize = 8;
const FLAG_BYTES: usize = 8;
/// Published at a time, so that the peer starts on a message while it is still being written. Short
/// against what both copy, long against telling of it, and what was written stays in a core's cache.
const PIECE_BYTES: usize = 16 * 1024;

impl ShmConnection {
    pub fn new(arena: Arc<Arena>, me: u32, peer: u32) -> Self {
        Self {
            arena,
            me,
            peer,
            sender: Sender::default(),
            receiver: Receiver::default(),
        }
    }

    fn has_free_slot(&mut self) -> bool {
        let sender = &mut self.sender;
        if sender.headers - sender.headers_taken < HEADER_SLOTS {
            return true;
        }
        sender.headers_taken = self
            .arena
            .taken(self.me, self.peer)
            .1
            .load(Ordering::Acquire);
        sender.headers - sender.headers_taken < HEADER_SLOTS
    }

    /// Copies what fits of the payload into the ring, up to one piece; returns how much.
    ///
    /// # Safety
    /// As [`Connection::poll_send`].
    unsafe fn fill(&mut self, message: &mut Outgoing) -> Result<usize, ConnectionError> {
        if !self.sender.ring_is_allocated {
            self.arena
                .allocate_ring(self.me, self.peer)
                .map_err(|source| ConnectionError::Memory {
                    needed_bytes: RING_BYTES,
                    source,
                })?;
            self.sender.ring_is_allocated = true;
        }
        let remaining = message.remaining_bytes();
        let wanted = remaining.min(PIECE_BYTES);
        let mut room = RING_BYTES - (self.sender.written - self.sender.taken) as usize;
        if room < wanted {
            self.sender.taken = self
                .arena
                .taken(self.me, self.peer)
                .0
                .load(Ordering::Acquire);
            room = RING_BYTES - (self.sender.written - self.sender.taken) as usize;
        }
        let at = self.sender.written as usize % RING_BYTES;
        let bytes = wanted.min(room).min(RING_BYTES - at);
        if bytes == 0 {
            return Ok(0);
        }
        // What is abandoned goes out as whatever the ring held.
        if !message.is_abandoned() {
            // SAFETY: `at + bytes` lies inside the ring, and the receiver has given this part back;
            // the payload is valid as the caller vouches.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    message.payload.add(message.payload_sent_bytes),
                    self.arena.ring(self.me, self.peer).add(at).as_ptr(),
                    bytes,
                );
            }
        }
        message.payload_sent_bytes += bytes;
        self.sender.written += bytes as u64;
        if message.remaining_bytes() == 0 {
            self.sender.written = self.sender.written.next_multiple_of(LINE_BYTES as u64);
        }
        Ok(bytes)
    }

    fn publish_header(&mut self, header: &Header, last: [u8; INLINE_BYTES]) {
        let slot = self
            .arena
            .header_slot(self.me, self.peer, self.sender.headers);
        let bytes = header.encode();
        // SAFETY: the slot was given back by the receiver (has_free_slot); flag, header and last
        // word fill its line exactly.
        unsafe {
            slot.add(FLAG_BYTES)
                .copy_from_nonoverlapping(NonNull::from(&bytes).cast(), HEADER_BYTES);
        }
        // SAFETY: as above.
        unsafe {
            slot.add(FLAG_BYTES + HEADER_BYTES)
                .copy_from_nonoverlapping(NonNull::from(&last).cast(), INLINE_BYTES);
        }
        self.sender.headers += 1;
        flag(slot).store(self.sender.headers, Ordering::Release);
    }

    /// Publishes the header, with as much of the payload as fits now.
    ///
    /// # Safety
    /// As [`Connection::poll_send`].
    unsafe fn begin(&mut self, message: &mut Outgoing) -> Result<(), ConnectionError> {
        let length = message.header.length_bytes as usize;
        let mut last = [0; INLINE_BYTES];
        if length <= INLINE_BYTES {
            if !message.is_abandoned() {
                let from = message.payload;
                // SAFETY: the payload is valid for its length, which fits.
                unsafe { std::ptr::copy_nonoverlapping(from, last.as_mut_ptr(), length) };
            }
            message.payload_sent_bytes = length;
        } else if let Some(reference) = self.reference_to(message) {
            last = reference.to_le_bytes();
        } else {
            // SAFETY: the caller vouches for the payload.
            unsafe { self.fill(message)? };
            last = self.sender.written.to_le_bytes();
        }
        self.publish_header(&message.header, last);
        message.header_sent_bytes = HEADER_BYTES;
        Ok(())
    }
}

impl Connection for ShmConnection {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "shm",
            one_sided: false,
            registers_host: false,
            registers_device: false,
            completion: None,
            consumes_in_place: true,
            buffered_bytes: RING_BYTES,
        }
    }

    unsafe fn poll_send(&mut self, message: &mut Outgoing) -> Result<Progress, ConnectionError> {
        let mut moved = false;
        if !message.is_begun() {
            if !self.has_free_slot() {
                return Ok(Progress::Idle);
            }
            // SAFETY: the caller vouches for the payload.
            unsafe { self.begin(message)? };
            moved = true;
            ring(&self.arena, self.me, self.peer);
        }
        if self.is_giving() {
            let progress = self.poll_given(message)?;
            return Ok(match progress {
                Progress::Idle if moved => Progress::Moved,
                progress => progress,
            });
        }
        while message.remaining_bytes() > 0 {
            // SAFETY: the caller vouches for the payload.
            if unsafe { self.fill(message)? } == 0 {
                return Ok(if moved {
                    Progress::Moved
                } else {
                    Progress::Idle
                });
            }
            moved = true;
            self.arena
                .written(self.me, self.peer)
                .store(self.sender.written, Ordering::Release);
            ring(&self.arena, self.me, self.peer);
        }
        Ok(Progress::Done)
    }

    fn poll_header(&mut self) -> Result<Option<Header>, ConnectionError> {
        if let Some(current) = &self.receiver.current {
            return Ok(Some(current.header));
        }
        let slot = self
            .arena
            .header_slot(self.peer, self.me, self.receiver.headers);
        if flag(slot).load(Ordering::Acquire) != self.receiver.headers + 1 {
            return Ok(None);
        }
        // SAFETY: the flag says that the sender has written the slot and won't again before it is
        // given back.
        let bytes: [u8; HEADER_BYTES] = unsafe { slot.add(FLAG_BYTES).cast().read() };
        // SAFETY: as above.
        let inline: [u8; INLINE_BYTES] =
            unsafe { slot.add(FLAG_BYTES + HEADER_BYTES).cast().read() };
        let header = Header::decode(&bytes).ok_or(ConnectionError::Malformed("header"))?;
        let last = u64::from_le_bytes(inline);
        let is_long = header.length_bytes > INLINE_BYTES as u64;
        let is_reference = is_long && self.note_reference(&header, last);
        if is_long && !is_reference {
            self.receiver.written = self.receiver.written.max(last);
        }
        self.receiver.headers += 1;
        self.receiver.current = Some(Current {
            header,
            inline,
            is_reference,
        });
        let (_, headers_taken) = self.arena.taken(self.peer, self.me);
        headers_taken.store(self.receiver.headers, Ordering::Release);
        if self.receiver.headers.is_multiple_of(HEADER_SLOTS / 2) {
            // The sender may wait for a free slot.
            ring(&self.arena, self.me, self.peer);
        }
        Ok(Some(header))
    }

    unsafe fn poll_payload(
        &mut self,
        incoming: &mut Incoming,
    ) -> Result<Progress, ConnectionError> {
        let Some(current) = self.receiver.current else {
            return Ok(Progress::Idle);
        };
        let length = current.header.length_bytes as usize;
        if length <= INLINE_BYTES {
            // SAFETY: the inline bytes are a copy of ours; the caller vouches for the sink.
            unsafe { incoming.feed(current.inline.as_ptr(), length) };
            self.receiver.current = None;
            return Ok(Progress::Done);
        }
        if current.is_reference {
            // SAFETY: the caller vouches for the sink.
            let progress = unsafe { self.poll_reference(incoming, length)? };
            if progress == Progress::Done {
                self.receiver.current = None;
            }
            return Ok(progress);
        }
        let mut moved = false;
        while incoming.taken_bytes < length {
            // SAFETY: the caller vouches for the sink.
            if !unsafe { self.consume(incoming, length)? } {
                return Ok(if moved {
                    Progress::Moved
                } else {
                    Progress::Idle
                });
            }
            moved = true;
        }
        self.receiver.current = None;
        Ok(Progress::Done)
    }

    fn withdraw_payload(&mut self) {
        self.withdraw();
    }

    fn wait_on(&self, _to_send: bool, _on: &mut Vec<(RawFd, c_short)>) -> bool {
        false
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn stream(&self) -> Option<RawFd> {
        None
    }

    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    fn poll_close(&mut self) -> Result<Progress, ConnectionError> {
        self.arena.set_state(self.me, State::Left);
        ring(&self.arena, self.me, self.peer);
        Ok(Progress::Done)
    }
}

impl ShmConnection {
    /// Feeds the next contiguous part that is there, up to one piece; false if there is none.
    ///
    /// # Safety
    /// The sink is valid for the message.
    unsafe fn consume(
        &mut self,
        incoming: &mut Incoming,
        length: usize,
    ) -> Result<bool, ConnectionError> {
        let receiver = &mut self.receiver;
        if receiver.written == receiver.taken {
            let counter = self
                .arena
                .written(self.peer, self.me)
                .load(Ordering::Acquire);
            // A header may have told of more than the counter does yet.
            receiver.written = receiver.written.max(counter);
        }
        let there = receiver.written.saturating_sub(receiver.taken) as usize;
        if there > RING_BYTES {
            return Err(ConnectionError::Malformed("more bytes than the ring holds"));
        }
        let at = receiver.taken as usize % RING_BYTES;
        let remaining = length - incoming.taken_bytes;
        let bytes = there.min(remaining).min(RING_BYTES - at).min(PIECE_BYTES);
        if bytes == 0 {
            return Ok(false);
        }
        // SAFETY: the sender published these bytes and leaves them alone until they are given
        // back; `at + bytes` lies inside the ring; the caller vouches for the sink.
        unsafe { incoming.feed(self.arena.ring(self.peer, self.me).add(at).as_ptr(), bytes) };
        receiver.taken += bytes as u64;
        if bytes == remaining {
            receiver.taken = receiver.taken.next_multiple_of(LINE_BYTES as u64);
        }
        self.arena
            .taken(self.peer, self.me)
            .0
            .store(receiver.taken, Ordering::Release);
        ring(&self.arena, self.me, self.peer);
        Ok(true)
    }
}

fn flag<'a>(slot: NonNull<u8>) -> &'a AtomicU64 {
    // SAFETY: slots are cache lines inside the mapping that the caller's arena keeps; the first 8
    // bytes are only ever used as an atomic.
    unsafe { slot.cast().as_ref() }
}
