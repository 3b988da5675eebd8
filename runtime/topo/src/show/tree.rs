//! What hangs where: NUMA nodes, host bridges, switches, devices.

use std::fmt::Write;

use super::rate;
use crate::layout::ranges;
use crate::machine::{Address, Hca, Interface, Kind, Lanes, Layer, Link, Machine, Place};

pub(super) fn tree(machine: &Machine) -> String {
    let mut out = head(machine);
    let mut entries = entries(machine);
    entries.sort_by(|a, b| (order(&a.place), a.address).cmp(&(order(&b.place), b.address)));
    for node in &machine.nodes {
        let usable = machine
            .usable
            .nodes
            .iter()
            .find(|it| it.number == node.number);
        let cores = usable.map_or(0, |usable| usable.cores.len());
        let mut facts = vec![format!("CPUs {}", ranges(&node.cpus))];
        facts.extend(
            node.memory_kib
                .map(|kib| format!("{} GiB", kib / (1024 * 1024))),
        );
        let number = node.number;
        let core = if cores == 1 { "core" } else { "cores" };
        let _ = writeln!(
            out,
            "NUMA node {number}: {cores} {core}, {}",
            facts.join(", ")
        );
        show(
            &mut out,
            machine,
            entries.iter().filter(|it| it.place.node == Some(number)),
        );
    }
    let is_homeless = |entry: &&Entry| {
        let node = entry.place.node;
        !machine.nodes.iter().any(|known| Some(known.number) == node)
    };
    let mut homeless = entries.iter().filter(is_homeless).peekable();
    if homeless.peek().is_some() {
        out.push_str("NUMA node unknown\n");
        show(&mut out, machine, homeless);
    }
    let soft: Vec<&Interface> = machine
        .interfaces
        .iter()
        .filter(|it| it.pci.is_none())
        .collect();
    if !soft.is_empty() {
        out.push_str("Without a device\n");
        for interface in soft {
            let _ = writeln!(out, "  {}", interface_line(interface));
        }
    }
    out
}

fn head(machine: &Machine) -> String {
    let usable = machine.usable.nodes.iter().flat_map(|node| &node.cores);
    let threads: usize = usable.clone().map(|core| core.cpus.len()).sum();
    let mut facts = Vec::new();
    facts.extend(machine.processor.sockets.map(|count| match count {
        1 => "1 socket".to_owned(),
        _ => format!("{count} sockets"),
    }));
    facts.push(format!("{} cores ({threads} threads)", usable.count()));
    facts.extend(
        machine
            .limits
            .quota_milli
            .map(|milli| format!("time of {} cores", f64::from(milli) / 1000.0)),
    );
    let name = machine.product.as_deref().unwrap_or("Unnamed machine");
    let mut out = format!("{name}: {}\n", facts.join(", "));
    let drivers = &machine.drivers;
    let mut software = Vec::new();
    software.extend(
        drivers
            .nvidia
            .as_ref()
            .map(|version| format!("NVIDIA driver {version}")),
    );
    software.extend(drivers.peer_memory.clone());
    if !machine.gpus.is_empty() && !drivers.nvml {
        software.push("NVML told nothing: NVLinks are unknown".to_owned());
    }
    if machine.told_by_nccl_file {
        software.push("devices are where NCCL's topology file says".to_owned());
    }
    if !software.is_empty() {
        let _ = writeln!(out, "{}", software.join(", "));
    }
    out.push('\n');
    out
}

/// A device with a place.
struct Entry {
    address: Address,
    place: Place,
    lines: Vec<String>,
}

fn order(place: &Place) -> (Option<&str>, &[Address]) {
    (place.root.as_deref(), &place.switches)
}

fn entries(machine: &Machine) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut add = |address: Address, line: String| match entries
        .iter_mut()
        .find(|entry| entry.address == address)
    {
        Some(entry) => entry.lines.push(line),
        None => entries.push(Entry {
            address,
            place: machine.place(Some(address)),
            lines: vec![line],
        }),
    };
    for gpu in &machine.gpus {
        let mut facts = vec![gpu.model.clone().unwrap_or("GPU".to_owned())];
        facts.extend(link(machine, gpu.address));
        if gpu.present == Some(false) {
            facts.push("no device file here".to_owned());
        }
        add(
            gpu.address,
            format!("GPU{} {}", gpu.number, facts.join(", ")),
        );
        for (index, slice) in gpu.slices.iter().enumerate() {
            let profile = slice.profile.as_deref().unwrap_or("MIG device");
            add(
                gpu.address,
                format!("  GPU{}/{index} {profile}", gpu.number),
            );
        }
    }
    for hca in &machine.hcas {
        if let Some(address) = hca.pci {
            add(address, hca_line(machine, hca));
        }
    }
    for interface in &machine.interfaces {
        if let Some(address) = interface.pci {
            add(address, interface_line(interface));
        }
    }
    entries
}

