//! What the ranks run, and with what.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

#[derive(Debug, Args)]
#[command(next_help_heading = "Program")]
pub struct ProgramOptions {
    /// Run a Python module, as `python -m MODULE`; what follows is passed to it
    #[arg(short = 'm', long, value_name = "MODULE")]
    pub module: Option<OsString>,
    /// Interpreter for a .py program or -m [default: the one in PATH here]
    #[arg(long, value_name = "PATH")]
    pub python: Option<String>,
    /// Directory in which ranks start, on every host [default: this one]
    #[arg(long, value_name = "DIR", aliases = ["wd", "cwd", "chdir", "workdir"])]
    pub wdir: Option<PathBuf>,
    /// Bring this file or folder to hosts that don't have it; may be repeated. One that differs there
    /// is not replaced. A relative path stands in the job's directory
    #[arg(long, value_name = "PATH", action = ArgAction::Append, aliases = ["preload-files"])]
    pub preload: Vec<PathBuf>,
    /// Let --preload replace files that differ
    #[arg(long)]
    pub preload_replace: bool,
    /// Pass a variable: NAME from here, or NAME=VALUE, or all that fit 'NCCL_*'; may be repeated
    #[arg(short = 'x', long = "export", value_name = "NAME[=VALUE]",
          action = ArgAction::Append)]
    pub export: Vec<OsString>,
    /// Pass the variables of this file, NAME=VALUE a line; -x comes before it; may be repeated
    #[arg(long, value_name = "FILE", action = ArgAction::Append)]
    pub env_file: Vec<PathBuf>,
    /// Pass this environment (`all`) or only -x and what the job needs (`none`)
    #[arg(long, value_name = "WHICH")]
    pub env: Option<Inherit>,
    /// Rank that reads this standard input, `all` for a copy to each, or `none` [default: none]
    #[arg(long, value_name = "RANK")]
    pub stdin: Option<String>,
    /// Give each rank a terminal of its own
    #[arg(long)]
    pub pty: bool,

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
