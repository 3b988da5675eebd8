//! `--wdir`: made where it is absent, on all hosts before a rank starts on one.

use futures_util::future::join_all;
use prost::bytes::Bytes;
use rlaunch_control::v1;
use rlaunch_plan::Placement;
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::placement::Node;

use super::DriveError;
use super::reach::Reached;
use super::start::Start;
use crate::settings::Settings;
use crate::talk::note;

/// Hosts told of; more are counted.
const TOLD_MAX: usize = 8;

pub(super) async fn make(
    settings: &Settings,
    allocation: &Allocation,
    placement: &Placement,
    nodes: &mut [Reached],
) -> Result<(), DriveError> {
    if settings.dry_run {
        return Ok(());
    }
    let places = nodes.iter_mut().zip(&placement.nodes);
    let calls = places.filter_map(|(node, place)| {
        let paths = absent(settings, allocation, placement, place, node);
        if paths.is_empty() {
            return None;
        }
        Some(async move {
            let request = v1::MakeDirectoriesRequest {
                paths: paths.clone(),
            };
            let reply = node.client.make_directories(request).await;
            let reply = reply.map_err(|status| DriveError::Agent {
                host: node.name.clone(),
                did: "cannot make directories",
                message: status.message().to_owned(),
            })?;
            Ok::<_, DriveError>((node.name.as_str(), paths, reply.into_inner().not_made))
        })
    });
    let (mut made, mut not_made) = (Vec::<(Bytes, Vec<&str>)>::new(), Vec::new());
    for answer in join_all(calls).await {
        let (host, paths, failures) = answer?;
        not_made.extend(failures.into_iter().map(|failure| {
            let path = String::from_utf8_lossy(&failure.path).into_owned();
            format!("{host}: directory {path} can't be made: {}", failure.why)
        }));
        for path in paths {
            match made.iter_mut().find(|(known, _)| *known == path) {
                Some((_, hosts)) => hosts.push(host),
                None => made.push((path, vec![host])),
            }
        }
    }
    if !not_made.is_empty() {
        return Err(DriveError::NotMade(not_made));
    }
    for (path, hosts) in made {
        let path = String::from_utf8_lossy(&path);
        note(&format!("{}: directory {path} is created", some(&hosts)));
    }
    Ok(())
}

/// What the programs of a node lack that is to be made there.
fn absent(
    settings: &Settings,
    allocation: &Allocation,
    placement: &Placement,
    place: &Node,
    node: &Reached,
) -> Vec<Bytes> {
    let mut paths = Vec::new();
    for &rank in &place.ranks {
        let index = placement.ranks[rank as usize].program as usize;
        let program = &settings.programs[index];
        if !program.create_directory || node.found(index).directory_exists {
            continue;
        }
        let start = Start::new(program, &allocation.hosts[place.host].details);
        let path = start.directory().into_os_string().into_encoded_bytes();
        let path = Bytes::from(path);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn some(hosts: &[&str]) -> String {
    let shown = hosts[..hosts.len().min(TOLD_MAX)].join(", ");
    match hosts.len().saturating_sub(TOLD_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
