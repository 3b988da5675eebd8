//! Which rank of a host gets which cores: pure.
//!
//! - Ranks are dealt to NUMA nodes in even blocks of consecutive ranks (or one in turn), the
//!   emptiest node first; where each rank has a GPU, to the node of its GPU.
//! - A core that is claimed (another job's) is given to nobody.
//! - Never fewer cores than asked for: where they don't suffice, no rank is bound.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

use crate::layout::{Core, Layout};

/// What a rank is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// So many whole cores of its own.
    Cores(u32),
    /// All free cores of a NUMA node, shared with the job's other ranks there.
    Numa,
    /// The free cores of a NUMA node, divided among the job's ranks there: at least one each.
    Divided,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    pub unit: Unit,
    pub ranks: u32,
    /// One on each NUMA node in turn.
    pub in_turn: bool,
}

/// What one rank gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Ascending.
    pub cpus: Vec<u32>,
    /// Names of the cores that are claimed for it: its own, or one of those it shares.
    pub claims: Vec<u32>,
}

/// Why no rank is bound.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotBound {
    #[error("{} needed, and {usable} may be used here", cores(*.wanted))]
    TooFew { wanted: u64, usable: usize },
    #[error("{} needed, and of {usable} other jobs have claimed {claimed}", cores(*.wanted))]
    Taken {
        wanted: u64,
        usable: usize,
        claimed: usize,
    },
}

fn cores(number: u64) -> String {
    match number {
        1 => "1 core is".to_owned(),
        _ => format!("{number} cores are"),
    }
}

/// One NUMA node as it fills.
struct Room<'a> {
    number: u32,
    free: Vec<&'a Core>,
    ranks: Vec<usize>,
}

/// By local rank.
pub fn bind(layout: &Layout, claimed: &BTreeSet<u32>, wish: Wish) -> Result<Vec<Bound>, NotBound> {
    let each = match wish.unit {
        Unit::Cores(cores) => cores.max(1) as usize,
        Unit::Numa | Unit::Divided => 1,
    };
    let ranks = wish.ranks as usize;
    let is_free = |core: &&Core| !claimed.contains(&core.name);
    let mut rooms: Vec<Room<'_>> = layout
        .nodes
        .iter()
        .map(|node| Room {
            number: node.number,
            free: node.cores.iter().filter(is_free).collect(),
            ranks: Vec::new(),
        })
        .collect();
    let usable = layout.nodes.iter().map(|node| node.cores.len()).sum();
    let free: usize = rooms.iter().map(|room| room.free.len()).sum();
    if ranks * each > free {
        let wanted = (ranks * each) as u64;
        let claimed = usable - free;
        return Err(match claimed {
            0 => NotBound::TooFew { wanted, usable },
            claimed => NotBound::Taken {
                wanted,
                usable,
                claimed,
            },
        });
    }
    if !follow_gpus(&mut rooms, &layout.gpu_nodes, ranks, each) {
        deal(&mut rooms, ranks, each, wish.in_turn);
    }
    Ok(give(&rooms, ranks, each, wish.unit))
}

/// Each rank to the NUMA node of its GPU; false where that is not known, or has no room.
fn follow_gpus(rooms: &mut [Room<'_>], gpu_nodes: &[u32], ranks: usize, each: usize) -> bool {
    if gpu_nodes.len() < ranks {
        return false;
    }
    for (rank, &node) in gpu_nodes.iter().take(ranks).enumerate() {
        let room = rooms
            .iter_mut()
            .find(|room| room.number == node && room.has_room(each));
        match room {
            Some(room) => room.ranks.push(rank),
            None => {
                rooms.iter_mut().for_each(|room| room.ranks.clear());
                return false;
            }
        }
    }
    true
}

/// Evenly. Where a rank needs more cores than any node has left, nodes don't count.
fn deal(rooms: &mut Vec<Room<'_>>, ranks: usize, each: usize, in_turn: bool) {
    let capacity: usize = rooms.iter().map(|room| room.free.len() / each).sum();
    if capacity < ranks {
        let free = rooms.iter().flat_map(|room| room.free.iter().copied());
        let merged = Room {
            number: 0,
            free: free.collect(),
            ranks: (0..ranks).collect(),
        };
        *rooms = vec![merged];
        return;
    }
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(rooms[index].free.len()));
    let mut dealt = 0;
    while dealt < ranks {
        for &index in &order {
            if dealt < ranks && rooms[index].has_room(each) {
                rooms[index].ranks.push(dealt);
                dealt += 1;
            }
        }
    }
    if !in_turn {
        let mut next = 0;
        for room in rooms.iter_mut() {
            let count = room.ranks.len();
            room.ranks = (next..next + count).collect();
            next += count;
        }
    }
}

