//! What can be wrong with `-H`.

use thiserror::Error;

use super::HostListEntry;
use crate::Host;
use crate::hostfile::Hostfile;
use crate::text::nearest;

/// Each is one line and, where there is something to try, a `hint:`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AllocationError {
    #[error("-H names no host\nhint: -H a,b:2,user@c")]
    Empty,
    #[error("-H {list}: `{word}`: {problem}\nhint: {hint}")]
    BadEntry {
        list: String,
        word: String,
        problem: String,
        hint: String,
    },
    #[error("-H {host}: {hostfile} has no such host\nhint: {hint}")]
    NotInHostfile {
        host: Host,
        hostfile: String,
        hint: String,
    },
    #[error("-H {host}:{slots}: {hostfile} gives it {available}\nhint: {hint}")]
    MoreThanHostfile {
        host: Host,
        slots: u32,
        available: String,
        hostfile: String,
        hint: String,
    },
}

impl AllocationError {
    pub(super) fn not_in_hostfile(entry: &HostListEntry, hostfile: &Hostfile) -> Self {
        let names: Vec<&str> = hostfile
            .hosts
            .iter()
            .map(|entry| entry.host.name.as_str())
            .collect();
        let hint = match nearest(&entry.host.name, &names) {
            Some(name) => format!("did you mean {name}?"),
            None => "-H picks hosts of the hostfile; leave the hostfile out to use -H alone".into(),
        };
        Self::NotInHostfile {
            host: entry.host.clone(),
            hostfile: hostfile.name.clone(),
            hint,
        }
    }
}
