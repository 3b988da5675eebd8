//! How ranks are dealt to hosts and numbered.

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
}
