//! TCP between ranks of different hosts (or of one, where memory can't be shared).
//!
//! A rank has one [`TcpEndpoint`], its listener, and a [`TcpConnection`] for each peer, connected
//! when the first message is sent. Which of a peer's addresses lead to it is found by trying them
//! and having the peer prove its identity ([`handshake`]), never by interface names; what the user
//! says of interfaces, ports and sockets ([`TcpOptions`]) goes before. What bytes mean ([`frame`],
//! [`handshake`], options and routes) is decided by pure functions.

mod connection;
mod dial;
mod endpoint;
pub mod frame;
pub mod handshake;
mod interfaces;
mod lane;
mod link;
mod options;
mod read_ahead;
mod routes;
mod socket;

pub use connection::TcpConnection;
pub use endpoint::TcpEndpoint;
pub use interfaces::{Family, Interface, InterfaceFilter, NoInterface, choose, interfaces};
pub use link::TcpPeer;
pub use options::{SOCKETS_MAX, TcpOptions};
pub use routes::{Route, Routes};
pub use socket::{leads_to_itself, lengthen_queue, listen};
