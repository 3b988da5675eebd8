//! GPUs: those that the driver has, else those on the PCI bus; what NVML adds to them.

use crate::machine::{Address, Gpu, Machine, NvLink, Peer, Slice};
use crate::nvml::{NvmlFacts, NvmlGpu, Remote};
use crate::tree::Tree;

const DRIVER: &str = "proc/driver/nvidia/gpus";
const NVIDIA: u32 = 0x10de;
/// Displays; the high byte of the class.
const DISPLAY: u32 = 0x03;
/// Other bridges: NVSwitches are such.
const SWITCH: u32 = 0x0680;

pub(super) fn parse(tree: &Tree, nvml: Option<&NvmlFacts>, machine: &mut Machine) {
    let addresses = addresses(tree, nvml, machine);
    let numbered = (0..).zip(&addresses);
    machine.gpus = numbered
        .map(|(number, address)| gpu(tree, number, *address, machine))
        .collect();
    let Some(nvml) = nvml else { return };
    for index in 0..machine.gpus.len() {
        let address = machine.gpus[index].address;
        let told = nvml.gpus.iter().find(|it| it.pci.parse() == Ok(address));
        if let Some(told) = told {
            let links = links(told, &addresses, machine);
            overlay(&mut machine.gpus[index], told, links);
        }
    }
}

/// A GPU of another driver (vfio) is nobody's here.
fn addresses(tree: &Tree, nvml: Option<&NvmlFacts>, machine: &Machine) -> Vec<Address> {
    let names = tree.names(DRIVER).into_iter();
    let mut found: Vec<Address> = names.filter_map(|name| name.parse().ok()).collect();
    if let Some(nvml) = nvml.filter(|_| found.is_empty()) {
        found.extend(
            nvml.gpus
                .iter()
                .filter_map(|gpu| gpu.pci.parse::<Address>().ok()),
        );
    }
    if found.is_empty() {
        let gpus = machine.pci.iter().filter(|device| {
            device.vendor == Some(NVIDIA)
                && device.class.is_some_and(|class| class >> 16 == DISPLAY)
                && device
                    .driver
                    .as_deref()
                    .is_none_or(|driver| driver == "nvidia")
        });
        found.extend(gpus.map(|device| device.address));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn gpu(tree: &Tree, number: u32, address: Address, machine: &Machine) -> Gpu {
    let names = tree.names(DRIVER).into_iter();
    let name = names.into_iter().find(|name| name.parse() == Ok(address));
    let information = name.and_then(|name| tree.text(&format!("{DRIVER}/{name}/information")));
    let field = |wanted: &str| {
        information.unwrap_or_default().lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            (name.trim() == wanted && !value.is_empty()).then(|| value.to_owned())
        })
    };
    let minor: Option<u32> = field("Device Minor").and_then(|text| text.parse().ok());
    let any_file = !tree.numbered("dev", "nvidia").is_empty();
    let file = minor.map(|minor| tree.has(&format!("dev/nvidia{minor}")));
    let slices = minor.map(|minor| slices(tree, minor)).unwrap_or_default();
    Gpu {
        number,
        address,
        model: field("Model"),
        // A GPU that was not used since the driver was loaded has question marks for digits.
        uuid: field("GPU UUID").filter(|uuid| !uuid.contains('?')),
        minor,
        present: file.filter(|_| any_file),
        place: machine.place(Some(address)),
        mig: (!slices.is_empty()).then_some(true),
        slices,
        ..Gpu::default()
    }
}

/// `/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0`: 0 is the GPU's minor number.
fn slices(tree: &Tree, minor: u32) -> Vec<Slice> {
    let folder = format!("proc/driver/nvidia/capabilities/gpu{minor}/mig");
    let mut slices = Vec::new();
    for gpu in tree.numbered(&folder, "gi") {
        for compute in tree.numbered(&format!("{folder}/gi{gpu}"), "ci") {
            slices.push(Slice {
                instance: Some((gpu, compute)),
                ..Slice::default()
            });
        }
    }
    slices
}

fn overlay(gpu: &mut Gpu, told: &NvmlGpu, links: Option<Vec<NvLink>>) {
    gpu.model = told.name.clone().or(gpu.model.take());
    gpu.uuid = told.uuid.clone().or(gpu.uuid.take());
    gpu.minor = told.minor.or(gpu.minor);
    gpu.compute = told.compute;
    gpu.mig = told.mig.or(gpu.mig);
    gpu.health = told.health.clone();
    gpu.nvlinks = links;
    if !told.slices.is_empty() {
        let slice = |(uuid, profile): &(String, Option<String>)| Slice {
            uuid: Some(uuid.clone()),
            profile: profile.clone(),
            instance: None,
        };
        gpu.slices = told.slices.iter().map(slice).collect();
    }
}

/// Active links by what is at their other end; `None` where NVML could not say.
fn links(told: &NvmlGpu, gpus: &[Address], machine: &Machine) -> Option<Vec<NvLink>> {
    let mut links: Vec<NvLink> = Vec::new();
    for remote in told.links.as_ref()? {
        let peer = peer(remote, gpus, machine);
        match links.iter_mut().find(|link| link.peer == peer) {
            Some(link) => link.count = link.count.saturating_add(remote.count),
            None => links.push(NvLink {
                peer,
                count: remote.count,
            }),
        }
    }
    Some(links)
}

fn peer(remote: &Remote, gpus: &[Address], machine: &Machine) -> Peer {
    let address: Option<Address> = remote.pci.as_ref().and_then(|pci| pci.parse().ok());
    let number = address.and_then(|address| (0..).zip(gpus).find(|(_, it)| **it == address));
    if let Some((number, _)) = number {
        return Peer::Gpu(number);
    }
    let device = address.and_then(|address| machine.pci(address));
    let is_switch = device.is_some_and(|device| {
        device.vendor == Some(NVIDIA) && device.class.is_some_and(|class| class >> 8 == SWITCH)
    });
    match is_switch || remote.is_switch {
        true => Peer::Switch,
        false => Peer::Other,
    }
}
