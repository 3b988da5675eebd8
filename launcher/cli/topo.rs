//! The words of `rlaunch topo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Command, Parser};

use super::hosts_asked::{self, HostsAsked};
use super::{CliError, Request};
use crate::knobs::Loaded;

/// Show what a machine is: its cores, GPUs and network devices, how near they are to each other,
/// which belong together, and why.
#[derive(Debug, Parser)]
#[command(
    name = "rlaunch topo",
    override_usage = "rlaunch topo [options]",
    after_help = AFTER,
    max_term_width = 100,
    args_override_self = true
)]
pub struct TopoOptions {
    /// Instead, a machine on file: a folder that stands for its `/`, or its recorded facts
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,
    /// NCCL's topology file, on each host [default: NCCL_TOPO_FILE, else the cloud's]
    #[arg(long, value_name = "XML")]
    pub topo_file: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Also as a picture, into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also as a machine on file, for a bug report: without addresses, UUIDs and the like
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
    #[command(flatten)]
    pub asked: HostsAsked,
}

const AFTER: &str = "\
Examples:
  rlaunch topo                         this machine
  rlaunch topo -hostfile hosts         each host; those that are alike once
  rlaunch topo -H node7 --svg n7.svg   also as a picture
  rlaunch topo --snapshot machine.txt  also as a machine on file, for a bug report
  rlaunch topo --root machine.txt      a machine on file

Exit code: 0; 2 for a file that is no machine, 125 if a host could not be asked.";

/// `arguments` are those after `topo`.
pub(super) fn parse(
    arguments: impl Iterator<Item = OsString>,
    defaults: impl FnOnce(&Command) -> Loaded,
) -> Result<Request, CliError> {
    let asked = |mut options: TopoOptions, origins, notes| {
        options.asked.origins = origins;
        Request::Topo {
            options: Box::new(options),
            notes,
        }
    };
    hosts_asked::parse("rlaunch topo", arguments, defaults, asked)
}
