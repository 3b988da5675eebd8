//! The cores that this process may use, by NUMA node: for binding.
//!
//! Read only when somebody asks, since it takes some files for each core. The affinity mask comes
//! first (a cpuset, a container, `taskset`, a scheduler): what it forbids does not exist here.

use std::path::Path;

use serde::Serialize;

use crate::tree::Tree;

/// As the kernel says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutFacts {
    /// `Cpus_allowed_list` of `/proc/self/status`: `0-3,8`.
    pub allowed: String,
    /// Each NUMA node's `cpulist`.
    pub nodes: Vec<(u32, String)>,
    /// The hardware threads of each CPU's core, by CPU.
    pub siblings: Vec<(u32, String)>,
    /// Each GPU's NUMA node in the order of bus addresses; negative: the machine does not say.
    pub gpu_nodes: Vec<i32>,
}

/// Usable cores; each belongs to one NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// In the order of their numbers; none without a core.
    pub nodes: Vec<Node>,
    /// The NUMA node of each GPU, where all are known.
    pub gpu_nodes: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    pub number: u32,
    pub cores: Vec<Core>,
}

/// A physical core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Core {
    /// Its first hardware thread, whether or not that one may be used: so all processes of the
    /// machine call it.
    pub name: u32,
    /// Its hardware threads that may be used, ascending, at least one.
    pub cpus: Vec<u32>,
}

impl LayoutFacts {
    /// This machine.
    pub fn read() -> Self {
        Self::read_files(Path::new("/"))
    }

    /// Below `root`.
    pub fn read_files(root: &Path) -> Self {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let allowed = allowed(&text("proc/self/status"));
        let siblings = numbers(&allowed).into_iter().map(|cpu| {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            (cpu, text(&path))
        });
        let mut gpus = crate::survey::names(&root.join("proc/driver/nvidia/gpus"));
        gpus.sort_unstable();
        let gpu_node = |address: &String| {
            let path = format!("sys/bus/pci/devices/{}/numa_node", address.to_lowercase());
            text(&path).trim().parse().unwrap_or(-1)
        };
        Self {
            siblings: siblings.collect(),
            nodes: nodes(&root.join("sys/devices/system/node")),
            gpu_nodes: gpus.iter().map(gpu_node).collect(),
            allowed,
        }
    }

    /// Those of a machine on file.
    pub fn of(tree: &Tree) -> Self {
        let status = tree.text("proc/self/status").unwrap_or_default();
        let folder = "sys/devices/system/node";
        let nodes = tree.numbered(folder, "node").into_iter().map(|number| {
            let list = tree.text(&format!("{folder}/node{number}/cpulist"));
            (number, list.unwrap_or_default().to_owned())
        });
        let mut siblings = Vec::new();
        let folder = "sys/devices/system/cpu";
        for cpu in tree.numbered(folder, "cpu") {
            let path = format!("{folder}/cpu{cpu}/topology/thread_siblings_list");
            let Some(list) = tree.text(&path) else {
                continue;
            };
            // The list stands once for all of them.
            siblings.extend(numbers(list).into_iter().map(|cpu| (cpu, list.to_owned())));
        }
        Self {
            allowed: allowed(status),
            nodes: nodes.collect(),
            siblings,
            gpu_nodes: Vec::new(),
        }
    }

    /// Pure.
    pub fn parse(&self) -> Layout {
        let allowed = numbers(&self.allowed);
        let mut layout = Layout::default();
        let mut placed: Vec<u32> = Vec::new();
        for (number, list) in &self.nodes {
            let cpus: Vec<u32> = numbers(list)
                .into_iter()
                .filter(|cpu| allowed.contains(cpu) && !placed.contains(cpu))
                .collect();
            placed.extend(&cpus);
            layout.push(*number, self.cores(&cpus));
        }
        // A container without /sys, or a CPU that came later: one more node.
        let others: Vec<u32> = allowed
            .into_iter()
            .filter(|cpu| !placed.contains(cpu))
            .collect();
        let number = layout.nodes.iter().map(|node| node.number + 1).max();
        layout.push(number.unwrap_or(0), self.cores(&others));
        let known = |&node: &i32| u32::try_from(node).ok();
        let gpus: Option<Vec<u32>> = self.gpu_nodes.iter().map(known).collect();
        layout.gpu_nodes = gpus.unwrap_or_default();
        layout
    }

    fn cores(&self, cpus: &[u32]) -> Vec<Core> {
        let mut cores: Vec<Core> = Vec::new();
        for &cpu in cpus {
            let own = self.siblings.iter().find(|(number, _)| *number == cpu);
            let threads = own.map(|(_, list)| numbers(list)).unwrap_or_default();
            let name = threads.first().copied().unwrap_or(cpu);
            match cores.iter_mut().find(|core| core.name == name) {
                Some(core) => core.cpus.push(cpu),
                None => cores.push(Core {
                    name,
                    cpus: vec![cpu],
                }),
            }
        }
        cores
    }
}

