//! Whose variables are whose: what one process says to another of *its* task misleads a third.
//!
//! Neither the launcher's environment nor a host's login environment may pass on the variables of
//! another task: every rank would believe to be that one.

use crate::environment as name;
use crate::setting::SETTINGS;

/// Whom a variable speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A rank: some launcher tells it which one it is.
    Rank,
    /// A task of a scheduler. What a scheduler says of the whole allocation (SLURM_JOB_ID,
    /// SLURM_JOB_NODELIST) is nobody's: it is as true on every host.
    Task,
}

/// `None`: of nobody in particular. The user's settings of the runtime are meant for every rank.
pub fn owner(name: &[u8]) -> Option<Owner> {
    if one_of(&SETTINGS, name) {
        None
    } else if one_of(&OWN, name) || one_of(&OTHERS, name) || starts(&RANK_PREFIXES, name) {
        Some(Owner::Rank)
    } else if one_of(&TASK, name) || starts(&TASK_PREFIXES, name) {
        Some(Owner::Task)
    } else {
        None
    }
}

/// Whether a launched rank gets this variable with a value of its own.
pub fn is_set_for_each_rank(name: &[u8]) -> bool {
    one_of(&OWN, name)
        || one_of(
            &[
                "MPI_LOCALRANKID",
                "MPI_LOCALNRANKS",
                name::TORCHELASTIC_RUN_ID,
            ],
            name,
        )
        || name.starts_with(b"OMPI_COMM_WORLD_")
}

fn one_of(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|known| known.as_bytes() == name)
}

fn starts(prefixes: &[&str], name: &[u8]) -> bool {
    let mut prefixes = prefixes.iter();
    prefixes.any(|known| name.starts_with(known.as_bytes()))
}

/// Set for each rank by us.
const OWN: [&str; 16] = [
    name::RANK,
    name::WORLD_SIZE,
    name::MASTER_ADDR,
    name::MASTER_PORT,
    name::GROUP_RANK,
    name::GROUP_WORLD_SIZE,
    name::NODE_RANK,
    name::ROLE_RANK,
    name::ROLE_NAME,
    name::ROLE_WORLD_SIZE,
    name::LOCAL_RANK,
    name::LOCAL_WORLD_SIZE,
    name::RLAUNCH_AGENT,
    name::RLAUNCH_JOB_ID,
    name::RLAUNCH_SECRET,
    name::RLAUNCH_APPNUM,
];

/// Read by programs as "some launcher started me".
const OTHERS: [&str; 4] = [
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "PALS_RANKID",
    "HOROVOD_RANK",
];

/// `PMI` covers PMI_, PMI2_ and PMIX_.
const RANK_PREFIXES: [&str; 8] = [
    "LOCAL_",
    "OMPI_COMM_WORLD_",
    "OMPI_",
    "PMI",
    "TORCHELASTIC_",
    "MV2_COMM_WORLD_",
    "HYDRA_",
    "RLAUNCH_",
];

/// What a scheduler says to one of its tasks.
const TASK: [&str; 30] = [
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_TASK_PID",
    "SLURM_GTIDS",
    "SLURM_TASKS_PER_NODE",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_CPU_BIND",
    "SLURM_CPUS_ON_NODE",
    "SLURM_TOPOLOGY_ADDR",
    "SLURM_TOPOLOGY_ADDR_PATTERN",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_SRUN_COMM_HOST",
    "SLURM_SRUN_COMM_PORT",
    "SLURM_UMASK",
    "SLURM_PRIO_PROCESS",
    "SLURMD_NODENAME",
    "SLURM_JOB_GPUS",
    "PBS_TASKNUM",
    "PBS_NODENUM",
    "PBS_VNODENUM",
    "PBS_O_HOST",
    "PBS_MOMPORT",
    "LSF_PM_TASKID",
    "LS_JOBPID",
    "SGE_TASK_ID",
    "FLUX_TASK_RANK",
    "FLUX_TASK_LOCAL_ID",
];
const TASK_PREFIXES: [&str; 4] = [
    "SLURM_STEP_",
    "SLURM_CPU_BIND_",
    "SLURM_GPUS_",
    "JSM_NAMESPACE_",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_has_the_owner_it_speaks_to() {
        for (name, expected) in [
            ("RANK", Some(Owner::Rank)),
            ("RANKING", None),
            ("PMIX_RANK", Some(Owner::Rank)),
            ("ROLE_RANK", Some(Owner::Rank)),
            ("RLAUNCH_PORT", Some(Owner::Rank)),
            ("RLAUNCH_ALGO", None),
            ("RLAUNCH_RECORDER_FILE", None),
            ("SLURM_PROCID", Some(Owner::Task)),
            ("SLURM_STEP_ID", Some(Owner::Task)),
            ("SLURM_JOB_ID", None),
            ("HOME", None),
        ] {
            assert_eq!(owner(name.as_bytes()), expected, "{name}");
        }
        assert!(is_set_for_each_rank(b"RANK") && !is_set_for_each_rank(b"RLAUNCH_PORT"));
    }
}
