//! The environment contract: which variables a rank finds, by whom they are read.

/// torch's env:// start, and what torchrun sets beside it.
pub const RANK: &str = "RANK";
pub const WORLD_SIZE: &str = "WORLD_SIZE";
pub const LOCAL_RANK: &str = "LOCAL_RANK";
pub const LOCAL_WORLD_SIZE: &str = "LOCAL_WORLD_SIZE";
pub const GROUP_RANK: &str = "GROUP_RANK";
pub const GROUP_WORLD_SIZE: &str = "GROUP_WORLD_SIZE";
pub const NODE_RANK: &str = "NODE_RANK";
pub const ROLE_RANK: &str = "ROLE_RANK";
pub const ROLE_NAME: &str = "ROLE_NAME";
pub const ROLE_WORLD_SIZE: &str = "ROLE_WORLD_SIZE";
pub const MASTER_ADDR: &str = "MASTER_ADDR";
pub const MASTER_PORT: &str = "MASTER_PORT";
pub const TORCHELASTIC_RESTART_COUNT: &str = "TORCHELASTIC_RESTART_COUNT";
pub const TORCHELASTIC_MAX_RESTARTS: &str = "TORCHELASTIC_MAX_RESTARTS";
/// Lightning takes this for "torchrun started me"; without it, it reads Slurm's variables first.
pub const TORCHELASTIC_RUN_ID: &str = "TORCHELASTIC_RUN_ID";
pub const TORCHELASTIC_USE_AGENT_STORE: &str = "TORCHELASTIC_USE_AGENT_STORE";
pub const TORCH_NCCL_ASYNC_ERROR_HANDLING: &str = "TORCH_NCCL_ASYNC_ERROR_HANDLING";

/// Abstract name of the agent's socket for its ranks, without the leading NUL.
pub const RLAUNCH_AGENT: &str = "RLAUNCH_AGENT";
/// The job's id, 32 hexadecimal digits.
pub const RLAUNCH_JOB_ID: &str = "RLAUNCH_JOB_ID";
/// Which of the job's programs a rank runs, from 0: MPI's `MPI_APPNUM`.
pub const RLAUNCH_APPNUM: &str = "RLAUNCH_APPNUM";
/// Secret of a job that no agent started; else connections are said to be unauthenticated.
pub const RLAUNCH_SECRET: &str = "RLAUNCH_SECRET";
/// Rank 0's bootstrap port where no agent serves; else a port next to MASTER_PORT is probed.
pub const RLAUNCH_PORT: &str = "RLAUNCH_PORT";
/// Seconds that a call may wait for its peers.
pub const RLAUNCH_TIMEOUT: &str = "RLAUNCH_TIMEOUT";
/// Seconds that init may wait for all ranks.
pub const RLAUNCH_INIT_TIMEOUT: &str = "RLAUNCH_INIT_TIMEOUT";
/// Signal on which a rank prints its last operations (SIGUSR2), or `none`.
pub const RLAUNCH_RECORDER_SIGNAL: &str = "RLAUNCH_RECORDER_SIGNAL";
/// Where it prints them, also after an error; `{rank}` stands for the rank.
pub const RLAUNCH_RECORDER_FILE: &str = "RLAUNCH_RECORDER_FILE";
/// Transports allowed, by name: `shm,tcp`.
pub const RLAUNCH_TRANSPORT: &str = "RLAUNCH_TRANSPORT";
/// `0`: ranks of one host don't read and write each other's memory, but what they share of it; `1`: they
/// always do; else where it is known to be faster.
pub const RLAUNCH_SINGLE_COPY: &str = "RLAUNCH_SINGLE_COPY";
/// Ranks of one host that set it differently share no memory, as if on different hosts.
pub const RLAUNCH_HOST_ID: &str = "RLAUNCH_HOST_ID";
/// Algorithms that may run: `ring`, `all_reduce:ring,tree;broadcast:^chain`.
pub const RLAUNCH_ALGO: &str = "RLAUNCH_ALGO";
/// File that `rperf --tune` wrote, from which algorithms are chosen.
pub const RLAUNCH_TUNE_FILE: &str = "RLAUNCH_TUNE_FILE";
/// `1`: partial sums of 16- and 8-bit floats travel as binary32, so that they are rounded once.
pub const RLAUNCH_PRECISE: &str = "RLAUNCH_PRECISE";
/// `1`: contributions are combined in the order of ranks, one after the other, whatever the way.
pub const RLAUNCH_DETERMINISTIC: &str = "RLAUNCH_DETERMINISTIC";
/// Interfaces for data: beginnings of names, `=name`, networks, or `^` and what not to use.
pub const RLAUNCH_SOCKET_IFNAME: &str = "RLAUNCH_SOCKET_IFNAME";
/// The same in others' words; ours goes before.
pub const NCCL_SOCKET_IFNAME: &str = "NCCL_SOCKET_IFNAME";
pub const GLOO_SOCKET_IFNAME: &str = "GLOO_SOCKET_IFNAME";
/// `4` or `6`, where only one of both is to be used.
pub const RLAUNCH_SOCKET_FAMILY: &str = "RLAUNCH_SOCKET_FAMILY";
pub const NCCL_SOCKET_FAMILY: &str = "NCCL_SOCKET_FAMILY";
/// The only ports that ranks listen on: `20000-20099`.
pub const RLAUNCH_PORT_RANGE: &str = "RLAUNCH_PORT_RANGE";
/// Sockets to each peer for large messages.
pub const RLAUNCH_SOCKETS: &str = "RLAUNCH_SOCKETS";
