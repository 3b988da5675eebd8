//! Point to point: send, receive, probe, and groups of them.
//!
//! A small message goes at once, on credit: the receiver keeps it until it is asked for, and at
//! most [`CREDIT_BYTES`] a pair are kept. A larger one, or one past the credit, is announced by a
//! request and sent when a receive has granted it, straight into its buffer. So nothing a peer
//! sends can fill this rank's memory, and whatever a call waits for, what peers sent before is
//! taken from the connection.
//!
//! ```text
//! sender   Eager ─────────────► receiver            Request ────────► posted or kept
//!                ◄─ Credit, now and then                    ◄──────── Grant
//!                                                   Granted ────────► the receive's buffer
//! ```
//! Messages and receives meet in [`matching`], one for each communicator; a receive takes messages
//! of its type that are at most as long as its buffer. To this rank itself a message goes straight
//! from buffer to buffer if its receive is posted; else a blocking send keeps a copy, a started one
//! waits for the receive.
//!
//! | file | what |
//! |---|---|
//! | `matching` | which message goes to which receive (pure) |
//! | `operation` | operations under way, and how they end |
//! | `send`, `receive` | what starts them |
//! | `arrive` | what comes from a peer, and where it goes |
//! | `own` | messages to this rank itself |
//! | `wait` | waiting for operations, and for messages to probe |
//! | `group`, `typed` | the calls |
//! | `unreceived` | what is told of messages that nobody took |

mod arrive;
mod group;
mod matching;
mod operation;
mod own;
mod receive;
mod send;
mod typed;
mod unreceived;
mod wait;

use std::collections::VecDeque;

use rlaunch_transport::{Header, Incoming};

use matching::Matching;
pub(crate) use operation::OperationId;
use operation::Operations;
use receive::RecvCall;
use send::SendCall;

pub use group::Group;

/// Messages up to this size go without asking.
pub(crate) const EAGER_BYTES_MAX: usize = 16 * 1024;
/// Kept by a receiver for one sender.
const CREDIT_BYTES: u64 = 256 * 1024;
/// What an eager message costs besides its bytes, so that empty ones are bounded too.
const MESSAGE_COST_BYTES: u64 = 256;
/// Copies that blocking sends to this rank itself may leave behind.
const OWN_BYTES_MAX: u64 = 1 << 30;

/// Whose messages a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Of any rank; the first that arrives.
    Any,
    /// Of this rank of the communicator.
    Rank(u32),
}

/// Which messages a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// All of its source.
    Any,
    /// Those that were sent with this tag.
    Is(u32),
}

impl From<u32> for Source {
    fn from(rank: u32) -> Self {
        Self::Rank(rank)
    }
}

impl From<u32> for Tag {
    fn from(tag: u32) -> Self {
        Self::Is(tag)
    }
}

/// Point to point of one rank: what is under way, and what meets on each communicator.
#[derive(Debug, Default)]
pub(crate) struct Points {
    operations: Operations,
    /// By number; there are few, and the last one used is usually the next.
    contexts: Vec<(u32, Context)>,
    recent: usize,
    /// Calls begun.
    calls: u64,
    /// Bytes of messages to this rank itself that wait for their receive.
    own_bytes: u64,
}

type Context = Matching<OperationId, Kept>;

/// A message that nobody has asked for.
#[derive(Debug)]
enum Kept {
    /// The bytes of an eager message, in words.
    Eager(Header, Vec<u64>),
    Request(Header),
    /// From this rank: the bytes, as eager ones.
    OwnCopy(Header, Vec<u64>),
    /// From this rank: the bytes lie in the send's buffer.
    Own(Header, OperationId),
}

impl Kept {
    fn header(&self) -> &Header {
        let (Self::Eager(header, _)
        | Self::Request(header)
        | Self::OwnCopy(header, _)
        | Self::Own(header, _)) = self;
        header
    }
}

/// Point to point with one peer.
#[derive(Debug)]
pub(crate) struct Pair {
    credit: u64,
    /// Taken by this rank and not given back yet.
    owed: u64,
    /// Messages begun to the peer: the number of the next.
    sends: u64,
    /// The payload under way.
    taking: Option<Taking>,
    /// Sends whose request is out, oldest first.
    asking: VecDeque<(u64, OperationId)>,
    /// Receives that have granted, oldest first.
    granted: VecDeque<(u64, OperationId)>,
}

#[derive(Debug)]
struct Taking {
    header: Header,
    incoming: Incoming,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    Receive(OperationId),
    Keep(Vec<u64>),
    /// Of a [`rlaunch_transport::Kind::Ballot`].
    Ballot(Vec<u8>),
    Nobody,
}

impl Default for Pair {
    fn default() -> Self {
        Self {
            credit: CREDIT_BYTES,
            owed: 0,
            sends: 0,
            taking: None,
            asking: VecDeque::new(),
            granted: VecDeque::new(),
        }
    }
}

impl Points {
    /// The communicator's messages and receives; made when first asked for.
    fn context(&mut self, communicator: u32) -> &mut Context {
        let is_recent = |(id, _): &(u32, Context)| *id == communicator;
        if !self.contexts.get(self.recent).is_some_and(is_recent) {
            self.recent = self.contexts.iter().position(is_recent).unwrap_or_else(|| {
                self.contexts.push((communicator, Context::default()));
                self.contexts.len() - 1
            });
        }
        &mut self.contexts[self.recent].1
    }
}

fn cost(length_bytes: u64) -> u64 {
    length_bytes + MESSAGE_COST_BYTES
}
