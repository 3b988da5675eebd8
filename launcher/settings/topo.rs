//! `rlaunch topo`, as meant.

use std::path::PathBuf;

use rlaunch_plan::Host;
use rlaunch_remote::RemoteOptions;

use super::{SettingsError, hosts_asked};
use crate::cli::{HostsAsked, TopoOptions};
use crate::files;

#[derive(Debug)]
pub struct TopoSettings {
    pub looked_at: LookedAt,
    /// NCCL's topology file, where each of the machines has it.
    pub topo_file: Option<PathBuf>,
    pub json: bool,
    pub svg: Option<PathBuf>,
    /// Where the one machine is recorded.
    pub snapshot: Option<PathBuf>,
}

#[derive(Debug)]
pub enum LookedAt {
    This,
    /// A machine on file.
    File(PathBuf),
    Hosts {
        hosts: Vec<Host>,
        remote: Box<RemoteOptions>,
    },
}

pub fn resolve_topo(words: TopoOptions) -> Result<TopoSettings, SettingsError> {
    let looked_at = match words.root {
        Some(path) => file(path, &words.asked)?,
        None => {
            let asked = hosts_asked::resolve(words.asked)?;
            match asked.named {
                false => LookedAt::This,
                true => LookedAt::Hosts {
                    hosts: asked.hosts,
                    remote: Box::new(asked.remote),
                },
            }
        }
    };
    let snapshot = words.snapshot.as_deref().map(files::from_home);
    if let (Some(path), LookedAt::Hosts { hosts, .. }) = (&snapshot, &looked_at)
        && hosts.len() > 1
    {
        return Err(SettingsError::Value {
            option: "--snapshot",
            value: path.display().to_string(),
            problem: "it takes one machine, and several hosts are asked\nhint: -H HOST",
        });
    }
    Ok(TopoSettings {
        looked_at,
        topo_file: words.topo_file.as_deref().map(files::from_home),
        json: words.json,
        svg: words.svg.as_deref().map(files::from_home),
        snapshot,
    })
}

/// Hosts that a file of settings names for every job are not meant; typed ones are a contradiction.
fn file(path: PathBuf, asked: &HostsAsked) -> Result<LookedAt, SettingsError> {
    let typed = |name: &str, given: bool| given && asked.origins.of(name).is_none();
    if typed("host", !asked.host.is_empty()) || typed("hostfile", asked.hostfile.is_some()) {
        return Err(SettingsError::Value {
            option: "--root",
            value: path.display().to_string(),
            problem: "this is a machine on file, and no host is asked\nhint: leave out -H and -hostfile",
        });
    }
    Ok(LookedAt::File(files::from_home(&path)))
}
