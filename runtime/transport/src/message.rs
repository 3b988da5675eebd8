//! What travels on a connection, and where it goes.
//!
//! ```text
//! 0             32       40    44     45      48
//! | descriptor  | length | tag | kind | zero  |  length bytes …
//! ```

use rlaunch_wire::{DType, Descriptor, Op};

pub const HEADER_BYTES: usize = 48;

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A step of a collective.
    Collective = 1,
    /// A whole point-to-point message, sent on credit.
    Eager = 2,
    /// A point-to-point message waits at the sender; no payload.
    Request = 3,
    /// The sender of a [`Kind::Request`] may send; no payload.
    Grant = 4,
    /// The payload that was granted.
    Granted = 5,
    /// Eager bytes that were taken and may be sent again; the count is the descriptor's.
    Credit = 6,
    /// The sender has finalized; nothing follows.
    Leave = 7,
    /// What survivors of a failure tell each other; the payload is the engine's.
    Ballot = 8,
}

impl Kind {
    fn from_code(code: u8) -> Option<Self> {
        [
            Self::Collective,
            Self::Eager,
            Self::Request,
            Self::Grant,
            Self::Granted,
            Self::Credit,
            Self::Leave,
            Self::Ballot,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == code)
    }
}

/// What stands in front of every payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub descriptor: Descriptor,
    pub length_bytes: u64,
    pub tag: u32,
    pub kind: Kind,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..32].copy_from_slice(&self.descriptor.encode());
        bytes[32..40].copy_from_slice(&self.length_bytes.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.tag.to_le_bytes());
        bytes[44] = self.kind as u8;
        bytes
    }

    /// `None` for bytes that no rank of this version writes.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        if bytes[45..] != [0; 3] {
            return None;
        }
        Some(Self {
            descriptor: Descriptor::decode(bytes[..32].try_into().expect("32 bytes"))?,
            length_bytes: u64::from_le_bytes(bytes[32..40].try_into().expect("8 bytes")),
            tag: u32::from_le_bytes(bytes[40..44].try_into().expect("4 bytes")),
            kind: Kind::from_code(bytes[44])?,
        })
    }
}

/// A message being sent: which part of it has left.
#[derive(Debug)]
pub struct Outgoing {
    pub header: Header,
    pub payload: *const u8,
    pub(crate) header_sent_bytes: usize,
    pub(crate) payload_sent_bytes: usize,
    is_abandoned: bool,
}

// SAFETY: the pointer is only followed inside `poll_send`, whose caller vouches for it.
unsafe impl Send for Outgoing {}

impl Outgoing {
    pub fn new(header: Header, payload: *const u8) -> Self {
        Self {
            header,
            payload,
            header_sent_bytes: 0,
            payload_sent_bytes: 0,
            is_abandoned: false,
        }
    }

    /// Gives the payload up: what has not left yet goes out as filler of the same length, so that
    /// the messages after it keep their places. The payload is not read any more.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
        self.payload = std::ptr::null();
    }

    /// Whether the rest is filler; see [`Outgoing::abandon`].
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// Whether the peer may have seen a part of it already.
    pub fn is_begun(&self) -> bool {
        self.header_sent_bytes > 0
    }

    pub(crate) fn remaining_bytes(&self) -> usize {
        self.header.length_bytes as usize - self.payload_sent_bytes
    }
}

/// Where a payload goes.
#[derive(Debug, Clone, Copy)]
pub enum Sink {
    /// `to` becomes the payload. `streaming`: it is too large to be worth room in the cache.
    Copy { to: *mut u8, streaming: bool },
    /// `to = local op payload`, or the other way round, element by element; `to` may be `local`.
    Reduce {
        dtype: DType,
        op: Op,
        local: *const u8,
        to: *mut u8,
        payload_first: bool,
    },
    /// Nobody wants the payload; it only makes room for what follows.
    Discard,
}

/// A message being received: which part of it was taken.
#[derive(Debug)]
pub struct Incoming {
    pub sink: Sink,
    pub(crate) taken_bytes: usize,
}

// SAFETY: the sink's pointers are only followed inside `poll_payload`, whose caller vouches for
// them.
unsafe impl Send for Incoming {}

impl Incoming {
    pub fn new(sink: Sink) -> Self {
        Self {
            sink,
            taken_bytes: 0,
        }
    }

    /// The rest is of no use to anybody; the sink's pointers are not followed any more.
    pub fn discard(&mut self) {
        self.sink = Sink::Discard;
    }

    /// Feeds the next `bytes` of the payload; for a reduction a whole number of elements.
    ///
    /// # Safety
    /// As [`Incoming::feed_at`], for what comes next.
    pub unsafe fn feed(&mut self, from: *const u8, bytes: usize) {
        // SAFETY: as the caller vouches.
        unsafe { self.feed_at(self.taken_bytes, from, bytes) };
    }

    /// Feeds `bytes` of the payload that begin at `at`, each once; for a reduction whole elements.
    ///
    /// # Safety
    /// `from` is valid for `bytes`, the sink's pointers for `at + bytes`, and they don't overlap
    /// `from`.
    pub(crate) unsafe fn feed_at(&mut self, at: usize, from: *const u8, bytes: usize) {
        match self.sink {
            Sink::Discard => {}
            Sink::Copy { to, streaming } => {
                // SAFETY: in range of the sink as the caller vouches.
                let to = unsafe { to.add(at) };
                if streaming && bytes >= STREAMING_BYTES_MIN {
                    // SAFETY: both ranges are valid and apart, as the caller vouches.
                    unsafe { rlaunch_device::copy_nontemporal(to, from, bytes) };
                } else {
                    // SAFETY: both ranges are valid and apart, as the caller vouches.
                    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
                }
            }
            Sink::Reduce {
                dtype,
                op,
                local,
                to,
                payload_first,
            } => {
                let count = bytes / dtype.size_bytes();
                assert_eq!(
                    count * dtype.size_bytes(),
                    bytes,
                    "a reduction takes whole elements"
                );
                // SAFETY: in range of the sink as the caller vouches.
                let (local, to) = unsafe { (local.add(at), to.add(at)) };
                let (left, right) = if payload_first {
                    (from, local)
                } else {
                    (local, from)
                };
                // SAFETY: all three ranges are valid for `count` elements.
                unsafe { rlaunch_device::reduce_raw(dtype, op, to, left, right, count) };
            }
        }
        self.taken_bytes += bytes;
    }
}

/// Below this the set-up of non-temporal stores costs more than they save.
const STREAMING_BYTES_MIN: usize = 4096;

#[cfg(test)]
mod tests {
    use rlaunch_wire::Collective;

    use super::*;

    #[test]
    fn encoding_is_undone_by_decoding() {
        let header = Header {
            descriptor: Descriptor {
                communicator: 1,
                sequence: 2,
                collective: Collective::Send,
                dtype: DType::I64,
                op: None,
                root: 0,
                digest: 0,
                count: 5,
            },
            length_bytes: 40,
            tag: 7,
            kind: Kind::Granted,
        };
        assert_eq!(Header::decode(&header.encode()), Some(header));
        let mut bytes = header.encode();
        bytes[44] = 99;
        assert_eq!(Header::decode(&bytes), None);
    }
}
