//! What can be wrong with a hostfile.

use thiserror::Error;

/// A line for each mistake: `hosts:3:7: …`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostfileError {
    #[error("{file}: no host in it; expected one host a line, such as `node01 slots=8`")]
    Empty { file: String },
    #[error("{file}: {bytes} bytes is too long for a hostfile; is it the right file?")]
    TooLong { file: String, bytes: usize },
    #[error("{file}: this is UTF-16; save it as UTF-8 text")]
    Utf16 { file: String },
    /// At least one, in the file's order; of many the first few.
    #[error("{}", lines(file, mistakes, *more))]
    Mistakes {
        file: String,
        mistakes: Vec<Mistake>,
        /// How many are not among them.
        more: usize,
    },
}

/// Where, from 1, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub line: u32,
    pub column: u32,
    pub error: LineError,
}

/// What is wrong in a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{word}`: {problem}; expected {expected}{}", in_brackets(hint.as_deref()))]
pub struct LineError {
    pub word: String,
    pub problem: String,
    pub expected: String,
    pub hint: Option<String>,
}

fn in_brackets(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" (hint: {hint})"))
        .unwrap_or_default()
}

fn lines(file: &str, mistakes: &[Mistake], more: usize) -> String {
    let mut lines: Vec<String> = mistakes
        .iter()
        .map(|mistake| {
            let Mistake {
                line,
                column,
                error,
            } = mistake;
            format!("{file}:{line}:{column}: {error}")
        })
        .collect();
    if more > 0 {
        lines.push(format!(
            "{file}: and {}",
            crate::text::count(more as u64, "more mistake")
        ));
    }
    lines.join("\n")
}

/// Mistakes told of one file; whoever has mended these runs again anyway.
const SHOWN_MAX: usize = 5;

/// Gathers the mistakes of a file.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    shown: Vec<Mistake>,
    more: usize,
}

impl Mistakes {
    pub(super) fn push(&mut self, line: u32, (column, error): super::line::Located) {
        if self.shown.len() < SHOWN_MAX {
            self.shown.push(Mistake {
                line,
                column,
                error,
            });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn or<T>(self, file: &str, good: T) -> Result<T, HostfileError> {
        if self.shown.is_empty() {
            return Ok(good);
        }
        Err(HostfileError::Mistakes {
            file: file.to_owned(),
            mistakes: self.shown,
            more: self.more,
        })
    }
}
