//! Placement: which rank runs on which host. Pure arithmetic on slots.
//!
//! Hosts are filled in the order of the allocation, each up to its slots (or `per_host`). More
//! ranks than slots are refused, unless `oversubscribe`: then the surplus goes round over the
//! hosts that have slots, one rank at a time, up to `max_slots`. Either way the ranks of one host
//! are consecutive numbers, so that the first level of a collective stays inside a host.
//!
//! A host with 0 slots gets no rank, oversubscribed or not. Hosts without ranks are left out of
//! the node numbering and need no agent.

use rlaunch_wire::limits::WORLD_MAX;
use serde::Serialize;
use thiserror::Error;

use crate::Host;
use crate::allocation::{Allocation, Slots};
use crate::text::{count, table};

/// What the command line asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacementRequest {
    /// `-np`; absent: all slots, or `per_host` on every host.
    pub ranks: Option<u32>,
    /// `--nproc-per-node`: exactly so many on each host until the ranks run out.
    pub per_host: Option<u32>,
    pub oversubscribe: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Hosts that have ranks; the index is the node rank.
    pub nodes: Vec<Node>,
    /// By rank.
    pub ranks: Vec<RankPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Index into the allocation's hosts.
    pub host: usize,
    pub slots: u32,
    /// The ranks here are `first_rank .. first_rank + ranks`.
    pub first_rank: u32,
    pub ranks: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RankPlace {
    pub rank: u32,
    /// Index into the allocation's hosts.
    pub host: usize,
    /// Index into `Placement::nodes`: NODE_RANK.
    pub node_rank: u32,
    pub local_rank: u32,
    pub local_world_size: u32,
}

/// Why ranks can't be placed. Each is one line and a `hint:`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    #[error(
        "-np 0 asks for no ranks\nhint: give the number of ranks, or leave -np out for all slots"
    )]
    NoRanks,
    #[error("--nproc-per-node 0 asks for no ranks\nhint: give the number of ranks on each host")]
    NoRanksPerHost,
    #[error("-np {ranks} is more ranks than one job may have ({WORLD_MAX})")]
    TooManyRanks { ranks: u64 },
    #[error("no slots on any host: {slots}\nhint: give a host slots=N with N > 0")]
    NoSlots { slots: String },
    #[error(
        "-np {ranks} asks for more ranks than there are slots ({slots_total}): {slots}\n\
         hint: ask for at most {slots_total}, add hosts or slots, or pass --oversubscribe"
    )]
    NotEnoughSlots {
        ranks: u32,
        slots_total: u64,
        slots: String,
    },
    #[error(
        "--nproc-per-node {per_host} is more than the {slots} of {host}\n\
         hint: lower --nproc-per-node, raise slots=, or pass --oversubscribe"
    )]
    NotEnoughSlotsOnHost {
        per_host: u32,
        host: Host,
        slots: String,
    },
    #[error(
        "-np {ranks} does not fit: --nproc-per-node {per_host} on {hosts} gives {room}\n\
         hint: lower -np, raise --nproc-per-node, or add hosts"
    )]
    NotEnoughHosts {
        ranks: u32,
        per_host: u32,
        hosts: String,
        room: u64,
    },
    #[error(
        "-np {ranks} exceeds max_slots ({room} in all): {slots}\n\
         hint: ask for at most {room}; --oversubscribe does not pass max_slots="
    )]
    OverMaxSlots {
        ranks: u64,
        room: u64,
        slots: String,
    },
    #[error("{host} has no number of slots yet; the survey gives it")]
    SlotsUnknown { host: Host },
}

/// Refuses what can be refused before any host is contacted. `Ok` promises nothing where a host's
/// slots are open until the survey.
pub fn check_before_survey(
    allocation: &Allocation,
    request: &PlacementRequest,
) -> Result<(), PlacementError> {
    check_numbers(request)?;
    if allocation
        .hosts
        .iter()
        .all(|host| host.slots.known().is_some())
    {
        return place(allocation, request).map(drop);
    }
    if let Some(per_host) = request.per_host {
        check_per_host(allocation, per_host, request.oversubscribe)?;
        if let Some(ranks) = request.ranks {
            check_hosts_suffice(allocation, ranks, per_host)?;
        }
    }
    Ok(())
}

/// Places the ranks. Every host's slots must be known ([`Allocation::survey`]).
pub fn place(
    allocation: &Allocation,
    request: &PlacementRequest,
) -> Result<Placement, PlacementError> {
    check_numbers(request)?;
    let mut hosts = Vec::with_capacity(allocation.hosts.len());
    for host in &allocation.hosts {
        let slots = host
            .slots
            .known()
            .ok_or_else(|| PlacementError::SlotsUnknown {
                host: host.host.clone(),
            })?;
        let limit = host.slots.max().unwrap_or(u32::MAX);
        hosts.push(Room {
            slots,
            limit: if slots == 0 { 0 } else { limit },
        });
    }
    if hosts.iter().all(|room| room.slots == 0) {
        return Err(PlacementError::NoSlots {
            slots: slots_table(allocation),
        });
    }
    let counts = match request.per_host {
        Some(per_host) => counts_per_host(allocation, request, &hosts, per_host)?,
        None => counts_by_slots(allocation, request, &hosts)?,
    };
    debug_assert_eq!(counts.len(), allocation.hosts.len());
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if total > u64::from(WORLD_MAX) {
        return Err(PlacementError::TooManyRanks { ranks: total });
    }
    Ok(number(&hosts, &counts))
}

