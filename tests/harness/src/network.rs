//! Names, addresses and cables.
//!
//! Every host has a leg in two networks whose bridges stand in a namespace of their own, the
//! switch; a port there is called `eth0.3` (NIC, host). `docker0` and `virbr0` are traps as real
//! machines have them: the same address on every host, reached by nobody else.

use crate::error::HarnessError;
use crate::guardian::Guardian;
use crate::tools::{Tool, run_all};
use std::fmt::Write;

/// The last part of head's addresses; nodes have their own number.
const HEAD_NUMBER: usize = 254;

pub(crate) fn host_name(host: usize) -> String {
    if host == 0 {
        "head".to_owned()
    } else {
        format!("node{host}")
    }
}

pub(crate) fn number(host: usize) -> usize {
    if host == 0 { HEAD_NUMBER } else { host }
}

/// `/etc/hosts` of every host: names are those of the first network, `-ib` those of the second.
pub(crate) fn hosts_file(nodes: u32) -> String {
    let mut file = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
    for host in 0..=nodes as usize {
        let (name, number) = (host_name(host), number(host));
        let _ = writeln!(file, "10.77.0.{number} {name}");
        let _ = writeln!(file, "10.78.0.{number} {name}-ib");
    }
    file
}

/// What a host's key is known under: every name and address that leads to it.
pub(crate) fn known_names(host: usize) -> String {
    let (name, n) = (host_name(host), number(host));
    format!("{name},{name}-ib,10.77.0.{n},10.78.0.{n},fd77::{n:x},fd78::{n:x}")
}

/// Lays all cables and gives all addresses; hosts need not run.
pub(crate) fn lay(guardian: &Guardian, nodes: u32, decoys: bool) -> Result<(), HarnessError> {
    let hosts = nodes as usize + 1;
    Tool::new("ip")
        .words(["-batch", "-"])
        .input(switch_batch(guardian, hosts))
        .within(guardian.switch())
        .run()?;
    let each = (0..hosts).map(|host| {
        let batch = host_batch(host, decoys);
        Tool::new("ip")
            .words(["-batch", "-"])
            .input(batch)
            .within(guardian.network(host))
    });
    run_all(each.collect())
}

fn switch_batch(guardian: &Guardian, hosts: usize) -> String {
    let mut batch = String::from("link set lo up\n");
    for bridge in ["br-eth0", "br-ib0"] {
        let _ = writeln!(
            batch,
            "link add {bridge} type bridge mcast_snooping 0 stp_state 0"
        );
    }
    for host in 0..hosts {
        let namespace = guardian.network_path(host);
        for (nic, mtu) in [("eth0", 1500), ("ib0", 9000)] {
            let _ = writeln!(
                batch,
                "link add {nic}.{host} mtu {mtu} type veth peer name {nic} mtu {mtu} netns {namespace}"
            );
            let _ = writeln!(batch, "link set {nic}.{host} master br-{nic} up");
        }
    }
    batch + "link set br-eth0 up\nlink set br-ib0 up\n"
}

fn host_batch(host: usize, decoys: bool) -> String {
    let n = number(host);
    let mut batch = format!(
        "link set lo up\n\
         addr add 10.77.0.{n}/24 dev eth0\naddr add fd77::{n:x}/64 dev eth0 nodad\n\
         addr add 10.78.0.{n}/24 dev ib0\naddr add fd78::{n:x}/64 dev ib0 nodad\n\
         link set eth0 up\nlink set ib0 up\n"
    );
    if decoys {
        batch += DECOYS;
    }
    batch
}

/// One bridge with a live port, one without, and a NIC that is down.
const DECOYS: &str = "\
link add docker0 type bridge
addr add 172.17.0.1/16 dev docker0
link set docker0 up
link add virbr0 type bridge
addr add 192.168.122.1/24 dev virbr0
link set virbr0 up
link add veth9a1b type veth peer name veth9a1b-p
link set veth9a1b master docker0 up
link set veth9a1b-p up
link add eth1 type veth peer name eth1-p
";

#[cfg(test)]
mod tests {
    use super::*;

    /// Head and nodes can't get the same address.
    #[test]
    fn addresses_differ() {
        let file = hosts_file(128);
        let mut addresses: Vec<_> = file
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        let count = addresses.len();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), count);
    }
}
