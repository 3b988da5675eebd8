//! What can be wrong with files of settings and with variables.

use std::path::PathBuf;

/// Exit code 2, before any host is contacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnobError {
    #[error("{}: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("RLAUNCH_CONFIG={}: {error}\nhint: a file, or none", path.display())]
    Named {
        path: PathBuf,
        error: std::io::Error,
    },
    /// A line for each.
    #[error("{}", lines.join("\n"))]
    Mistakes { lines: Vec<String> },
    #[error("{name}={value}: {problem}")]
    Variable {
        name: String,
        value: String,
        problem: String,
    },
}

/// Mistakes told of one file.
const SHOWN_MAX: usize = 5;

impl KnobError {
    /// Of a file's mistakes, in its order.
    pub(super) fn mistakes(file: &str, mut lines: Vec<String>) -> Self {
        let more = lines.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            lines.truncate(SHOWN_MAX);
            let plural = if more == 1 { "" } else { "s" };
            lines.push(format!("{file}: and {more} more mistake{plural}"));
        }
        Self::Mistakes { lines }
    }
}
