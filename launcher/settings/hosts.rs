//! Which hosts, and how many ranks on each: hostfile, `-H`, `--nnodes`, `-np`.

use std::path::Path;

use rlaunch_plan::allocation::{self, Allocation};
use rlaunch_plan::hostfile;
use rlaunch_plan::placement::PlacementRequest;
use rlaunch_wire::limits::HOSTFILE_MAX_BYTES;

use super::SettingsError;
use super::value::whole;
use crate::cli::Options;
use crate::config::Config;

pub(super) fn placement(options: &Options) -> Result<PlacementRequest, SettingsError> {
    Ok(PlacementRequest {
        ranks: whole("-np", options.hosts.np.as_deref())?,
        per_host: whole(
            "--nproc-per-node",
            per_node(options.hosts.nproc_per_node.as_deref()),
        )?,
        oversubscribe: options.hosts.oversubscribe,
        ..PlacementRequest::default()
    })
}

pub(super) fn allocate(options: &Options, config: &Config) -> Result<Allocation, SettingsError> {
    let list = options.hosts.host.join(",");
    let typed = options.hosts.hostfile.as_deref();
    // A default hostfile must not limit what -H may name.
    let from_config = config
        .hostfile
        .as_deref()
        .filter(|_| options.hosts.host.is_empty());
    let mut allocation = match (
        typed.or(from_config),
        list.is_empty() && options.hosts.host.is_empty(),
    ) {
        (Some(path), true) => Allocation::from_hostfile(&read_hostfile(path)?),
        (Some(path), false) => {
            Allocation::select(&read_hostfile(path)?, &allocation::parse_host_list(&list)?)?
        }
        (None, false) => Allocation::from_list(&allocation::parse_host_list(&list)?),
        (None, true) => Allocation::local("localhost"),
    };
    if let Some(wanted) = whole("--nnodes", options.hosts.nnodes.as_deref())? {
        let (wanted, available) = (wanted as usize, allocation.hosts.len());
        if wanted == 0 {
            let value = wanted.to_string();
            return Err(SettingsError::Value {
                option: "--nnodes",
                value,
                problem: "asks for no hosts",
            });
        }
        if wanted > available {
            return Err(SettingsError::TooFewHosts { wanted, available });
        }
        allocation.hosts.truncate(wanted);
    }
    Ok(allocation)
}

fn read_hostfile(path: &Path) -> Result<hostfile::Hostfile, SettingsError> {
    use std::io::Read;
    let unreadable = |error| SettingsError::HostfileUnreadable {
        path: path.to_owned(),
        error,
    };
    let mut bytes = Vec::new();
    // One byte more than allowed tells the parser that it is too long.
    std::fs::File::open(path)
        .and_then(|file| file.take(HOSTFILE_MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(hostfile::parse(&path.to_string_lossy(), &bytes)?)
}

/// torchrun's words for "as many as the host has".
fn per_node(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !["auto", "gpu", "cpu"].contains(text))
}
