//! How ranks are dealt to hosts and cores, and numbered.

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Placement")]
pub struct PlaceOptions {
    /// How hosts are filled: `slot` (each before the next), `node` (one rank each in turn), `numa`,
    /// or `ppr:N:node` (N ranks on each) [default: slot]
    #[arg(long, value_name = "HOW")]
    pub map_by: Option<String>,
    /// How ranks are numbered: `slot` (host by host) or `node` (one on each in turn)
    /// [default: as they are mapped]
    #[arg(long, value_name = "HOW")]
    pub rank_by: Option<String>,
    /// Which cores a rank may use: `none` (all that the host gives), `core` (of its own),
    /// `numa` (those of a NUMA node, near its GPU) [default: none]
    #[arg(long, value_name = "WHAT")]
    pub bind_to: Option<String>,
    /// Cores of each rank's own; binds to them
    #[arg(long, value_name = "N", aliases = ["cpus-per-rank", "cpus-per-proc", "cpus-per-task"],
          allow_negative_numbers = true)]
    pub cores_per_rank: Option<String>,
    /// Tell which cores each rank may use, as found once it runs
    #[arg(long)]
    pub report_bindings: bool,
}
