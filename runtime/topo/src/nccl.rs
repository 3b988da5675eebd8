//! NCCL's topology files: what a cloud tells of machines whose PCI is virtual.
//!
//! `system > cpu(numaid) > pci(busid, link_speed, link_width) > gpu > nvlink`, and `nic > net`. Where
//! the file names a device, its word about where that hangs replaces the kernel's, as in NCCL: switches
//! are `pci` elements around others, and a `cpu` stands for a host bridge.

use roxmltree::{Document, Node, ParsingOptions};
use thiserror::Error;

use crate::machine::{Address, Lanes, Link, Machine, NvLink, PciDevice, Peer, Place};
use crate::snapshot::{NCCL_FILE, VIRTUAL_TOPOLOGY};
use crate::tree::Tree;

/// NCCL reads at most 256 elements.
const ELEMENTS_MAX: u32 = 4096;
const DEPTH_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NcclError {
    #[error("no XML: {0}")]
    Xml(String),
    #[error("no topology of NCCL: the outermost element is <{0}>, not <system>")]
    NotSystem(String),
    #[error("none of the devices that it names is on this machine")]
    NothingHere,
}

/// What a file names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Described {
    devices: Vec<DescribedDevice>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct DescribedDevice {
    address: Address,
    place: Place,
    lanes: Lanes,
    /// Address and class of what is at the other end, and how many links.
    nvlinks: Vec<(Option<Address>, bool, u32)>,
}

/// What a tree's NCCL file was good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Followed {
    /// There is none.
    None,
    Yes,
    /// The machine is as the kernel shows it.
    No {
        /// Where the file stands in the tree.
        path: &'static str,
        error: NcclError,
    },
}

/// The machine of a tree as NCCL sees it: the file that NCCL_TOPO_FILE names, else the cloud's, has
/// the last word.
pub fn machine(tree: &Tree) -> (Machine, Followed) {
    let mut machine = crate::parse(tree);
    let paths = [NCCL_FILE, VIRTUAL_TOPOLOGY].into_iter();
    let Some((path, text)) = paths
        .filter_map(|path| Some((path, tree.text(path)?)))
        .next()
    else {
        return (machine, Followed::None);
    };
    let followed = match parse(text).and_then(|described| described.apply(&mut machine)) {
        Ok(()) => Followed::Yes,
        Err(error) => Followed::No { path, error },
    };
    (machine, followed)
}

pub fn parse(text: &str) -> Result<Described, NcclError> {
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: ELEMENTS_MAX * 4,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| NcclError::Xml(error.to_string()))?;
    let system = document.root_element();
    if !system.has_tag_name("system") {
        let name = system.tag_name().name().to_owned();
        return Err(NcclError::NotSystem(name));
    }
    let mut described = Described::default();
    for cpu in system.children().filter(|node| node.has_tag_name("cpu")) {
        let node: Option<u32> = cpu.attribute("numaid").and_then(|id| id.parse().ok());
        let name = cpu.attribute("numaid").unwrap_or("?");
        let place = Place {
            root: Some(format!("cpu{name}")),
            node,
            ..Place::default()
        };
        walk(cpu, &place, &mut described, 0);
    }
    Ok(described)
}

fn walk(parent: Node<'_, '_>, place: &Place, described: &mut Described, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    for pci in parent.children().filter(|node| node.has_tag_name("pci")) {
        let address = pci
            .attribute("busid")
            .and_then(|id| id.parse::<Address>().ok());
        let Some(address) = address else { continue };
        let gpu = pci.children().find(|node| node.has_tag_name("gpu"));
        described.devices.push(DescribedDevice {
            address,
            place: place.clone(),
            lanes: Lanes {
                speed: pci
                    .attribute("link_speed")
                    .and_then(crate::parse::pci_speed),
                width: pci
                    .attribute("link_width")
                    .and_then(|width| width.parse().ok()),
            },
            nvlinks: gpu.map(nvlinks).unwrap_or_default(),
        });
        let mut below = place.clone();
        below.bridges.push(address);
        below.switches.push(address);
        walk(pci, &below, described, depth + 1);
    }
}

