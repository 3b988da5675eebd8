//! What can be wrong with a hostfile.

use thiserror::Error;

/// One line each: `hosts:3:7: …`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostfileError {
    #[error("{file}: no host in it; expected one host a line, such as `node01 slots=8`")]
    Empty { file: String },
    #[error("{file}: {bytes} bytes is too long for a hostfile; is it the right file?")]
    TooLong { file: String, bytes: usize },
    #[error("{file}: this is UTF-16; save it as UTF-8 text")]
    Utf16 { file: String },
    #[error("{file}:{line}:{column}: {error}")]
    Line {
        file: String,
        line: u32,
        column: u32,
        error: LineError,
    },
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
