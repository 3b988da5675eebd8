//! What makes the command line no job.

use std::path::PathBuf;

use rlaunch_plan::allocation::AllocationError;
use rlaunch_plan::environment::{EnvFileError, ExportError};
use rlaunch_plan::hostfile::HostfileError;
use rlaunch_plan::placement::{PlacementError, PolicyError};
use rlaunch_plan::slurm::SlurmError;

/// Exit code 2, before any host is contacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    #[error("hostfile {}: {error}", path.display())]
    HostfileUnreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Hostfile(#[from] HostfileError),
    #[error("--preload {}: {error}", path.display())]
    Preload {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    #[error(
        "--scheduler slurm: this is not inside a Slurm job: SLURM_JOB_ID is not set\n\
         hint: start rlaunch from the job's script, or by salloc"
    )]
    NoSlurmJob,
    #[error("-H {list}: this is a file, -H takes hosts\nhint: -hostfile {list}")]
    ListIsFile { list: String },
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("--env-file {}: {error}", path.display())]
    EnvFileUnreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    EnvFile(#[from] EnvFileError),
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Of a job of several programs: which one it is about.
    #[error("{program}: {error}")]
    InProgram { program: String, error: Box<Self> },
    #[error("{option} {value}: {problem}")]
    Value {
        option: &'static str,
        value: String,
        problem: &'static str,
    },
    #[error("the program's name is empty\nhint: is a variable of the shell not set?")]
    NoProgram,
    #[error("--nnodes {wanted} asks for more hosts than there are ({available})")]
    TooFewHosts { wanted: usize, available: usize },
    #[error(
        "--stdin and --max-restarts: what was read of a pipe or terminal is gone when the job is started \
         again\n\
         hint: let it come from a file: `rlaunch … < FILE`"
    )]
    InputTwice,
    #[error(
        "this directory is gone or not readable: {0}\nhint: cd to one that exists, or --wdir DIR"
    )]
    NoDirectory(std::io::Error),
}

impl SettingsError {
    /// The option that it is about, if it is about one.
    pub fn option(&self) -> Option<&str> {
        match self {
            Self::Value { option: "-np", .. } => Some("np"),
            Self::Value { option, .. } => Some(option),
            Self::HostfileUnreadable { .. } | Self::Hostfile(_) => Some("hostfile"),
            Self::Allocation(_) => Some("host"),
            Self::EnvFileUnreadable { .. } | Self::EnvFile(_) => Some("env-file"),
            Self::Export(_) => Some("export"),
            Self::TooFewHosts { .. } => Some("nnodes"),
            _ => None,
        }
    }
}
