//! RDMA devices and their ports.

use std::net::Ipv6Addr;

use crate::machine::{Gid, GidKind, Hca, Layer, Machine, Port};
use crate::tree::Tree;

const FOLDER: &str = "sys/class/infiniband";
const VERBS: &str = "sys/class/infiniband_verbs";

pub(super) fn parse(tree: &Tree, machine: &mut Machine) {
    let names = tree.names(FOLDER).into_iter();
    let mut hcas: Vec<Hca> = names.map(|name| hca(tree, name, machine)).collect();
    // In the order of PCI addresses, as NCCL sorts them: the same on hosts of one kind.
    hcas.sort_by(|a, b| (a.pci.is_none(), a.pci, &a.name).cmp(&(b.pci.is_none(), b.pci, &b.name)));
    machine.hcas = hcas;
}

fn hca(tree: &Tree, name: &str, machine: &Machine) -> Hca {
    let path = format!("{FOLDER}/{name}");
    let link = |field: &str| {
        tree.link(&format!("{path}{field}"))
            .and_then(super::last_address)
    };
    let ports = tree.numbered(&format!("{path}/ports"), "").into_iter();
    let physical = tree.link_name(&format!("{path}/device/physfn"));
    Hca {
        name: name.to_owned(),
        pci: link("/device").or_else(|| link("")),
        physical: physical.and_then(|name| name.parse().ok()),
        board: tree.word(&format!("{path}/hca_type")).map(str::to_owned),
        usable: usable(tree, name),
        ports: ports
            .map(|number| port(tree, &path, number, machine))
            .collect(),
    }
}

/// Nobody can say where no device file is known.
fn usable(tree: &Tree, name: &str) -> Option<bool> {
    let mut verbs = tree.names(VERBS).into_iter();
    let own = verbs.find(|verbs| tree.word(&format!("{VERBS}/{verbs}/ibdev")) == Some(name))?;
    Some(tree.has(&format!("dev/infiniband/{own}")))
}

fn port(tree: &Tree, device: &str, number: u32, machine: &Machine) -> Port {
    let path = format!("{device}/ports/{number}");
    let word = |field: &str| tree.word(&format!("{path}/{field}"));
    // `4: ACTIVE`
    let state = |field: &str| {
        let text = word(field)?;
        let name = text.split_once(':').map_or(text, |(_, name)| name);
        Some(name.trim().to_owned())
    };
    let gids: Vec<Gid> = tree
        .numbered(&format!("{path}/gids"), "")
        .into_iter()
        .filter_map(|index| gid(tree, &path, index))
        .collect();
    let ndevs = tree
        .numbered(&format!("{path}/gid_attrs/ndevs"), "")
        .into_iter();
    let ndevs = ndevs.filter_map(|index| word(&format!("gid_attrs/ndevs/{index}")));
    let mut interfaces: Vec<String> = ndevs.map(str::to_owned).collect();
    let names = tree.names(&format!("{device}/device/net"));
    interfaces.extend(names.into_iter().map(str::to_owned));
    interfaces.retain(|name| machine.interface(name).is_some());
    interfaces.sort_unstable();
    interfaces.dedup();
    Port {
        number,
        state: state("state"),
        physical_state: state("phys_state"),
        rate_mbits: word("rate").and_then(rate),
        layer: match word("link_layer") {
            Some("InfiniBand") => Some(Layer::Infiniband),
            Some("Ethernet") => Some(Layer::Ethernet),
            _ => None,
        },
        gids,
        interfaces,
    }
}

/// `400 Gb/sec (4X NDR)`, `2.5 Gb/sec (1X SDR)`
fn rate(text: &str) -> Option<u32> {
    let number = text.split_whitespace().next()?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u32 = whole.parse().ok()?;
    let tenths = part.bytes().next().filter(u8::is_ascii_digit)? - b'0';
    let rate = whole
        .checked_mul(1000)?
        .checked_add(u32::from(tenths) * 100)?;
    (rate > 0).then_some(rate)
}

fn gid(tree: &Tree, port: &str, index: u32) -> Option<Gid> {
    let gid: Ipv6Addr = tree.word(&format!("{port}/gids/{index}"))?.parse().ok()?;
    if gid.is_unspecified() {
        return None;
    }
    let kind = tree.word(&format!("{port}/gid_attrs/types/{index}"));
    Some(Gid {
        index,
        gid,
        kind: match kind {
            Some("RoCE v2") => Some(GidKind::RoceV2),
            Some("IB/RoCE v1") => Some(GidKind::RoceV1),
            Some("IB") => Some(GidKind::Infiniband),
            _ => None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        for (text, expected) in [
            ("400 Gb/sec (4X NDR)", Some(400_000)),
            ("2.5 Gb/sec (1X SDR)", Some(2_500)),
            ("0 Gb/sec", None),
            ("", None),
            ("9999999999 Gb", None),
        ] {
            assert_eq!(rate(text), expected, "{text:?}");
        }
    }
}
