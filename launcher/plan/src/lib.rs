//! Decisions of a launch, pure: what runs where, with which variables, and how a job ends.
//!
//! ```text
//! hostfile ┐
//! -H list  ├─► allocation ─► (survey fills in slots) ─► placement ─► environment, map
//! nothing  ┘
//! events of the running job ─► supervise ─► verdict
//! ```
//! Nothing here reads a file, a clock or the environment: bytes, time and variables are
//! arguments. So every decision can be repeated, printed (`--dry-run`, `--display-map`) and
//! tested without a host.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

pub mod allocation;
pub mod details;
pub mod environment;
pub mod exit_code;
pub mod host;
pub mod hostfile;
pub mod joining;
pub mod map;
pub mod names;
pub mod placement;
pub mod slurm;
mod spec;
pub mod supervise;
mod text;
pub mod verdict;

pub use allocation::{Allocation, AllocationError};
pub use details::HostDetails;
pub use host::Host;
pub use hostfile::{Hostfile, HostfileError};
pub use placement::{MapBy, Placement, PlacementError, PlacementRequest};
pub use supervise::{Action, Event, Supervisor};
pub use verdict::Verdict;
