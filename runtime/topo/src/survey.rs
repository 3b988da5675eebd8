//! The few facts of this machine that every launch needs: read in a fraction of a millisecond.
//!
//! [`SurveyFacts::read`] does the IO and judges nothing, [`parse`] is pure. The whole machine is read
//! only when somebody asks for it: [`crate::snapshot`].
//! What cannot be read is empty: a machine without a GPU driver, a container without /sys.

use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Cores that this process may use, by its affinity mask and by the time that control groups
    /// allow; at least 1.
    pub usable_cores: u32,
    pub gpus: u32,
    pub interfaces: Vec<Interface>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// Switched on, and with carrier.
    pub up: bool,
    pub loopback: bool,
    /// Without link-local IPv6: such an address says nothing without its interface.
    pub addresses: Vec<IpAddr>,
}

/// This machine, now.
pub fn this_machine() -> Survey {
    parse(&SurveyFacts::read())
}

pub fn parse(facts: &SurveyFacts) -> Survey {
    Survey {
        usable_cores: usable_cores(&facts.status).min(facts.time_cores.unwrap_or(u32::MAX)),
        gpus: gpus(facts),
        interfaces: interfaces(&facts.addresses),
    }
}

/// Counts the cores of the line `Cpus_allowed_list: 0-3,8`.
fn usable_cores(status: &str) -> u32 {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .unwrap_or_default();
    let count = crate::layout::numbers(list).len();
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

/// The driver's own list; in a container it may show GPUs that are not given to it, so the
/// devices count where there are fewer.
fn gpus(facts: &SurveyFacts) -> u32 {
    let devices = facts
        .nvidia_devices
        .iter()
        .filter_map(|name| name.strip_prefix("nvidia"))
        .filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        .count();
    let driver = facts.nvidia_driver_gpus.len();
    let count = if devices == 0 || driver == 0 {
        devices.max(driver)
    } else {
        devices.min(driver)
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn interfaces(addresses: &[RawAddress]) -> Vec<Interface> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for raw in addresses {
        let index = match interfaces
            .iter()
            .position(|known| known.name == raw.interface)
        {
            Some(index) => index,
            None => {
                interfaces.push(Interface {
                    name: raw.interface.clone(),
                    up: raw.up && raw.running,
                    loopback: raw.loopback,
                    addresses: Vec::new(),
                });
                interfaces.len() - 1
            }
        };
        if let Some(address) = raw.address.filter(is_usable)
            && !interfaces[index].addresses.contains(&address)
        {
            interfaces[index].addresses.push(address);
        }
    }
    interfaces
}

fn is_usable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_unspecified(),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_unicast_link_local(),
    }
}

/// Raw facts of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurveyFacts {
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

impl SurveyFacts {
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

pub(crate) fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(IpAddr::V4(v4.ip()));
    }
    address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(interface: &str, running: bool, address: Option<&str>) -> RawAddress {
        RawAddress {
            interface: interface.to_owned(),
            up: true,
            running,
            loopback: interface == "lo",
            address: address.map(|text| text.parse().unwrap()),
        }
    }

    #[test]
    fn cores_are_counted_from_the_affinity_mask() {
        for (list, cores) in [("0-3,8", 5), ("7", 1), ("0-127", 128), ("", 1), ("x-3", 1)] {
            let status =
                format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\nMems:\t1\n");
            assert_eq!(usable_cores(&status), cores, "{list:?}");
        }
    }

    /// `docker --cpus=2` on a machine of 64: two ranks, not 64.
    #[test]
    fn the_time_that_control_groups_allow_counts() {
        for (time_cores, cores) in [(Some(2), 2), (Some(100), 64), (None, 64)] {
            let facts = SurveyFacts {
                status: "Cpus_allowed_list:\t0-63\n".to_owned(),
                time_cores,
                ..SurveyFacts::default()
            };
            assert_eq!(parse(&facts).usable_cores, cores);
        }
    }

    #[test]
    fn gpus_are_devices_that_the_driver_knows() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let devices = ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"];
        let pci = ["0000:18:00.0", "0000:3b:00.0", "0000:86:00.0"];
        for (driver, devices, count) in [
            (&pci[..], &devices[..], 2),
            (&pci[..2], &[], 2),
            (&[], &devices[..], 2),
            (&[], &[], 0),
        ] {
            let facts = SurveyFacts {
                nvidia_driver_gpus: names(driver),
                nvidia_devices: names(devices),
                ..SurveyFacts::default()
            };
            assert_eq!(gpus(&facts), count, "{facts:?}");
        }
    }

    #[test]
    fn interfaces_gather_their_addresses_and_tell_of_the_carrier() {
        let parsed = interfaces(&[
            raw("lo", true, None),
            raw("eth0", true, None),
            raw("docker0", false, Some("172.17.0.1")),
            raw("lo", true, Some("127.0.0.1")),
            raw("eth0", true, Some("10.0.0.5")),
            raw("eth0", true, Some("fe80::1")),
            raw("eth0", true, Some("fd00::5")),
            raw("eth0", true, Some("10.0.0.5")),
        ]);
        let names: Vec<&str> = parsed
            .iter()
            .map(|interface| interface.name.as_str())
            .collect();
        assert_eq!(names, ["lo", "eth0", "docker0"]);
        assert!(parsed[0].loopback && !parsed[1].loopback);
        assert!(parsed[1].up && !parsed[2].up);
        let expected: Vec<IpAddr> = vec!["10.0.0.5".parse().unwrap(), "fd00::5".parse().unwrap()];
        assert_eq!(parsed[1].addresses, expected);
    }

    #[test]
    fn a_folder_of_files_can_stand_for_a_machine() {
        let root = std::env::temp_dir().join(format!("rlaunch-topo-{}", std::process::id()));
        for folder in ["proc/self", "proc/driver/nvidia/gpus/0000:01:00.0", "dev"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("proc/self/status"), "Cpus_allowed_list:\t0-63\n").unwrap();
        std::fs::write(root.join("dev/nvidia0"), "").unwrap();
        std::fs::write(root.join("dev/null"), "").unwrap();
        let machine = parse(&SurveyFacts::read_files(&root));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!((machine.usable_cores, machine.gpus), (64, 1));
    }

    #[test]
    fn this_machine_has_a_core_and_a_loopback() {
        let machine = this_machine();
        assert!(machine.usable_cores >= 1);
        let loopback = machine
            .interfaces
            .iter()
            .find(|interface| interface.loopback)
            .unwrap();
        assert_eq!(loopback.name, "lo");
    }
}
