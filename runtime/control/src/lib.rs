//! The gRPC services of the control plane, and the two ends of a connection that is a byte stream.
//!
//! Tensors never travel here, and no rank links this crate: only launcher and agent do.
//!
//! [`connect`] and [`serve`] put HTTP/2 on *one* byte stream, a carrier: no port is opened, and
//! the stream's end is the end of everything that ran on it.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod stream;

/// Messages, clients and servers made from `proto/`.
#[allow(
    clippy::all,
    clippy::too_many_lines,
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    unreachable_pub,
    missing_docs,
    reason = "generated"
)]
#[rustfmt::skip]
pub mod v1 {
    include!("generated/rlaunch.v1.rs");
}

pub use stream::{AgentClient, ConnectError, ServeError, agent_client, channel, connect, serve};