fn nvlinks(gpu: Node<'_, '_>) -> Vec<(Option<Address>, bool, u32)> {
    let links = gpu.children().filter(|node| node.has_tag_name("nvlink"));
    let link = |link: Node<'_, '_>| {
        let target = link.attribute("target").and_then(|id| id.parse().ok());
        let is_switch = link
            .attribute("tclass")
            .is_some_and(|class| class.starts_with("0x0680"));
        let count = link.attribute("count").and_then(|it| it.parse().ok());
        (target, is_switch, count.unwrap_or(1))
    };
    links.map(link).collect()
}

impl Described {
    /// Puts the file's word in place of the kernel's.
    pub fn apply(&self, machine: &mut Machine) -> Result<(), NcclError> {
        let is_here = |device: &DescribedDevice| machine.pci(device.address).is_some();
        let mut here: Vec<&DescribedDevice> = self
            .devices
            .iter()
            .filter(|device| is_here(device))
            .collect();
        let bridges: Vec<Address> = here
            .iter()
            .flat_map(|it| it.place.bridges.clone())
            .collect();
        here.retain(|device| !bridges.contains(&device.address));
        if here.is_empty() {
            return Err(NcclError::NothingHere);
        }
        machine.told_by_nccl_file = true;
        // The file's switches need not exist.
        for device in self
            .devices
            .iter()
            .filter(|it| bridges.contains(&it.address))
        {
            put(machine, device);
        }
        for device in here {
            put(machine, device);
        }
        let addresses: Vec<Address> = machine.gpus.iter().map(|gpu| gpu.address).collect();
        for gpu in &mut machine.gpus {
            let told = self.devices.iter().find(|it| it.address == gpu.address);
            let Some(told) = told else { continue };
            gpu.place = told.place.clone();
            if gpu.nvlinks.is_none() && !told.nvlinks.is_empty() {
                gpu.nvlinks = Some(told.links(&addresses));
            }
        }
        Ok(())
    }
}

impl DescribedDevice {
    fn links(&self, gpus: &[Address]) -> Vec<NvLink> {
        let mut links: Vec<NvLink> = Vec::new();
        for (target, is_switch, count) in &self.nvlinks {
            let number = (0..).zip(gpus).find(|(_, gpu)| Some(**gpu) == *target);
            let peer = match number {
                Some((number, _)) => Peer::Gpu(number),
                None if *is_switch => Peer::Switch,
                None => Peer::Other,
            };
            match links.iter_mut().find(|link| link.peer == peer) {
                Some(link) => link.count = link.count.saturating_add(*count),
                None => links.push(NvLink {
                    peer,
                    count: *count,
                }),
            }
        }
        links
    }
}

fn put(machine: &mut Machine, told: &DescribedDevice) {
    let found = machine
        .pci
        .binary_search_by_key(&told.address, |it| it.address);
    let index = match found {
        Ok(index) => index,
        Err(index) => {
            let device = PciDevice {
                address: told.address,
                class: Some(0x06_0400),
                ..PciDevice::default()
            };
            machine.pci.insert(index, device);
            index
        }
    };
    let device = &mut machine.pci[index];
    device.place = told.place.clone();
    let lanes = |own: Lanes| Lanes {
        speed: told.lanes.speed.or(own.speed),
        width: told.lanes.width.or(own.width),
    };
    device.link = Link {
        now: device.link.now,
        max: lanes(device.link.max),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_topology_is_refused() {
        assert!(matches!(parse("x"), Err(NcclError::Xml(_))));
        assert_eq!(parse("<a/>"), Err(NcclError::NotSystem("a".to_owned())));
        let unknown = parse(
            "<system><cpu numaid='0'><pci busid='x'/><pci busid='0000:01:00.0'/></cpu></system>",
        );
        let error = unknown.unwrap().apply(&mut Machine::default()).unwrap_err();
        assert_eq!(error, NcclError::NothingHere);
        let bomb = "<!DOCTYPE a [<!ENTITY b 'c'>]><system>&b;</system>";
        assert!(matches!(parse(bomb), Err(NcclError::Xml(_))));
    }
}
