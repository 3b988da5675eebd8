//! Allocation: which hosts the job may use, and how many ranks each can take.
//!
//! From a hostfile, from `-H`, from both, or this machine alone:
//!
//! - **hostfile**: its hosts in its order. A host without `slots=` is open until the survey: as
//!   many slots as GPUs, else usable cores.
//! - **`-H a,b:2,user@c`**: as in mpirun a name counts one slot each time it is written, `:N` is
//!   N slots, and `:*` is what the survey finds. So `-np 2 -H a,b` runs one rank on each.
//! - **both**: `-H` picks hosts of the hostfile, in `-H`'s order. Named once without a number (or
//!   with `:*`) a host keeps the hostfile's slots; `:N`, and a name written N times, take N of
//!   them, and more than it has is refused. A name that the hostfile lacks is refused: a typing
//!   error must not run somewhere else.
//! - **neither**: this machine, open until the survey.

use serde::Serialize;

use crate::Host;
use crate::details::HostDetails;
use crate::hostfile::Hostfile;
use crate::text;

mod error;
mod join;
mod list;

pub use error::AllocationError;
pub use list::{HostListEntry, ListSlots, parse_host_list};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Allocation {
    pub hosts: Vec<AllocatedHost>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocatedHost {
    pub host: Host,
    pub slots: Slots,
    pub details: HostDetails,
}

impl AllocatedHost {
    /// One of which no more is known.
    pub fn new(host: Host, slots: Slots) -> Self {
        Self {
            host,
            slots,
            details: HostDetails::default(),
        }
    }
}

/// How many ranks a host takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slots {
    /// Known: written by the user, or filled in by [`Allocation::survey`].
    Given { slots: u32, max: Option<u32> },
    /// As many as GPUs, else usable cores, but no more than `max`.
    FromSurvey { max: Option<u32> },
}

impl Slots {
    pub fn known(self) -> Option<u32> {
        match self {
            Self::Given { slots, .. } => Some(slots),
            Self::FromSurvey { .. } => None,
        }
    }

    /// `max_slots=`: the most ranks, oversubscribed or not.
    pub fn max(self) -> Option<u32> {
        match self {
            Self::Given { max, .. } | Self::FromSurvey { max } => max,
        }
    }
}

/// `4`, `4 (at most 6)`, `?`
impl std::fmt::Display for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.known() {
            Some(slots) => write!(f, "{slots}")?,
            None => f.write_str("?")?,
        }
        match self.max() {
            Some(max) if self.known() != Some(max) => write!(f, " (at most {max})"),
            _ => Ok(()),
        }
    }
}

impl Allocation {
    /// This machine alone; `name` is what messages call it (and the local carrier serves it).
    pub fn local(name: &str) -> Self {
        let slots = Slots::FromSurvey { max: None };
        Self {
            hosts: vec![AllocatedHost::new(Host::new(name), slots)],
        }
    }

    pub fn from_hostfile(hostfile: &Hostfile) -> Self {
        let hosts = hostfile.hosts.iter().map(|entry| AllocatedHost {
            host: entry.host.clone(),
            details: entry.details.clone(),
            slots: match entry.slots {
                Some(slots) => Slots::Given {
                    slots,
                    max: entry.max_slots,
                },
                None => Slots::FromSurvey {
                    max: entry.max_slots,
                },
            },
        });
        Self {
            hosts: hosts.collect(),
        }
    }

    /// `-H` without a hostfile.
    pub fn from_list(list: &[HostListEntry]) -> Self {
        let hosts = list.iter().map(|entry| {
            let slots = match entry.slots {
                ListSlots::Mentions(slots) | ListSlots::Number(slots) => {
                    Slots::Given { slots, max: None }
                }
                ListSlots::All => Slots::FromSurvey { max: None },
            };
            AllocatedHost::new(entry.host.clone(), slots)
        });
        Self {
            hosts: hosts.collect(),
        }
    }

    /// `-H` over a hostfile.
    ///
    /// A host takes no more than its slots there, unless the job may `oversubscribe`; then up to its
    /// `max_slots=`.
    pub fn select(
        hostfile: &Hostfile,
        list: &[HostListEntry],
        oversubscribe: bool,
    ) -> Result<Self, AllocationError> {
        let all = Self::from_hostfile(hostfile);
        let mut hosts: Vec<AllocatedHost> = Vec::new();
        for entry in list {
            let mut found = all
                .hosts
                .iter()
                .filter(|host| entry.host.selects(&host.host))
                .peekable();
            if found.peek().is_none() {
                return Err(AllocationError::not_in_hostfile(entry, hostfile));
            }
            for host in found {
                let slots = take(host, entry.slots, &hostfile.name, oversubscribe)?;
                // `-H a,u@a` may select one host twice; it is still one host.
                if !hosts.iter().any(|chosen| chosen.host == host.host) {
                    hosts.push(AllocatedHost {
                        host: host.host.clone(),
                        slots,
                        details: host.details.clone(),
                    });
                }
            }
        }
        Ok(Self { hosts })
    }

    /// Fills in what host `index` was found to have. A number that the user gave stays.
    pub fn survey(&mut self, index: usize, gpus: u32, usable_cores: u32) {
        let slots = &mut self.hosts[index].slots;
        if let Slots::FromSurvey { max } = *slots {
            let found = if gpus > 0 { gpus } else { usable_cores.max(1) };
            *slots = Slots::Given {
                slots: found.min(max.unwrap_or(u32::MAX)),
                max,
            };
        }
    }
}

/// The slots that `-H` takes of a hostfile's host.
fn take(
    host: &AllocatedHost,
    wanted: ListSlots,
    hostfile: &str,
    oversubscribe: bool,
) -> Result<Slots, AllocationError> {
    let slots = match wanted {
        // Named once, it is picked; named again, counted.
        ListSlots::All | ListSlots::Mentions(1) => return Ok(host.slots),
        ListSlots::Number(slots) | ListSlots::Mentions(slots) => slots,
    };
    let max = host.slots.max();
    // 0 slots close a host, oversubscribed or not.
    let known = host.slots.known();
    let bound = known.filter(|slots| !oversubscribe || *slots == 0).or(max);
    match bound {
        Some(available) if slots > available => Err(AllocationError::MoreThanHostfile {
            host: host.host.clone(),
            slots,
            available: text::count(available.into(), "slot"),
            hostfile: hostfile.to_owned(),
            hint: match (Some(available) == max, available) {
                (true, _) => format!(
                    "max_slots={available} in {hostfile} holds for --oversubscribe too; ask for at \
                     most that, or raise it"
                ),
                (false, 0) => format!("raise slots= in {hostfile}"),
                (false, _) => format!(
                    "ask for at most {available}, raise slots= in {hostfile}, or pass --oversubscribe"
                ),
            },
        }),
        _ => Ok(Slots::Given { slots, max }),
    }
}

#[cfg(test)]
#[path = "allocation/tests.rs"]
mod tests;
