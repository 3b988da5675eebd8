//! What a rank reads of Slurm's variables about itself, as if `srun` had started the job as a step.
//!
//! The launcher's own environment tells of the batch script, which is task 0 of one. Programs that
//! look at SLURM_PROCID first would all believe to be that task.

use crate::Placement;
use crate::allocation::Allocation;
use crate::names;
use crate::placement::Node;

use super::{SlurmJob, compress};

/// The variables that all ranks share, made once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    common: Vec<(&'static str, String)>,
    /// By node rank.
    nodes: Vec<Vec<(&'static str, String)>>,
}

impl Step {
    pub fn new(job: &SlurmJob, allocation: &Allocation, placement: &Placement) -> Self {
        let name = |host: usize| {
            let name = allocation.hosts[host].host.name.as_str();
            job.node(name).map_or(name, |node| node.name.as_str())
        };
        let world = placement.ranks.len().to_string();
        let nodes = placement.nodes.len().to_string();
        let list = names::compressed(placement.nodes.iter().map(|node| name(node.host)));
        let tasks = compress::counts(placement.nodes.iter().map(Node::rank_count));
        let common = vec![
            ("SLURM_NTASKS", world.clone()),
            ("SLURM_NPROCS", world.clone()),
            ("SLURM_NNODES", nodes.clone()),
            ("SLURM_TASKS_PER_NODE", tasks.clone()),
            ("SLURM_STEP_NUM_TASKS", world),
            ("SLURM_STEP_NUM_NODES", nodes),
            ("SLURM_STEP_NODELIST", list),
            ("SLURM_STEP_TASKS_PER_NODE", tasks),
        ];
        let mut members: Vec<Vec<String>> = vec![Vec::new(); placement.nodes.len()];
        for place in &placement.ranks {
            members[place.node_rank as usize].push(place.rank.to_string());
        }
        let of_node = |(rank, node): (usize, &Node)| {
            let mut variables = vec![
                ("SLURM_NODEID", rank.to_string()),
                ("SLURM_GTIDS", members[rank].join(",")),
                ("SLURMD_NODENAME", name(node.host).to_owned()),
            ];
            if let Some(cpus) = job.node(name(node.host)).and_then(|node| node.cpus) {
                variables.push(("SLURM_CPUS_ON_NODE", cpus.to_string()));
            }
            variables
        };
        Self {
            common,
            nodes: placement.nodes.iter().enumerate().map(of_node).collect(),
        }
    }

    /// The variables of rank `rank`, over everything inherited.
    ///
    /// # Panics
    /// If the placement has no such rank.
    pub fn variables(&self, placement: &Placement, rank: u32) -> Vec<(String, String)> {
        let place = placement.ranks[rank as usize];
        let own = [
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_LOCALID", place.local_rank.to_string()),
        ];
        self.common
            .iter()
            .chain(&self.nodes[place.node_rank as usize])
            .cloned()
            .chain(own)
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// Whether ranks inside an allocation get this variable with a value of its own.
pub fn is_set_for_each_rank(name: &[u8]) -> bool {
    SET.iter().any(|known| known.as_bytes() == name)
}

const SET: [&str; 14] = [
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_GTIDS",
    "SLURMD_NODENAME",
    "SLURM_CPUS_ON_NODE",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NNODES",
    "SLURM_TASKS_PER_NODE",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_TASKS_PER_NODE",
];
