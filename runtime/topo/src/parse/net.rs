//! Network interfaces: what they are, not what they are called.

use std::net::IpAddr;

use crate::machine::{Address, Interface, Kind, Machine, Network};
use crate::snapshot::ADDRESSES;
use crate::tree::Tree;

const FOLDER: &str = "sys/class/net";
/// ARP hardware types of `/sys/class/net/*/type`.
const TYPE_ETHERNET: u32 = 1;
const TYPE_INFINIBAND: u32 = 32;
const TYPE_LOOPBACK: u32 = 772;
const TYPES_TUNNEL: &[u32] = &[65534, 768, 769, 776, 778, 823];

/// What the kernel's table says of an interface.
struct Told {
    name: String,
    flags: Vec<String>,
    addresses: Vec<Network>,
}

pub(super) fn parse(tree: &Tree, machine: &mut Machine) {
    let told = tree.text(ADDRESSES).map(told);
    // A /sys that was mounted in another network namespace shows that one's interfaces: the table
    // tells which are here.
    let mut names: Vec<String> = match &told {
        Some(told) => told.iter().map(|it| it.name.clone()).collect(),
        None => tree.names(FOLDER).into_iter().map(str::to_owned).collect(),
    };
    names.sort_unstable();
    let defaults = default_routes(tree.text("proc/net/route").unwrap_or_default());
    machine.interfaces = names
        .into_iter()
        .map(|name| {
            let own = told.iter().flatten().find(|it| it.name == name);
            let default_route = defaults.contains(&name);
            Interface {
                default_route,
                ..interface(tree, name, own)
            }
        })
        .collect();
}

fn interface(tree: &Tree, name: String, told: Option<&Told>) -> Interface {
    let path = format!("{FOLDER}/{name}");
    let word = |field: &str| tree.word(&format!("{path}/{field}")).map(str::to_owned);
    let flag = |flag: &str| told.map(|told| told.flags.iter().any(|it| it == flag));
    let carrier = tree.number::<u32>(&format!("{path}/carrier"));
    let state = word("operstate");
    // Where an interface is off, `carrier` cannot be read; its state tells it.
    let is_off = (state.as_deref() == Some("down")).then_some(false);
    let device = tree
        .link(&format!("{path}/device"))
        .and_then(super::last_address);
    let device = device.or_else(|| device_in(tree.link(&path).unwrap_or_default()));
    let physical = tree.link_name(&format!("{path}/device/physfn"));
    let names = tree.names(&path);
    let lower = names.iter().filter_map(|it| it.strip_prefix("lower_"));
    let mut below: Vec<String> = lower.map(str::to_owned).collect();
    below.extend(
        tree.names(&format!("{path}/brif"))
            .into_iter()
            .map(str::to_owned),
    );
    let slaves = word("bonding/slaves").unwrap_or_default();
    below.extend(slaves.split_whitespace().map(str::to_owned));
    below.sort_unstable();
    below.dedup();
    Interface {
        kind: kind(tree, &path, told),
        pci: device,
        speed_mbits: tree
            .number::<i64>(&format!("{path}/speed"))
            .and_then(|speed| u32::try_from(speed).ok())
            .filter(|speed| *speed > 0 && *speed < u32::MAX),
        mtu: tree.number(&format!("{path}/mtu")),
        up: flag("up").or(is_off),
        carrier: carrier.map(|it| it == 1).or(is_off).or(flag("running")),
        state,
        addresses: told.map(|told| told.addresses.clone()),
        master: tree.link_name(&format!("{path}/master")).map(str::to_owned),
        below,
        // `802.3ad 4`
        bond_mode: word("bonding/mode")
            .and_then(|mode| Some(mode.split_whitespace().next()?.to_owned())),
        physical: physical.and_then(|name| name.parse().ok()),
        default_route: false,
        name,
    }
}

/// `…/0000:18:00.0/net/eth0` or `…/0000:00:03.0/virtio2/net/eth0`; nothing for `virtual/net/lo`.
fn device_in(target: &str) -> Option<Address> {
    super::last_address(target)
}

fn kind(tree: &Tree, path: &str, told: Option<&Told>) -> Kind {
    let uevent = tree.text(&format!("{path}/uevent")).unwrap_or_default();
    let declared = uevent
        .lines()
        .find_map(|line| line.strip_prefix("DEVTYPE="));
    let has = |field: &str| tree.has(&format!("{path}/{field}"));
    match declared {
        Some("bond") => return Kind::Bond,
        Some("bridge") => return Kind::Bridge,
        Some("vlan") => return Kind::Vlan,
        Some("wlan") => return Kind::Wireless,
        Some("wireguard" | "vxlan" | "geneve" | "gre" | "ipip") => return Kind::Tunnel,
        _ => {}
    }
    if has("bonding") {
        return Kind::Bond;
    }
    if has("bridge") {
        return Kind::Bridge;
    }
    if has("wireless") {
        return Kind::Wireless;
    }
    if has("tun_flags") {
        return Kind::Tunnel;
    }
    let number = |field: &str| tree.number::<u32>(&format!("{path}/{field}"));
    let is_virtual = tree
        .link(path)
        .is_some_and(|target| target.contains("devices/virtual/"));
    // The other end of a veth has another number, often in another namespace; it has no device.
    let is_paired = match (number("ifindex"), number("iflink")) {
        (Some(own), Some(other)) => own != other,
        _ => false,
    };
    match number("type") {
        Some(TYPE_LOOPBACK) => Kind::Loopback,
        Some(TYPE_INFINIBAND) => Kind::Infiniband,
        Some(TYPE_ETHERNET) if is_virtual && is_paired => Kind::Veth,
        Some(TYPE_ETHERNET) if is_virtual => Kind::Unknown,
        Some(TYPE_ETHERNET) => Kind::Ethernet,
        Some(number) if TYPES_TUNNEL.contains(&number) => Kind::Tunnel,
        Some(_) => Kind::Unknown,
        None if told.is_some_and(|told| told.flags.iter().any(|it| it == "loopback")) => {
            Kind::Loopback
        }
        None => Kind::Unknown,
    }
}

