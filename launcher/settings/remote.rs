//! How hosts are reached.

use rlaunch_plan::allocation::Allocation;
use rlaunch_remote::{RemoteOptions, is_this_machine};

use super::SettingsError;
use super::value::port;
use crate::cli::Options;
use crate::config::Config;

pub(super) fn remote(options: &Options, config: &Config) -> RemoteOptions {
    let identity = if options.reach.identity.is_empty() {
        &config.identity
    } else {
        &options.reach.identity
    };
    RemoteOptions {
        identity_files: identity.clone(),
        accept_new: options.reach.ssh_accept_new || config.ssh_accept_new == Some(true),
        ssh_program: options
            .reach
            .ssh_program
            .clone()
            .or_else(|| config.ssh_program.clone()),
        agent_path: options.reach.agent.clone().or_else(|| config.agent.clone()),
        never_local: options.reach.ssh_always,
        ..RemoteOptions::default()
    }
}

/// `--ssh-port`, where the hostfile names none. This machine needs no ssh.
pub(super) fn add_port(
    options: &Options,
    config: &Config,
    allocation: &mut Allocation,
) -> Result<(), SettingsError> {
    let ssh_port = match options.reach.ssh_port.as_deref() {
        None => config.ssh_port,
        text => port("--ssh-port", text)?,
    };
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
