//! Whole jobs on real hosts: rlaunch as users have it, hosts that have none, and faults.
//!
//! Each test has a cluster of its own and says its goal in a line. Where hosts can't be made
//! (no root, a package missing) or a python with numpy is not there, the test says so and stops.

#![allow(
    clippy::unwrap_used,
    reason = "a test that stops here has failed, and says where"
)]

mod bootstrap;
#[path = "../exit_codes/cases.rs"]
mod cases;
mod codes;
mod common;
mod endings;
mod environment;
mod faults;
mod interrupts;
mod kills;
mod many;
mod network;
mod output;
mod placement;
mod preload;
mod reap;
mod runtime;
mod signals;
mod slurm;
mod ssh;
mod survivors;
mod topo;
mod train;
