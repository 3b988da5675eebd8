//! Addresses of interfaces, which the kernel tells in no file.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// `eth0 up,running 10.0.0.5/24`, a line for each address, or without one.
pub(super) fn read() -> String {
    let Ok(entries) = getifaddrs() else {
        return String::new();
    };
    let mut lines: Vec<String> = Vec::new();
    for entry in entries {
        let flags = [
            (InterfaceFlags::IFF_UP, "up"),
            (InterfaceFlags::IFF_RUNNING, "running"),
            (InterfaceFlags::IFF_LOOPBACK, "loopback"),
            (InterfaceFlags::IFF_POINTOPOINT, "pointopoint"),
        ];
        let flags = flags.iter().filter(|(flag, _)| entry.flags.contains(*flag));
        let flags: Vec<&str> = flags.map(|(_, name)| *name).collect();
        let flags = match flags.is_empty() {
            true => "-".to_owned(),
            false => flags.join(","),
        };
        let address = entry.address.as_ref().and_then(crate::survey::ip);
        let mask = entry.netmask.as_ref().and_then(crate::survey::ip);
        let address = address.map(|ip| match mask.map(prefix) {
            Some(prefix) => format!(" {ip}/{prefix}"),
            None => format!(" {ip}"),
        });
        let line = format!(
            "{} {flags}{}\n",
            entry.interface_name,
            address.unwrap_or_default()
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

fn prefix(mask: IpAddr) -> u32 {
    match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    }
}
