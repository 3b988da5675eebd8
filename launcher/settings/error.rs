//! What makes the command line no job.

use std::ffi::OsString;
use std::path::PathBuf;

use rlaunch_plan::allocation::AllocationError;
use rlaunch_plan::environment::{EnvFileError, ExportError};
use rlaunch_plan::hostfile::HostfileError;
use rlaunch_plan::placement::{PlacementError, PolicyError};
use rlaunch_plan::slurm::SlurmError;

use crate::about::About;

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
    #[error("{error}")]
    EnvFile { path: PathBuf, error: EnvFileError },
    #[error("{error}")]
    Export {
        /// As it was given; of what a file of variables says, that file's path.
        given: OsString,
        error: ExportError,
    },
    /// A file on this machine that an option names.
    #[error("{option} {}: {error}", path.display())]
    File {
        option: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
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
    /// The options that it is about.
    pub(crate) fn about(&self) -> About<'_> {
        let options: &[&'static str] = match self {
            Self::InProgram { program, error } => return error.about().in_program(program),
            Self::Value { option: "-np", .. } => &["np"],
            Self::Value { option, .. } | Self::File { option, .. } => {
                return About::of(std::slice::from_ref(option));
            }
            Self::Policy(error) => return About::of(std::slice::from_ref(&error.option)),
            Self::Placement(error) => {
                return About::program(error.options(), error.program());
            }
            Self::EnvFileUnreadable { path, .. } | Self::EnvFile { path, .. } => {
                return About::value(&["env-file"], path.as_os_str());
            }
            Self::Export { given, .. } => return About::value(&["export", "env-file"], given),
            Self::HostfileUnreadable { .. } | Self::Hostfile(_) => &["hostfile"],
            Self::Preload { .. } => &["preload"],
            Self::NoSlurmJob | Self::Slurm(_) => &["scheduler"],
            Self::ListIsFile { .. } => &["host"],
            Self::Allocation(AllocationError::Empty | AllocationError::BadEntry { .. }) => {
                &["host"]
            }
            Self::Allocation(_) => &["host", "hostfile"],
            Self::TooFewHosts { .. } => &["nnodes", "hostfile", "host"],
            Self::InputTwice => &["stdin", "max-restarts"],
            Self::NoDirectory(_) => &["wdir"],
            Self::NoProgram => &[],
        };
        About::of(options)
    }

    /// Whether one value is wrong in itself, whatever else is given.
    pub(crate) fn is_of_one_value(&self) -> bool {
        match self {
            Self::HostfileUnreadable { .. }
            | Self::Hostfile(_)
            | Self::Preload { .. }
            | Self::ListIsFile { .. }
            | Self::Allocation(_)
            | Self::Policy(_)
            | Self::EnvFileUnreadable { .. }
            | Self::EnvFile { .. }
            | Self::Export { .. }
            | Self::File { .. }
            | Self::Value { .. } => true,
            Self::InProgram { error, .. } => error.is_of_one_value(),
            Self::Slurm(_)
            | Self::NoSlurmJob
            | Self::Placement(_)
            | Self::NoProgram
            | Self::TooFewHosts { .. }
            | Self::InputTwice
            | Self::NoDirectory(_) => false,
        }
    }
}
