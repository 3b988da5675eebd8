//! The hostfile: one host a line.
//!
//! ```text
//! node01                        # as many slots as GPUs, else usable cores
//! node02 slots=4                # or node02:4
//! user@node03 port=2222 slots=4 max_slots=8
//! node[04-07,09] slots=8        # five hosts
//! [2001:db8::1]:4               # an IPv6 address, four slots
//! ```
//!
//! Blank lines, `#` comments, tabs, CRLF, a byte order mark and a last line without a newline are
//! all taken. A host is (user, name, port); the same host again adds up its slots, and written
//! without `slots=` more than once it counts one slot a line. `slots=0` means none.
//!
//! Anything else is an error that names file, line, column and the word. The parser takes any
//! bytes and never panics.

use std::collections::BTreeMap;

use rlaunch_wire::limits::{HOSTFILE_MAX_BYTES, WORLD_MAX};
use serde::Serialize;

use crate::Host;
use crate::text::show;

mod error;
mod line;

pub use error::{HostfileError, LineError};
use line::{Line, Located};

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
    /// Where it was first named, from 1.
    pub line: u32,
}

/// Parses the bytes of a hostfile that the user called `name`.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Hostfile, HostfileError> {
    if bytes.len() as u64 > HOSTFILE_MAX_BYTES {
        return Err(HostfileError::TooLong {
            file: name.to_owned(),
            bytes: bytes.len(),
        });
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(HostfileError::Utf16 {
            file: name.to_owned(),
        });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut merge = Merge::default();
    for (index, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let number = u32::try_from(index + 1).expect("HOSTFILE_MAX_BYTES bounds the lines");
        let result = text(raw).and_then(|text| match line::parse(text)? {
            Some(line) => merge.add(&line, number),
            None => Ok(()),
        });
        result.map_err(|(column, error)| HostfileError::Line {
            file: name.to_owned(),
            line: number,
            column,
            error,
        })?;
    }
    let hosts = merge.finish();
    if hosts.is_empty() {
        return Err(HostfileError::Empty {
            file: name.to_owned(),
        });
    }
    Ok(Hostfile {
        name: name.to_owned(),
        hosts,
    })
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

/// Adds up the lines of the same host.
#[derive(Default)]
struct Merge {
    index: BTreeMap<Host, usize>,
    entries: Vec<Merged>,
    mentions: u64,
}

struct Merged {
    entry: HostEntry,
    /// Lines without a number.
    unnumbered: u32,
}

impl Merge {
    fn add(&mut self, line: &Line, number: u32) -> Result<(), Located> {
        for host in line.spec.hosts(line.port) {
            self.mentions += 1;
            if self.mentions > u64::from(WORLD_MAX) {
                return Err(too_much(&host, format!("more than {WORLD_MAX} hosts")));
            }
            let at = *self.index.entry(host.clone()).or_insert_with(|| {
                let entry = HostEntry {
                    host,
                    slots: None,
                    max_slots: None,
                    line: number,
                };
                self.entries.push(Merged {
                    entry,
                    unnumbered: 0,
                });
                self.entries.len() - 1
            });
            self.entries[at].add(line)?;
        }
        Ok(())
    }

    fn finish(self) -> Vec<HostEntry> {
        self.entries.into_iter().map(Merged::finish).collect()
    }
}

impl Merged {
    fn add(&mut self, line: &Line) -> Result<(), Located> {
        let entry = &mut self.entry;
        match line.slots {
            Some(slots) => entry.slots = Some(entry.slots.unwrap_or(0) + slots),
            None => self.unnumbered += 1,
        }
        if let Some(max) = line.max_slots {
            entry.max_slots = Some(entry.max_slots.unwrap_or(0).saturating_add(max));
        }
        let slots = entry.slots.unwrap_or(0) + self.unnumbered;
        if slots > WORLD_MAX {
            return Err(too_much(
                &entry.host,
                format!("its lines add up to {slots} slots"),
            ));
        }
        Ok(())
    }

    fn finish(self) -> HostEntry {
        let Self {
            mut entry,
            unnumbered,
        } = self;
        entry.slots = match (entry.slots, unnumbered) {
            (None, 1) => None,
            (slots, unnumbered) => Some(slots.unwrap_or(0) + unnumbered),
        };
        if let (Some(slots), Some(max)) = (entry.slots, entry.max_slots) {
            entry.slots = Some(slots.min(max));
        }
        entry
    }
}

fn too_much(host: &Host, problem: String) -> Located {
    let expected = format!("at most {WORLD_MAX}");
    (
        1,
        LineError {
            word: show(&host.name),
            problem,
            expected,
            hint: None,
        },
    )
}

#[cfg(test)]
#[path = "hostfile/tests.rs"]
mod tests;
