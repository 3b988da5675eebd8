//! The plan as people (`--display-map`) and programs (`--dry-run --json`) read it.

use serde::Serialize;

use crate::text::{count, table};
use crate::{Allocation, Host, Placement};

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
        let mut rows = vec![["node", "host", "slots", "ranks"].map(str::to_owned)];
        for node in &self.nodes {
            let host = Host {
                name: node.host.clone(),
                user: node.user.clone(),
                port: node.port,
            };
            let last = node.first_rank + node.ranks - 1;
            let ranks = match node.ranks {
                1 => last.to_string(),
                ranks => format!("{}-{last} ({ranks})", node.first_rank),
            };
            let over = if node.ranks > node.slots {
                " oversubscribed"
            } else {
                ""
            };
            let slots = node.slots.to_string();
            rows.push([
                node.node_rank.to_string(),
                host.to_string(),
                slots,
                ranks + over,
            ]);
        }
        let ranks = count(self.world_size.into(), "rank");
        let nodes = count(self.nodes.len() as u64, "host");
        let mut text = format!("job {}: {ranks} on {nodes}\n", self.job);
        if !self.command.is_empty() {
            text.push_str(&format!("command: {}\n", self.command.join(" ")));
        }
        if let Some(master) = &self.master {
            text.push_str(&format!("master: {master}\n"));
        }
        text.push_str(&columns(&rows));
        if !self.unused.is_empty() {
            text.push_str(&format!("unused: {}\n", table(self.unused.iter().cloned())));
        }
        text
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers only")
    }
}

/// Rows with their columns aligned, two blanks between.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{PlacementRequest, place};

    fn map() -> Map {
        let text = b"a slots=2\nme@long-name port=22 slots=1\nc slots=4\n";
        let hostfile = crate::hostfile::parse("hosts", text).unwrap();
        let allocation = Allocation::from_hostfile(&hostfile);
        let request = PlacementRequest {
            ranks: Some(3),
            ..PlacementRequest::default()
        };
        let placement = place(&allocation, &request).unwrap();
        let command = vec!["python3".into(), "train.py".into()];
        Map::new(
            "ab12".into(),
            command,
            Some("10.0.0.1:29400".into()),
            &allocation,
            &placement,
        )
    }

    #[test]
    fn the_text_is_a_table() {
        let expected = "job ab12: 3 ranks on 2 hosts\n\
                        command: python3 train.py\n\
                        master: 10.0.0.1:29400\n\
                        node  host                  slots  ranks\n\
                        0     a                     2      0-1 (2)\n\
                        1     me@long-name port 22  1      2\n\
                        unused: c\n";
        assert_eq!(map().render(), expected);
    }

    #[test]
    fn programs_read_json() {
        let value: serde_json::Value = serde_json::from_str(&map().to_json()).unwrap();
        assert_eq!(value["world_size"], 3);
        assert_eq!(value["nodes"][1]["first_rank"], 2);
        assert_eq!(value["nodes"][1]["user"], "me");
    }
}
