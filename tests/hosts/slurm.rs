//! Jobs inside a real Slurm: from `salloc` on a host outside of the allocation, and from a batch
//! script on its first node.
//!
//! One Slurm serves all cases, one after the other: it takes longer to start than they all.

mod allocations;
mod lists;
mod refusals;

use crate::common::{JOB, cluster_with, write};
use rlaunch_harness::{Cluster, Finished, Options, Slurm, Where, slurm_unavailable};
use std::collections::BTreeMap;
use std::path::Path;

const NODES: u32 = 4;

#[test]
fn inside_slurm() {
    if let Some(reason) = slurm_unavailable() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let build = Path::new(env!("CARGO_BIN_EXE_rlaunch")).parent().unwrap();
    // Batch scripts run on nodes and start rlaunch there.
    let everywhere = |options: Options| options.share_on(Where::Nodes, build, Options::RLAUNCH);
    let Some(cluster) = cluster_with(NODES, everywhere) else {
        return;
    };
    let slurm = Slurm::up(&cluster).unwrap();
    write(&cluster, "head", "/job/show", SHOW);
    for node in 1..=NODES {
        write(&cluster, &format!("node{node}"), "/job/show", SHOW);
    }
    let rig = Rig { cluster };
    let cases: [(&str, Case); 12] = [
        ("lists", lists::as_scontrol_expands_them),
        ("salloc", allocations::from_outside),
        ("uneven", allocations::uneven_and_gappy),
        (
            "exclusive",
            allocations::exclusive_without_a_number_of_tasks,
        ),
        ("batch", allocations::a_batch_script),
        ("interactive", allocations::an_interactive_step),
        ("heterogeneous", allocations::heterogeneous),
        ("chosen", allocations::hosts_chosen_within),
        ("hostfile", allocations::a_hostfile_within),
        ("outside", refusals::hosts_of_nobody),
        ("broken", refusals::variables_that_lie),
        ("many", refusals::many_launchers),
    ];
    for (name, case) in cases {
        let start = std::time::Instant::now();
        case(&rig);
        println!("{name}: {:.2} s", start.elapsed().as_secs_f64());
    }
    drop(slurm);
}

/// One line for each rank: what it is told, as `NAME=VALUE` words.
const SHOW: &str =
    r#"echo "RANK=$RANK HOST=$(hostname) LOCAL=$LOCAL_RANK $(env | grep ^SLURM | tr '\n' ' ')""#;

type Case = fn(&Rig);

struct Rig {
    cluster: Cluster,
}

impl Rig {
    /// `LINE` in the folder for jobs on head.
    fn shell(&self, line: &str) -> Finished {
        let line = format!("cd {JOB} && {line}");
        self.cluster.shell("head", &line).unwrap()
    }

    /// `rlaunch WORDS sh show` below `salloc SIZE`.
    fn salloc(&self, size: &str, words: &str) -> Finished {
        self.shell(&format!("salloc -Q {size} rlaunch {words} sh show"))
    }

    /// A batch script with these lines; its output, once it has ended.
    fn batch(&self, size: &str, lines: &str) -> Finished {
        let script = format!("#!/bin/sh\nexec 2>&1\ncd {JOB}\nPATH=/opt/rlaunch:$PATH\n{lines}\n");
        write(&self.cluster, "head", "/job/batch.sh", &script);
        let submit = format!("sbatch -Q -W {size} -o /job/batch.out batch.sh");
        let mut finished = self.shell(&submit);
        let output = self.cluster.path_on("node1", "/job/batch.out").unwrap();
        finished.stdout = std::fs::read_to_string(output).unwrap_or_default();
        finished
    }
}

/// The variables of each rank, by rank.
fn ranks(finished: &Finished) -> BTreeMap<u32, BTreeMap<String, String>> {
    assert!(finished.success(), "{}", finished.report());
    let mut all = BTreeMap::new();
    for line in finished
        .stdout
        .lines()
        .filter(|line| line.starts_with("RANK="))
    {
        let words = line.split(' ').filter_map(|word| word.split_once('='));
        let variables: BTreeMap<String, String> = words
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        all.insert(variables["RANK"].parse().unwrap(), variables);
    }
    all
}

/// The hosts of the ranks, in their order.
fn hosts(finished: &Finished) -> String {
    let hosts: Vec<String> = ranks(finished)
        .into_values()
        .map(|variables| variables["HOST"].clone())
        .collect();
    hosts.join(" ")
}
