//! The plan as people (`--display-map`, `--dry-run`) and programs (`--json`) read it.
//!
//! In the table ranks of one host that differ in nothing but their number share a line. JSON has
//! every rank, and the variables that it would find over the host's login environment, in the form
//! of [`crate::environment::display_value`]: secrets are masked.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::placement::Node;
use crate::text::{count, ranges, table};
use crate::{Allocation, Placement};

/// Names and values, as they may be shown.
pub type Shown = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Map {
    pub job: String,
    pub world_size: u32,
    /// `address:port`, IPv6 in brackets; absent before it is chosen.
    pub master: Option<String>,
    pub programs: Vec<MapProgram>,
    pub nodes: Vec<MapNode>,
    pub ranks: Vec<MapRank>,
    /// Hosts of the allocation that got no rank.
    pub unused: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapProgram {
    pub first_rank: u32,
    pub ranks: u32,
    #[serde(flatten)]
    pub what: ProgramShown,
}

/// What the launcher knows of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProgramShown {
    pub command: Vec<String>,
    /// As one would type it.
    #[serde(skip)]
    pub line: String,
    pub directory: String,
    /// Whether the host's login environment comes first.
    pub login_environment: bool,
    /// What all its ranks get of the launcher.
    pub environment: Shown,
    /// Variables of the launcher that are left out, where that deserves a word.
    pub not_passed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapNode {
    pub node_rank: u32,
    pub host: String,
    pub user: Option<String>,
    pub port: Option<u16>,
    pub slots: u32,
    pub oversubscribed: bool,
    pub ranks: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MapRank {
    pub rank: u32,
    pub host: String,
    pub node_rank: u32,
    /// The local rank.
    pub slot: u32,
    pub program: u32,
    /// What it is bound to, as the system numbers them; absent: not bound.
    pub cores: Option<Vec<u32>>,
    /// Where it starts.
    pub directory: String,
    /// What it gets beside its program's variables, and over them.
    pub environment: Shown,
}

/// What a rank gets, by rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankShown {
    pub cores: Option<Vec<u32>>,
    pub directory: String,
    pub environment: Shown,
}

impl Map {
    /// # Panics
    /// If `programs` or `ranks` are not as many as the placement's.
    pub fn new(
        job: String,
        master: Option<String>,
        allocation: &Allocation,
        placement: &Placement,
        programs: Vec<ProgramShown>,
        ranks: Vec<RankShown>,
    ) -> Self {
        assert_eq!(programs.len(), placement.programs.len(), "one each");
        assert_eq!(ranks.len(), placement.ranks.len(), "one each");
        let programs = placement.programs.iter().zip(programs);
        let places = placement.ranks.iter().zip(ranks);
        let used = |index: usize| placement.nodes.iter().any(|node| node.host == index);
        let unused = allocation.hosts.iter().enumerate();
        let unused = unused.filter(|(index, _)| !used(*index));
        Self {
            job,
            world_size: u32::try_from(placement.ranks.len()).expect("placement bounds the ranks"),
            master,
            programs: programs
                .map(|(place, what)| MapProgram {
                    first_rank: place.first_rank,
                    ranks: place.ranks,
                    what,
                })
                .collect(),
            nodes: (0..)
                .zip(&placement.nodes)
                .map(|(node_rank, node)| map_node(node_rank, node, allocation))
                .collect(),
            ranks: places
                .map(|(place, shown)| MapRank {
                    rank: place.rank,
                    host: allocation.hosts[place.host].host.to_string(),
                    node_rank: place.node_rank,
                    slot: place.local_rank,
                    program: place.program,
                    cores: shown.cores,
                    directory: shown.directory,
                    environment: shown.environment,
                })
                .collect(),
            unused: unused.map(|(_, host)| host.host.to_string()).collect(),
        }
    }

    /// The text of `--display-map`, ending in a newline.
    pub fn render(&self) -> String {
        let ranks = count(self.world_size.into(), "rank");
        let nodes = count(self.nodes.len() as u64, "host");
        let mut text = format!("job {}: {ranks} on {nodes}\n", self.job);
        for (index, program) in self.programs.iter().enumerate() {
            let command = &program.what.line;
            let line = match self.programs.len() {
                1 => format!("command: {command}\n"),
                _ => format!("program {index}: {command}\n"),
            };
            text.push_str(&line);
        }
        if let Some(master) = &self.master {
            text.push_str(&format!("master: {master}\n"));
        }
        text.push_str(&columns(&self.rows()));
        if !self.unused.is_empty() {
            text.push_str(&format!("unused: {}\n", table(self.unused.iter().cloned())));
        }
        text
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers only")
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let several = self.programs.len() > 1;
        let mut head = vec!["rank", "host", "slot", "cores"];
        if several {
            head.insert(3, "program");
        }
        let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
        for node in &self.nodes {
            let ranks: Vec<&MapRank> = node
                .ranks
                .iter()
                .map(|&rank| &self.ranks[rank as usize])
                .collect();
            let alike = |a: &&MapRank, b: &&MapRank| (a.program, &a.cores) == (b.program, &b.cores);
            for group in ranks.chunk_by(alike) {
                let numbers: Vec<u32> = group.iter().map(|rank| rank.rank).collect();
                let slots: Vec<u32> = group.iter().map(|rank| rank.slot).collect();
                let over = if node.oversubscribed {
                    ", oversubscribed"
                } else {
                    ""
                };
                let slots = format!("{} of {}{over}", ranges(&slots), node.slots);
                let mut row = vec![ranges(&numbers), group[0].host.clone(), slots];
                if several {
                    row.push(group[0].program.to_string());
                }
                row.push(match &group[0].cores {
                    Some(cores) => core_list(cores),
                    None => "not bound".to_owned(),
                });
                rows.push(row);
            }
        }
        rows
    }
}

fn map_node(node_rank: u32, node: &Node, allocation: &Allocation) -> MapNode {
    let host = &allocation.hosts[node.host].host;
    MapNode {
        node_rank,
        host: host.name.clone(),
        user: host.user.clone(),
        port: host.port,
        slots: node.slots,
        oversubscribed: node.is_oversubscribed(),
        ranks: node.ranks.clone(),
    }
}

/// `0-3,8`, as taskset and the kernel write it. The input is in ascending order.
pub fn core_list(cores: &[u32]) -> String {
    let runs = cores.chunk_by(|a, b| a + 1 == *b);
    let runs = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => unreachable!("chunks are not empty"),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Rows of equal length with their columns aligned, two blanks between.
fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
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

    fn request(ranks: u32) -> PlacementRequest {
        PlacementRequest {
            ranks: Some(ranks),
            ..PlacementRequest::default()
        }
    }

    fn map(requests: &[PlacementRequest], cores: &[Option<Vec<u32>>]) -> Map {
        let text = b"a slots=2\nme@long-name port=22 slots=1\nc slots=4\n";
        let hostfile = crate::hostfile::parse("hosts", text).unwrap();
        let allocation = Allocation::from_hostfile(&hostfile);
        let placement = place(&allocation, requests).unwrap();
        let programs = requests.iter().enumerate().map(|(index, _)| ProgramShown {
            command: vec!["python3".into(), format!("train{index}.py")],
            line: format!("python3 train{index}.py"),
            environment: Shown::from([("HF_TOKEN".into(), "***".into())]),
            ..ProgramShown::default()
        });
        let ranks = (0..placement.ranks.len()).map(|rank| RankShown {
            cores: cores.get(rank).cloned().flatten(),
            directory: "/d".into(),
            environment: Shown::from([("RANK".into(), rank.to_string())]),
        });
        Map::new(
            "ab12".into(),
            Some("10.0.0.1:29400".into()),
            &allocation,
            &placement,
            programs.collect(),
            ranks.collect(),
        )
    }

    #[test]
    fn the_text_is_a_table() {
        let expected = "job ab12: 3 ranks on 2 hosts\n\
                        command: python3 train0.py\n\
                        master: 10.0.0.1:29400\n\
                        rank  host                  slot       cores\n\
                        0, 1  a                     0, 1 of 2  not bound\n\
                        2     me@long-name port 22  0 of 1     not bound\n\
                        unused: c\n";
        assert_eq!(map(&[request(3)], &[]).render(), expected);
    }

    #[test]
    fn programs_and_cores_have_lines_of_their_own() {
        let cores = [Some(vec![0, 1, 2, 5]), Some(vec![3, 4])];
        let text = map(&[request(1), request(2)], &cores).render();
        let expected = "job ab12: 3 ranks on 2 hosts\n\
                        program 0: python3 train0.py\n\
                        program 1: python3 train1.py\n\
                        master: 10.0.0.1:29400\n\
                        rank  host                  slot    program  cores\n\
                        0     a                     0 of 2  0        0-2,5\n\
                        1     a                     1 of 2  1        3-4\n\
                        2     me@long-name port 22  0 of 1  1        not bound\n\
                        unused: c\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn programs_read_json() {
        let map = map(&[request(3)], &[None, Some(vec![7])]);
        let value: serde_json::Value = serde_json::from_str(&map.to_json()).unwrap();
        assert_eq!(value["world_size"], 3);
        assert_eq!(value["nodes"][1]["ranks"], serde_json::json!([2]));
        assert_eq!(value["nodes"][1]["user"], "me");
        assert_eq!(value["programs"][0]["environment"]["HF_TOKEN"], "***");
        let rank = &value["ranks"][1];
        assert_eq!((&rank["host"], &rank["slot"]), (&"a".into(), &1.into()));
        assert_eq!(rank["cores"], serde_json::json!([7]));
        assert_eq!(rank["environment"]["RANK"], "1");
        assert_eq!(value["ranks"][0]["cores"], serde_json::Value::Null);
    }
}
