//! How many ranks, and where.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

#[derive(Debug, Args)]
#[command(next_help_heading = "Ranks and hosts")]
pub struct HostOptions {
    /// Number of ranks [default: one for each slot]
    #[arg(short = 'n', long = "np", value_name = "N",
          aliases = ["n", "ntasks", "nproc", "num-proc"], allow_negative_numbers = true)]
    pub np: Option<String>,
    /// File of hosts, one a line: `host`, `host slots=N`, `user@host port=2222`
    #[arg(long, value_name = "FILE", aliases = ["machinefile", "f"])]
    pub hostfile: Option<PathBuf>,
    /// Hosts on the command line: `a,b:4` (4 slots on b)
    #[arg(short = 'H', long, value_name = "HOSTS", action = ArgAction::Append,
          aliases = ["hosts"])]
    pub host: Vec<String>,
    /// Ranks on each host
    #[arg(short = 'N', long, value_name = "N", allow_negative_numbers = true,
          aliases = ["npernode", "ppn", "ntasks-per-node", "num-gpus"])]
    pub nproc_per_node: Option<String>,
    /// Use the first N hosts
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        aliases = ["num-nodes", "nodes"]
    )]
    pub nnodes: Option<String>,
    /// Whose hosts: those of the `slurm` job that this is inside of, `none`: leave it out of account
    /// [default: auto]
    #[arg(long, value_name = "WHICH")]
    pub scheduler: Option<Scheduler>,
    /// Allow more ranks than slots
    #[arg(long)]
    pub oversubscribe: bool,
}

/// Who gives the hosts where the user names none, and bounds those that they name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scheduler {
    Auto,
    Slurm,
    None,
}
