//! Collective algorithms as data: each builds a [`Program`] per rank; engines run it, the checker
//! and the simulator judge it.
//!
//! A program is a list of [`Step`]s with the steps that must be complete before each. Between two
//! ranks messages match in the order of the steps that send and receive them. A `Send` may stay
//! incomplete until its peer receives (no buffering is promised), so a program is free of deadlock
//! only if it is so with rendezvous sends; the checker holds it to that.
//!
//! Slices count *chunks*, of which a [`Layout`] says at run time what elements they have, so a
//! program does not depend on counts. What the chunks of each collective's buffers are stands in
//! [`spec`].

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod algorithms;
pub mod builder;
pub mod checker;
mod fold;
mod hosts;
mod layout;
mod order;
mod program;
pub mod select;
pub mod spec;

pub use algorithms::{Algorithm, UnknownAlgorithm, program};
pub use builder::ProgramBuilder;
pub use checker::{Violation, check};
pub use fold::Fold;
pub use hosts::Hosts;
pub use layout::{Layout, chunk_range};
pub use order::Order;
pub use program::{Action, Buffer, Program, Slice, Step};
pub use select::{
    Choice, Costs, Measurement, Numbers, Prediction, Preference, PreferenceError, Question,
    Selector, Shape, Tuning, TuningError,
};
pub use spec::{Spec, reduces};
