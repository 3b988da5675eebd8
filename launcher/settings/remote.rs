//! How hosts are reached.

use std::path::{Path, PathBuf};

use rlaunch_plan::allocation::Allocation;
use rlaunch_remote::{RemoteOptions, has_public_key, is_this_machine, split_words};

use super::SettingsError;
use super::value::port;
use crate::cli::Options;
use crate::files;

/// What it names on this machine is looked at here: no host need be contacted for a typing error.
pub(super) fn remote(options: &Options) -> Result<RemoteOptions, SettingsError> {
    let reach = &options.reach;
    let identities = reach.identity.iter();
    let identity_files = identities.map(|path| identity(path));
    let agent = reach.agent.as_deref();
    let agent_path = agent.map(|path| readable("--agent", path)).transpose()?;
    if let Some(line) = &reach.ssh_program {
        program(line)?;
    }
    Ok(RemoteOptions {
        identity_files: identity_files.collect::<Result<_, _>>()?,
        accept_new: reach.ssh_accept_new,
        ssh_program: reach.ssh_program.clone(),
        agent_path,
        never_local: reach.ssh_always,
        ..RemoteOptions::default()
    })
}

/// Its public part is enough: the private one may be in the agent.
fn identity(path: &Path) -> Result<PathBuf, SettingsError> {
    let there = files::from_home(path);
    match there.exists() {
        false if has_public_key(&there) => Ok(there),
        _ => readable("--identity", path),
    }
}

fn readable(option: &'static str, path: &Path) -> Result<PathBuf, SettingsError> {
    let path = files::from_home(path);
    match files::readable(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(SettingsError::File {
            option,
            path,
            error,
        }),
    }
}

/// `--ssh-program`: words as a shell splits them, the first of which can be run.
fn program(line: &str) -> Result<(), SettingsError> {
    let wrong = |problem| SettingsError::Value {
        option: "--ssh-program",
        value: line.to_owned(),
        problem,
    };
    let words = split_words(line).ok_or_else(|| wrong("it is empty, or a quote is open"))?;
    match find_program(&words[0]) {
        true => Ok(()),
        false => Err(wrong(
            "there is no such program\nhint: name one in PATH, or by its whole path",
        )),
    }
}

fn find_program(name: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const EXECUTE: u32 = 0o111;
    let runs = |path: &Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & EXECUTE != 0)
    };
    if name.contains('/') {
        return runs(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| runs(&folder.join(name)))
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
