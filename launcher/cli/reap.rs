//! The words of `rlaunch reap`.

use std::ffi::OsString;

use clap::{Command, Parser};

use super::hosts_asked::{self, HostsAsked};
use super::{CliError, Request};
use crate::knobs::Loaded;

/// Find what ended jobs have left on hosts, and end it.
///
/// A process counts as left only if the job's record on its host says so: its number and start time,
/// the session of a rank, or a parent that does. What only its environment points to is shown, and
/// ended with --hinted. Nothing is ever ended by name.
#[derive(Debug, Parser)]
#[command(
    name = "rlaunch reap",
    override_usage = "rlaunch reap [options]",
    after_help = AFTER,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ReapOptions {
    /// Only this job: the first digits of its id. With --end it is ended even if it still runs
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// End what is found: TERM, then KILL
    #[arg(long)]
    pub end: bool,
    /// With --end: also what only its environment points to
    #[arg(long)]
    pub hinted: bool,
    /// Between TERM and KILL [default: 2]
    #[arg(long, value_name = "TIME")]
    pub kill_after: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub asked: HostsAsked,
}

const AFTER: &str = "\
Examples:
  rlaunch reap -hostfile hosts               what is left there
  rlaunch reap -hostfile hosts --end         ends it
  rlaunch reap -H node7 --job 3fa1b2c4 --end ends that job on node7, running or not

Exit code: 0 if nothing is left, 1 if something is, 125 if a host could not be asked.";

/// `arguments` are those after `reap`.
pub(super) fn parse(
    arguments: impl Iterator<Item = OsString>,
    defaults: impl FnOnce(&Command) -> Loaded,
) -> Result<Request, CliError> {
    let asked = |mut options: ReapOptions, origins, notes| {
        options.asked.origins = origins;
        Request::Reap {
            options: Box::new(options),
            notes,
        }
    };
    hosts_asked::parse("rlaunch reap", arguments, defaults, asked)
}