impl Room<'_> {
    fn has_room(&self, each: usize) -> bool {
        self.free.len() / each > self.ranks.len()
    }
}

/// In consecutive parts, of which the first are one longer where it doesn't come out even.
fn divide<T>(all: &[T], parts: usize) -> Vec<&[T]> {
    let mut rest = all;
    let mut divided = Vec::with_capacity(parts);
    for left in (1..=parts).rev() {
        let (own, others) = rest.split_at(rest.len().div_ceil(left));
        divided.push(own);
        rest = others;
    }
    divided
}

fn give(rooms: &[Room<'_>], ranks: usize, each: usize, unit: Unit) -> Vec<Bound> {
    let mut bound: Vec<Option<Bound>> = vec![None; ranks];
    for room in rooms {
        let owns: Vec<&[&Core]> = match unit {
            Unit::Divided => divide(&room.free, room.ranks.len()),
            Unit::Cores(_) | Unit::Numa => room.free.chunks_exact(each).collect(),
        };
        for (own, &rank) in owns.into_iter().zip(&room.ranks) {
            let cores = match unit {
                Unit::Cores(_) | Unit::Divided => own,
                Unit::Numa => room.free.as_slice(),
            };
            let mut cpus: Vec<u32> = cores.iter().flat_map(|core| core.cpus.clone()).collect();
            cpus.sort_unstable();
            let claims = own.iter().map(|core| core.name).collect();
            bound[rank] = Some(Bound { cpus, claims });
        }
    }
    let given = bound.into_iter().flatten();
    let given: Vec<Bound> = given.collect();
    assert_eq!(
        given.len(),
        ranks,
        "each rank was dealt to a node with room"
    );
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Node;

    /// Nodes of so many cores of two threads each: core 3 of 8 in all has CPUs 3 and 11.
    fn machine(nodes: &[u32]) -> Layout {
        let total: u32 = nodes.iter().sum();
        let mut first = 0;
        let nodes = (0..).zip(nodes).map(|(number, &cores)| {
            let own = first..first + cores;
            first += cores;
            let cores = own.map(|cpu| Core {
                name: cpu,
                cpus: vec![cpu, cpu + total],
            });
            Node {
                number,
                cores: cores.collect(),
            }
        });
        Layout {
            nodes: nodes.collect(),
            gpu_nodes: Vec::new(),
        }
    }

    fn wish(unit: Unit, ranks: u32) -> Wish {
        Wish {
            unit,
            ranks,
            in_turn: false,
        }
    }

    /// First CPU of each core that each rank may use.
    fn given(layout: &Layout, claimed: &[u32], wish: Wish) -> Result<String, String> {
        let claimed = claimed.iter().copied().collect();
        let bound = bind(layout, &claimed, wish).map_err(|error| error.to_string())?;
        let cores: u32 = layout
            .nodes
            .iter()
            .map(|node| node.cores.len() as u32)
            .sum();
        let shown = bound.iter().map(|rank| {
            let first = rank.cpus.iter().filter(|cpu| **cpu < cores);
            assert_eq!(first.clone().count() * 2, rank.cpus.len(), "whole cores");
            first.map(u32::to_string).collect::<Vec<_>>().join(",")
        });
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn blocks_are_even_over_the_nodes_or_in_turn() {
        let machine = machine(&[4, 4]);
        let cores = |ranks| wish(Unit::Cores(1), ranks);
        assert_eq!(given(&machine, &[], cores(4)).unwrap(), "0 1 4 5");
        assert_eq!(given(&machine, &[], cores(1)).unwrap(), "0");
        assert_eq!(
            given(&machine, &[], wish(Unit::Cores(2), 3)).unwrap(),
            "0,1 2,3 4,5"
        );
        let turn = Wish {
            in_turn: true,
            ..cores(4)
        };
        assert_eq!(given(&machine, &[], turn).unwrap(), "0 4 1 5");
        let numa = wish(Unit::Numa, 3);
        assert_eq!(
            given(&machine, &[], numa).unwrap(),
            "0,1,2,3 0,1,2,3 4,5,6,7"
        );
        let divided = |ranks| given(&machine, &[1], wish(Unit::Divided, ranks)).unwrap();
        assert_eq!(divided(3), "0,2,3 4,5 6,7");
        assert_eq!(divided(7), "0 2 3 4 5 6 7");
    }

    /// Another job's cores are left alone, and it is the emptier node that is filled.
    #[test]
    fn claimed_cores_are_given_to_nobody() {
        let machine = machine(&[4, 4]);
        let one = wish(Unit::Cores(1), 1);
        assert_eq!(given(&machine, &[0], one).unwrap(), "4");
        assert_eq!(given(&machine, &[0, 4, 5], one).unwrap(), "1");
        assert_eq!(
            given(&machine, &[0], wish(Unit::Numa, 1)).unwrap(),
            "4,5,6,7"
        );
        let all = given(&machine, &[0, 4], wish(Unit::Numa, 2)).unwrap();
        assert_eq!(all, "1,2,3 5,6,7");
        let four = wish(Unit::Cores(2), 4);
        let expected = "8 cores are needed, and of 8 other jobs have claimed 1";
        assert_eq!(given(&machine, &[0], four).unwrap_err(), expected);
    }

    #[test]
    fn too_few_cores_bind_nobody() {
        let expected = "3 cores are needed, and 2 may be used here";
        let error = given(&machine(&[2]), &[], wish(Unit::Cores(1), 3)).unwrap_err();
        assert_eq!(error, expected);
        assert!(given(&Layout::default(), &[], wish(Unit::Numa, 1)).is_err());
    }

    #[test]
    fn many_cores_a_rank_may_reach_over_nodes() {
        let machine = machine(&[2, 2]);
        assert_eq!(
            given(&machine, &[], wish(Unit::Cores(3), 1)).unwrap(),
            "0,1,2"
        );
        assert_eq!(
            given(&machine, &[], wish(Unit::Cores(4), 1)).unwrap(),
            "0,1,2,3"
        );
    }

    #[test]
    fn ranks_with_gpus_follow_them() {
        let mut machine = machine(&[2, 2]);
        machine.gpu_nodes = vec![1, 1, 0, 0];
        let numa = |ranks| wish(Unit::Numa, ranks);
        assert_eq!(given(&machine, &[], numa(3)).unwrap(), "2,3 2,3 0,1");
        assert_eq!(
            given(&machine, &[], wish(Unit::Cores(1), 3)).unwrap(),
            "2 3 0"
        );
        // No room on the GPU's node, or fewer GPUs than ranks: evenly.
        assert_eq!(
            given(&machine, &[2], wish(Unit::Cores(1), 2)).unwrap(),
            "0 3"
        );
        machine.gpu_nodes = vec![1];
        assert_eq!(given(&machine, &[], numa(2)).unwrap(), "0,1 2,3");
    }

    /// Sweep: never a claimed core, never one twice, never fewer than asked for.
    #[test]
    fn every_binding_is_consistent() {
        for nodes in [&[1, 1][..], &[3], &[4, 2, 1], &[2, 2, 2, 2]] {
            let layout = machine(nodes);
            let cores: u32 = nodes.iter().sum();
            for claimed in (0..cores).map(|n| (0..n).map(|core| core * 7 % cores).collect()) {
                for ranks in 1..=cores {
                    for (each, in_turn) in [(1, true), (1, false), (2, false), (3, true)] {
                        let wish = Wish {
                            unit: Unit::Cores(each),
                            ranks,
                            in_turn,
                        };
                        check(&layout, &claimed, wish, cores);
                    }
                }
            }
        }
    }

    fn check(layout: &Layout, claimed: &BTreeSet<u32>, wish: Wish, cores: u32) {
        let Unit::Cores(each) = wish.unit else { return };
        let fits = wish.ranks * each <= cores - claimed.len() as u32;
        let bound = bind(layout, claimed, wish);
        assert_eq!(bound.is_ok(), fits, "{wish:?} {claimed:?}");
        let mut seen = claimed.clone();
        for rank in bound.unwrap_or_default() {
            assert_eq!(rank.cpus.len(), 2 * each as usize);
            assert!(
                rank.claims.iter().all(|core| seen.insert(*core)),
                "{wish:?}"
            );
        }
    }
}
