//! What ranks tell each other over the control link, inside its broadcasts.

use prost::{Message, Oneof};
use rlaunch_wire::Descriptor;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Notice {
    #[prost(oneof = "NoticeKind", tags = "1, 2, 3, 4")]
    pub(crate) kind: Option<NoticeKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum NoticeKind {
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
pub(crate) struct Waiting {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) calls: Vec<Vec<u8>>,
}

/// Two ranks made different calls at one place of their sequence.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Disagreement {
    #[prost(uint32, tag = "1")]
    pub(crate) left_rank: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) left: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub(crate) right_rank: u32,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) right: Vec<u8>,
}

/// A rank is out of the job.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Failed {
    #[prost(uint32, tag = "1")]
    pub(crate) rank: u32,
    #[prost(string, tag = "2")]
    pub(crate) cause: String,
    /// It finalized in order, but a peer still counted on it.
    #[prost(bool, tag = "3")]
    pub(crate) has_left: bool,
}

/// The sender finalizes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Left {}

impl Notice {
    pub(crate) fn encoded(kind: NoticeKind) -> Vec<u8> {
        Self { kind: Some(kind) }.encode_to_vec()
    }
}

/// `None` for bytes that are no descriptor.
pub(crate) fn descriptor(bytes: &[u8]) -> Option<Descriptor> {
    Descriptor::decode(bytes.try_into().ok()?)
}
