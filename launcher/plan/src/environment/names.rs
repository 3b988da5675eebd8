//! Which names are whose.

use rlaunch_wire::environment as name;

use super::DropReason;

/// Belongs to this machine, this login or this terminal.
const LOCAL: [&str; 17] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "OLDPWD",
    "HOSTNAME",
    "HOST",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "KRB5CCNAME",
    "CUDA_VISIBLE_DEVICES",
    "MAIL",
    "SHLVL",
    "_",
    "XAUTHORITY",
];
const LOCAL_PREFIXES: [&str; 4] = ["XDG_", "SSH_", "DBUS_", "TMUX"];

/// Set for each rank, or read by programs as "some launcher started me".
const RANK: [&str; 20] = [
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
    name::RLAUNCH_PORT,
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

/// What a scheduler says to one of its tasks. What it says of the whole allocation
/// (SLURM_JOB_ID, SLURM_JOB_NODELIST) stays: it is as true on every host.
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
    "SLURM_JOB_NAME",
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

/// The user's own settings of our runtime: they go to every rank.
const RUNTIME_SETTINGS: [&str; 8] = [
    name::RLAUNCH_SOCKET_IFNAME,
    name::RLAUNCH_SOCKET_FAMILY,
    name::RLAUNCH_PORT_RANGE,
    name::RLAUNCH_SOCKETS,
    name::RLAUNCH_TIMEOUT,
    name::RLAUNCH_INIT_TIMEOUT,
    name::RLAUNCH_TRANSPORT,
    name::RLAUNCH_ALGO,
];

/// Why a launcher's variable of this name does not go to the hosts; `None`: it goes.
pub(super) fn drop_reason(name: &[u8]) -> Option<DropReason> {
    let one_of = |names: &[&str]| names.iter().any(|known| known.as_bytes() == name);
    let starts = |prefixes: &[&str]| {
        prefixes
            .iter()
            .any(|known| name.starts_with(known.as_bytes()))
    };
    if one_of(&RUNTIME_SETTINGS) {
        None
    } else if one_of(&RANK) || starts(&RANK_PREFIXES) {
        Some(DropReason::Rank)
    } else if one_of(&TASK) || starts(&TASK_PREFIXES) {
        Some(DropReason::Task)
    } else if one_of(&LOCAL) || starts(&LOCAL_PREFIXES) {
        Some(DropReason::Local)
    } else {
        None
    }
}

/// Whether `rank_variables` sets it, so that `-x` can't.
pub(super) fn is_set_for_each_rank(name: &[u8]) -> bool {
    let ours = RANK[..15].iter().any(|known| known.as_bytes() == name);
    ours || name.starts_with(b"OMPI_COMM_WORLD_")
        || name == b"MPI_LOCALRANKID"
        || name == b"MPI_LOCALNRANKS"
        || name == name::TORCHELASTIC_RUN_ID.as_bytes()
}
