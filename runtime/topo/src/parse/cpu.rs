//! Processors, NUMA nodes, caches, and what control groups leave of them.

use crate::layout::{LayoutFacts, numbers};
use crate::machine::{Cache, CpuLimits, Machine, NumaNode, Processor};
use crate::tree::Tree;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";
const GROUP: &str = "sys/fs/cgroup";

pub(super) fn parse(tree: &Tree, machine: &mut Machine) {
    let sockets = sockets(tree);
    machine.processor = processor(tree, &sockets);
    machine.usable = LayoutFacts::of(tree).parse();
    machine.nodes = nodes(tree, &sockets);
    machine.caches = caches(tree);
    machine.limits = limits(tree);
}

/// The socket of each core's first hardware thread.
fn sockets(tree: &Tree) -> Vec<(u32, u32)> {
    let cpus = tree.numbered(CPU, "cpu").into_iter();
    let socket = |cpu: u32| {
        let path = format!("{CPU}/cpu{cpu}/topology/physical_package_id");
        tree.number(&path).map(|socket| (cpu, socket))
    };
    cpus.filter_map(socket).collect()
}

fn processor(tree: &Tree, sockets: &[(u32, u32)]) -> Processor {
    let info = tree.text("proc/cpuinfo").unwrap_or_default();
    let field = |wanted: &str| {
        info.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    let mut numbers: Vec<u32> = sockets.iter().map(|(_, socket)| *socket).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Processor {
        vendor: field("vendor_id").or_else(|| field("CPU implementer")),
        family: field("cpu family").and_then(|text| text.parse().ok()),
        model: field("model").and_then(|text| text.parse().ok()),
        sockets: u32::try_from(numbers.len()).ok().filter(|count| *count > 0),
    }
}

fn nodes(tree: &Tree, sockets: &[(u32, u32)]) -> Vec<NumaNode> {
    let node = |number: u32| {
        let folder = format!("{NODE}/node{number}");
        let cpus = numbers(tree.text(&format!("{folder}/cpulist")).unwrap_or_default());
        let distances = tree.text(&format!("{folder}/distance")).unwrap_or_default();
        let memory = tree.text(&format!("{folder}/meminfo")).unwrap_or_default();
        let memory = memory.split_once("MemTotal:").map(|(_, text)| text);
        let socket = sockets
            .iter()
            .find(|(cpu, _)| cpus.binary_search(cpu).is_ok());
        NumaNode {
            number,
            socket: socket.map(|(_, socket)| *socket),
            distances: distances
                .split_whitespace()
                .filter_map(|it| it.parse().ok())
                .collect(),
            memory_kib: memory.and_then(|it| it.split_whitespace().next()?.parse().ok()),
            cpus,
        }
    };
    tree.numbered(NODE, "node").into_iter().map(node).collect()
}

fn caches(tree: &Tree) -> Vec<Cache> {
    let mut caches = Vec::new();
    for cpu in tree.numbered(CPU, "cpu") {
        for index in tree.numbered(&format!("{CPU}/cpu{cpu}/cache"), "index") {
            let folder = format!("{CPU}/cpu{cpu}/cache/index{index}");
            let Some(level) = tree.number(&format!("{folder}/level")) else {
                continue;
            };
            let cpus = tree
                .text(&format!("{folder}/shared_cpu_list"))
                .unwrap_or_default();
            caches.push(Cache {
                level,
                size: tree.word(&format!("{folder}/size")).map(str::to_owned),
                cpus: numbers(cpus),
            });
        }
    }
    caches
}

/// Folders of the own control group and of those around it, for both versions.
///
/// In a container /proc may tell the host's path while /sys shows the group as its root, so the root
/// is always among them.
pub(crate) fn group_folders(own: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for line in own.lines().take(64) {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let hierarchy = match controllers {
            "" => GROUP.to_owned(),
            _ if controllers
                .split(',')
                .any(|it| it == "cpu" || it == "cpuset") =>
            {
                format!("{GROUP}/{controllers}")
            }
            _ => continue,
        };
        let parts = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != "..");
        let mut folder = hierarchy;
        folders.push(folder.clone());
        for part in parts.take(64) {
            folder = format!("{folder}/{part}");
            folders.push(folder.clone());
        }
    }
    folders
}

fn limits(tree: &Tree) -> CpuLimits {
    let own = tree.text("proc/self/cgroup").unwrap_or_default();
    let folders = group_folders(own);
    let quotas = folders.iter().filter_map(|folder| quota(tree, folder));
    let cpuset = folders.iter().rev().find_map(|folder| {
        let list = |name: &str| tree.word(&format!("{folder}/{name}"));
        list("cpuset.cpus.effective").or_else(|| list("cpuset.cpus"))
    });
    let status = tree.text("proc/self/status").unwrap_or_default();
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    CpuLimits {
        quota_milli: quotas.min(),
        cpuset: cpuset.map(numbers),
        memory_nodes: memory.map(numbers),
    }
}

/// Time of `cpu.max` (`200000 100000`), or of `cpu.cfs_quota_us`; none where it is not limited.
fn quota(tree: &Tree, folder: &str) -> Option<u32> {
    let (quota, period): (u64, u64) = match tree.word(&format!("{folder}/cpu.max")) {
        Some(line) => {
            let (quota, period) = line.split_once(' ').unwrap_or((line, "100000"));
            (quota.parse().ok()?, period.parse().ok()?)
        }
        None => (
            tree.number(&format!("{folder}/cpu.cfs_quota_us"))?,
            tree.number(&format!("{folder}/cpu.cfs_period_us"))?,
        ),
    };
    let milli = quota.saturating_mul(1000).checked_div(period)?;
    u32::try_from(milli).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits_of(files: &[(&str, &str)]) -> CpuLimits {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.put(path, text);
        }
        limits(&tree)
    }

    #[test]
    fn the_narrowest_group_counts_in_both_versions() {
        let version_2 = limits_of(&[
            ("proc/self/cgroup", "0::/kubepods/pod1/c\n"),
            ("sys/fs/cgroup/kubepods/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/kubepods/pod1/cpu.max", "250000 100000"),
            ("sys/fs/cgroup/kubepods/pod1/c/cpu.max", "800000 100000"),
            ("sys/fs/cgroup/kubepods/cpuset.cpus.effective", "0-31"),
            ("sys/fs/cgroup/kubepods/pod1/c/cpuset.cpus.effective", "2-3"),
        ]);
        assert_eq!(version_2.quota_milli, Some(2500));
        assert_eq!(version_2.cpuset, Some(vec![2, 3]));
        let version_1 = limits_of(&[
            (
                "proc/self/cgroup",
                "4:memory:/x\n3:cpu,cpuacct:/docker/1\n2:cpuset:/docker/1\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000"),
            ("sys/fs/cgroup/cpuset/docker/1/cpuset.cpus", "1"),
        ]);
        assert_eq!(
            (version_1.quota_milli, version_1.cpuset),
            (Some(500), Some(vec![1]))
        );
        let none = limits_of(&[
            ("proc/self/cgroup", "1:cpu:/\nx\n0::/../..\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
            ("sys/fs/cgroup/cpu.max", "100 0"),
        ]);
        assert_eq!((none.quota_milli, none.cpuset), (None, None));
    }
}
