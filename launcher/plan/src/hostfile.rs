//! The hostfile: one host a line, or TOML where its name ends in `.toml`.
//!
//! ```text
//! node01                        # as many slots as GPUs, else usable cores
//! node02 slots=4                // or node02:4
//! user@node03 port=2222 slots=4 max_slots=8
//! node[04-07,09] slots=8        # five hosts; several brackets multiply
//! [2001:db8::1]:4               # an IPv6 address, four slots
//! node10 gpus=0-3 nics=ib0,ib1 python=/opt/venv/bin/python workdir="/scratch/my job"
//! ```
//! It is what Open MPI, Hydra, Intel MPI, DeepSpeed and the MPI Operator write, with their
//! synonyms ([`option`]). The TOML form is described in [`document`].
//!
//! Blank lines, `#` and `//` comments, tabs, CRLF, a byte order mark and a last line without a
//! newline are all taken. A host is (user, name, port); the same host again adds up its slots, and
//! written without `slots=` more than once it counts one slot a line. `slots=0` means none.
//! `gpus=` without `slots=` is one slot for each.
//!
//! Anything else is an error that names file, line, column and the word; the first few mistakes of
//! a file are told together. The parser takes any bytes and never panics.

use rlaunch_wire::limits::HOSTFILE_MAX_BYTES;
use serde::Serialize;

use crate::Host;
use crate::details::HostDetails;

mod devices;
mod document;
mod error;
mod line;
mod merge;
mod option;
mod words;

use error::Mistakes;
pub use error::{HostfileError, LineError, Mistake};
use line::Located;
use merge::Merge;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hostfile {
    /// The file's name, for messages.
    pub name: String,
    /// In order of first mention, each host once.
    pub hosts: Vec<HostEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostEntry {
    pub host: Host,
    /// Absent: open until the survey.
    pub slots: Option<u32>,
    /// No more ranks than this, even oversubscribed.
    pub max_slots: Option<u32>,
    pub details: HostDetails,
    /// Where it was first named, from 1.
    pub line: u32,
}

/// Parses the bytes of a hostfile that the user called `name`.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Hostfile, HostfileError> {
    let file = || name.to_owned();
    if bytes.len() as u64 > HOSTFILE_MAX_BYTES {
        return Err(HostfileError::TooLong {
            file: file(),
            bytes: bytes.len(),
        });
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(HostfileError::Utf16 { file: file() });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // A TOML document must be text as a whole; else the lines say where it is not.
    let hosts = match std::str::from_utf8(bytes) {
        Ok(text) if name.ends_with(".toml") => document::parse(name, text)?,
        _ => lines(name, bytes)?,
    };
    if hosts.is_empty() {
        return Err(HostfileError::Empty { file: file() });
    }
    Ok(Hostfile {
        name: file(),
        hosts,
    })
}

fn lines(name: &str, bytes: &[u8]) -> Result<Vec<HostEntry>, HostfileError> {
    let mut merge = Merge::default();
    let mut mistakes = Mistakes::default();
    for (index, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let number = u32::try_from(index + 1).expect("HOSTFILE_MAX_BYTES bounds the lines");
        let parsed = text(raw).map_err(|error| vec![error]).and_then(line::parse);
        match parsed {
            Ok(None) => {}
            Ok(Some(line)) => {
                if let Err(error) = merge.add(&line, number) {
                    mistakes.push(number, (1, error));
                }
            }
            Err(errors) => errors
                .into_iter()
                .for_each(|error| mistakes.push(number, error)),
        }
    }
    mistakes.or(name, merge.finish())
}

/// A line's text without its end.
fn text(raw: &[u8]) -> Result<&str, Located> {
    let raw = raw.strip_suffix(b"\r").unwrap_or(raw);
    std::str::from_utf8(raw).map_err(|error| {
        let valid = std::str::from_utf8(&raw[..error.valid_up_to()]).expect("checked just now");
        let column = u32::try_from(valid.chars().count() + 1).unwrap_or(u32::MAX);
        let error = LineError {
            word: format!("\\x{:02x}", raw[error.valid_up_to()]),
            problem: "not UTF-8 text".to_owned(),
            expected: "a text file".to_owned(),
            hint: None,
        };
        (column, error)
    })
}

/// An error at byte `offset` of a line.
fn located(text: &str, offset: usize, error: LineError) -> Located {
    let characters = text
        .char_indices()
        .take_while(|(at, _)| *at < offset)
        .count();
    (u32::try_from(characters + 1).unwrap_or(u32::MAX), error)
}

#[cfg(test)]
#[path = "hostfile/tests.rs"]
mod tests;
