//! The plan as people (`--display-map`) and programs (`--dry-run --json`) read it.

use serde::Serialize;

use crate::{Allocation, Placement};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Map {
    pub job: String,
    /// The command, each word printable.
    pub command: Vec<String>,
    pub world_size: u32,
    /// `address:port`, IPv6 in brackets; absent before it is chosen.
    pub master: Option<String>,
    pub nodes: Vec<MapNode>,
    /// Hosts of the allocation that got no rank.
    pub unused: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapNode {
    pub node_rank: u32,
    pub host: String,
    pub user: Option<String>,
    pub port: Option<u16>,
    pub slots: u32,
    pub first_rank: u32,
    pub ranks: u32,
}

impl Map {
    pub fn new(
        job: String,
        command: Vec<String>,
        master: Option<String>,
        allocation: &Allocation,
        placement: &Placement,
    ) -> Self {
        let nodes = placement.nodes.iter().enumerate().map(|(index, node)| {
            let host = &allocation.hosts[node.host].host;
            MapNode {
                node_rank: u32::try_from(index).expect("placement bounds the nodes"),
                host: host.name.clone(),
                user: host.user.clone(),
                port: host.port,
                slots: node.slots,
                first_rank: node.first_rank,
                ranks: node.ranks,
            }
        });
        let used = |index: usize| placement.nodes.iter().any(|node| node.host == index);
        let unused = allocation.hosts.iter().enumerate();
        let unused = unused
            .filter(|(index, _)| !used(*index))
            .map(|(_, host)| &host.host);
        Self {
            job,
            command,
            world_size: u32::try_from(placement.ranks.len()).expect("placement bounds the ranks"),
            master,
            nodes: nodes.collect(),
            unused: unused.map(ToString::to_string).collect(),
        }
    }

    /// The text of `--display-map`, ending in a newline.
    pub fn render(&self) -> String {
        String::new()
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers only")
    }
}
