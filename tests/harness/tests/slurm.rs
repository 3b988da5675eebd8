//! A Slurm that is one: its own programs agree.
#![allow(
    clippy::unwrap_used,
    reason = "a test that stops here has failed, and says where"
)]

use rlaunch_harness::{Cluster, Options, SLURM_CORES, Slurm, slurm_unavailable};

/// A step runs on every node, each claims its cores, and nothing outlives the cluster.
#[test]
fn slurm_runs_steps_on_every_node() {
    if let Some(reason) = slurm_unavailable() {
        eprintln!("SKIPPED: {reason}");
        return;
    }
    let cluster = Cluster::up(&Options::new(2)).unwrap();
    let start = std::time::Instant::now();
    let slurm = Slurm::up(&cluster).unwrap();
    println!("Slurm is up after {:.2} s", start.elapsed().as_secs_f64());
    let step = cluster
        .exec("head", &["srun", "-N2", "-l", "hostname"])
        .unwrap();
    assert!(step.success(), "{}", step.report());
    let mut lines: Vec<_> = step.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0: node1", "1: node2"], "{}", step.report());
    let exclusive = "salloc -Q -N2 --exclusive printenv SLURM_TASKS_PER_NODE";
    let cores = cluster.shell("head", exclusive).unwrap();
    assert_eq!(
        cores.stdout.trim(),
        format!("{SLURM_CORES}(x2)"),
        "{}",
        cores.report()
    );
    if let Ok(script) = std::env::var("EXPLORE") {
        println!("{}", cluster.shell("head", &script).unwrap().report());
    }
    drop(slurm);
}
