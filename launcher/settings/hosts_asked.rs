//! The hosts of a command that asks them something, and starts no job.

use clap::Parser;
use rlaunch_plan::Host;
use rlaunch_remote::RemoteOptions;

use super::{SettingsError, hosts, remote, scheduler};
use crate::cli::{HostsAsked, Options};

pub(super) struct Resolved {
    pub(super) hosts: Vec<Host>,
    pub(super) remote: RemoteOptions,
    /// By the user or a scheduler; else there is but this machine.
    pub(super) named: bool,
}

/// They are named and reached as for a job.
pub(super) fn resolve(words: HostsAsked) -> Result<Resolved, SettingsError> {
    let mut options = Options::parse_from(["rlaunch"]);
    options.hosts.hostfile = words.hostfile;
    options.hosts.host = words.host;
    options.hosts.scheduler = words.scheduler;
    options.output.verbose = words.verbose;
    options.reach = words.reach;
    let slurm = scheduler::slurm_job(options.hosts.scheduler)?;
    let mut allocation = hosts::allocate(&[&options], slurm.as_ref(), &mut [], &mut Vec::new())?;
    remote::add_port(&options, &mut allocation)?;
    let hosts = allocation.hosts.into_iter();
    Ok(Resolved {
        hosts: hosts.map(|allocated| allocated.host).collect(),
        remote: remote::remote(&options)?,
        named: slurm.is_some()
            || options.hosts.hostfile.is_some()
            || !options.hosts.host.is_empty(),
    })
}
