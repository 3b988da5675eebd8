//! The only IO: what the kernel says, as it says it.
//!
//! What cannot be read is empty: a machine without a GPU driver, a container without /sys.

use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

/// Raw facts of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// `/proc/self/status`: the affinity mask stands there.
    pub status: String,
    /// Cores' worth of time that control groups allow, where they limit it: a container's `--cpus=2`.
    pub time_cores: Option<u32>,
    /// Names in `/proc/driver/nvidia/gpus`.
    pub nvidia_driver_gpus: Vec<String>,
    /// Names in `/dev` that start with `nvidia`: all that a container may have.
    pub nvidia_devices: Vec<String>,
    /// One entry for each address, one without address for an interface that has none.
    pub addresses: Vec<RawAddress>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAddress {
    pub interface: String,
    /// `IFF_UP`: switched on.
    pub up: bool,
    /// `IFF_RUNNING`: a carrier is there.
    pub running: bool,
    pub loopback: bool,
    pub address: Option<IpAddr>,
}

impl Snapshot {
    /// This machine.
    pub fn read() -> Self {
        // From the kernel's table and not from /sys/class/net: a /sys that was mounted in another
        // network namespace shows that one's interfaces.
        Self {
            addresses: addresses(),
            time_cores: std::thread::available_parallelism()
                .ok()
                .and_then(|cores| u32::try_from(cores.get()).ok()),
            ..Self::read_files(Path::new("/"))
        }
    }

    /// The part that stands in files, below `root`.
    pub fn read_files(root: &Path) -> Self {
        let mut nvidia_devices = names(&root.join("dev"));
        nvidia_devices.retain(|name| name.starts_with("nvidia"));
        Self {
            status: std::fs::read_to_string(root.join("proc/self/status")).unwrap_or_default(),
            nvidia_driver_gpus: names(&root.join("proc/driver/nvidia/gpus")),
            nvidia_devices,
            time_cores: None,
            addresses: Vec::new(),
        }
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

fn addresses() -> Vec<RawAddress> {
    let Ok(entries) = getifaddrs() else {
        return Vec::new();
    };
    entries
        .map(|entry| RawAddress {
            up: entry.flags.contains(InterfaceFlags::IFF_UP),
            running: entry.flags.contains(InterfaceFlags::IFF_RUNNING),
            loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            address: entry.address.as_ref().and_then(ip),
            interface: entry.interface_name,
        })
        .collect()
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(IpAddr::V4(v4.ip()));
    }
    address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()))
}
