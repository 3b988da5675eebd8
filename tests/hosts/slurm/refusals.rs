//! What is no job: each is told in a line, and nothing is run somewhere else instead.

use super::{Rig, hosts};
use crate::common::write;

/// A host that is not of the allocation, in `-H` or a hostfile.
pub(super) fn hosts_of_nobody(rig: &Rig) {
    write(&rig.cluster, "head", "/job/beyond", "node1\nnode4\n");
    for words in ["-H node1,node4", "-hostfile beyond", "-H localhost"] {
        let refused = rig.salloc("-N2 -n2", words);
        assert_eq!(refused.code(), 2, "{words}: {}", refused.report());
        let said = "is not among the hosts of Slurm job";
        assert!(
            refused.stderr.contains(said),
            "{words}: {}",
            refused.report()
        );
        assert_eq!(refused.stdout, "", "{words}");
    }
    let more = rig.salloc("-N2 -n2", "-H node1:2");
    assert!(more.stderr.contains("gives it 1"), "{}", more.report());
    let meant = rig.salloc("-N2 -n2", "--scheduler none -H node4");
    assert_eq!(hosts(&meant), "node4");
    let nowhere = rig.shell("rlaunch --scheduler slurm sh show");
    assert_eq!(nowhere.code(), 2, "{}", nowhere.report());
    assert!(
        nowhere.stderr.contains("not inside a Slurm job"),
        "{}",
        nowhere.report()
    );
}

/// Never this machine instead.
pub(super) fn variables_that_lie(rig: &Rig) {
    for (lie, said) in [
        (
            "env -u SLURM_JOB_NODELIST -u SLURM_NODELIST",
            "SLURM_JOB_NODELIST is not set",
        ),
        (
            "env -u SLURM_TASKS_PER_NODE",
            "SLURM_TASKS_PER_NODE is not set",
        ),
        (
            "env SLURM_JOB_NODELIST=node[1-2",
            "SLURM_JOB_NODELIST=node[1-2: ",
        ),
        (
            "env SLURM_TASKS_PER_NODE=1",
            "is 2 hosts, but SLURM_TASKS_PER_NODE=1 is for 1",
        ),
    ] {
        let refused = rig.shell(&format!("salloc -Q -N2 -n2 {lie} rlaunch sh show"));
        assert_eq!(refused.code(), 2, "{lie}: {}", refused.report());
        assert!(refused.stderr.contains(said), "{lie}: {}", refused.report());
        assert!(
            refused.stderr.contains("hint: "),
            "{lie}: {}",
            refused.report()
        );
        assert_eq!(refused.stdout, "", "{lie}");
    }
}

/// `srun rlaunch` would start as many jobs as tasks.
pub(super) fn many_launchers(rig: &Rig) {
    let many = rig.shell("salloc -Q -N2 -n2 srun /opt/rlaunch/rlaunch sh show");
    assert_eq!(many.code(), 2, "{}", many.report());
    assert!(
        many.stderr.contains("each would start the whole job"),
        "{}",
        many.report()
    );
    assert!(!many.stdout.contains("RANK="), "{}", many.report());
    // A step of one task has lost the job's numbers.
    let step = rig.shell("salloc -Q -N2 -n2 srun -N1 -n1 /opt/rlaunch/rlaunch sh show");
    assert!(
        step.stderr.contains("start rlaunch from the job's own"),
        "{}",
        step.report()
    );
}
