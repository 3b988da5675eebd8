//! What is shown.

use clap::{ArgAction, Args};

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Begin each line with its rank and stream: `[3]<stdout>: `
    #[arg(long, aliases = ["prepend-rank", "l"])]
    pub tag_output: bool,
    /// Begin each line with the time on the rank's host, in UTC
    #[arg(long)]
    pub timestamp_output: bool,
    /// Say what is done and how long it takes; twice for more
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub verbose: u8,
}
