//! Messages by reference: the header tells where the payload lies in the sender's own memory, and the
//! receiver takes it from there, without a copy through the ring.
//!
//! Only messages that a receive has asked for go this way: the sender can't go on before they are
//! taken. While it waits it helps, see [`super::claims`]. References of a pair are numbered; the number
//! is the turn of their claims.
//! ```text
//! sender                        receiver
//! header (address) ───────────► destination, ready
//! helps: writes pieces          reads pieces
//!                  ◄─────────── done
//! ```
//! A sender that gives up tells so (`withdrawn`) before its memory is used otherwise: what the receiver
//! then finds is filler, as in the ring.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::claims::{Claims, End, Pieces};
use super::{ShmConnection, doorbell::ring};
use crate::{ConnectionError, Header, Incoming, Kind, Outgoing, Progress, Sink};

/// Shorter payloads pass through the ring sooner.
const WORTH_BYTES: u64 = 8 * 1024;
/// In the header's last word: an address follows, not a count of the ring.
const REFERENCE: u64 = 1 << 63;
/// Read at a time for a sink that is no plain place.
const SCRATCH_BYTES: usize = 64 * 1024;

/// The words of a pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct References<'a> {
    /// Given up by the sender, up to this number.
    pub(super) withdrawn: &'a AtomicU64,
    /// Taken by the receiver, up to this number.
    pub(super) done: &'a AtomicU64,
    /// Where the receiver wants the one of number `ready`.
    pub(super) destination: &'a AtomicU64,
    pub(super) ready: &'a AtomicU64,
    pub(super) claims: &'a AtomicU64,
    pub(super) written: &'a AtomicU64,
}

impl<'a> References<'a> {
    fn claims(&self, number: u64) -> Claims<'a> {
        Claims {
            claims: self.claims,
            written: self.written,
            turn: number as u32,
        }
    }
}

/// Of a sender: messages by reference.
#[derive(Debug, Default)]
pub(super) struct Given {
    count: u64,
    /// The last one is not taken yet.
    is_under_way: bool,
}

/// Of a receiver.
#[derive(Debug, Default)]
pub(super) struct Taken {
    count: u64,
    /// The sender knows that this rank reaches it.
    has_told: bool,
    fetch: Option<Fetch>,
}

/// The payload under way.
#[derive(Debug)]
struct Fetch {
    address: u64,
    /// The first piece has been read, and the sender may help.
    is_begun: bool,
}

impl ShmConnection {
    /// Whether the message goes by reference; if so, the last word of its header.
    pub(super) fn reference_to(&mut self, message: &Outgoing) -> Option<u64> {
        let header = &message.header;
        let is_worth = header.kind == Kind::Granted && header.length_bytes >= WORTH_BYTES;
        if !is_worth
            || message.is_abandoned()
            || self.arena.reaches(self.peer).load(Ordering::Acquire) == 0
            || self.arena.reach().is_none()
        {
            return None;
        }
        let given = &mut self.sender.given;
        given.count += 1;
        given.is_under_way = true;
        Some(message.payload as u64 | REFERENCE)
    }

    pub(super) fn is_giving(&self) -> bool {
        self.sender.given.is_under_way
    }

    /// Goes on with the message that was sent by reference.
    pub(super) fn poll_given(
        &mut self,
        message: &mut Outgoing,
    ) -> Result<Progress, ConnectionError> {
        let number = self.sender.given.count;
        let words = self.arena.references(self.me, self.peer);
        if words.done.load(Ordering::Acquire) >= number {
            self.sender.given.is_under_way = false;
            message.payload_sent_bytes = message.header.length_bytes as usize;
            return Ok(Progress::Done);
        }
        if message.is_abandoned() {
            words.withdrawn.store(number, Ordering::Release);
            return Ok(Progress::Idle);
        }
        if words.ready.load(Ordering::Acquire) != number {
            return Ok(Progress::Idle);
        }
        let claims = words.claims(number);
        let pieces = Pieces::of(message.header.length_bytes as usize);
        // Looked at once more, as late as can be.
        let claimed = claims.claim(&pieces, End::Back);
        let Some(piece) = claimed.filter(|_| !claims.is_withdrawn()) else {
            return Ok(Progress::Idle);
        };
        let range = pieces.range(piece);
        let to = words.destination.load(Ordering::Relaxed) + range.start as u64;
        let from = message.payload.wrapping_add(range.start);
        let Some(reach) = self.arena.reach() else {
            return Ok(Progress::Idle);
        };
        // SAFETY: the payload is valid as the caller of `poll_send` vouches; the receiver ends its
        // receive only when what was claimed is written.
        match unsafe { reach.write(self.peer, from, to, range.len()) } {
            Ok(()) => {
                claims.tell_written();
                ring(&self.arena, self.me, self.peer);
                Ok(Progress::Moved)
            }
            Err(error) => self.blame(error, claims.is_withdrawn()),
        }
    }