/// Host bridges and switches stand once above what hangs at them.
fn show<'a>(out: &mut String, machine: &Machine, entries: impl Iterator<Item = &'a Entry>) {
    let mut open: Vec<String> = Vec::new();
    for entry in entries {
        let place = &entry.place;
        let mut way: Vec<String> = place.root.iter().cloned().collect();
        way.extend(place.switches.iter().map(|switch| {
            let facts = link(machine, *switch).map(|link| format!(", {link}"));
            format!("switch {switch}{}", facts.unwrap_or_default())
        }));
        let common = open.iter().zip(&way).take_while(|(a, b)| a == b).count();
        for (depth, part) in way.iter().enumerate().skip(common) {
            let _ = writeln!(out, "  {}{part}", "  ".repeat(depth));
        }
        let space = "  ".repeat(way.len() + 1);
        for (index, line) in entry.lines.iter().enumerate() {
            let address = match index {
                0 => entry.address.to_string(),
                _ => " ".repeat(12),
            };
            let _ = writeln!(out, "{space}{address} {line}");
        }
        open = way;
    }
}

fn hca_line(machine: &Machine, hca: &Hca) -> String {
    let mut facts = Vec::new();
    for port in &hca.ports {
        let layer = match port.layer {
            Some(Layer::Infiniband) => "InfiniBand",
            Some(Layer::Ethernet) => "RoCE",
            None => "RDMA",
        };
        let speed = port.rate_mbits.map(|mbits| format!(" {}", rate(mbits)));
        let state = port.state.as_deref().filter(|state| *state != "ACTIVE");
        let state = state.map(|state| format!(" {state}"));
        let parts = [speed.unwrap_or_default(), state.unwrap_or_default()].concat();
        facts.push(format!("{layer}{parts}"));
    }
    facts.extend(hca.pci.and_then(|address| link(machine, address)));
    if let Some(physical) = hca.physical {
        facts.push(format!("virtual function of {physical}"));
    }
    if hca.usable == Some(false) {
        facts.push("no device file here".to_owned());
    }
    format!("{} {}", hca.name, facts.join(", "))
}

fn interface_line(interface: &Interface) -> String {
    let kind = match interface.kind {
        Kind::Loopback => "loopback",
        Kind::Ethernet => "Ethernet",
        Kind::Infiniband => "IP over InfiniBand",
        Kind::Wireless => "Wi-Fi",
        Kind::Bond => "bond",
        Kind::Bridge => "bridge",
        Kind::Vlan => "VLAN",
        Kind::Veth => "veth",
        Kind::Tunnel => "tunnel",
        Kind::Unknown => "interface",
    };
    let mut facts = vec![match interface.below.is_empty() {
        true => kind.to_owned(),
        false => format!("{kind} of {}", interface.below.join(" ")),
    }];
    facts.extend(interface.speed_mbits.map(rate));
    facts.extend(
        interface
            .mtu
            .filter(|mtu| *mtu != 1500)
            .map(|mtu| format!("MTU {mtu}")),
    );
    if interface.up == Some(false) {
        facts.push("off".to_owned());
    } else if interface.carrier == Some(false) {
        facts.push("no carrier".to_owned());
    }
    let addresses = interface.addresses.iter().flatten();
    facts.extend(addresses.map(ToString::to_string));
    format!("{} {}", interface.name, facts.join(", "))
}

/// `PCIe 5.0 x16`; as it can be, since devices at rest slow theirs down, but not as wide: that stays.
fn link(machine: &Machine, address: Address) -> Option<String> {
    let Link { now, max } = machine.pci(address)?.link;
    let lanes = Lanes {
        speed: max.speed.or(now.speed),
        width: now.width.or(max.width),
    };
    let generation = lanes.generation()?;
    let width = lanes.width?;
    Some(match max.width.filter(|max| *max > width) {
        Some(max) => format!("PCIe {generation}.0 x{width} of x{max}"),
        None => format!("PCIe {generation}.0 x{width}"),
    })
}
