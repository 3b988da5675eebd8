//! Messages between a rank and its agent, over an abstract Unix stream socket.
//!
//! Each message is a little-endian u32 length, at most
//! [`RANK_MESSAGE_MAX_BYTES`](crate::limits::RANK_MESSAGE_MAX_BYTES), and that many bytes of
//! protobuf. Blocking on the rank's side: no tokio, no tonic in a training process. The same
//! messages serve the bootstrap over TCP where no agent is (rank 0 plays the agent).
//!
//! ```text
//! rank → agent   Hello, Join … Overdue? … Broadcast* … Leave
//! agent → rank   Welcome | Refused, World … Broadcast*, PeerFailed*
//! ```
//! The agent checks the peer's uid (SO_PEERCRED). A second Join of one rank is Refused. A stream
//! that ends without Leave is the rank's death; the launcher learns the cause from waitpid.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct ToAgent {
    #[prost(oneof = "ToAgentMessage", tags = "1, 2, 3, 4, 5")]
    pub message: Option<ToAgentMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum ToAgentMessage {
    #[prost(message, tag = "1")]
    Hello(Hello),
    /// What the other ranks need to reach this one; opaque to agent and launcher.
    #[prost(message, tag = "2")]
    Join(Join),
    /// To every other rank of the job (mismatch, poison, "I wait for").
    #[prost(message, tag = "3")]
    Broadcast(Broadcast),
    #[prost(message, tag = "4")]
    Leave(Leave),
    /// It has joined and waited for the others as long as it may: Refused tells who is missing.
    #[prost(message, tag = "5")]
    Overdue(Overdue),
}

#[derive(Clone, PartialEq, Message)]
pub struct ToRank {
    #[prost(oneof = "ToRankMessage", tags = "1, 2, 3, 4, 5")]
    pub message: Option<ToRankMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum ToRankMessage {
    #[prost(message, tag = "1")]
    Welcome(Welcome),
    #[prost(message, tag = "2")]
    Refused(Refused),
    #[prost(message, tag = "3")]
    World(World),
    #[prost(message, tag = "4")]
    Broadcast(Broadcast),
    #[prost(message, tag = "5")]
    PeerFailed(PeerFailed),
}

#[derive(Clone, PartialEq, Message)]
pub struct Hello {
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    #[prost(uint32, tag = "2")]
    pub rank: u32,
    #[prost(uint32, tag = "3")]
    pub pid: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Welcome {
    #[prost(bytes = "vec", tag = "1")]
    pub job_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub secret: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub world_size: u32,
    /// Name of this host as the user wrote it, for messages.
    #[prost(string, tag = "4")]
    pub host: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Refused {
    #[prost(string, tag = "1")]
    pub reason: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Join {
    #[prost(bytes = "vec", tag = "1")]
    pub card: Vec<u8>,
}

/// Sent once all ranks have joined.
#[derive(Clone, PartialEq, Message)]
pub struct World {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub cards: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Broadcast {
    #[prost(uint32, tag = "1")]
    pub from: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PeerFailed {
    #[prost(uint32, tag = "1")]
    pub rank: u32,
    #[prost(string, tag = "2")]
    pub host: String,
    #[prost(uint32, tag = "3")]
    pub pid: u32,
    #[prost(string, tag = "4")]
    pub cause: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Leave {}

#[derive(Clone, PartialEq, Message)]
pub struct Overdue {}
