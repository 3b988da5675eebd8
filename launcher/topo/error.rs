//! Why nothing is shown.

use std::path::PathBuf;

use rlaunch_plan::exit_code;
use rlaunch_topo::snapshot::OpenError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopoError {
    #[error(
        "--root {}: {error}\n\
         hint: a folder with the machine's sys/ and proc/ in it, or a file whose first line is \
         `rlaunch machine 1`",
        path.display()
    )]
    Root { path: PathBuf, error: OpenError },
    #[error("{option} {}: {error}", path.display())]
    Write {
        option: &'static str,
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("the event loop does not start: {0}")]
    Runtime(std::io::Error),
}

impl TopoError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Root { .. } => exit_code::USAGE,
            Self::Write { .. } | Self::Runtime(_) => exit_code::LAUNCHER,
        }
    }
}
