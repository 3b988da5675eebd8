//! A Slurm allocation, as its variables tell it: which hosts, and how many ranks on each.
//!
//! ```text
//! SLURM_JOB_NODELIST=node[1-2,4]        node1 node2 node4
//! SLURM_TASKS_PER_NODE=3,1(x2)          3     1     1
//! SLURM_HET_SIZE=2                      a heterogeneous job: the lists of its components, one after the
//!                                       other, from …_HET_GROUP_0 and …_HET_GROUP_1
//! SLURM_NODE_ALIASES=ec0:10.0.0.7:foo   of nodes in a cloud: name, address, the machine's own name;
//!                                       a name there may be none that resolves, so the address counts
//! ```
//! The variables of the *job* count, never those of a step (in an interactive `salloc` they tell of
//! one task). Whatever is missing or does not fit together is an error: a job that is run on fewer
//! hosts than were paid for, or on this machine alone, is worse than none. No program of Slurm is
//! asked, for in a container there is none.

mod aliases;
mod compress;
mod error;
mod hosts;
mod list;
mod step;

pub use error::SlurmError;
pub use list::{expand_counts, expand_nodes};
pub use step::{Step, is_set_for_each_rank};

use crate::Host;

/// Reads one variable; not set and empty are the same to Slurm's own programs.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Components of a heterogeneous job; Slurm's own limit is 128.
const COMPONENTS_MAX: u32 = 1024;

/// The allocation that a launcher stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmJob {
    pub id: String,
    /// In Slurm's order, each once.
    pub nodes: Vec<SlurmNode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmNode {
    pub name: String,
    /// Its entry of SLURM_TASKS_PER_NODE.
    pub tasks: u32,
    /// Its entry of SLURM_JOB_CPUS_PER_NODE, where that is set.
    pub cpus: Option<u32>,
    /// Where it is reached, if not by its name.
    pub address: Option<String>,
}

impl SlurmNode {
    /// The name by which it is reached.
    fn reached(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.name)
    }
}

impl SlurmJob {
    /// The job that `variables` tell of; none outside of one.
    pub fn read(variables: Variables<'_>) -> Result<Option<Self>, SlurmError> {
        let Some(id) = variables("SLURM_JOB_ID").or_else(|| variables("SLURM_JOBID")) else {
            return Ok(None);
        };
        if let Some(tasks) = variables("SLURM_STEP_NUM_TASKS").filter(|tasks| tasks != "1") {
            return Err(SlurmError::ManyLaunchers { id, tasks });
        }
        let mut job = Self {
            id,
            nodes: Vec::new(),
        };
        match components(variables)? {
            None => job.add(variables, "")?,
            Some((word, size)) => {
                for component in 0..size {
                    job.add(variables, &format!("_{word}_GROUP_{component}"))?;
                }
            }
        }
        aliases::add(&mut job, variables)?;
        Ok(Some(job))
    }

    /// The node that a user means by `name`, which may be longer or shorter by its domain, or its
    /// address.
    pub fn node(&self, name: &str) -> Option<&SlurmNode> {
        let is_it = |node: &&SlurmNode| {
            same_host(&node.name, name) || node.address.as_deref() == Some(name)
        };
        self.nodes.iter().find(is_it)
    }

    /// All of it, as a user would have written it.
    pub fn hosts(&self) -> impl Iterator<Item = (Host, u32)> + '_ {
        let host = |node: &SlurmNode| (Host::new(node.reached()), node.tasks);
        self.nodes.iter().map(host)
    }

    /// One component; `suffix` is empty for a plain job.
    fn add(&mut self, variables: Variables<'_>, suffix: &str) -> Result<(), SlurmError> {
        let (nodes_name, nodes) = self.first_set(
            variables,
            &[
                format!("SLURM_JOB_NODELIST{suffix}"),
                format!("SLURM_NODELIST{suffix}"),
            ],
        )?;
        let (tasks_name, tasks) =
            self.first_set(variables, &[format!("SLURM_TASKS_PER_NODE{suffix}")])?;
        let names = expand_nodes(&nodes).map_err(|error| error.within(&nodes_name, &nodes))?;
        let counts = expand_counts(&tasks).map_err(|error| error.within(&tasks_name, &tasks))?;
        if names.len() != counts.len() {
            return Err(SlurmError::Counts {
                nodes_name,
                nodes,
                hosts: names.len(),
                tasks_name,
                tasks,
                counts: counts.len(),
            });
        }
        // Nobody's ranks depend on it, so one that can't be read is only not passed on.
        let cpus = variables(&format!("SLURM_JOB_CPUS_PER_NODE{suffix}"))
            .and_then(|text| expand_counts(&text).ok())
            .filter(|cpus| cpus.len() == names.len());
        for (index, (name, tasks)) in names.into_iter().zip(counts).enumerate() {
            let cpus = cpus.as_ref().map(|cpus| cpus[index]);
            match self.nodes.iter_mut().find(|node| node.name == name) {
                // Components may share a node.
                Some(node) => {
                    node.tasks = node.tasks.saturating_add(tasks);
                    node.cpus = node.cpus.zip(cpus).map(|(one, other)| one + other);
                }
                None => self.nodes.push(SlurmNode {
                    name,
                    tasks,
                    cpus,
                    address: None,
                }),
            }
        }
        Ok(())
    }

    fn first_set(
        &self,
        variables: Variables<'_>,
        names: &[String],
    ) -> Result<(String, String), SlurmError> {
        let found = names
            .iter()
            .find_map(|name| Some((name.clone(), variables(name)?)));
        found.ok_or_else(|| SlurmError::Missing {
            id: self.id.clone(),
            name: names[0].clone(),
        })
    }
}

/// The word in the variables' names and how many components there are. Before Slurm 20.02 they
/// were called packs.
fn components(variables: Variables<'_>) -> Result<Option<(&'static str, u32)>, SlurmError> {
    for word in ["HET", "PACK"] {
        let name = format!("SLURM_{word}_SIZE");
        let Some(text) = variables(&name) else {
            continue;
        };
        return match text.parse() {
            Ok(size @ 1..=COMPONENTS_MAX) => Ok(Some((word, size))),
            _ => Err(SlurmError::Value {
                name,
                value: text,
                problem: format!("expected a number from 1 to {COMPONENTS_MAX}"),
            }),
        };
    }
    Ok(None)
}

/// `node1` and `node1.cluster.org` are the same host; `node1.a` and `node1.b` are not.
fn same_host(one: &str, other: &str) -> bool {
    let label = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let short = |name: &str| !name.contains('.');
    let numeric = |name: &str| name.parse::<std::net::IpAddr>().is_ok();
    one.eq_ignore_ascii_case(other)
        || (!numeric(one)
            && !numeric(other)
            && (short(one) || short(other))
            && label(one) == label(other))
}

#[cfg(test)]
#[path = "slurm/tests.rs"]
mod tests;