struct Room {
    slots: u32,
    /// No more ranks than this, oversubscribed or not.
    limit: u32,
}

fn check_numbers(request: &PlacementRequest) -> Result<(), PlacementError> {
    match (request.ranks, request.per_host) {
        (Some(0), _) => Err(PlacementError::NoRanks),
        (_, Some(0)) => Err(PlacementError::NoRanksPerHost),
        (Some(ranks), _) if ranks > WORLD_MAX => Err(PlacementError::TooManyRanks {
            ranks: ranks.into(),
        }),
        _ => Ok(()),
    }
}

fn counts_by_slots(
    allocation: &Allocation,
    request: &PlacementRequest,
    hosts: &[Room],
) -> Result<Vec<u32>, PlacementError> {
    let slots_total: u64 = hosts.iter().map(|room| u64::from(room.slots)).sum();
    let Some(ranks) = request.ranks else {
        return Ok(hosts.iter().map(|room| room.slots).collect());
    };
    if u64::from(ranks) > slots_total && !request.oversubscribe {
        return Err(PlacementError::NotEnoughSlots {
            ranks,
            slots_total,
            slots: slots_table(allocation),
        });
    }
    let mut left = ranks;
    let mut counts = Vec::with_capacity(hosts.len());
    for room in hosts {
        let here = left.min(room.slots);
        counts.push(here);
        left -= here;
    }
    while left > 0 {
        let before = left;
        for (room, count) in hosts.iter().zip(&mut counts) {
            if left > 0 && *count < room.limit {
                *count += 1;
                left -= 1;
            }
        }
        if left == before {
            let room = hosts.iter().map(|room| u64::from(room.limit)).sum();
            let slots = slots_table(allocation);
            return Err(PlacementError::OverMaxSlots {
                ranks: ranks.into(),
                room,
                slots,
            });
        }
    }
    Ok(counts)
}

fn counts_per_host(
    allocation: &Allocation,
    request: &PlacementRequest,
    hosts: &[Room],
    per_host: u32,
) -> Result<Vec<u32>, PlacementError> {
    check_per_host(allocation, per_host, request.oversubscribe)?;
    if let Some(ranks) = request.ranks {
        check_hosts_suffice(allocation, ranks, per_host)?;
    }
    let mut left = request.ranks.unwrap_or(u32::MAX);
    let mut counts = Vec::with_capacity(hosts.len());
    for room in hosts {
        let here = if room.slots == 0 {
            0
        } else {
            per_host.min(left)
        };
        counts.push(here);
        left -= here;
    }
    Ok(counts)
}

/// Whether each host can take `per_host` ranks, as far as is known.
fn check_per_host(
    allocation: &Allocation,
    per_host: u32,
    oversubscribe: bool,
) -> Result<(), PlacementError> {
    for host in &allocation.hosts {
        let slots = match host.slots {
            Slots::Given { slots: 0, .. } => continue,
            Slots::Given { slots, .. } if !oversubscribe => Some(slots),
            _ => host.slots.max(),
        };
        if let Some(slots) = slots.filter(|&slots| slots < per_host) {
            let slots = count(slots.into(), "slot");
            return Err(PlacementError::NotEnoughSlotsOnHost {
                per_host,
                host: host.host.clone(),
                slots,
            });
        }
    }
    Ok(())
}

fn check_hosts_suffice(
    allocation: &Allocation,
    ranks: u32,
    per_host: u32,
) -> Result<(), PlacementError> {
    let hosts = allocation
        .hosts
        .iter()
        .filter(|host| host.slots.known() != Some(0))
        .count();
    let room = hosts as u64 * u64::from(per_host);
    if u64::from(ranks) <= room {
        return Ok(());
    }
    let hosts = count(hosts as u64, "host");
    Err(PlacementError::NotEnoughHosts {
        ranks,
        per_host,
        hosts,
        room,
    })
}

/// From ranks on each host to ranks by number.
fn number(hosts: &[Room], counts: &[u32]) -> Placement {
    let mut placement = Placement {
        nodes: Vec::new(),
        ranks: Vec::new(),
    };
    let mut rank = 0;
    for (host, (room, &ranks)) in hosts.iter().zip(counts).enumerate() {
        if ranks == 0 {
            continue;
        }
        let node_rank = u32::try_from(placement.nodes.len()).expect("at most WORLD_MAX nodes");
        placement.nodes.push(Node {
            host,
            slots: room.slots,
            first_rank: rank,
            ranks,
        });
        for local_rank in 0..ranks {
            let place = RankPlace {
                rank,
                host,
                node_rank,
                local_rank,
                local_world_size: ranks,
            };
            placement.ranks.push(place);
            rank += 1;
        }
    }
    placement
}

/// `node01 4, node02 4 (at most 6)`
fn slots_table(allocation: &Allocation) -> String {
    table(
        allocation
            .hosts
            .iter()
            .map(|host| format!("{} {}", host.host, host.slots)),
    )
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
