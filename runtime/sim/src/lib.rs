//! Runs schedules on real vectors in virtual time.
//!
//! The simulator does what engines are allowed to do, in an order that a seed decides: a step starts
//! some time after it may, a message travels in pieces between which other steps run, and a send
//! either lasts until it is received or is buffered and complete at once. A program that lacks an
//! edge gives wrong numbers under some seed; the same seed gives the same run.
//!
//! Times come from a model of links ([`Network`]) and are of use to compare algorithms: with
//! [`Settings::calm`] nothing is random and the time is the model's.

mod network;
mod random;
mod run;
mod verify;

pub use network::{Link, Network};
pub use random::Random;
pub use run::{Given, Manner, Outcome, Settings, Stuck, Traffic, run};
pub use verify::{Scenario, WrongResult};