    /// Memory could not be copied. Where the peer's process has ended, word of that is under way.
    fn blame(&self, error: io::Error, is_withdrawn: bool) -> Result<Progress, ConnectionError> {
        let reach = self.arena.reach();
        let is_there = reach.is_some_and(|reach| reach.is_there(self.peer));
        if is_withdrawn || !is_there {
            return Ok(Progress::Idle);
        }
        Err(ConnectionError::reach(error))
    }

    /// Of a header's last word: where its payload lies, if it came by reference.
    pub(super) fn note_reference(&mut self, header: &Header, last: u64) -> bool {
        let is_reference = last & REFERENCE != 0;
        if is_reference {
            self.receiver.references.count += 1;
            self.receiver.references.fetch = Some(Fetch {
                address: last & !REFERENCE,
                is_begun: false,
            });
        } else if header.length_bytes >= WORTH_BYTES && !self.receiver.references.has_told {
            // The next long one may come by reference.
            self.receiver.references.has_told = true;
            if self.arena.reach().is_some() {
                self.arena.reaches(self.me).store(1, Ordering::Release);
            }
        }
        is_reference
    }

    /// Goes on with the payload under way, if it came by reference.
    ///
    /// # Safety
    /// As [`crate::Connection::poll_payload`].
    pub(super) unsafe fn poll_reference(
        &mut self,
        incoming: &mut Incoming,
        length: usize,
    ) -> Result<Progress, ConnectionError> {
        let result = match incoming.sink {
            Sink::Discard => Ok(true),
            // SAFETY: as the caller vouches.
            Sink::Copy { to, .. } => unsafe { self.fetch(to, length) },
            // SAFETY: as the caller vouches.
            Sink::Reduce { .. } => unsafe { self.feed_all(incoming, length) }.map(|()| true),
        };
        let number = self.receiver.references.count;
        let words = self.arena.references(self.peer, self.me);
        match result {
            Ok(true) => {}
            Ok(false) => return Ok(Progress::Idle),
            // Filler, as in the ring.
            Err(_) if words.withdrawn.load(Ordering::Acquire) >= number => {}
            Err(error) => return self.blame(error, false),
        }
        incoming.taken_bytes = length;
        self.receiver.references.fetch = None;
        words.done.store(number, Ordering::Release);
        ring(&self.arena, self.me, self.peer);
        Ok(Progress::Done)
    }

    /// Reads pieces until none is left; true once all is at `to`.
    ///
    /// # Safety
    /// `to` is valid for the payload's length.
    unsafe fn fetch(&mut self, to: *mut u8, length: usize) -> io::Result<bool> {
        let (me, peer) = (self.me, self.peer);
        let Some(fetch) = &mut self.receiver.references.fetch else {
            return Ok(true);
        };
        let words = self.arena.references(peer, me);
        let number = self.receiver.references.count;
        let (claims, pieces) = (words.claims(number), Pieces::of(length));
        let reach = self.arena.reach().ok_or(io::ErrorKind::Unsupported)?;
        let read = |piece: u16| {
            let range = pieces.range(piece);
            let from = fetch.address + range.start as u64;
            // SAFETY: inside of the payload; nobody else writes this piece of its place.
            unsafe { reach.read(peer, from, to.add(range.start), range.len()) }
        };
        if !fetch.is_begun {
            if pieces.count > 1 {
                words.destination.store(to as u64, Ordering::Relaxed);
                words.ready.store(number, Ordering::Release);
                ring(&self.arena, self.me, peer);
            }
            read(0)?;
        }
        while let Some(piece) = claims.claim(&pieces, End::Front) {
            read(piece)?;
        }
        fetch.is_begun = true;
        Ok(claims.is_all_written())
    }

    /// Reads all for a sink that is no plain place.
    ///
    /// # Safety
    /// The sink is valid for the payload's length.
    unsafe fn feed_all(&self, incoming: &mut Incoming, length: usize) -> io::Result<()> {
        let Some(fetch) = &self.receiver.references.fetch else {
            return Ok(());
        };
        let reach = self.arena.reach().ok_or(io::ErrorKind::Unsupported)?;
        let mut scratch = vec![0; SCRATCH_BYTES.min(length)];
        while incoming.taken_bytes < length {
            let from = fetch.address + incoming.taken_bytes as u64;
            let bytes = SCRATCH_BYTES.min(length - incoming.taken_bytes);
            // SAFETY: the scratch has room; the sink as the caller vouches.
            unsafe {
                reach.read(self.peer, from, scratch.as_mut_ptr(), bytes)?;
                incoming.feed(scratch.as_ptr(), bytes);
            }
        }
        Ok(())
    }

    /// The place that the payload under way goes to is not to be written any more.
    pub(super) fn withdraw(&self) {
        let references = &self.receiver.references;
        if references.fetch.is_none() {
            return;
        }
        let reach = self.arena.reach();
        let is_there = || reach.is_some_and(|reach| reach.is_there(self.peer));
        let words = self.arena.references(self.peer, self.me);
        words.claims(references.count).withdraw(is_there);
    }
}
