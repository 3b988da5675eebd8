//! What can be wrong with an allocation's variables.

use thiserror::Error;

use crate::text::show;

/// Each is one line that names the variable, and a hint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SlurmError {
    #[error(
        "inside Slurm job {id}, but {name} is not set: its hosts and slots are not known\n\
         hint: start rlaunch from the job's own shell or script, or name hosts and leave Slurm \
         out of it: --scheduler none -H HOSTS"
    )]
    Missing { id: String, name: String },
    #[error("{name}={}: {problem}\nhint: {OTHERWISE}", show(.value))]
    Value {
        name: String,
        value: String,
        problem: String,
    },
    #[error(
        "{nodes_name}={} is {hosts} hosts, but {tasks_name}={} is for {counts}\n\
         hint: inside a step of srun the two may not fit together; start rlaunch from the job's own \
         shell or script, or {OTHERWISE}",
        show(.nodes), show(.tasks)
    )]
    Counts {
        nodes_name: String,
        nodes: String,
        hosts: usize,
        tasks_name: String,
        tasks: String,
        counts: usize,
    },
    #[error(
        "this is one of {tasks} tasks of a step of Slurm job {id}, and each would start the whole \
         job\nhint: start rlaunch once: without srun, or by `srun -n1`; --scheduler none if each is \
         meant to start a job of its own"
    )]
    ManyLaunchers { id: String, tasks: String },
    #[error(
        "{host} is not among the hosts of Slurm job {id}: {nodes}\n\
         hint: name some of those, or {OTHERWISE}"
    )]
    NotAllocated {
        id: String,
        host: String,
        nodes: String,
    },
    #[error(
        "-H {host}:{slots}: Slurm job {id} gives it {available}\n\
         hint: ask for at most {available}, write a hostfile with slots={slots}, or pass --oversubscribe"
    )]
    MoreThanAllocated {
        id: String,
        host: String,
        slots: u32,
        available: u32,
    },
}

const OTHERWISE: &str = "name hosts and leave Slurm out of it: --scheduler none -H HOSTS";

/// What is wrong in a list, and in which of its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListError {
    pub word: String,
    pub problem: String,
}

impl ListError {
    pub(super) fn of(word: &str, problem: impl Into<String>) -> Self {
        Self {
            word: show(word),
            problem: problem.into(),
        }
    }

    pub(super) fn within(self, name: &str, value: &str) -> SlurmError {
        SlurmError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            problem: format!("`{}`: {}", self.word, self.problem),
        }
    }
}
