//! What ranks tell each other over the control link: the payload of its broadcasts
//! ([`crate::rank::Broadcast`]). Agents and launcher pass it on; the launcher may read
//! [`Failed`] to tell first failures from their echoes.

use prost::{Message, Oneof};

use crate::Descriptor;

#[derive(Clone, PartialEq, Message)]
pub struct Notice {
    #[prost(oneof = "NoticeKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9")]
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
    #[prost(message, tag = "5")]
    Aborted(Aborted),
    #[prost(message, tag = "6")]
    TimedOut(TimedOut),
    #[prost(message, tag = "7")]
    Unfit(Unfit),
    #[prost(message, tag = "8")]
    GaveUp(GaveUp),
    #[prost(message, tag = "9")]
    Blames(Blames),
}

/// The sender has waited for a while in the last of these calls of each communicator, the others came
/// before it; or a rank is out, and it tells the others what it does.
#[derive(Clone, PartialEq, Message)]
pub struct Waiting {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub calls: Vec<Vec<u8>>,
    /// What it does, of any kind, communicator by communicator.
    #[prost(message, repeated, tag = "2")]
    pub doing: Vec<Activity>,
}

/// What a rank does on a communicator, as far as the sender knows.
#[derive(Clone, PartialEq, Message)]
pub struct Activity {
    #[prost(uint32, tag = "1")]
    pub rank: u32,
    #[prost(uint32, tag = "2")]
    pub communicator: u32,
    /// 0 not known, 1 in the call, 2 in none after it, 3 last heard of in it.
    #[prost(uint32, tag = "3")]
    pub how: u32,
    /// No bytes where there is none.
    #[prost(bytes = "vec", tag = "4")]
    pub call: Vec<u8>,
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
pub struct Left {
    /// Its last calls: those that could end without hearing of all others, and the last of each
    /// communicator.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub calls: Vec<Vec<u8>>,
}

/// The sender's program aborted a communicator.
#[derive(Clone, PartialEq, Message)]
pub struct Aborted {
    #[prost(uint32, tag = "1")]
    pub communicator: u32,
    #[prost(string, tag = "2")]
    pub reason: String,
}

/// The sender has waited too long for others.
#[derive(Clone, PartialEq, Message)]
pub struct TimedOut {
    #[prost(uint32, tag = "1")]
    pub communicator: u32,
    #[prost(string, tag = "2")]
    pub during: String,
    #[prost(uint64, tag = "3")]
    pub waited_ns: u64,
    #[prost(uint32, repeated, tag = "4")]
    pub missing: Vec<u32>,
    /// The other members, those that are missing first.
    #[prost(message, repeated, tag = "5")]
    pub others: Vec<Activity>,
    #[prost(uint32, tag = "7")]
    pub left_out: u32,
    /// Whose bound it was: 0 the job's, 1 the communicator's, 2 the call's.
    #[prost(uint32, tag = "6")]
    pub bound: u32,
}

/// A message does not fit its receive; the sender of the notice received it.
#[derive(Clone, PartialEq, Message)]
pub struct Unfit {
    #[prost(uint32, tag = "1")]
    pub sender: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub sent: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub expected: Vec<u8>,
}

/// A communicator failed on the sender for a reason of its own.
#[derive(Clone, PartialEq, Message)]
pub struct GaveUp {
    #[prost(uint32, tag = "1")]
    pub communicator: u32,
    #[prost(string, tag = "2")]
    pub cause: String,
}

/// A communicator failed on the sender because of that rank, and the program is told so. For the
/// launcher alone, which looks for the cause of what follows; agents pass it to no rank.
#[derive(Clone, PartialEq, Message)]
pub struct Blames {
    #[prost(uint32, tag = "1")]
    pub rank: u32,
    /// Where that rank called abort: on what, and its reason.
    #[prost(string, optional, tag = "2")]
    pub aborted: Option<String>,
}

impl Notice {
    pub fn is_for_launcher(payload: &[u8]) -> bool {
        let decoded = Self::decode(payload);
        decoded.is_ok_and(|notice| matches!(notice.kind, Some(NoticeKind::Blames(_))))
    }

    pub fn encoded(kind: NoticeKind) -> Vec<u8> {
        Self { kind: Some(kind) }.encode_to_vec()
    }
}

/// `None` for bytes that are no descriptor.
pub fn descriptor(bytes: &[u8]) -> Option<Descriptor> {
    Descriptor::decode(bytes.try_into().ok()?)
}
