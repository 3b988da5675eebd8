//! Placement: which rank runs on which host. Pure arithmetic on slots.
//!
//! The programs of a job are placed in their order, each on what those before it left of the slots
//! of the hosts it may use; its ranks follow theirs. Hosts are filled in the order of the
//! allocation, each up to its slots (or `per_host`); `--map-by node` deals one rank to each in
//! turn. More ranks than slots are refused, unless `oversubscribe`: then the surplus goes round
//! over the hosts that have slots, one rank at a time, up to `max_slots`.
//!
//! The ranks of one host are consecutive numbers, so that the first level of a collective stays
//! inside a host, unless `--map-by node` or `--rank-by node` asks for numbers in turn.
//!
//! A host with 0 slots gets no rank, oversubscribed or not. Hosts without ranks are left out of
//! the node numbering and need no agent. Nodes are numbered by their first rank: node 0 has rank 0.

mod count;
mod error;
mod number;
mod policy;

use rlaunch_wire::limits::WORLD_MAX;
use serde::Serialize;

use crate::allocation::{Allocation, Slots};
use crate::text::table;

pub use error::PlacementError;
pub use policy::{MapBy, MapWish, PolicyError, RankBy};

/// What the command line asks for, for one program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacementRequest {
    /// `-np`; absent: all slots, or `per_host` on every host.
    pub ranks: Option<u32>,
    /// `--nproc-per-node`: exactly so many on each host until the ranks run out.
    pub per_host: Option<u32>,
    pub oversubscribe: bool,
    pub map_by: MapBy,
    /// Absent: as `map_by` deals them.
    pub rank_by: Option<RankBy>,
    /// The hosts that this program may use, in its order; absent: all of the job.
    pub hosts: Option<Vec<HostChoice>>,
    /// Which program this is, for messages; absent where there is but one.
    pub label: Option<String>,
}

/// A host that a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostChoice {
    /// Index into the allocation's hosts.
    pub host: usize,
    /// At most so many ranks of this program there; absent: what the host has left.
    pub slots: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Hosts that have ranks; the index is the node rank.
    pub nodes: Vec<Node>,
    /// By rank.
    pub ranks: Vec<RankPlace>,
    /// By program, in the order of the command line.
    pub programs: Vec<ProgramPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Index into the allocation's hosts.
    pub host: usize,
    pub slots: u32,
    /// In ascending order, which is that of the local ranks; at least one.
    pub ranks: Vec<u32>,
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
    /// Index into `Placement::programs`.
    pub program: u32,
}

/// The ranks of a program are `first_rank .. first_rank + ranks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProgramPlace {
    pub first_rank: u32,
    pub ranks: u32,
}

impl Node {
    pub fn rank_count(&self) -> u32 {
        u32::try_from(self.ranks.len()).expect("at most WORLD_MAX ranks")
    }

    /// More ranks than slots.
    pub fn is_oversubscribed(&self) -> bool {
        self.rank_count() > self.slots
    }
}

/// Refuses what can be refused before any host is contacted. `Ok` promises nothing where a host's
/// slots are open until the survey.
pub fn check_before_survey(
    allocation: &Allocation,
    requests: &[PlacementRequest],
) -> Result<(), PlacementError> {
    let mut hosts = allocation.hosts.iter();
    if hosts.all(|host| host.slots.known().is_some()) {
        return place(allocation, requests).map(drop);
    }
    let unused = vec![0; allocation.hosts.len()];
    for request in requests {
        let check = || {
            check_numbers(request)?;
            let rooms = rooms(allocation, request, &unused);
            count::check_per_host(allocation, request, &rooms)
        };
        check().map_err(|error| named(request, error))?;
    }
    Ok(())
}

/// Places the ranks. Every host's slots must be known ([`Allocation::survey`]).
pub fn place(
    allocation: &Allocation,
    requests: &[PlacementRequest],
) -> Result<Placement, PlacementError> {
    if let Some(open) = allocation
        .hosts
        .iter()
        .find(|it| it.slots.known().is_none())
    {
        let host = open.host.clone();
        return Err(PlacementError::SlotsUnknown { host });
    }
    let mut used = vec![0_u32; allocation.hosts.len()];
    let mut programs = Vec::with_capacity(requests.len());
    let mut total = 0_u64;
    for request in requests {
        let counts = counts(allocation, request, &used).map_err(|error| named(request, error))?;
        for &(host, count) in &counts {
            used[host] = used[host].saturating_add(count);
            total += u64::from(count);
        }
        if total > u64::from(WORLD_MAX) {
            return Err(named(
                request,
                PlacementError::TooManyRanks { ranks: total },
            ));
        }
        programs.push(number::order(&counts, request));
    }
    Ok(number::number(allocation, &programs))
}

/// What one program may take of a host.
#[derive(Debug, Clone, Copy)]
struct Room {
    host: usize,
    /// Free slots; none before the survey.
    slots: Option<u32>,
    /// No more ranks than this, oversubscribed or not.
    limit: u32,
}

fn rooms(allocation: &Allocation, request: &PlacementRequest, used: &[u32]) -> Vec<Room> {
    let room = |choice: HostChoice| {
        let slots = allocation.hosts[choice.host].slots;
        let most = choice.slots.unwrap_or(u32::MAX);
        let used = used[choice.host];
        let limit = slots.max().unwrap_or(u32::MAX).saturating_sub(used);
        let is_closed = slots.known() == Some(0) || most == 0;
        Room {
            host: choice.host,
            slots: slots
                .known()
                .map(|slots| slots.saturating_sub(used).min(most)),
            limit: if is_closed { 0 } else { limit },
        }
    };
    match &request.hosts {
        Some(chosen) => chosen.iter().map(|choice| room(*choice)).collect(),
        None => (0..allocation.hosts.len())
            .map(|host| room(HostChoice { host, slots: None }))
            .collect(),
    }
}

/// How many ranks of this program run on each of its hosts.
fn counts(
    allocation: &Allocation,
    request: &PlacementRequest,
    used: &[u32],
) -> Result<Vec<(usize, u32)>, PlacementError> {
    check_numbers(request)?;
    let rooms = rooms(allocation, request, used);
    if rooms.iter().all(|room| room.limit == 0) {
        let slots = slots_table(allocation, &rooms);
        return Err(PlacementError::NoSlots { slots });
    }
    let counts = match request.per_host {
        Some(per_host) => count::per_host(allocation, request, &rooms, per_host)?,
        None => count::by_slots(allocation, request, &rooms)?,
    };
    debug_assert_eq!(counts.len(), rooms.len());
    if counts.iter().all(|&count| count == 0) {
        let slots = slots_table(allocation, &rooms);
        return Err(PlacementError::NoSlotsLeft { slots });
    }
    Ok(rooms.iter().map(|room| room.host).zip(counts).collect())
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

fn named(request: &PlacementRequest, error: PlacementError) -> PlacementError {
    match &request.label {
        Some(label) => PlacementError::InProgram {
            program: label.clone(),
            error: Box::new(error),
        },
        None => error,
    }
}

/// `node01 4, node02 4 (at most 6)`: what is free.
fn slots_table(allocation: &Allocation, rooms: &[Room]) -> String {
    table(rooms.iter().map(|room| {
        let host = &allocation.hosts[room.host];
        let free = match room.slots {
            Some(slots) => Slots::Given {
                slots,
                max: host.slots.max(),
            },
            None => host.slots,
        };
        format!("{} {free}", host.host)
    }))
}

#[cfg(test)]
mod tests;