impl Layout {
    fn push(&mut self, number: u32, cores: Vec<Core>) {
        if !cores.is_empty() {
            self.nodes.push(Node { number, cores });
        }
    }
}

fn allowed(status: &str) -> String {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default().trim().to_owned()
}

fn nodes(folder: &Path) -> Vec<(u32, String)> {
    let mut nodes: Vec<(u32, String)> = crate::survey::names(folder)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .map(|number: u32| {
            let list = folder.join(format!("node{number}/cpulist"));
            (number, std::fs::read_to_string(list).unwrap_or_default())
        })
        .collect();
    nodes.sort_unstable();
    nodes
}

/// `0-3,8` as numbers, ascending; what is no number is left out. More CPUs than any machine has
/// are no list of CPUs.
pub fn numbers(list: &str) -> Vec<u32> {
    const CPUS_MAX: usize = 65_536;
    let mut numbers = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<u32>()) {
            numbers.extend((first..=last).take(CPUS_MAX));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// `0-3,8`, of ascending numbers.
pub fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let part = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_grouped_by_node_and_forbidden_ones_left_out() {
        let siblings = |cpu: u32| (cpu, format!("{},{}", cpu % 4, cpu % 4 + 4));
        let facts = LayoutFacts {
            allowed: "0-2,5,6".to_owned(),
            nodes: vec![(0, "0-1,4-5\n".to_owned()), (1, "2-3,6-7".to_owned())],
            siblings: [0, 1, 2, 5, 6].map(siblings).to_vec(),
            gpu_nodes: vec![1, 0],
        };
        let layout = facts.parse();
        let shown: Vec<(u32, Vec<Vec<u32>>)> = layout
            .nodes
            .iter()
            .map(|node| {
                let cores = node.cores.iter().map(|core| core.cpus.clone());
                (node.number, cores.collect())
            })
            .collect();
        let expected = [(0, vec![vec![0], vec![1, 5]]), (1, vec![vec![2, 6]])];
        assert_eq!(shown, expected);
        assert_eq!(layout.gpu_nodes, [1, 0]);
        // Core 1,5: whoever may use only CPU 5 calls it as whoever may use CPU 1.
        let facts = LayoutFacts {
            allowed: "5".to_owned(),
            siblings: vec![(5, "1,5".to_owned())],
            ..LayoutFacts::default()
        };
        let core = &facts.parse().nodes[0].cores[0];
        assert_eq!((core.name, core.cpus.as_slice()), (1, &[5][..]));
    }

    #[test]
    fn a_machine_that_says_nothing_has_one_node() {
        let facts = LayoutFacts {
            allowed: "3,7-8".to_owned(),
            gpu_nodes: vec![-1],
            ..LayoutFacts::default()
        };
        let layout = facts.parse();
        assert_eq!(layout.nodes.len(), 1);
        let names: Vec<u32> = layout.nodes[0].cores.iter().map(|core| core.name).collect();
        assert_eq!((layout.nodes[0].number, names), (0, vec![3, 7, 8]));
        assert!(layout.gpu_nodes.is_empty());
        assert!(LayoutFacts::default().parse().nodes.is_empty());
    }

    #[test]
    fn a_folder_of_files_can_stand_for_a_machine() {
        let root = std::env::temp_dir().join(format!("rlaunch-layout-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
        write("sys/devices/system/node/node1/cpulist", "1\n");
        write("sys/devices/system/node/node0/cpulist", "0\n");
        write("sys/devices/system/node/online", "0-1\n");
        write("proc/driver/nvidia/gpus/0000:3B:00.0/information", "");
        write("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
        let layout = LayoutFacts::read_files(&root).parse();
        std::fs::remove_dir_all(&root).unwrap();
        let numbers: Vec<u32> = layout.nodes.iter().map(|node| node.number).collect();
        assert_eq!((numbers, layout.gpu_nodes), (vec![0, 1], vec![1]));
    }

    #[test]
    fn lists() {
        for (list, expected) in [
            ("0-3,8\n", vec![0, 1, 2, 3, 8]),
            ("7", vec![7]),
            ("", vec![]),
            ("x-3,2", vec![2]),
            ("3-1", vec![]),
            ("1,0-1", vec![0, 1]),
        ] {
            assert_eq!(numbers(list), expected, "{list:?}");
        }
        assert_eq!(numbers("0-4294967295").len(), 65_536);
        assert_eq!(ranges(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(ranges(&[u32::MAX]), "4294967295");
        assert_eq!(ranges(&[]), "");
    }
}
