//! Where the ranks meet.

use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Rendezvous")]
pub struct RendezvousOptions {
    /// MASTER_ADDR for the ranks [default: an address that every host has proven]
    #[arg(long, value_name = "ADDRESS")]
    pub master_addr: Option<String>,
    /// MASTER_PORT for the ranks [default: a free one on rank 0's host]
    #[arg(long, value_name = "PORT")]
    pub master_port: Option<String>,
    /// Leave MASTER_PORT unbound, for programs that don't set SO_REUSEADDR
    #[arg(long)]
    pub no_port_hold: bool,
}
