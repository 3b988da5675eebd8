//! Names, codes, frames and limits that launcher and runtime share. Pure: no IO, no clock.
//!
//! What stands here is a contract between programs that may be built apart: the launcher, its
//! agents, and the ranks. A change of meaning raises [`PROTOCOL`].

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod codes;
pub mod descriptor;
pub mod environment;
pub mod handshake;
pub mod limits;
pub mod notice;
pub mod owner;
pub mod rank;
pub mod setting;

pub use codes::{Collective, DType, Kind, Op};
pub use descriptor::{CommunicatorName, Descriptor};

/// Raised when a message between agent and rank, or rank and rank, changes its meaning.
pub const PROTOCOL: u32 = 1;
