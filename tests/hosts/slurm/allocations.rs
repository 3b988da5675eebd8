//! Jobs on an allocation's hosts.

use super::{Rig, hosts, ranks};
use crate::common::write;

/// The submit host is no part of the allocation; ranks read their own numbers.
pub(super) fn from_outside(rig: &Rig) {
    let finished = rig.salloc("-N2 -n4", "");
    assert_eq!(hosts(&finished), "node1 node1 node1 node2");
    let ranks = ranks(&finished);
    for (rank, variables) in &ranks {
        let (local, node) = if *rank < 3 { (*rank, 0) } else { (0, 1) };
        let expected = [
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_LOCALID", local.to_string()),
            ("SLURM_NODEID", node.to_string()),
            ("SLURMD_NODENAME", format!("node{}", node + 1)),
            ("SLURM_CPUS_ON_NODE", [3, 1][node as usize].to_string()),
            ("SLURM_NTASKS", "4".to_owned()),
            ("SLURM_STEP_NODELIST", "node[1-2]".to_owned()),
            ("SLURM_STEP_TASKS_PER_NODE", "3,1".to_owned()),
            ("SLURM_JOB_NODELIST", "node[1-2]".to_owned()),
            ("SLURM_JOB_NAME", "interactive".to_owned()),
        ];
        for (name, value) in expected {
            assert_eq!(variables[name], value, "{name} of rank {rank}");
        }
    }
    // Nothing is said of variables that each rank gets anew.
    assert_eq!(finished.stderr, "", "{}", finished.report());
}

/// The counts of the allocation; `-np` takes the first of them, and no more than there are.
pub(super) fn uneven_and_gappy(rig: &Rig) {
    let finished = rig.salloc("-w node1,node2,node4 -n3", "");
    assert_eq!(hosts(&finished), "node1 node2 node4");
    let finished = rig.salloc("-N4 -n7", "-np 5");
    assert_eq!(hosts(&finished), "node1 node1 node1 node1 node2");
    assert_eq!(ranks(&finished)[&4]["SLURM_STEP_NODELIST"], "node[1-2]");
    let more = rig.salloc("-N2 -n2", "-np 3");
    assert_eq!(more.code(), 2, "{}", more.report());
    assert!(
        more.stderr.contains("more ranks than there are slots (2)"),
        "{}",
        more.report()
    );
    let finished = rig.salloc("-N2 -n2", "-np 3 --oversubscribe");
    assert_eq!(ranks(&finished).len(), 3);
}

pub(super) fn exclusive_without_a_number_of_tasks(rig: &Rig) {
    let finished = rig.salloc("-N2 --exclusive", "--dry-run --json");
    assert!(finished.success(), "{}", finished.report());
    assert_eq!(
        finished.stdout.matches("\"rank\"").count(),
        16,
        "{}",
        finished.report()
    );
}

/// The script is task 0 of one; the ranks are not. A rank on the script's own node is no other.
pub(super) fn a_batch_script(rig: &Rig) {
    let finished = rig.batch("-N3 -n4", "rlaunch sh show");
    assert_eq!(hosts(&finished), "node1 node1 node2 node3");
    for (rank, variables) in &ranks(&finished) {
        assert_eq!(variables["SLURM_PROCID"], rank.to_string());
        assert_eq!(variables["SLURM_LOCALID"], variables["LOCAL"]);
        assert_eq!(variables["SLURMD_NODENAME"], variables["HOST"]);
        assert_eq!(variables["SLURM_STEP_NUM_TASKS"], "4");
        // Of the script's own process.
        assert!(!variables.contains_key("SLURM_TASK_PID"), "{variables:?}");
    }
    let code = rig.batch("-N2 -n2", "rlaunch sh -c 'exit $((RANK * 7))'");
    assert_eq!(code.code(), 7, "{}", code.report());
}

/// `salloc` without a command: a shell on the first node, whose step is one task.
pub(super) fn an_interactive_step(rig: &Rig) {
    let shell = "echo 'cd /job; /opt/rlaunch/rlaunch sh show' | salloc -Q -N2 -n4";
    let finished = rig.shell(shell);
    assert_eq!(hosts(&finished), "node1 node1 node1 node2");
    assert_eq!(ranks(&finished)[&3]["SLURM_NTASKS"], "4");
}

pub(super) fn heterogeneous(rig: &Rig) {
    let finished = rig.salloc("-N1 -n2 : -N2 -n2", "");
    assert_eq!(hosts(&finished), "node1 node1 node2 node3");
    assert_eq!(ranks(&finished)[&3]["SLURM_PROCID"], "3");
    let finished = rig.batch("-N1 -n1 : -N1 -n2", "rlaunch sh show");
    assert_eq!(hosts(&finished), "node1 node2 node2");
}

/// `-H` picks among the allocation's hosts.
pub(super) fn hosts_chosen_within(rig: &Rig) {
    let finished = rig.salloc("-N3 -n6", "-H node3,node1:2");
    assert_eq!(hosts(&finished), "node3 node1 node1");
    let finished = rig.batch("-N2 -n2", "rlaunch -H localhost sh show");
    assert_eq!(hosts(&finished), "node1");
    let finished = rig.salloc("-N2 -n2", "--nnodes 1");
    assert_eq!(hosts(&finished), "node1");
}

/// What the script wrote itself is followed: its order, its slots.
pub(super) fn a_hostfile_within(rig: &Rig) {
    write(
        &rig.cluster,
        "head",
        "/job/within",
        "node2\nnode1 slots=2\n",
    );
    let finished = rig.salloc("-N2 -n2", "-hostfile within");
    assert_eq!(hosts(&finished), "node2 node1 node1");
    let lines = "srun hostname | sort -r > /job/made\nrlaunch -hostfile /job/made sh show";
    let finished = rig.batch("-N2 -n3", lines);
    assert_eq!(hosts(&finished), "node2 node1 node1");
}
