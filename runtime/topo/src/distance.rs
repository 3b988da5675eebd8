//! How far two devices are from each other: pure.
//!
//! | name | the way leads through | NCCL calls it |
//! |---|---|---|
//! | `SELF` (`X`) | nothing: the same device | LOC |
//! | `NV#` | so many NVLinks | NVL |
//! | `PIX` | at most one PCIe switch | PIX |
//! | `PXB` | several switches, no host bridge | PXB |
//! | `PHB` | a PCIe host bridge, that is the CPU | PHB |
//! | `NODE` | two host bridges of one NUMA node | PHB |
//! | `SYS` | the connection between NUMA nodes | SYS |
//!
//! Names are those of `nvidia-smi topo -m`. NCCL does not know NODE: a NUMA node is one CPU to it. It
//! has names between for GPUs that reach something through a third (NVB, PXN) or through a coherent
//! CPU (C2C, P2C), which are ways of its own and no distances. A distance that the machine does not
//! tell is unknown: two host bridges whose NUMA nodes firmware keeps for itself, as in most virtual
//! machines.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::machine::{Address, Gpu, Machine, Place};

/// Nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    Same,
    /// The number of links.
    NvLink(u32),
    Pix,
    Pxb,
    Phb,
    Node,
    Sys,
}

/// NCCL's classes of these, nearest first: what it takes to be equally far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NcclPath {
    Loc,
    Nvl,
    Pix,
    Pxb,
    Phb,
    Sys,
}

impl Distance {
    pub fn nccl(self) -> NcclPath {
        match self {
            Self::Same => NcclPath::Loc,
            Self::NvLink(_) => NcclPath::Nvl,
            Self::Pix => NcclPath::Pix,
            Self::Pxb => NcclPath::Pxb,
            Self::Phb | Self::Node => NcclPath::Phb,
            Self::Sys => NcclPath::Sys,
        }
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same => f.pad("X"),
            Self::NvLink(links) => f.pad(&format!("NV{links}")),
            Self::Pix => f.pad("PIX"),
            Self::Pxb => f.pad("PXB"),
            Self::Phb => f.pad("PHB"),
            Self::Node => f.pad("NODE"),
            Self::Sys => f.pad("SYS"),
        }
    }
}

impl Serialize for Distance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Over PCIe, between devices that are not the same one.
pub fn over_pci(a: &Place, b: &Place) -> Option<Distance> {
    if a.root.is_some() && a.root == b.root {
        let shared = a.switches.iter().zip(&b.switches);
        let shared = shared.take_while(|(a, b)| a == b).count();
        return Some(if shared > 0 {
            match a.switches.len() == shared && b.switches.len() == shared {
                true => Distance::Pix,
                false => Distance::Pxb,
            }
        } else if !a.bridges.is_empty() && a.bridges == b.bridges {
            // Functions of one card in a slot of the CPU's own.
            Distance::Pix
        } else {
            Distance::Phb
        });
    }
    match (a.node?, b.node?) {
        (a, b) if a == b => Some(Distance::Node),
        _ => Some(Distance::Sys),
    }
}

/// Between devices by their addresses; several functions of one device are not the same.
pub fn between(machine: &Machine, a: Address, b: Address) -> Option<Distance> {
    if a == b {
        return Some(Distance::Same);
    }
    let (a, b) = (machine.pci(a)?, machine.pci(b)?);
    over_pci(&a.place, &b.place)
}

pub fn between_gpus(a: &Gpu, b: &Gpu) -> Option<Distance> {
    if a.address == b.address {
        return Some(Distance::Same);
    }
    match a.links_to(b) {
        Some(links) if links > 0 => Some(Distance::NvLink(links)),
        _ => over_pci(&a.place, &b.place),
    }
}

/// GB/s that PCIe carries between two devices: the narrowest link on the way, by what the links can
/// be, since a GPU at rest slows its own down. As far as links are known.
pub fn gbytes(
    machine: &Machine,
    a: &Place,
    own: Address,
    b: &Place,
    other: Address,
) -> Option<f64> {
    let shared = match a.root.is_some() && a.root == b.root {
        true => a
            .bridges
            .iter()
            .zip(&b.bridges)
            .take_while(|(a, b)| a == b)
            .count(),
        false => 0,
    };
    let way = |place: &Place, end: Address| {
        let bridges = place.bridges.get(shared..).unwrap_or_default().to_vec();
        bridges.into_iter().chain([end])
    };
    let links = way(a, own).chain(way(b, other));
    let rates = links.filter_map(|address| machine.pci(address)?.link.max.gbytes());
    rates.reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{NvLink, Peer};

    fn place(root: &str, switches: &[&str], node: Option<u32>) -> Place {
        let switches: Vec<Address> = switches.iter().map(|it| it.parse().unwrap()).collect();
        Place {
            root: Some(root.to_owned()),
            bridges: switches.clone(),
            switches,
            node,
        }
    }

    #[test]
    fn distances_follow_the_tree() {
        let a = "0000:01:00.0";
        let b = "0000:02:00.0";
        let gpu = place("pci0000:00", &[a, b], Some(0));
        for (other, expected) in [
            (place("pci0000:00", &[a, b], Some(0)), Some(Distance::Pix)),
            (place("pci0000:00", &[a], Some(0)), Some(Distance::Pxb)),
            (
                place("pci0000:00", &[a, "0000:03:00.0"], Some(0)),
                Some(Distance::Pxb),
            ),
            (place("pci0000:00", &[], Some(0)), Some(Distance::Phb)),
            (place("pci0000:80", &[a, b], Some(0)), Some(Distance::Node)),
            (place("pci0000:80", &[], Some(1)), Some(Distance::Sys)),
            (place("pci0000:80", &[], None), None),
            (Place::default(), None),
        ] {
            assert_eq!(over_pci(&gpu, &other), expected, "{other:?}");
            assert_eq!(over_pci(&other, &gpu), expected, "{other:?}");
        }
        assert_eq!(over_pci(&Place::default(), &Place::default()), None);
    }

    #[test]
    fn links_count_through_switches_too() {
        let gpu = |number: u32, links: Option<Vec<NvLink>>| Gpu {
            number,
            address: Address {
                bus: u8::try_from(number).unwrap(),
                ..Address::default()
            },
            nvlinks: links,
            place: place("pci0000:00", &[], Some(0)),
            ..Gpu::default()
        };
        let link = |peer, count| NvLink { peer, count };
        let a = gpu(0, Some(vec![link(Peer::Switch, 18)]));
        let b = gpu(1, Some(vec![link(Peer::Switch, 12), link(Peer::Gpu(2), 2)]));
        let c = gpu(2, Some(vec![link(Peer::Gpu(1), 2)]));
        assert_eq!(between_gpus(&a, &b), Some(Distance::NvLink(12)));
        assert_eq!(between_gpus(&b, &c), Some(Distance::NvLink(2)));
        assert_eq!(between_gpus(&a, &c), Some(Distance::Phb));
        assert_eq!(between_gpus(&a, &a), Some(Distance::Same));
        assert_eq!(between_gpus(&a, &gpu(3, None)), Some(Distance::Phb));
    }
}
