//! What a rank means by the message it sends: 32 clear bytes in front of every one.
//!
//! ```text
//! 0        4        12   13   14   15   16        20        24          32
//! | comm   | seq    |coll|type|op  | 0  | root    | digest  | count     |
//! | u32    | u64    | u8 | u8 | u8 |    | u32     | u32     | u64       |   little endian
//! ```
//! The receiver compares it with its own call; a difference is an error on every rank that names
//! both sides, never garbage in a buffer.

use crate::{Collective, DType, Op};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Communicator.
    pub communicator: u32,
    /// Number of this call on the communicator, from 0. For send and recv: per pair and direction.
    pub sequence: u64,
    pub collective: Collective,
    pub dtype: DType,
    /// Absent where nothing is reduced.
    pub op: Option<Op>,
    /// Root of a broadcast, reduce, gather or scatter; 0 where there is none.
    pub root: u32,
    /// Of the counts of all ranks, where each gives the whole list; else 0.
    pub digest: u32,
    /// Elements, where all ranks must agree on them; 0 where each has counts of its own.
    pub count: u64,
}

impl Descriptor {
    pub const BYTES: usize = 32;

    /// No call: whoever takes what has come of a peer, outside of any call.
    pub const NONE: Self = Self {
        communicator: u32::MAX,
        sequence: 0,
        collective: Collective::Barrier,
        dtype: DType::I32,
        op: None,
        root: 0,
        digest: 0,
        count: 0,
    };

    #[inline]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.communicator.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12] = self.collective.code();
        bytes[13] = self.dtype.code();
        bytes[14] = self.op.map_or(0, Op::code);
        bytes[16..20].copy_from_slice(&self.root.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.digest.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    /// Whether both are the same call but for its counts.
    pub fn differs_in_counts_only(&self, other: &Self) -> bool {
        let (digest, count) = (self.digest, self.count);
        let alike = Self {
            digest,
            count,
            ..*other
        };
        self.collective.has_counts() && alike == *self
    }

    /// `None` for bytes that no rank of this protocol version writes.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes[15] != 0 {
            return None;
        }
        Some(Self {
            communicator: u32_at(0),
            sequence: u64_at(4),
            collective: Collective::from_code(bytes[12])?,
            dtype: DType::from_code(bytes[13])?,
            op: match bytes[14] {
                0 => None,
                code => Some(Op::from_code(code)?),
            },
            root: u32_at(16),
            digest: u32_at(20),
            count: u64_at(24),
        })
    }
}

/// `all_reduce #3 of 100 float32, sum`
impl std::fmt::Display for Descriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} #{}", self.collective, self.sequence)?;
        match self.collective {
            Collective::Barrier => {}
            one if one.makes_communicator() => {}
            // Each rank has its own.
            Collective::GatherV | Collective::ScatterV | Collective::AllToAllV => {
                write!(f, " of {}", self.dtype)?;
            }
            _ => write!(f, " of {} {}", self.count, self.dtype)?,
        }
        if let Some(op) = self.op {
            write!(f, ", {op}")?;
        }
        if self.collective.has_root() {
            write!(f, ", root {}", self.root)?;
        }
        if self.communicator != 0 {
            write!(f, ", {}", CommunicatorName(self.communicator))?;
        }
        Ok(())
    }
}

/// How messages call a communicator: `the world`, `communicator 65537`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommunicatorName(pub u32);

impl std::fmt::Display for CommunicatorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => f.write_str("the world"),
            id => write!(f, "communicator {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_is_undone_by_decoding() {
        let descriptor = Descriptor {
            communicator: 7,
            sequence: 1 << 40,
            collective: Collective::AllReduce,
            dtype: DType::F64,
            op: Some(Op::Max),
            root: 3,
            digest: 0xFEDC_BA98,
            count: u64::MAX,
        };
        assert_eq!(Descriptor::decode(&descriptor.encode()), Some(descriptor));
    }

    #[test]
    fn unknown_codes_are_refused() {
        let mut bytes = [0; 32];
        assert_eq!(Descriptor::decode(&bytes), None);
        bytes[12] = 3;
        bytes[13] = 200;
        assert_eq!(Descriptor::decode(&bytes), None);
    }
}
