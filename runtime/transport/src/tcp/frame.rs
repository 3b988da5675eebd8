//! What stands in front of everything on a stream between two ranks; pure.
//!
//! A message of one stream is its header ([`Header`], 48 bytes) and its payload. A *striped*
//! message has its header on the first stream alone, with no payload behind it; its payload comes
//! in chunks, each on whichever stream had room, with a chunk header in front:
//!
//! ```text
//! 0         8        16       24       32          44    45     48
//! | message | offset | length | zero … (20 bytes)  | 128 | zero |
//! ```
//! `message` counts the sender's striped messages to this peer from 1. The byte at 44 is a header's
//! kind, 64 more for a striped one.

use crate::{HEADER_BYTES, Header};

const KIND_AT: usize = 44;
const STRIPED: u8 = 64;
const CHUNK: u8 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// The payload follows on this stream.
    Whole(Header),
    /// The payload comes in chunks.
    Striped(Header),
    Chunk(Chunk),
}

/// A part of a striped message's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub message: u64,
    pub offset: u64,
    pub length: u64,
}

impl Frame {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        match self {
            Self::Whole(header) => header.encode(),
            Self::Striped(header) => {
                let mut bytes = header.encode();
                bytes[KIND_AT] += STRIPED;
                bytes
            }
            Self::Chunk(chunk) => {
                let mut bytes = [0; HEADER_BYTES];
                bytes[..8].copy_from_slice(&chunk.message.to_le_bytes());
                bytes[8..16].copy_from_slice(&chunk.offset.to_le_bytes());
                bytes[16..24].copy_from_slice(&chunk.length.to_le_bytes());
                bytes[KIND_AT] = CHUNK;
                bytes
            }
        }
    }

    /// `None` for bytes that no rank of this version writes.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        match bytes[KIND_AT] {
            CHUNK => {
                let is_clean = bytes[24..KIND_AT].iter().all(|byte| *byte == 0)
                    && bytes[KIND_AT + 1..] == [0; 3];
                let chunk = Chunk {
                    message: word(0),
                    offset: word(8),
                    length: word(16),
                };
                let is_sane = chunk.length > 0 && chunk.offset.checked_add(chunk.length).is_some();
                (is_clean && is_sane).then_some(Self::Chunk(chunk))
            }
            kind if kind >= STRIPED => {
                let mut plain = *bytes;
                plain[KIND_AT] = kind - STRIPED;
                Header::decode(&plain).map(Self::Striped)
            }
            _ => Header::decode(bytes).map(Self::Whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use rlaunch_wire::{Collective, DType, Descriptor, Op};

    use super::*;
    use crate::Kind;

    #[test]
    fn frames_survive_encoding_and_others_are_none() {
        let header = Header {
            descriptor: Descriptor {
                communicator: 3,
                sequence: 9,
                collective: Collective::AllReduce,
                dtype: DType::F32,
                op: Some(Op::Sum),
                root: 0,
                digest: 0,
                count: 5,
            },
            length_bytes: 20,
            tag: 0,
            kind: Kind::Collective,
        };
        let chunk = Chunk {
            message: 4,
            offset: 65_536,
            length: 100,
        };
        for frame in [
            Frame::Whole(header),
            Frame::Striped(header),
            Frame::Chunk(chunk),
        ] {
            let bytes = frame.encode();
            assert_eq!(Frame::decode(&bytes), Some(frame));
            let mut wrong = bytes;
            wrong[47] = 1;
            assert_eq!(Frame::decode(&wrong), None);
        }
        let endless = Chunk {
            offset: u64::MAX,
            ..chunk
        };
        assert_eq!(Frame::decode(&Frame::Chunk(endless).encode()), None);
        let empty = Chunk { length: 0, ..chunk };
        assert_eq!(Frame::decode(&Frame::Chunk(empty).encode()), None);
    }
}
