//! Which network devices may carry a job's data, and why the others may not: pure.
//!
//! RDMA devices where one is usable, else interfaces: so does NCCL. Nothing is judged by its name; what
//! a reason cannot exclude stays in, and whether it leads anywhere is for the proof between hosts.

use std::net::IpAddr;

use serde::Serialize;

use crate::machine::{Address, Hca, Interface, Kind, Layer, Machine, Place, Port};

/// Something that data can leave through: a port of an RDMA device, or an interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rail {
    /// `mlx5_0`, `mlx5_0:2`, `eth0`.
    pub name: String,
    pub medium: Medium,
    pub pci: Option<Address>,
    pub place: Place,
    pub rate_mbits: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    Infiniband,
    Roce,
    Rdma,
    Socket,
}

/// Why a device is no rail.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// `DOWN`, and what the cable does: `Polling`.
    PortDown {
        state: String,
        physical: Option<String>,
    },
    /// Its device file is not here: it belongs to another container.
    NotHere,
    /// RDMA over Ethernet without a RoCE address: its interface is elsewhere, or has none.
    NoGid,
    /// Less than half as fast as the fastest: a port for management or storage.
    Slow {
        mbits: u32,
        fastest: u32,
    },
    SwitchedOff,
    NoCarrier,
    /// No address, or link-local ones only.
    NoAddress,
    Loopback,
    /// Its bridge or bond speaks for it.
    MemberOf {
        master: String,
    },
    /// A bridge or bond without a member that leads out: it ends on this host.
    LeadsNowhere,
    Tunnel,
    /// RDMA devices are faster.
    Socket,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rails {
    pub kept: Vec<Rail>,
    /// By name.
    pub left_out: Vec<(String, LeftOut)>,
}

pub fn rails(machine: &Machine) -> Rails {
    let mut rails = Rails::default();
    for hca in &machine.hcas {
        for port in &hca.ports {
            let name = match hca.ports.len() {
                1 => hca.name.clone(),
                _ => format!("{}:{}", hca.name, port.number),
            };
            match of_port(machine, hca, port, &name) {
                Ok(rail) => rails.kept.push(rail),
                Err(reason) => rails.left_out.push((name, reason)),
            }
        }
    }
    rails.leave_out_slow();
    let has_rdma = !rails.kept.is_empty();
    let mut sockets = Rails::default();
    for interface in &machine.interfaces {
        match of_interface(machine, interface) {
            Ok(rail) => sockets.kept.push(rail),
            Err(reason) => sockets.left_out.push((interface.name.clone(), reason)),
        }
    }
    if has_rdma {
        let names = sockets.kept.drain(..).map(|rail| rail.name);
        rails
            .left_out
            .extend(names.map(|name| (name, LeftOut::Socket)));
    } else {
        sockets.leave_out_tunnels(machine);
        sockets.leave_out_slow();
    }
    rails.kept.extend(sockets.kept);
    rails.left_out.extend(sockets.left_out);
    rails
}

impl Rails {
    fn leave_out(&mut self, reason: impl Fn(&Rail) -> Option<LeftOut>) {
        let mut kept = Vec::new();
        for rail in self.kept.drain(..) {
            match reason(&rail) {
                Some(reason) => self.left_out.push((rail.name, reason)),
                None => kept.push(rail),
            }
        }
        self.kept = kept;
    }

    /// What does not tell its speed is not compared.
    fn leave_out_slow(&mut self) {
        let Some(fastest) = self.kept.iter().filter_map(|rail| rail.rate_mbits).max() else {
            return;
        };
        self.leave_out(|rail| {
            let mbits = rail.rate_mbits?;
            (u64::from(mbits) * 2 < u64::from(fastest)).then_some(LeftOut::Slow { mbits, fastest })
        });
    }

    /// Unless there is nothing else.
    fn leave_out_tunnels(&mut self, machine: &Machine) {
        let is_tunnel = |rail: &Rail| {
            let interface = machine.interface(&rail.name);
            interface.is_some_and(|interface| interface.kind == Kind::Tunnel)
        };
        if !self.kept.iter().all(is_tunnel) {
            self.leave_out(|rail| is_tunnel(rail).then_some(LeftOut::Tunnel));
        }
    }
}

fn of_port(machine: &Machine, hca: &Hca, port: &Port, name: &str) -> Result<Rail, LeftOut> {
    if hca.usable == Some(false) {
        return Err(LeftOut::NotHere);
    }
    if let Some(state) = port.state.as_ref().filter(|state| *state != "ACTIVE") {
        return Err(LeftOut::PortDown {
            state: state.clone(),
            physical: port.physical_state.clone(),
        });
    }
    // fe80:: alone reaches no other network, but it is there: without any, nothing can be sent.
    if port.layer == Some(Layer::Ethernet) && port.gids.is_empty() {
        return Err(LeftOut::NoGid);
    }
    Ok(Rail {
        name: name.to_owned(),
        medium: match port.layer {
            Some(Layer::Infiniband) => Medium::Infiniband,
            Some(Layer::Ethernet) => Medium::Roce,
            None => Medium::Rdma,
        },
        pci: hca.pci,
        place: machine.place(hca.pci),
        rate_mbits: port.rate_mbits,
    })
}

fn of_interface(machine: &Machine, interface: &Interface) -> Result<Rail, LeftOut> {
    if interface.kind == Kind::Loopback {
        return Err(LeftOut::Loopback);
    }
    if let Some(master) = &interface.master {
        let master = master.clone();
        return Err(LeftOut::MemberOf { master });
    }
    if interface.up == Some(false) {
        return Err(LeftOut::SwitchedOff);
    }
    if interface.carrier == Some(false) {
        return Err(LeftOut::NoCarrier);
    }
    let addresses = interface.addresses.as_deref();
    if addresses.is_some_and(|all| !all.iter().any(|it| is_usable(&it.ip))) {
        return Err(LeftOut::NoAddress);
    }
    let hardware = hardware(machine, interface, 0);
    let is_group = matches!(interface.kind, Kind::Bridge | Kind::Bond);
    if is_group && hardware.is_empty() {
        return Err(LeftOut::LeadsNowhere);
    }
    // A group is as far as its farthest member: data may take any.
    let pci = hardware.iter().filter_map(|it| it.pci).min();
    let nodes = hardware.iter().map(|it| machine.place(it.pci).node);
    let nodes: Vec<Option<u32>> = nodes.collect();
    let mut place = machine.place(pci);
    if nodes.iter().any(|node| *node != place.node) {
        place = Place::default();
    }
    Ok(Rail {
        name: interface.name.clone(),
        medium: Medium::Socket,
        pci,
        place,
        rate_mbits: interface.speed_mbits,
    })
}

/// The interfaces with a device that this one stands on; itself if it has one.
fn hardware<'a>(machine: &'a Machine, own: &'a Interface, depth: u32) -> Vec<&'a Interface> {
    if own.pci.is_some() {
        return vec![own];
    }
    // The kernel stacks no deeper than 8.
    if depth > 8 {
        return Vec::new();
    }
    let below = own.below.iter().filter_map(|name| machine.interface(name));
    below
        .flat_map(|below| hardware(machine, below, depth + 1))
        .take(64)
        .collect()
}

fn is_usable(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_link_local() && !ip.is_loopback(),
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_unicast_link_local() && !ip.is_loopback(),
    }
}
