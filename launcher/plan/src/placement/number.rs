//! From ranks on each host to ranks by number.

use super::{MapBy, Node, Placement, PlacementRequest, ProgramPlace, RankBy, RankPlace};
use crate::allocation::Allocation;

/// The host of each rank of one program, in the order of its ranks.
pub(super) fn order(counts: &[(usize, u32)], request: &PlacementRequest) -> Vec<usize> {
    let in_turn = match (request.rank_by, request.map_by) {
        (Some(rank_by), _) => rank_by == RankBy::Node,
        (None, map_by) => map_by == MapBy::Node,
    };
    if !in_turn {
        let hosts = counts.iter();
        return hosts
            .flat_map(|&(host, count)| std::iter::repeat_n(host, count as usize))
            .collect();
    }
    let rounds = counts.iter().map(|&(_, count)| count).max().unwrap_or(0);
    (0..rounds)
        .flat_map(|round| {
            let has_one = move |&&(_, count): &&(usize, u32)| count > round;
            counts.iter().filter(has_one).map(|&(host, _)| host)
        })
        .collect()
}

/// `programs`: by program, the host of each of its ranks.
pub(super) fn number(allocation: &Allocation, programs: &[Vec<usize>]) -> Placement {
    let mut placement = Placement {
        nodes: Vec::new(),
        ranks: Vec::new(),
        programs: Vec::with_capacity(programs.len()),
    };
    let mut node_of = vec![None; allocation.hosts.len()];
    let mut rank = 0;
    for (program, hosts) in (0..).zip(programs) {
        let ranks = u32::try_from(hosts.len()).expect("at most WORLD_MAX ranks");
        let first_rank = rank;
        placement.programs.push(ProgramPlace { first_rank, ranks });
        for &host in hosts {
            let node = *node_of[host].get_or_insert_with(|| {
                let slots = allocation.hosts[host].slots.known();
                placement.nodes.push(Node {
                    host,
                    slots: slots.expect("known before placement"),
                    ranks: Vec::new(),
                });
                placement.nodes.len() - 1
            });
            let here = &mut placement.nodes[node].ranks;
            placement.ranks.push(RankPlace {
                rank,
                host,
                node_rank: u32::try_from(node).expect("at most WORLD_MAX nodes"),
                local_rank: u32::try_from(here.len()).expect("at most WORLD_MAX ranks"),
                local_world_size: 0,
                program,
            });
            here.push(rank);
            rank += 1;
        }
    }
    for place in &mut placement.ranks {
        let ranks = placement.nodes[place.node_rank as usize].ranks.len();
        place.local_world_size = u32::try_from(ranks).expect("at most WORLD_MAX ranks");
    }
    placement
}
