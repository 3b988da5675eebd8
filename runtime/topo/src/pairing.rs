//! Which rails each GPU (or rank without one) uses: the nearest, with their load spread. Pure.
//!
//! The candidates of a seat are all rails of the best class (NCCL's, where PHB and NODE are one) and
//! among these of the best bandwidth; ties are kept. Seats with the same candidates share them: each
//! uses ⌈rails / seats⌉, at least one. Who starts where is NCCL's rule (the number of the seat, its
//! bits mirrored where the rails are a power of two) as long as it loads rails evenly, else they are
//! dealt in turn; then seats exchange rails where both come out nearer. So the load of two rails that
//! are shared by the same seats differs by one at most, and a seat never gets a rail outside of what
//! NCCL would take.
//!
//! What is unknown counts as farthest and as 10 Gb/s (NCCL's word) when it is compared with what is
//! known, and as equal among itself; it is never shown as known.

use serde::Serialize;

use crate::distance::{self, Distance};
use crate::machine::{Address, Machine, Place};
use crate::rails::Rail;

/// Who looks for rails.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seat {
    pub place: Place,
    pub pci: Option<Address>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Indices of rails, nearest first.
    pub rails: Vec<usize>,
    pub why: Why,
    pub rejected: Vec<(usize, Rejected)>,
}

/// Why these rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// There is no rail.
    None,
    /// There is no other.
    Only,
    /// No other is as near.
    Nearest,
    /// Others are as near, but not as fast.
    Fastest,
    /// So many seats share so many rails that are equal to them.
    Spread { seats: usize, rails: usize },
    /// The machine does not tell distances: these were chosen by load alone.
    Unknown { seats: usize, rails: usize },
}

/// Why not another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejected {
    Farther {
        distance: Option<Distance>,
    },
    /// GB/s of the way there.
    Slower {
        gbytes: Option<f64>,
    },
    /// As good, and given to others for an even load.
    Spread,
}

/// One rail as a seat sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    pub distance: Option<Distance>,
    /// GB/s of the narrowest part of the way, the network's included.
    pub gbytes: Option<f64>,
}

const UNKNOWN_MBYTES: u64 = 1_250;

pub fn see(machine: &Machine, seat: &Seat, rail: &Rail) -> Seen {
    let distance = match (seat.pci, rail.pci) {
        (Some(a), Some(b)) if a == b => Some(Distance::Same),
        (None, _) => match (seat.place.node, rail.place.node) {
            (Some(a), Some(b)) if a == b => Some(Distance::Node),
            (Some(_), Some(_)) => Some(Distance::Sys),
            _ => None,
        },
        _ => distance::over_pci(&seat.place, &rail.place),
    };
    let network = rail.rate_mbits.map(|mbits| f64::from(mbits) / 8000.0);
    let pci = match (seat.pci, rail.pci) {
        (Some(own), Some(other)) => distance::gbytes(machine, &seat.place, own, &rail.place, other),
        _ => None,
    };
    let gbytes = match (network, pci) {
        (Some(network), Some(pci)) => Some(network.min(pci)),
        (network, _) => network,
    };
    Seen { distance, gbytes }
}

/// By seat.
pub fn pair(machine: &Machine, seats: &[Seat], rails: &[Rail]) -> Vec<Paired> {
    let seen: Vec<Vec<Seen>> = seats
        .iter()
        .map(|seat| rails.iter().map(|rail| see(machine, seat, rail)).collect())
        .collect();
    let candidates: Vec<Vec<usize>> = seen.iter().map(|seen| candidates(seen)).collect();
    let mut chosen: Vec<Vec<usize>> = vec![Vec::new(); seats.len()];
    let mut groups: Vec<&Vec<usize>> = candidates.iter().collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups.into_iter().filter(|group| !group.is_empty()) {
        let members = (0..seats.len()).filter(|seat| candidates[*seat] == *group);
        let members: Vec<usize> = members.collect();
        let mut dealt = deal(members.len(), group);
        exchange(&mut dealt, &members, &seen);
        for (seat, rails) in members.into_iter().zip(dealt) {
            chosen[seat] = rails;
        }
    }
    let all = candidates.iter().zip(chosen).zip(&seen);
    all.map(|((own, chosen), seen)| {
        let seats = candidates.iter().filter(|other| *other == own).count();
        explain(chosen, own, seen, seats)
    })
    .collect()
}

