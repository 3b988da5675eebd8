//! The options as a user types them: clap's table, the one source of help and of normalisation.
//!
//! Values that need more than a look (durations, host lists, NAME=VALUE) stay text here and get
//! their meaning in [`crate::settings`]. A file for each heading of `--help`.

mod hosts;
mod limits;
mod look;
mod output;
mod place;
mod program;
mod reach;
mod rendezvous;

use clap::Parser;

use super::parts::PARTS;
use crate::knobs::Origins;

pub use hosts::{HostOptions, Scheduler};
pub use limits::{AfterFailure, LimitOptions};
pub use look::LookOptions;
pub use output::OutputOptions;
pub use place::PlaceOptions;
pub use program::{Inherit, ProgramOptions};
pub use reach::ReachOptions;
pub use rendezvous::RendezvousOptions;

/// Run a program as ranks of one job, on this machine or on many over ssh.
#[derive(Debug, Parser)]
#[command(
    name = "rlaunch",
    version,
    override_usage = "rlaunch [options] PROGRAM [args]\n       rlaunch [options] -m MODULE [args]\n       rlaunch [options] PROGRAM [args] : [options] PROGRAM [args] : …",
    after_help = after_help(),
    disable_help_subcommand = true,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Options {
    #[command(flatten)]
    pub hosts: HostOptions,
    #[command(flatten)]
    pub place: PlaceOptions,
    #[command(flatten)]
    pub program: ProgramOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(flatten)]
    pub limits: LimitOptions,
    #[command(flatten)]
    pub look: LookOptions,
    #[command(flatten)]
    pub reach: ReachOptions,
    #[command(flatten)]
    pub rendezvous: RendezvousOptions,

    /// The job's other programs, each with the options of [`OF_A_PROGRAM`] that stand before it.
    #[arg(skip)]
    pub others: Vec<Self>,
    /// Where those values of this program stand that nobody typed.
    #[arg(skip)]
    pub origins: Origins,
}

/// Options that each of several programs (`a : b`) has for itself; all others are the job's.
pub(super) const OF_A_PROGRAM: [&str; 14] = [
    "np",
    "hostfile",
    "host",
    "nproc_per_node",
    "map_by",
    "rank_by",
    "module",
    "python",
    "wdir",
    "preload",
    "export",
    "env_file",
    "env",
    "command",
];

fn after_help() -> String {
    let parts = PARTS.map(|(name, _)| name).join(", ");
    format!("{EXAMPLES}\nParts of rlaunch, by the first word, each with --help: {parts}.")
}

const EXAMPLES: &str = "\
Examples:
  rlaunch -np 4 train.py --lr 0.1            four ranks here
  rlaunch -np 8 -hostfile hosts train.py     over ssh; nothing is installed on the hosts
  rlaunch -H a:4,b:4 -m package.train        a Python module, 4 ranks on each host
  rlaunch -np 1 server : -np 4 -x A=1 work   two programs, one job

Long options take one dash or two. Words of mpirun, torchrun and Hydra are understood or noted.
Options end at PROGRAM; a lone `:` begins another one, with its own -np, hosts, mapping, -x, --env,
--wdir and --python (after `-- PROGRAM` it is an argument). Exit code: that of the first rank that failed (128+signal), 124 after
--timeout, 2 for a mistake on the command line, 125 if the job could not be started.
Each option can also stand in rlaunch.toml (np = 4; here or above, or in ~/.config/rlaunch) and in a
variable (RLAUNCH_NP=4). `rlaunch settings` shows what is set, and where.";
