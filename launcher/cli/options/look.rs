//! Look before running.

use std::path::PathBuf;

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
    /// For programs: the plan of --dry-run, or else the job's report at its end (on stderr), as JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          default_missing_value = "-")]
    pub json: Option<PathBuf>,
}
