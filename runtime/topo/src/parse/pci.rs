//! The PCI tree: links below `/sys/bus/pci/devices` tell the bridges above each device.

use crate::machine::{Address, Lanes, Link, PciDevice, Place};
use crate::tree::Tree;

const FOLDER: &str = "sys/bus/pci/devices";
/// A switch may be behind another; nothing is built deeper than some of them.
const BRIDGES_MAX: usize = 32;

pub(super) fn parse(tree: &Tree) -> Vec<PciDevice> {
    let addresses = tree.names(FOLDER).into_iter();
    let mut devices: Vec<PciDevice> = addresses
        .filter_map(|name| Some(device(tree, name, name.parse().ok()?)))
        .collect();
    devices.sort_by_key(|device| device.address);
    devices.dedup_by_key(|device| device.address);
    devices
}

fn device(tree: &Tree, name: &str, address: Address) -> PciDevice {
    let path = format!("{FOLDER}/{name}");
    let hex = |field: &str| tree.hex(&format!("{path}/{field}"));
    let lanes = |which: &str| Lanes {
        speed: tree
            .word(&format!("{path}/{which}_link_speed"))
            .and_then(speed),
        width: tree
            .number(&format!("{path}/{which}_link_width"))
            .filter(|width| (1..=32).contains(width)),
    };
    let node: Option<i64> = tree.number(&format!("{path}/numa_node"));
    let mut place = place(tree.link(&path).unwrap_or_default(), address);
    place.node = node.and_then(|node| u32::try_from(node).ok());
    PciDevice {
        address,
        place,
        class: hex("class"),
        vendor: hex("vendor"),
        device: hex("device"),
        driver: tree.link_name(&format!("{path}/driver")).map(str::to_owned),
        link: Link {
            now: lanes("current"),
            max: lanes("max"),
        },
        physical: tree
            .link_name(&format!("{path}/physfn"))
            .and_then(|name| name.parse().ok()),
        virtual_functions: tree.number(&format!("{path}/sriov_numvfs")),
    }
}

/// `32.0 GT/s PCIe` in tenths; `Unknown` is nothing.
pub(crate) fn speed(text: &str) -> Option<u32> {
    let number = text.split_whitespace().next()?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u32 = whole.parse().ok()?;
    let tenths = tenths.bytes().next().filter(u8::is_ascii_digit)? - b'0';
    let speed = whole.checked_mul(10)?.checked_add(tenths.into())?;
    (speed > 0).then_some(speed)
}

/// `../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0`
fn place(target: &str, address: Address) -> Place {
    let mut place = Place::default();
    for part in target.split('/') {
        // The innermost one: a virtual host bridge may itself be on a bus.
        if part.starts_with("pci") && part.contains(':') {
            place.root = Some(part.to_owned());
            place.bridges.clear();
        } else if let Ok(bridge) = part.parse()
            && bridge != address
            && place.bridges.len() < BRIDGES_MAX
        {
            place.bridges.push(bridge);
        }
    }
    place.switches = switches(&place.bridges);
    place
}

/// Of each switch two ports lie on the way, and the host bridge's port lies above the first: from
/// the device up, every second bridge is an upstream port. So does NCCL walk.
fn switches(bridges: &[Address]) -> Vec<Address> {
    let mut switches: Vec<Address> = bridges.iter().rev().skip(1).step_by(2).copied().collect();
    switches.reverse();
    switches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_tells_the_bridges_above() {
        let shown = |target: &str| {
            let place = place(target, "0000:18:00.0".parse().unwrap());
            let list = |list: &[Address]| {
                list.iter()
                    .map(|it| it.to_string())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            (place.root, list(&place.bridges), list(&place.switches))
        };
        let (root, bridges, switches) = shown(
            "../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0",
        );
        assert_eq!(root.as_deref(), Some("pci0000:15"));
        assert_eq!(bridges, "0000:15:01.0 0000:16:00.0 0000:17:02.0");
        assert_eq!(switches, "0000:16:00.0");
        let (_, _, two) = shown(
            "pci0:1/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/0000:04:00.0/0000:18:00.0",
        );
        assert_eq!(two, "0000:01:00.0 0000:03:00.0");
        let (root, bridges, _) =
            shown("../LNXSYSTM:00/VMBUS:00/47505500-0001/pci0001:00/0000:18:00.0");
        assert_eq!(
            (root.as_deref(), bridges.as_str()),
            (Some("pci0001:00"), "")
        );
        assert_eq!(shown("").0, None);
    }

    #[test]
    fn speeds() {
        for (text, expected) in [
            ("32.0 GT/s PCIe", Some(320)),
            ("2.5 GT/s", Some(25)),
            ("8 GT/s", Some(80)),
            ("Unknown", None),
            ("", None),
            ("99999999999.0 GT/s", None),
            ("8.é", None),
        ] {
            assert_eq!(speed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn addresses_in_every_spelling() {
        let read = |text: &str| text.parse::<Address>().map(|it| it.to_string());
        assert_eq!(read("00000000:3B:00.0"), Ok("0000:3b:00.0".to_owned()));
        assert_eq!(read("0001:00:1f.7"), Ok("0001:00:1f.7".to_owned()));
        for wrong in ["", "0000:3b:00", "pci0000:15", "0000:3b:40.0", "0:0:0.0.0"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
