//! Bytes between ranks: shared memory and TCP behind one trait, [`Connection`].
//!
//! A connection is this rank's end of an ordered, reliable channel to one peer. It carries
//! messages: a [`Header`] (the wire's 32-byte descriptor, length, tag, kind) and that many bytes.
//! Nothing blocks: `poll_*` does what can be done now and says how far it came; the caller decides
//! how to wait. A received payload is handed to a [`Sink`] straight from where the transport has it
//! (the shared segment, the socket), so a reduction needs no copy in between.
//!
//! What a connection can do beyond messages stands in [`Capabilities`]; ask before use. Where
//! `one_sided` is false, [`Connection::one_sided`] is `None`: no method exists only to fail.
//!
//! Order: messages arrive in the order they were begun. One message is sent at a time: a caller
//! that began one goes on with it until [`Progress::Done`] before it begins another.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod message;
mod proof;
mod say;
pub mod shm;
pub mod tcp;

use std::ffi::c_short;
use std::os::fd::RawFd;

pub use message::{HEADER_BYTES, Header, Incoming, Kind, Outgoing, Sink};
pub use proof::{NONCE_BYTES, PROOF_BYTES, Proof, Secret, nonce, verify};
pub use say::{keep_stderr, say};

/// How far a poll came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing could be done now.
    Idle,
    /// Some bytes moved, not all.
    Moved,
    Done,
}

/// How a one-sided operation tells that it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// Only by asking.
    Poll,
    /// A file descriptor becomes readable.
    Event,
}

/// What a connection can do. Constant over its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// `shm`, `tcp`
    pub name: &'static str,
    /// Put and get on registered memory of the peer.
    pub one_sided: bool,
    /// Memory of these kinds can be registered.
    pub registers_host: bool,
    pub registers_device: bool,
    /// How completions of one-sided operations come; `None` without them.
    pub completion: Option<Completion>,
    /// A sink reads the transport's own segment, without a copy before it.
    pub consumes_in_place: bool,
    /// Payload that a message may have and yet be wholly sent before the peer receives.
    pub buffered_bytes: usize,
}

/// Why a connection is of no further use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer's end is closed: its process ended or it dropped its world.
    #[error("closed by the peer")]
    Closed,
    /// The peer sent what no rank of this version writes.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// No memory for the shared segment: the container's or the machine's limit.
    #[error(
        "no memory for a shared segment of {needed_bytes} bytes: {source}; hint: raise the \
             memory limit, or set RLAUNCH_TRANSPORT=tcp"
    )]
    Memory {
        needed_bytes: usize,
        source: std::io::Error,
    },
    /// The kernel does not copy this memory between processes.
    #[error(
        "its buffer can't be reached: {0}; hint: set RLAUNCH_SINGLE_COPY=0 on all ranks where \
             buffers are memory of a device"
    )]
    Reach(std::io::Error),
    /// A firewall, no route between the hosts, or a process that has ended.
    #[error(
        "it can't be reached at any of {addresses:?} (last: {last}); hint: open the ports between \
             the hosts (RLAUNCH_PORT_RANGE keeps to a few), or choose interfaces with \
             RLAUNCH_SOCKET_IFNAME"
    )]
    Unreachable {
        addresses: Vec<std::net::SocketAddr>,
        last: String,
    },
    /// The network failed (timed out by TCP_USER_TIMEOUT, reset).
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl ConnectionError {
    /// Memory could not be copied between two ranks: the peer's, if the error does not say that it is
    /// this rank's own.
    pub fn reach(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::InvalidInput => Self::Io(error),
            _ => Self::Reach(error),
        }
    }
}

/// One rank's end of the channel to one peer. See the crate's documentation for the rules.
pub trait Connection: Send + std::fmt::Debug {
    fn capabilities(&self) -> Capabilities;

    /// Begins `message` or goes on with it. After `Done` its payload may be overwritten.
    ///
    /// # Safety
    /// The payload is valid for reads of the header's length, unchanged until `Done` or an error.
    unsafe fn poll_send(&mut self, message: &mut Outgoing) -> Result<Progress, ConnectionError>;

    /// The oldest message not yet taken, once its header is here. Stays the same until its payload
    /// was taken by [`Connection::poll_payload`], which an empty message needs too.
    fn poll_header(&mut self) -> Result<Option<Header>, ConnectionError>;

    /// Feeds what has arrived of the message that [`Connection::poll_header`] returned.
    ///
    /// # Safety
    /// The sink's pointers are valid for the message's length until `Done` or an error.
    unsafe fn poll_payload(&mut self, incoming: &mut Incoming)
    -> Result<Progress, ConnectionError>;

    /// The payload under way is not wanted any more, see [`Incoming::discard`]: from now on its place is
    /// not written, not by the peer either. May take a while where that is just writing.
    fn withdraw_payload(&mut self) {}

    /// Adds to `on` what to sleep on (poll's descriptor and events) until there may be something to
    /// receive, or with `to_send`, room to send; false where the transport rings a doorbell instead.
    fn wait_on(&self, to_send: bool, on: &mut Vec<(RawFd, c_short)>) -> bool;

    /// Whether anything may have been sent either way; some connections are made when first needed.
    fn is_connected(&self) -> bool;

    /// The stream whose end tells of the peer's (POLLRDHUP); `None` without one, or not yet.
    fn stream(&self) -> Option<RawFd>;

    /// Operations on the peer's registered memory, where [`Capabilities::one_sided`].
    fn one_sided(&mut self) -> Option<&mut dyn OneSided>;

    /// Nothing more will be sent; what was sent still arrives. `Done` when this end may be dropped
    /// without loss.
    fn poll_close(&mut self) -> Result<Progress, ConnectionError>;
}

/// Memory to register.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    Host {
        address: *mut u8,
        bytes: usize,
    },
    Device {
        device: u32,
        address: u64,
        bytes: usize,
    },
}

/// A registered range, as its owner hands it to peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub id: u64,
    pub bytes: usize,
    /// What the peer's hardware needs to reach it.
    pub key: u64,
    pub address: u64,
}

/// Names a one-sided operation until its completion was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OperationId(pub u64);

/// Put, get and their completions, for transports whose peers reach memory by themselves.
pub trait OneSided {
    /// # Safety
    /// The memory stays valid and mapped until `deregister`.
    unsafe fn register(&mut self, memory: Memory) -> Result<Region, ConnectionError>;

    fn deregister(&mut self, region: Region) -> Result<(), ConnectionError>;

    /// Starts writing `bytes` of local memory into the peer's; with `signal`, the peer sees that
    /// number once the bytes are there.
    ///
    /// # Safety
    /// The local range is registered and unchanged until the completion.
    unsafe fn put(
        &mut self,
        local: (Region, usize),
        remote: (Region, usize),
        bytes: usize,
        signal: Option<u64>,
    ) -> Result<OperationId, ConnectionError>;

    /// Starts reading `bytes` of the peer's memory.
    ///
    /// # Safety
    /// The local range is registered and not used until the completion.
    unsafe fn get(
        &mut self,
        local: (Region, usize),
        remote: (Region, usize),
        bytes: usize,
    ) -> Result<OperationId, ConnectionError>;

    /// An operation that is complete, each once.
    fn poll_completion(&mut self) -> Result<Option<OperationId>, ConnectionError>;
}
