//! How many ranks of one program run on each of its hosts.

use super::{MapBy, PlacementError, PlacementRequest, Room, slots_table};
use crate::allocation::Allocation;
use crate::text::count;

/// As many as there are slots, or `-np` of them.
pub(super) fn by_slots(
    allocation: &Allocation,
    request: &PlacementRequest,
    rooms: &[Room],
) -> Result<Vec<u32>, PlacementError> {
    let slots = |room: &Room| room.slots.unwrap_or(0);
    let slots_total: u64 = rooms.iter().map(|room| u64::from(slots(room))).sum();
    let Some(ranks) = request.ranks else {
        return Ok(rooms.iter().map(slots).collect());
    };
    if u64::from(ranks) > slots_total && !request.oversubscribe {
        let slots = slots_table(allocation, rooms);
        if slots_total == 0 {
            return Err(PlacementError::NoSlotsLeft { slots });
        }
        return Err(PlacementError::NotEnoughSlots {
            ranks,
            slots_total,
            slots,
        });
    }
    let mut counts = vec![0; rooms.len()];
    let mut left = ranks;
    if request.map_by == MapBy::Node {
        left = deal(rooms, &mut counts, left, slots);
    } else {
        for (room, count) in rooms.iter().zip(&mut counts) {
            *count = left.min(slots(room));
            left -= *count;
        }
    }
    left = deal(rooms, &mut counts, left, |room| room.limit);
    if left > 0 {
        return Err(PlacementError::OverMaxSlots {
            ranks: ranks.into(),
            room: rooms.iter().map(|room| u64::from(room.limit)).sum(),
            slots: slots_table(allocation, rooms),
        });
    }
    Ok(counts)
}

/// One on each in turn, up to a bound each; how many found no place.
fn deal(rooms: &[Room], counts: &mut [u32], mut left: u32, bound: impl Fn(&Room) -> u32) -> u32 {
    loop {
        let before = left;
        for (room, count) in rooms.iter().zip(counts.iter_mut()) {
            if left > 0 && *count < bound(room) {
                *count += 1;
                left -= 1;
            }
        }
        if left == before || left == 0 {
            return left;
        }
    }
}

/// Exactly so many on each, until the ranks run out.
pub(super) fn per_host(
    allocation: &Allocation,
    request: &PlacementRequest,
    rooms: &[Room],
    per_host: u32,
) -> Result<Vec<u32>, PlacementError> {
    check_per_host(allocation, request, rooms)?;
    let mut left = request.ranks.unwrap_or(u32::MAX);
    let mut counts = Vec::with_capacity(rooms.len());
    for room in rooms {
        let here = if room.limit == 0 {
            0
        } else {
            per_host.min(left)
        };
        counts.push(here);
        left -= here;
    }
    Ok(counts)
}

/// Whether each host can take `per_host` ranks, and all together `-np`, as far as is known.
pub(super) fn check_per_host(
    allocation: &Allocation,
    request: &PlacementRequest,
    rooms: &[Room],
) -> Result<(), PlacementError> {
    let Some(per_host) = request.per_host else {
        return Ok(());
    };
    let open = rooms.iter().filter(|room| room.limit > 0);
    for room in open.clone() {
        let slots = match room.slots {
            Some(slots) if !request.oversubscribe => slots,
            _ => room.limit,
        };
        if slots < per_host {
            return Err(PlacementError::NotEnoughSlotsOnHost {
                per_host,
                host: allocation.hosts[room.host].host.clone(),
                slots: count(slots.into(), "slot"),
            });
        }
    }
    let hosts = open.count() as u64;
    let room = hosts * u64::from(per_host);
    match request.ranks {
        Some(ranks) if u64::from(ranks) > room => Err(PlacementError::NotEnoughHosts {
            ranks,
            per_host,
            hosts: count(hosts, "host"),
            room,
        }),
        _ => Ok(()),
    }
}
