//! What can be wrong with files of settings and with variables.

use std::path::PathBuf;

use super::merge::{Given, Origin};

/// Exit code 2, before any host is contacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnobError {
    #[error("RLAUNCH_CONFIG={}: {error}\nhint: a file, or none", path.display())]
    Named {
        path: PathBuf,
        error: std::io::Error,
    },
    /// Of all files and variables; each begins with where it stands.
    #[error("{}", shown(.0))]
    Mistakes(Vec<Mistake>),
}

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub(super) at: At,
    pub(super) text: String,
}

/// File by file, each from its beginning, then variables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum At {
    File { path: String, line: usize },
    Variable,
}

/// Mistakes told together.
const SHOWN_MAX: usize = 5;

/// Tells what is wrong with these words, taken for themselves.
pub type Check<'a> = &'a dyn Fn(&[std::ffi::OsString]) -> Option<String>;

impl KnobError {
    /// Those that were found in reading, with the values among `given` that are wrong in themselves:
    /// who mends a file wants to know of all.
    pub(super) fn mistakes<'a>(
        mut found: Vec<Mistake>,
        given: impl IntoIterator<Item = &'a Given>,
        check: Check<'_>,
    ) -> Option<Self> {
        for given in given {
            let Some(text) = check(&given.words) else {
                continue;
            };
            let at = match &given.origin {
                Origin::Variable(_) => At::Variable,
                Origin::File { path, line } => At::File {
                    path: path.clone(),
                    line: *line,
                },
            };
            let text = format!("{}: {text}", given.origin);
            let mistake = Mistake { at, text };
            // What each of several programs was given counts once.
            if !found.contains(&mistake) {
                found.push(mistake);
            }
        }
        found.sort_by(|one, other| one.at.cmp(&other.at));
        (!found.is_empty()).then_some(Self::Mistakes(found))
    }

    /// How many things are wrong.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Named { .. } => 1,
            Self::Mistakes(mistakes) => mistakes.len(),
        }
    }
}

fn shown(mistakes: &[Mistake]) -> String {
    let first = mistakes.iter().take(SHOWN_MAX);
    let mut lines: Vec<&str> = first.map(|mistake| mistake.text.as_str()).collect();
    let more = match mistakes.len().saturating_sub(SHOWN_MAX) {
        0 => return lines.join("\n"),
        1 => "and 1 more mistake".to_owned(),
        more => format!("and {more} more mistakes"),
    };
    lines.push(&more);
    lines.join("\n")
}
