//! What ranks tell each other over the control link: the payload of its broadcasts
//! ([`crate::rank::Broadcast`]). Agents and launcher pass it on; the launcher may read
//! [`Failed`] to tell first failures from their echoes.

use prost::{Message, Oneof};

use crate::Descriptor;

#[derive(Clone, PartialEq, Message)]
pub struct Notice {
    #[prost(oneof = "NoticeKind", tags = "1, 2, 3, 4")]
    pub kind: Option<NoticeKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum NoticeKind {
    #[prost(message, tag = "1")]
    Waiting(Waiting),
    #[prost(message, tag = "2")]
    Disagreement(Disagreement),
    #[prost(message, tag = "3")]
    Failed(Failed),
    #[prost(message, tag = "4")]
    Left(Left),
}

/// The sender has waited for a while in the last of these calls; the others came before it.
#[derive(Clone, PartialEq, Message)]
pub struct Waiting {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub calls: Vec<Vec<u8>>,
}

/// Two ranks made different calls at one place of their sequence.
#[derive(Clone, PartialEq, Message)]
pub struct Disagreement {
    #[prost(uint32, tag = "1")]
    pub left_rank: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub left: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub right_rank: u32,
    #[prost(bytes = "vec", tag = "4")]
    pub right: Vec<u8>,
    /// What the calls themselves don't tell: whose counts don't fit whose.
    #[prost(string, tag = "5")]
    pub detail: String,
}

/// A rank is out of the job.
#[derive(Clone, PartialEq, Message)]
pub struct Failed {
    #[prost(uint32, tag = "1")]
    pub rank: u32,
    #[prost(string, tag = "2")]
    pub cause: String,
    /// It finalized in order, but a peer still counted on it.
    #[prost(bool, tag = "3")]
    pub has_left: bool,
    /// The communicator that failed for it; absent where all of that rank's do.
    #[prost(uint32, optional, tag = "4")]
    pub communicator: Option<u32>,
}

/// The sender finalizes.
#[derive(Clone, PartialEq, Message)]
pub struct Left {}

impl Notice {
    pub fn encoded(kind: NoticeKind) -> Vec<u8> {
        Self { kind: Some(kind) }.encode_to_vec()
    }
}

/// `None` for bytes that are no descriptor.
pub fn descriptor(bytes: &[u8]) -> Option<Descriptor> {
    Descriptor::decode(bytes.try_into().ok()?)
}
