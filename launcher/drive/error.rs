//! Why a job did not start.

use std::time::Duration;

use rlaunch_plan::verdict::signal_name;
use rlaunch_plan::{PlacementError, exit_code};
use rlaunch_remote::{ReachCause, ReachError};

use crate::about::About;
use crate::output::FilesError;

/// The text is for the user: one line that names the host, then hints.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    #[error("the event loop does not start: {}", hinted(.0))]
    Runtime(std::io::Error),
    #[error("no random bytes for the job's secret: {}", hinted(.0))]
    Random(std::io::Error),
    #[error("{}", reach_text(.0))]
    Reach(Vec<ReachError>),
    #[error("{host}: the agent {did}: {message}")]
    Agent {
        host: String,
        did: &'static str,
        message: String,
    },
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error("{option}: there is no rank {rank}; the job has {world}, counted from 0")]
    NoSuchRank {
        option: &'static str,
        rank: u32,
        world: usize,
    },
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(
        "{hosts}: there is no directory {directory}\n\
         hint: --wdir DIR starts ranks in a directory that is there, or can be made, on every host; \
         --preload FILE takes files along"
    )]
    NoDirectory { hosts: String, directory: String },
    #[error(
        "{}\n\
         hint: --wdir DIR starts ranks in a directory that is there, or can be made, on every host",
        .0.join("\n")
    )]
    NotMade(Vec<String>),
    #[error(
        "{hosts}: there is no interpreter {python}\n\
         hint: --python PATH names another one, or install it there"
    )]
    NoPython { hosts: String, python: String },
    #[error(
        "{host}: there is no interface {interface}, which nics= names\n\
         hint: there are {there}"
    )]
    NoInterface {
        host: String,
        interface: String,
        there: String,
    },
    #[error("--preload {path}: {error}")]
    PreloadRead { path: String, error: std::io::Error },
    #[error(
        "--preload replaces nothing that differs:\n{0}\n\
         hint: remove it there, or --preload-replace"
    )]
    PreloadDiffers(String),
    #[error("{0}")]
    NoMaster(String),
    #[error("the Python module in {path} cannot be packed: {error}")]
    Bundle { path: String, error: std::io::Error },
    #[error(
        "{hosts}: not {step} within {} (--start-timeout)\n\
         hint: are those hosts up, and not overloaded? rlaunch -v shows how far each came; \
         a longer --start-timeout waits",
        crate::number::seconds(*.timeout)
    )]
    StartTimeout {
        hosts: String,
        step: &'static str,
        timeout: Duration,
    },
    #[error("stopped by {} before the ranks were started", signal_name(*.signal))]
    Interrupted { signal: i32 },
    /// Of what was asked for; the rest has been told.
    #[error("{}", .0.join("
"))]
    Incomplete(Vec<String>),
    #[error("signals cannot be caught: {}", hinted(.0))]
    Signals(std::io::Error),
    #[error("the printing thread does not start: {}", hinted(.0))]
    Printer(std::io::Error),
}

/// With what to try, where a limit of the system is behind it.
fn hinted(error: &std::io::Error) -> String {
    match rlaunch_agent::limits::hint(error.raw_os_error()) {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

impl DriveError {
    /// The options that it is about.
    pub(crate) fn about(&self) -> About<'_> {
        let options: &[&'static str] = match self {
            Self::Placement(error) => {
                return About::program(error.options(), error.program());
            }
            Self::NoSuchRank { option, .. } => {
                return About::of(std::slice::from_ref(option));
            }
            Self::Reach(errors) => reach_options(errors),
            Self::Files(_) => &["output-dir"],
            Self::NoDirectory { .. } | Self::NotMade(_) => &["wdir"],
            Self::NoPython { .. } => &["python"],
            Self::PreloadRead { .. } | Self::PreloadDiffers(_) => &["preload"],
            Self::StartTimeout { .. } => &["start-timeout"],
            Self::NoInterface { .. } => &["hostfile"],
            Self::NoMaster(_)
            | Self::Runtime(_)
            | Self::Random(_)
            | Self::Agent { .. }
            | Self::Bundle { .. }
            | Self::Incomplete(_)
            | Self::Interrupted { .. }
            | Self::Signals(_)
            | Self::Printer(_) => &[],
        };
        About::of(options)
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Placement(_)
            | Self::NoSuchRank { .. }
            | Self::NoInterface { .. }
            | Self::Files(_) => exit_code::USAGE,
            Self::Interrupted { signal } => exit_code::of_signal(*signal),
            Self::NoDirectory { .. } | Self::NotMade(_) => exit_code::CANNOT_START,
            Self::NoPython { .. } => exit_code::NOT_FOUND,
            _ => exit_code::LAUNCHER,
        }
    }
}

/// What way to the hosts was asked for, if that is at fault.
fn reach_options(errors: &[ReachError]) -> &'static [&'static str] {
    let option = errors.iter().find_map(|error| match *error.cause {
        ReachCause::ProgramMissing { .. }
        | ReachCause::ProgramEnded { .. }
        | ReachCause::ProgramWords(_) => Some(["ssh-program"].as_slice()),
        ReachCause::Architecture { .. }
        | ReachCause::OldLibrary
        | ReachCause::NoLibrary
        | ReachCause::OtherBuild { .. } => Some(["agent"].as_slice()),
        ReachCause::LoginRefused { .. } => Some(["identity"].as_slice()),
        ReachCause::Refused => Some(["ssh-port"].as_slice()),
        ReachCause::File {
            option: Some("agent"),
            ..
        } => Some(["agent"].as_slice()),
        ReachCause::File {
            option: Some("identity"),
            ..
        } => Some(["identity"].as_slice()),
        _ => None,
    });
    option.unwrap_or_default()
}

/// Hosts shown when many fail; the others are counted.
const SHOWN_MAX: usize = 8;

fn reach_text(errors: &[ReachError]) -> String {
    let mut text: Vec<String> = errors
        .iter()
        .take(SHOWN_MAX)
        .map(ToString::to_string)
        .collect();
    if errors.len() > SHOWN_MAX {
        let others: Vec<&str> = errors[SHOWN_MAX..]
            .iter()
            .map(|error| error.host.as_str())
            .collect();
        text.push(format!(
            "and {} more hosts: {}",
            others.len(),
            others.join(", ")
        ));
    }
    text.join("\n")
}
