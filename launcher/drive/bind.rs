//! `--bind-to`: each host chooses and claims the cores of its ranks, so that jobs that know nothing
//! of each other don't pile up on the same ones.

use futures_util::future::join_all;
use rlaunch_control::v1;
use rlaunch_plan::Placement;
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::placement::Node;

use super::DriveError;
use super::reach::Reached;
use super::start::Start;
use crate::settings::{BindTo, Settings};
use crate::talk::note;

/// What each rank is bound to, by rank; none: it isn't.
pub(super) type Cores = Vec<Option<Vec<u32>>>;

/// Asks every host; on one that has too few cores left no rank is bound, and that is said.
pub(super) async fn choose(
    settings: &Settings,
    allocation: &Allocation,
    placement: &Placement,
    nodes: &mut [Reached],
) -> Result<Cores, DriveError> {
    let mut cores = unbound(placement);
    let Some(binding) = &settings.binding.wish else {
        return Ok(cores);
    };
    let unit = match binding.to {
        BindTo::Core => v1::BindUnit::Core,
        BindTo::Numa => v1::BindUnit::Numa,
    };
    let calls = nodes
        .iter_mut()
        .zip(&placement.nodes)
        .map(|(node, places)| {
            let request = v1::BindRequest {
                unit: unit.into(),
                cores_per_rank: binding.cores_per_rank,
                in_turn: binding.in_turn,
                ranks: places.rank_count(),
                gpus: visible_gpus(settings, allocation, placement, places),
            };
            async move {
                let reply = node.client.bind(request).await;
                let reply = reply.map_err(|status| DriveError::Agent {
                    host: node.name.clone(),
                    did: "cannot choose cores",
                    message: status.message().to_owned(),
                })?;
                Ok::<_, DriveError>((node.name.as_str(), places, reply.into_inner()))
            }
        });
    let mut unbound: Vec<(String, Vec<&str>)> = Vec::new();
    for answer in join_all(calls).await {
        let (name, places, reply) = answer?;
        for (&rank, set) in places.ranks.iter().zip(reply.ranks) {
            cores[rank as usize] = Some(set.cpus);
        }
        if !reply.why_not.is_empty() {
            match unbound.iter_mut().find(|(why, _)| *why == reply.why_not) {
                Some((_, names)) => names.push(name),
                None => unbound.push((reply.why_not, vec![name])),
            }
        }
    }
    for (why, names) in unbound {
        note(&format!("{}: ranks are not bound: {why}", names.join(", ")));
    }
    Ok(cores)
}

/// Which GPUs the ranks of a node see, as far as that was written; those of its first program.
fn visible_gpus(
    settings: &Settings,
    allocation: &Allocation,
    placement: &Placement,
    node: &Node,
) -> Option<v1::VisibleGpus> {
    let program = placement.ranks[node.ranks[0] as usize].program;
    let details = &allocation.hosts[node.host].details;
    let start = Start::new(&settings.programs[program as usize], details);
    let environment = start.environment();
    let mut visible = environment.iter();
    let (_, visible) = visible.find(|(name, _)| name == b"CUDA_VISIBLE_DEVICES")?;
    // By UUID, or none: nothing can be told of where they are.
    let numbers = String::from_utf8_lossy(visible);
    let numbers = numbers.split(',').map(|number| number.trim().parse());
    let numbers = numbers.collect::<Result<_, _>>().unwrap_or_default();
    Some(v1::VisibleGpus { numbers })
}

/// As if nobody had asked.
pub(super) fn unbound(placement: &Placement) -> Cores {
    vec![None; placement.ranks.len()]
}

/// A line of `--report-bindings`: what the process was found to be allowed, whatever was planned.
pub(super) fn report(host: &str, started: &v1::Started, is_bound: bool) -> String {
    let v1::Started {
        rank, pid, cpus, ..
    } = started;
    let what = match (cpus.as_str(), is_bound) {
        ("", _) => "ended before its cores could be looked at".to_owned(),
        (cpus, true) => format!("bound to cores {cpus}"),
        (cpus, false) => format!("not bound, may use cores {cpus}"),
    };
    format!("rlaunch: rank {rank} on {host} (pid {pid}): {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told() {
        let started = |cpus: &str| v1::Started {
            rank: 3,
            pid: 77,
            cpus: cpus.to_owned(),
            ..v1::Started::default()
        };
        let told = |cpus, bound| report("n1", &started(cpus), bound);
        let who = "rlaunch: rank 3 on n1 (pid 77): ";
        assert_eq!(told("0-3", true), format!("{who}bound to cores 0-3"));
        let expected = format!("{who}not bound, may use cores 0-7");
        assert_eq!(told("0-7", false), expected);
        assert!(told("", true).ends_with("ended before its cores could be looked at"));
    }
}
