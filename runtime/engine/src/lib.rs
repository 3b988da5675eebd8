//! The runtime that a rank links: a [`World`] of ranks, collectives and point to point between
//! them, over shared memory inside a host and TCP between hosts.
//!
//! ```no_run
//! # fn main() -> Result<(), rlaunch_runtime::Error> {
//! let world = rlaunch_runtime::init()?;
//! let mut gradient = vec![1.0f32; 1000];
//! world.all_reduce(&mut gradient, rlaunch_runtime::Op::Sum)?;
//! println!("rank {} of {}: {}", world.rank(), world.size(), gradient[0]);
//! world.finalize()
//! # }
//! ```
//!
//! What holds for every call:
//! - A blocking call returns when its result is there. A started one goes on by itself: driven by
//!   whichever call is being made, else by a thread that exists from the first start on.
//! - All ranks of a communicator make the same collective calls on it in the same order. A
//!   difference is [`Error::Mismatch`] on every rank, never garbage and never a hang.
//! - After an error other than [`Error::Argument`] the communicator is poisoned: each later call on
//!   it returns that first error again. Others go on, but for those that contain a rank that died.
//!   Buffers of a failed call have undefined contents.
//! - Any thread may call. On one communicator calls are executed in their order; communicators don't
//!   wait for each other, so a thread with a communicator of its own depends on no other thread.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod active;
mod bootstrap;
mod call;
mod card;
mod checked;
mod collective;
mod communicator;
mod completion;
pub mod config;
mod connect;
mod control;
mod core;
mod driver;
mod element;
mod engine;
mod error;
mod exit;
mod failure;
mod far;
mod framed;
mod group;
mod health;
mod interpret;
mod interrupt;
mod job;
mod known;
mod launchers;
mod leader;
mod leave;
mod local;
mod memory;
mod network;
mod notices;
mod point;
mod progress;
mod request;
mod resolve;
mod selection;
mod streams;
mod wait;
mod waker;
mod world;

pub use call::{Call, Counts, Reduction, Scalar, UserFunction, UserOp};
pub use communicator::{Buffer, Communicator};
pub use config::{Config, seconds};
pub use element::Element;
pub use error::{Bound, Error, Rank};
pub use failure::{
    CommunicatorRecord, Doing, FlightRecorder, LastSeen, OperationRecord, OperationState, Others,
    RecorderSettings,
};
pub use interrupt::set_interrupt;
pub use memory::SharedBuffer;
pub use point::{Group, Source, Tag};
pub use request::{Pending, Persistent, Request, Status, Watch};
pub use rlaunch_schedule::{
    Algorithm, Choice, Costs, Measurement, Numbers, Prediction, Question, Shape, Tuning,
    TuningError,
};
pub use rlaunch_wire::Kind as NumberKind;
pub use rlaunch_wire::{Collective, DType, Descriptor, Op};
pub use world::{World, init};

/// The guide's program is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;
