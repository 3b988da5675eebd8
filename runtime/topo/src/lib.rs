//! What this machine is: cores, GPUs, network interfaces.
//!
//! [`snapshot`] does all the IO and judges nothing; [`parse`] is pure. So a machine can be
//! described by a folder of files, and a test needs no such machine.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod bind;
pub mod layout;
pub mod parse;
pub mod snapshot;

pub use parse::{Interface, Machine, parse};
pub use snapshot::Snapshot;

/// This machine, now.
pub fn this_machine() -> Machine {
    parse(&Snapshot::read())
}