/// Lines of [`ADDRESSES`]: `eth0 up,running 10.0.0.5/24`.
fn told(text: &str) -> Vec<Told> {
    let mut all: Vec<Told> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(flags)) = (words.next(), words.next()) else {
            continue;
        };
        let index = match all.iter().position(|it| it.name == name) {
            Some(index) => index,
            None => {
                all.push(Told {
                    name: name.to_owned(),
                    flags: flags.split(',').map(str::to_owned).collect(),
                    addresses: Vec::new(),
                });
                all.len() - 1
            }
        };
        if let Some(address) = words.next().and_then(network) {
            all[index].addresses.push(address);
        }
    }
    all
}

pub(crate) fn network(text: &str) -> Option<Network> {
    let (ip, prefix) = match text.split_once('/') {
        Some((ip, prefix)) => (ip, Some(prefix.parse().ok()?)),
        None => (text, None),
    };
    let ip: IpAddr = ip.parse().ok()?;
    Some(Network { ip, prefix })
}

/// Interfaces of lines of `/proc/net/route` with destination and mask 0.
fn default_routes(text: &str) -> Vec<String> {
    let lines = text.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_default = words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000");
        is_default.then(|| words[0].to_owned())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)], links: &[(&str, &str)]) -> Machine {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.put(&format!("{FOLDER}/{path}"), text);
        }
        for (path, target) in links {
            tree.put_link(&format!("{FOLDER}/{path}"), target);
        }
        let mut machine = Machine::default();
        parse(&tree, &mut machine);
        machine
    }

    #[test]
    fn kinds_are_told_by_what_the_kernel_has_not_by_names() {
        let virtual_ = |name: &str| format!("../../devices/virtual/net/{name}");
        let links: Vec<(String, String)> = ["lo", "docker0", "eth0", "tun7", "eth1.5", "bond0"]
            .map(|name| (name.to_owned(), virtual_(name)))
            .to_vec();
        let mut links: Vec<(&str, &str)> = links
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        links.push((
            "lan",
            "../../devices/pci0000:00/0000:00:03.0/virtio2/net/lan",
        ));
        let machine = machine(
            &[
                ("lo/type", "772"),
                ("docker0/type", "1"),
                ("docker0/bridge", ""),
                ("docker0/brif/veth7", ""),
                ("eth0/type", "1"),
                ("eth0/ifindex", "7"),
                ("eth0/iflink", "8"),
                ("tun7/tun_flags", "0x1001"),
                ("eth1.5/uevent", "DEVTYPE=vlan\nINTERFACE=eth1.5"),
                ("bond0/bonding/slaves", "b a"),
                ("bond0/bonding/mode", "802.3ad 4"),
                ("lan/type", "1"),
                ("lan/speed", "-1"),
            ],
            &links,
        );
        let kind = |name: &str| machine.interface(name).unwrap().kind;
        assert_eq!(kind("lo"), Kind::Loopback);
        assert_eq!(kind("docker0"), Kind::Bridge);
        assert_eq!(kind("eth0"), Kind::Veth);
        assert_eq!(kind("tun7"), Kind::Tunnel);
        assert_eq!(kind("eth1.5"), Kind::Vlan);
        assert_eq!(kind("bond0"), Kind::Bond);
        assert_eq!(kind("lan"), Kind::Ethernet);
        let lan = machine.interface("lan").unwrap();
        assert_eq!(
            (lan.speed_mbits, lan.pci),
            (None, "0000:00:03.0".parse().ok())
        );
        assert_eq!(machine.interface("bond0").unwrap().below, ["a", "b"]);
    }

    /// /sys of the host is often seen in a container; its interfaces are not here.
    #[test]
    fn the_kernels_table_tells_which_interfaces_are_here() {
        let mut tree = Tree::default();
        tree.put(&format!("{FOLDER}/ib0/mtu"), "4092");
        tree.put(
            ADDRESSES,
            "lo up,loopback 127.0.0.1/8\nwg0 up 10.9.0.1\nlo up,loopback ::1/128\nx\n",
        );
        tree.put(
            "proc/net/route",
            "Iface\nwg0 00000000 0 0 0 0 0 00000000\nx 00000000\n",
        );
        let mut machine = Machine::default();
        parse(&tree, &mut machine);
        let names: Vec<&str> = machine
            .interfaces
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(names, ["lo", "wg0"]);
        let lo = machine.interface("lo").unwrap();
        assert_eq!(
            (lo.kind, lo.addresses.as_ref().map(Vec::len)),
            (Kind::Loopback, Some(2))
        );
        assert!(machine.interface("wg0").unwrap().default_route);
    }
}
