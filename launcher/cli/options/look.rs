//! Look before running.

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Look first")]
pub struct LookOptions {
    /// Show where each rank goes, then run
    #[arg(long, aliases = ["display-devel-map", "display-allocation"])]
    pub display_map: bool,
    /// Show the plan and the environment, run nothing
    #[arg(long, aliases = ["do-not-launch", "show"])]
    pub dry_run: bool,
    /// The map as JSON
    #[arg(long)]
    pub json: bool,
}
