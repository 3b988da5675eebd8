//! What is shown.

use std::path::PathBuf;

use clap::{ArgAction, Args};

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Begin each line with its rank and stream: `[3]<stdout>: `
    #[arg(long, aliases = ["prepend-rank", "l"])]
    pub tag_output: bool,
    /// Begin each line with the time on the rank's host, in UTC
    #[arg(long, alias = "timestamp-output")]
    pub timestamp: bool,
    /// Write each stream of each rank to a file in this directory, on this machine, too
    #[arg(long, value_name = "DIR",
          aliases = ["output-directory", "output-filename", "log-dir"])]
    pub output_dir: Option<PathBuf>,
    /// Show only what these ranks print: `0`, `0,4-7`, `none`; files and verdict have the others too
    /// [default: all]
    #[arg(long, value_name = "RANKS")]
    pub only: Option<String>,
    /// Send each rank's stderr where its stdout goes, in the order of its writes
    #[arg(long, alias = "merge-stderr-to-stdout")]
    pub merge_stderr: bool,
    /// Leave out notes and warnings; why a job ended is told
    #[arg(short = 'q', long, overrides_with = "verbose")]
    pub quiet: bool,
    /// Say what is done and how long it takes; twice for more
    #[arg(short = 'v', long, action = ArgAction::Count, overrides_with = "quiet")]
    pub verbose: u8,
}
