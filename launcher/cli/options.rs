//! The options as a user types them: clap's table, the one source of help and of normalisation.
//!
//! Values that need more than a look (durations, host lists, NAME=VALUE) stay text here and get
//! their meaning in [`crate::settings`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueEnum};

/// Run a program as ranks of one job, on this machine or on many over ssh.
#[derive(Debug, Parser)]
#[command(
    name = "rlaunch",
    version,
    override_usage = "rlaunch [options] PROGRAM [args]\n       rlaunch [options] -m MODULE [args]",
    after_help = EXAMPLES,
    disable_help_subcommand = true,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Options {
    /// Number of ranks [default: one for each slot]
    #[arg(short = 'n', long = "np", value_name = "N", help_heading = HOSTS,
          aliases = ["n", "ntasks", "nproc", "num-proc"], allow_negative_numbers = true)]
    pub np: Option<String>,
    /// File of hosts, one a line: `host`, `host slots=N`, `user@host port=2222`
    #[arg(long, value_name = "FILE", help_heading = HOSTS, aliases = ["machinefile", "f"])]
    pub hostfile: Option<PathBuf>,
    /// Hosts on the command line: `a,b:4` (4 slots on b)
    #[arg(short = 'H', long, value_name = "HOSTS", help_heading = HOSTS, action = ArgAction::Append,
          aliases = ["hosts"])]
    pub host: Vec<String>,
    /// Ranks on each host
    #[arg(long, value_name = "N", help_heading = HOSTS, allow_negative_numbers = true, short_alias = 'N',
          aliases = ["npernode", "ppn", "ntasks-per-node", "num-gpus"])]
    pub nproc_per_node: Option<String>,
    /// Use the first N hosts
    #[arg(long, value_name = "N", help_heading = HOSTS, allow_negative_numbers = true, alias = "num-nodes")]
    pub nnodes: Option<String>,
    /// Allow more ranks than slots
    #[arg(long, help_heading = HOSTS)]
    pub oversubscribe: bool,

    /// Run a Python module, as `python -m MODULE`; what follows is passed to it
    #[arg(short = 'm', long, value_name = "MODULE", help_heading = PROGRAM)]
    pub module: Option<OsString>,
    /// Interpreter for a .py program or -m [default: the one in PATH here]
    #[arg(long, value_name = "PATH", help_heading = PROGRAM)]
    pub python: Option<String>,
    /// Directory in which ranks start, on every host [default: this one]
    #[arg(long, value_name = "DIR", help_heading = PROGRAM, aliases = ["wd", "cwd", "chdir", "workdir"])]
    pub wdir: Option<PathBuf>,
    /// Pass a variable: NAME from here, or NAME=VALUE; may be repeated
    #[arg(short = 'x', long = "export", value_name = "NAME[=VALUE]", help_heading = PROGRAM,
          action = ArgAction::Append)]
    pub export: Vec<OsString>,
    /// Pass this environment (`all`) or only -x and what the job needs (`none`)
    #[arg(long, value_name = "WHICH", help_heading = PROGRAM)]
    pub env: Option<Inherit>,
    /// Rank that reads this standard input, or `none` [default: none]
    #[arg(long, value_name = "RANK", help_heading = PROGRAM)]
    pub stdin: Option<String>,
    /// Give each rank a terminal of its own
    #[arg(long, help_heading = PROGRAM)]
    pub pty: bool,

    /// Begin each line with its rank and stream: `[3]<stdout>: `
    #[arg(long, help_heading = OUTPUT, aliases = ["prepend-rank", "l"])]
    pub tag_output: bool,
    /// Begin each line with the time on the rank's host, in UTC
    #[arg(long, help_heading = OUTPUT)]
    pub timestamp_output: bool,
    /// Say what is done and how long it takes; twice for more
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = OUTPUT)]
    pub verbose: u8,

    /// End the job after this long: 90, 1.5h, 10m [exit code 124]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub timeout: Option<String>,
    /// From asking ranks to end (TERM) to ending them (KILL) [default: 10]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub kill_after: Option<String>,
    /// What becomes of the others when a rank fails: `stop`, or `continue` for programs that shrink
    /// [default: stop]
    #[arg(long, value_name = "WHAT", help_heading = LIMITS)]
    pub on_failure: Option<AfterFailure>,
    /// Silence after which a host counts as lost [default: 30]
    #[arg(long, value_name = "TIME", help_heading = LIMITS)]
    pub host_timeout: Option<String>,

    /// Show where each rank goes, then run
    #[arg(long, help_heading = LOOK, aliases = ["display-devel-map", "display-allocation"])]
    pub display_map: bool,
    /// Show the plan and the environment, run nothing
    #[arg(long, help_heading = LOOK, aliases = ["do-not-launch", "show"])]
    pub dry_run: bool,
    /// The map as JSON
    #[arg(long, help_heading = LOOK)]
    pub json: bool,

    /// Private key for ssh; may be repeated
    #[arg(short = 'i', long, value_name = "FILE", help_heading = REACH, action = ArgAction::Append)]
    pub identity: Vec<PathBuf>,
    /// Reach hosts by this program (`ssh`, or a path with arguments) instead of the built-in client
    #[arg(long, value_name = "COMMAND", help_heading = REACH)]
    pub ssh_program: Option<String>,
    /// Port of sshd where the hostfile names none
    #[arg(long, value_name = "PORT", help_heading = REACH)]
    pub ssh_port: Option<String>,
    /// Add the keys of hosts that are not in known_hosts (never of changed ones)
    #[arg(long, help_heading = REACH)]
    pub ssh_accept_new: bool,
    /// rlaunch executable to run on the hosts [default: this one]
    #[arg(long, value_name = "PATH", help_heading = REACH)]
    pub agent: Option<PathBuf>,

    /// MASTER_ADDR for the ranks [default: an address that every host has proven]
    #[arg(long, value_name = "ADDRESS", help_heading = MASTER)]
    pub master_addr: Option<String>,
    /// MASTER_PORT for the ranks [default: a free one on rank 0's host]
    #[arg(long, value_name = "PORT", help_heading = MASTER)]
    pub master_port: Option<String>,
    /// Leave MASTER_PORT unbound, for programs that don't set SO_REUSEADDR
    #[arg(long, help_heading = MASTER)]
    pub no_port_hold: bool,

    /// PROGRAM and its arguments, passed on verbatim
    #[arg(value_name = "PROGRAM", last = true, hide = true)]
    pub command: Vec<OsString>,
}

/// What of the launcher's environment ranks get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Inherit {
    All,
    None,
}

/// What becomes of the other ranks when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AfterFailure {
    Stop,
    Continue,
}

const HOSTS: &str = "Ranks and hosts";
const PROGRAM: &str = "Program";
const OUTPUT: &str = "Output";
const LIMITS: &str = "Limits (times in seconds, or with ms, s, m, h)";
const LOOK: &str = "Look first";
const REACH: &str = "Reaching hosts";
const MASTER: &str = "Rendezvous";

const EXAMPLES: &str = "\
Examples:
  rlaunch -np 4 train.py --lr 0.1            four ranks here
  rlaunch -np 8 -hostfile hosts train.py     over ssh; nothing is installed on the hosts
  rlaunch -H a:4,b:4 -m package.train        a Python module, 4 ranks on each host

Long options take one dash or two. Words of mpirun, torchrun and Hydra are understood or noted.
Options end at PROGRAM. Exit code: that of the first rank that failed (128+signal), 124 after
--timeout, 2 for a mistake on the command line, 125 if the job could not be started.
Defaults can stand in ~/.config/rlaunch/config.toml.";