/// Smaller is better.
fn key(seen: &Seen) -> (u8, u64) {
    let class = match seen.distance {
        Some(distance) => distance.nccl() as u8,
        None => u8::MAX,
    };
    (class, u64::MAX - mbytes(seen))
}

fn mbytes(seen: &Seen) -> u64 {
    match seen.gbytes {
        // Whole MB/s: rates are no finer, and floats have no order.
        Some(gbytes) if gbytes.is_finite() && gbytes >= 0.0 => (gbytes * 1000.0).round() as u64,
        _ => UNKNOWN_MBYTES,
    }
}

fn candidates(seen: &[Seen]) -> Vec<usize> {
    let Some(best) = seen.iter().map(key).min() else {
        return Vec::new();
    };
    (0..seen.len())
        .filter(|rail| key(&seen[*rail]) == best)
        .collect()
}

/// Rails of each of so many seats.
fn deal(seats: usize, rails: &[usize]) -> Vec<Vec<usize>> {
    let count = rails.len();
    let each = count.div_ceil(seats);
    let from = |start: usize| {
        (0..each)
            .map(|next| rails[(start + next) % count])
            .collect()
    };
    let as_nccl: Vec<Vec<usize>> = (0..seats)
        .map(|seat| from(nccl_start(seat, count)))
        .collect();
    match is_even(&as_nccl, rails) {
        true => as_nccl,
        false => (0..seats).map(|seat| from(seat * each)).collect(),
    }
}

/// Where NCCL's GPU of this number begins among its local network devices.
fn nccl_start(seat: usize, rails: usize) -> usize {
    if !rails.is_power_of_two() {
        return seat % rails;
    }
    let bits = rails.trailing_zeros();
    match bits {
        0 => 0,
        bits => (seat % rails).reverse_bits() >> (usize::BITS - bits),
    }
}

fn is_even(dealt: &[Vec<usize>], rails: &[usize]) -> bool {
    let load = |rail: &usize| dealt.iter().filter(|rails| rails.contains(rail)).count();
    let loads = rails.iter().map(load);
    loads.clone().max().unwrap_or_default() - loads.min().unwrap_or_default() <= 1
}

/// Seats exchange two rails where the sum of their distances shrinks; loads stay.
fn exchange(dealt: &mut [Vec<usize>], members: &[usize], seen: &[Vec<Seen>]) {
    let rank = |seat: usize, rail: usize| match seen[members[seat]][rail].distance {
        Some(Distance::Same) => 0,
        Some(Distance::NvLink(_)) => 1,
        Some(Distance::Pix) => 2,
        Some(Distance::Pxb) => 3,
        Some(Distance::Phb) => 4,
        Some(Distance::Node) => 5,
        Some(Distance::Sys) => 6,
        None => 7_u32,
    };
    let seats = dealt.len();
    // Each exchange shrinks a sum of at most 7 a rail in use.
    let uses: usize = dealt.iter().map(Vec::len).sum();
    for _ in 0..uses * 7 {
        let mut is_done = true;
        for a in 0..seats {
            for b in a + 1..seats {
                for i in 0..dealt[a].len() {
                    for j in 0..dealt[b].len() {
                        let (x, y) = (dealt[a][i], dealt[b][j]);
                        let is_new = !dealt[a].contains(&y) && !dealt[b].contains(&x);
                        if is_new && rank(a, y) + rank(b, x) < rank(a, x) + rank(b, y) {
                            dealt[a][i] = y;
                            dealt[b][j] = x;
                            is_done = false;
                        }
                    }
                }
            }
        }
        if is_done {
            break;
        }
    }
    for (seat, rails) in dealt.iter_mut().enumerate() {
        rails.sort_by_key(|rail| rank(seat, *rail));
    }
}

