//! Cores for this host's ranks, claimed against the ranks of other jobs.
//!
//! A claim is an abstract Unix socket with the core's name, held until the agent ends: whoever
//! asks for cores on this machine sees it, of whatever user, and however the agent ends nothing is
//! left of it. Jobs in network namespaces of their own don't see each other's claims; there a
//! cpuset has to keep them apart, which is honoured.

use std::collections::BTreeSet;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rlaunch_control::v1::{BindReply, BindRequest, BindUnit, CoreSet};
use rlaunch_topo::bind::{Bound, Unit, Wish, bind};
use rlaunch_topo::layout::{Layout, LayoutFacts};

/// What this agent holds.
pub(crate) type Claims = Vec<UnixDatagram>;

/// Chooses and claims cores. Where they don't suffice, nothing is claimed and the reply says why.
pub(crate) fn choose(request: &BindRequest) -> (Claims, BindReply) {
    let unit = match request.unit() {
        BindUnit::Numa => Unit::Numa,
        BindUnit::Core => Unit::Cores(request.cores_per_rank),
    };
    let wish = Wish {
        unit,
        ranks: request.ranks,
        in_turn: request.in_turn,
    };
    let mut layout = LayoutFacts::read().parse();
    if let Some(visible) = &request.gpus {
        layout.gpu_nodes = visible_nodes(&layout.gpu_nodes, &visible.numbers);
    }
    match claim(&layout, wish) {
        Ok((claims, bound)) => {
            let ranks = bound.into_iter().map(|bound| CoreSet { cpus: bound.cpus });
            let reply = BindReply {
                ranks: ranks.collect(),
                why_not: String::new(),
            };
            (claims, reply)
        }
        Err(why_not) => {
            let ranks = Vec::new();
            (Vec::new(), BindReply { ranks, why_not })
        }
    }
}

/// The NUMA nodes of the GPUs that ranks see, in their order; none where one is not known.
fn visible_nodes(nodes: &[u32], visible: &[u32]) -> Vec<u32> {
    let node = |gpu: &u32| nodes.get(*gpu as usize).copied();
    let nodes: Option<Vec<u32>> = visible.iter().map(node).collect();
    nodes.unwrap_or_default()
}

fn claim(layout: &Layout, wish: Wish) -> Result<(Claims, Vec<Bound>), String> {
    let cores = layout.nodes.iter().flat_map(|node| &node.cores);
    let names: Vec<u32> = cores.map(|core| core.name).collect();
    let is_claimed = |core: &&u32| is_claimed(**core);
    let mut claimed: BTreeSet<u32> = names.iter().filter(is_claimed).copied().collect();
    // Each turn but the last finds a core that another job has claimed meanwhile.
    for _ in 0..=names.len() {
        let bound = bind(layout, &claimed, wish).map_err(|error| error.to_string())?;
        let wanted = bound.iter().flat_map(|rank| &rank.claims);
        let mut claims = Claims::new();
        let mut lost = None;
        for &core in wanted {
            match address(core).and_then(|address| UnixDatagram::bind_addr(&address)) {
                Ok(claim) => claims.push(claim),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => lost = Some(core),
                Err(error) => return Err(format!("cores cannot be claimed: {error}")),
            }
        }
        match lost {
            None => return Ok((claims, bound)),
            Some(core) => claimed.insert(core),
        };
    }
    Err("other jobs claim cores at this moment".to_owned())
}

fn address(core: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("rlaunch-core-{core}"))
}

/// A socket that nobody has bound refuses.
fn is_claimed(core: u32) -> bool {
    let connect = || UnixDatagram::unbound()?.connect_addr(&address(core)?);
    connect().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlaunch_topo::layout::{Core, Node};

    /// Cores that no machine has: other tests, and jobs, claim those of this one.
    const FIRST: u32 = 4_000_000;

    fn layout() -> Layout {
        let core = |name| Core {
            name,
            cpus: vec![name],
        };
        Layout {
            nodes: vec![Node {
                number: 0,
                cores: (FIRST..FIRST + 4).map(core).collect(),
            }],
            gpu_nodes: Vec::new(),
        }
    }

    fn wish(ranks: u32) -> Wish {
        Wish {
            unit: Unit::Cores(1),
            ranks,
            in_turn: false,
        }
    }

    #[test]
    fn ranks_follow_the_gpus_that_they_see() {
        assert_eq!(visible_nodes(&[0, 0, 1, 1], &[3, 0]), [1, 0]);
        assert!(visible_nodes(&[0, 0], &[3]).is_empty());
        assert!(visible_nodes(&[0, 0], &[]).is_empty());
    }

    #[test]
    fn jobs_get_cores_of_their_own_until_there_are_no_more() {
        let cpus = |bound: &[Bound]| bound.iter().flat_map(|it| it.cpus.clone()).collect();
        let (first, bound) = claim(&layout(), wish(2)).unwrap();
        let mut all: Vec<u32> = cpus(&bound);
        let (second, bound) = claim(&layout(), wish(1)).unwrap();
        all.extend::<Vec<u32>>(cpus(&bound));
        assert_eq!(all, [FIRST, FIRST + 1, FIRST + 2]);
        let error = claim(&layout(), wish(2)).unwrap_err();
        let expected = "2 cores are needed, and of 4 other jobs have claimed 3";
        assert_eq!(error, expected);
        drop(first);
        let (_third, bound) = claim(&layout(), wish(2)).unwrap();
        assert_eq!(cpus(&bound), [FIRST, FIRST + 1]);
        drop(second);
    }
}
