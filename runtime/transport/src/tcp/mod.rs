//! TCP between ranks of different hosts (or of one, where memory can't be shared).
//!
//! [`setup`] connects every pair once; which of a peer's addresses leads to it is found by trying
//! them and having the peer prove its identity ([`handshake`]), never by interface names.
//! [`TcpConnection`] moves messages without blocking.

mod connection;
pub mod handshake;
mod setup;

pub use connection::TcpConnection;
pub use setup::{TcpPeer, TcpSetup, TcpSetupError, listen, local_addresses, setup};
