//! How long things may take.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits (times in seconds, or with ms, s, m, h)")]
pub struct LimitOptions {
    /// End the job after this long: 90, 1.5h, 10m [exit code 124]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// From asking ranks to end (TERM) to ending them (KILL) [default: 10]
    #[arg(long, value_name = "TIME")]
    pub kill_after: Option<String>,
    /// What becomes of the others when a rank fails: `stop`, or `continue` for programs that shrink
    /// [default: stop]
    #[arg(long, value_name = "WHAT")]
    pub on_failure: Option<AfterFailure>,
    /// Start the whole job again after a failure, at most so often [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_restarts: Option<String>,
    /// All ranks run by then, or the hosts that are missing are named [default: 5m]
    #[arg(long, value_name = "TIME")]
    pub start_timeout: Option<String>,
    /// Silence after which a host counts as lost [default: 30]
    #[arg(long, value_name = "TIME")]
    pub host_timeout: Option<String>,
}

/// What becomes of the other ranks when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AfterFailure {
    Stop,
    Continue,
}
