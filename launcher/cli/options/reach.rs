//! How hosts are reached.

use std::path::PathBuf;

use clap::{ArgAction, Args};

#[derive(Debug, Args)]
#[command(next_help_heading = "Reaching hosts")]
pub struct ReachOptions {
    /// Private key for ssh; may be repeated
    #[arg(short = 'i', long, value_name = "FILE", action = ArgAction::Append)]
    pub identity: Vec<PathBuf>,
    /// Reach hosts by this program (`ssh`, or a path with arguments) instead of the built-in client
    #[arg(long, value_name = "COMMAND")]
    pub ssh_program: Option<String>,
    /// Port of sshd where the hostfile names none
    #[arg(long, value_name = "PORT")]
    pub ssh_port: Option<String>,
    /// Add the keys of hosts that are not in known_hosts (never of changed ones)
    #[arg(long)]
    pub ssh_accept_new: bool,
    /// Reach this machine by ssh, too, instead of starting its ranks directly
    #[arg(long)]
    pub ssh_always: bool,
    /// rlaunch executable to run on the hosts [default: this one]
    #[arg(long, value_name = "PATH")]
    pub agent: Option<PathBuf>,
}
