//! From raw facts to a machine: pure. Any tree gives a machine; what makes no sense in it is as if it
//! were not there.

pub(crate) mod cpu;
mod gpu;
mod net;
mod pci;
mod rdma;

pub(crate) use pci::speed as pci_speed;

use crate::machine::{Address, Drivers, Machine};
use crate::nvml::NvmlFacts;
use crate::snapshot;
use crate::tree::Tree;

/// A NCCL file in the tree (`virtualTopology.xml`) is not applied here: see [`crate::nccl`].
pub fn parse(tree: &Tree) -> Machine {
    let nvml = tree.text(snapshot::NVML).and_then(NvmlFacts::from_json);
    let mut machine = Machine {
        product: product(tree),
        drivers: drivers(tree, nvml.is_some()),
        ..Machine::default()
    };
    cpu::parse(tree, &mut machine);
    machine.pci = pci::parse(tree);
    settle_nodes(&mut machine);
    gpu::parse(tree, nvml.as_ref(), &mut machine);
    net::parse(tree, &mut machine);
    rdma::parse(tree, &mut machine);
    machine
}

/// With one NUMA node everything hangs at it, though firmware says -1.
fn settle_nodes(machine: &mut Machine) {
    let [only] = machine.nodes.as_slice() else {
        return;
    };
    for device in &mut machine.pci {
        device.place.node.get_or_insert(only.number);
    }
}

fn product(tree: &Tree) -> Option<String> {
    let maker = tree.word("sys/class/dmi/id/sys_vendor");
    let name = tree.word("sys/class/dmi/id/product_name");
    let words: Vec<&str> = [maker, name].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn drivers(tree: &Tree, nvml: bool) -> Drivers {
    let version = tree.text("proc/driver/nvidia/version");
    // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 …`
    let nvidia = version.and_then(|text| {
        let mut words = text.lines().next()?.split_whitespace();
        let is_version = |word: &&str| {
            word.contains('.') && word.bytes().all(|it| it.is_ascii_digit() || it == b'.')
        };
        words.find(is_version).map(str::to_owned)
    });
    let folder = "sys/kernel/mm/memory_peers";
    let old = tree.names(folder).into_iter().next();
    let peer_memory = match tree.word("sys/module/nvidia_peermem/version") {
        Some(version) => Some(format!("nvidia_peermem {version}")),
        None => old.map(|name| {
            let version = tree.word(&format!("{folder}/{name}/version"));
            format!("{name} {}", version.unwrap_or_default())
        }),
    };
    Drivers {
        nvidia,
        peer_memory,
        nvml,
    }
}

/// The PCI function in a path below `/sys/devices`: the last one, since what follows is its own.
fn last_address(path: &str) -> Option<Address> {
    path.split('/').rev().find_map(|part| part.parse().ok())
}
