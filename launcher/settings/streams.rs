//! What the ranks read and print.

use std::path::PathBuf;

use nix::sys::stat::{SFlag, fstat};

use super::{Settings, SettingsError};
use crate::cli::Options;
use crate::output::{Only, Style};

#[derive(Debug, Clone)]
pub struct Streams {
    /// Who gets this standard input; none: nobody.
    pub stdin: Option<StdinTo>,
    pub pty: bool,
    pub style: Style,
    /// Whose output is shown; none: everybody's.
    pub only: Option<Only>,
    /// Where files of each rank's output go, on this machine.
    pub output_directory: Option<PathBuf>,
    pub merge_stderr: bool,
}

/// Who gets this standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinTo {
    Rank(u32),
    /// A copy for each.
    All,
}

pub(super) fn streams(options: &Options) -> Result<Streams, SettingsError> {
    let output = &options.output;
    Ok(Streams {
        stdin: stdin(options.program.stdin.as_deref())?,
        pty: options.program.pty,
        style: Style {
            tag: output.tag_output,
            timestamp: output.timestamp,
        },
        only: only(output.only.as_deref())?,
        output_directory: output.output_dir.clone(),
        merge_stderr: output.merge_stderr,
    })
}

/// Nobody, unless asked: a job in a shell's `while read` loop must not eat the loop's input.
fn stdin(text: Option<&str>) -> Result<Option<StdinTo>, SettingsError> {
    match text {
        None | Some("none") => Ok(None),
        Some("all") => Ok(Some(StdinTo::All)),
        Some(text) => match text.parse() {
            Ok(rank) => Ok(Some(StdinTo::Rank(rank))),
            Err(_) => Err(SettingsError::Value {
                option: "--stdin",
                value: text.to_owned(),
                problem: "expected a rank, `all` or `none`",
            }),
        },
    }
}

/// A file can be read again, from where it stood.
pub(super) fn input_is_a_file() -> bool {
    let kind = fstat(std::io::stdin()).map(|found| found.st_mode & SFlag::S_IFMT.bits());
    kind == Ok(SFlag::S_IFREG.bits())
}

fn only(text: Option<&str>) -> Result<Option<Only>, SettingsError> {
    let Some(text) = text.filter(|text| *text != "all") else {
        return Ok(None);
    };
    let wrong = |problem| SettingsError::Value {
        option: "--only",
        value: text.to_owned(),
        problem,
    };
    Only::parse(text).map(Some).map_err(wrong)
}

impl StdinTo {
    pub(crate) fn gives(self, rank: u32) -> bool {
        self == Self::All || self == Self::Rank(rank)
    }
}

impl Settings {
    /// Ranks that options name, which the job must have.
    pub(crate) fn named_ranks(&self) -> Vec<(&'static str, u32)> {
        let stdin = match self.streams.stdin {
            Some(StdinTo::Rank(rank)) => Some(("--stdin", rank)),
            Some(StdinTo::All) | None => None,
        };
        let only = self.streams.only.as_ref().and_then(Only::last);
        let only = only.map(|rank| ("--only", rank));
        stdin.into_iter().chain(only).collect()
    }
}
