//! How hosts are reached.

use rlaunch_plan::allocation::Allocation;
use rlaunch_remote::{RemoteOptions, is_this_machine};

use super::SettingsError;
use super::value::port;
use crate::cli::Options;

pub(super) fn remote(options: &Options) -> RemoteOptions {
    RemoteOptions {
        identity_files: options.reach.identity.clone(),
        accept_new: options.reach.ssh_accept_new,
        ssh_program: options.reach.ssh_program.clone(),
        agent_path: options.reach.agent.clone(),
        never_local: options.reach.ssh_always,
        ..RemoteOptions::default()
    }
}

/// `--ssh-port`, where the hostfile names none. This machine needs no ssh.
pub(super) fn add_port(
    options: &Options,
    allocation: &mut Allocation,
) -> Result<(), SettingsError> {
    let ssh_port = port("--ssh-port", options.reach.ssh_port.as_deref())?;
    let hosts = allocation
        .hosts
        .iter_mut()
        .map(|allocated| &mut allocated.host);
    let by_ssh = |name: &str| options.reach.ssh_always || !is_this_machine(name);
    for host in hosts.filter(|host| host.port.is_none() && by_ssh(&host.name)) {
        host.port = ssh_port;
    }
    Ok(())
}