fn explain(chosen: Vec<usize>, candidates: &[usize], seen: &[Seen], seats: usize) -> Paired {
    let class = |rail: usize| key(&seen[rail]).0;
    let best = candidates.first().map(|rail| class(*rail));
    let rails = candidates.len();
    let as_near = |rail: &usize| Some(class(*rail)) == best;
    let why = match best {
        None => Why::None,
        Some(u8::MAX) if seen.len() > 1 => Why::Unknown { seats, rails },
        _ if seen.len() == 1 => Why::Only,
        _ if rails > chosen.len() => Why::Spread { seats, rails },
        _ if (0..seen.len()).filter(as_near).count() > rails => Why::Fastest,
        _ => Why::Nearest,
    };
    let others = (0..seen.len()).filter(|rail| !chosen.contains(rail));
    let rejected = others.map(|rail| {
        let Seen { distance, gbytes } = seen[rail];
        let reason = if candidates.contains(&rail) {
            Rejected::Spread
        } else if as_near(&rail) {
            Rejected::Slower { gbytes }
        } else {
            Rejected::Farther { distance }
        };
        (rail, reason)
    });
    Paired {
        rejected: rejected.collect(),
        rails: chosen,
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_those_of_nccl() {
        let starts = |rails: usize, seats: usize| -> Vec<usize> {
            (0..seats).map(|seat| nccl_start(seat, rails)).collect()
        };
        assert_eq!(starts(1, 3), [0, 0, 0]);
        assert_eq!(starts(2, 4), [0, 1, 0, 1]);
        assert_eq!(starts(4, 4), [0, 2, 1, 3]);
        assert_eq!(starts(8, 4), [0, 4, 2, 6]);
        assert_eq!(starts(3, 4), [0, 1, 2, 0]);
    }

    /// Sweep: as many as NCCL's policy says, no rail twice, and loads that differ by one at most.
    #[test]
    fn every_deal_is_even() {
        for seats in 1..=16 {
            for count in 1..=16 {
                let rails: Vec<usize> = (10..10 + count).collect();
                let dealt = deal(seats, &rails);
                assert!(
                    is_even(&dealt, &rails),
                    "{seats} seats, {count} rails: {dealt:?}"
                );
                for own in &dealt {
                    let mut unique = own.clone();
                    unique.sort_unstable();
                    unique.dedup();
                    assert_eq!(
                        (unique.len(), own.len()),
                        (own.len(), count.div_ceil(seats))
                    );
                }
            }
        }
    }

    /// NCCL takes PHB and NODE for equal; with the same load the nearer of the two is better.
    #[test]
    fn equal_load_is_put_where_it_is_nearer() {
        let place = |root: &str| Place {
            root: Some(root.to_owned()),
            node: Some(0),
            ..Place::default()
        };
        let address = |bus: u8| {
            Some(Address {
                bus,
                ..Address::default()
            })
        };
        let seat = |bus: u8, root: &str| Seat {
            place: place(root),
            pci: address(bus),
        };
        let rail = |bus: u8, root: &str| Rail {
            name: format!("mlx5_{bus}"),
            medium: crate::rails::Medium::Infiniband,
            pci: address(bus),
            place: place(root),
            rate_mbits: Some(100_000),
        };
        let seats = [seat(1, "a"), seat(2, "a"), seat(3, "b"), seat(4, "b")];
        let paired = pair(&Machine::default(), &seats, &[rail(5, "a"), rail(6, "b")]);
        let chosen: Vec<usize> = paired.iter().map(|it| it.rails[0]).collect();
        assert_eq!(chosen, [0, 0, 1, 1]);
        assert_eq!(paired[0].why, Why::Spread { seats: 4, rails: 2 });
        assert_eq!(paired[0].rejected, [(1, Rejected::Spread)]);
        assert!(pair(&Machine::default(), &seats, &[])[0].rails.is_empty());
    }
}
