//! What this machine is: cores, GPUs, network interfaces, how near they are to each other, and which
//! belong together.
//!
//! [`snapshot`] does all the IO and judges nothing; everything after it is pure: [`parse()`] makes a
//! [`Machine`] of a [`Tree`] of raw facts. So a machine can be described by a file, and a test needs
//! no such machine. [`survey`] and [`layout`] read the few facts that each launch needs.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod anonymous;
pub mod assign;
pub mod bind;
pub mod distance;
pub mod layout;
pub mod machine;
pub mod nccl;
pub mod nvml;
pub mod pairing;
pub mod parse;
pub mod rails;
pub mod show;
pub mod snapshot;
pub mod survey;
pub mod tree;

pub use anonymous::anonymous;
pub use machine::Machine;
pub use parse::parse;
pub use tree::Tree;
