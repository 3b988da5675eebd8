//! What a rank is told about itself, in the words of torchrun, Open MPI and Intel MPI.
//!
//! PMI_RANK and its like are not set: an MPICH program would look for a PMI server.

use rlaunch_wire::environment as name;

use crate::Placement;

/// Where the ranks' own rendezvous is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Master {
    /// Numeric, proven, without brackets.
    pub address: String,
    pub port: u16,
}

/// Of `--max-restarts`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restarts {
    /// How often the job was started again so far.
    pub count: u32,
    pub max: u32,
}

/// The variables of rank `rank`, over everything inherited.
///
/// # Panics
/// If the placement has no such rank.
pub fn rank_variables(
    placement: &Placement,
    rank: u32,
    master: &Master,
    job_id: &[u8; 16],
    restarts: Restarts,
) -> Vec<(String, String)> {
    let place = placement.ranks[rank as usize];
    let program = placement.programs[place.program as usize];
    let world = placement.ranks.len();
    let nodes = placement.nodes.len();
    let job: String = job_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let pairs: [(&str, &dyn std::fmt::Display); 25] = [
        (name::RANK, &rank),
        (name::WORLD_SIZE, &world),
        (name::LOCAL_RANK, &place.local_rank),
        (name::LOCAL_WORLD_SIZE, &place.local_world_size),
        (name::GROUP_RANK, &place.node_rank),
        (name::GROUP_WORLD_SIZE, &nodes),
        (name::NODE_RANK, &place.node_rank),
        (name::ROLE_RANK, &(rank - program.first_rank)),
        (name::ROLE_NAME, &"default"),
        (name::ROLE_WORLD_SIZE, &program.ranks),
        (name::MASTER_ADDR, &master.address),
        (name::MASTER_PORT, &master.port),
        (name::TORCHELASTIC_RESTART_COUNT, &restarts.count),
        (name::TORCHELASTIC_MAX_RESTARTS, &restarts.max),
        (name::TORCHELASTIC_RUN_ID, &job),
        // Rank 0 hosts torch's store itself; True would make every rank a client of none.
        (name::TORCHELASTIC_USE_AGENT_STORE, &"False"),
        ("OMPI_COMM_WORLD_RANK", &rank),
        ("OMPI_COMM_WORLD_SIZE", &world),
        ("OMPI_COMM_WORLD_LOCAL_RANK", &place.local_rank),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", &place.local_world_size),
        ("OMPI_COMM_WORLD_NODE_RANK", &place.local_rank),
        ("MPI_LOCALRANKID", &place.local_rank),
        ("MPI_LOCALNRANKS", &place.local_world_size),
        (name::RLAUNCH_JOB_ID, &job),
        (name::RLAUNCH_APPNUM, &place.program),
    ];
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_string()))
        .collect()
}
