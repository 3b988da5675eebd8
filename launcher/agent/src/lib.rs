//! What runs on each host: the agent, and below it the keeper and the ranks.
//!
//! ```text
//! launcher ══ one byte stream, HTTP/2 ══ agent ── socket ── keeper ── fork ── ranks
//! ```
//! The agent speaks with the launcher, captures output and serves the ranks' socket. The keeper
//! forks, waits and kills. Each of the three ends the ranks if another is gone: the stream's end
//! makes the agent end them, the agent's death the keeper, the keeper's death the kernel
//! (PDEATHSIG) and the agent.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod autopsy;
mod cache;
mod clock;
mod cores;
mod devices;
mod directories;
mod forked;
mod install;
mod job;
mod keeper;
pub mod limits;
mod master;
mod preload;
mod processes;
mod program;
mod random;
mod reap;
mod record;
mod service;
mod snapshot;
mod standard;
mod start;
mod survey;
mod sweep;
mod sys;

pub use forked::{Forked, fork};
pub use standard::{Standard, was_closed};
pub use start::main;
