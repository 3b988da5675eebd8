//! What only the hosts can answer: directory, interpreter, versions. Refused here, before any
//! rank starts, naming every host concerned.

use rlaunch_plan::Placement;
use rlaunch_plan::environment::DropReason;

use super::DriveError;
use super::reach::Reached;
use crate::program::Program;
use crate::settings::{Settings, dropped_names};
use crate::talk::say;

pub(super) fn stdin_rank(settings: &Settings, placement: &Placement) -> Result<(), DriveError> {
    let world = placement.ranks.len();
    match settings.streams.stdin_rank {
        Some(rank) if rank as usize >= world => Err(DriveError::NoStdinRank { rank, world }),
        _ => Ok(()),
    }
}

pub(super) fn hosts(settings: &Settings, nodes: &[Reached]) -> Result<(), DriveError> {
    let without = named(nodes, |node| !node.survey.directory_exists);
    if let Some(hosts) = without {
        let directory = settings.directory.display().to_string();
        return Err(DriveError::NoDirectory { hosts, directory });
    }
    if nodes.iter().any(|node| !node.local)
        && let Some(names) = dropped_names(&settings.overlay, |reason| reason == DropReason::Local)
    {
        say(&format!(
            "not passed to other hosts: {names}\nhint: -x NAME passes it"
        ));
    }
    if let Program::Python { named: wanted, .. } = &settings.program {
        if let Some(hosts) = named(nodes, |node| node.survey.python.is_empty()) {
            let python = wanted.clone().unwrap_or_else(|| "python3".to_owned());
            return Err(DriveError::NoPython { hosts, python });
        }
        if let Some(wanted) = wanted.as_deref().filter(|path| path.starts_with('/'))
            && let Some(hosts) = named(nodes, |node| node.survey.python != wanted)
        {
            return Err(DriveError::NoPython {
                hosts,
                python: wanted.to_owned(),
            });
        }
        warn_of_versions(nodes);
    }
    Ok(())
}

/// Hosts shown when many are concerned.
const SHOWN_MAX: usize = 8;

fn named(nodes: &[Reached], concerned: impl Fn(&Reached) -> bool) -> Option<String> {
    let names: Vec<&str> = nodes
        .iter()
        .filter(|node| concerned(node))
        .map(|node| node.name.as_str())
        .collect();
    match names.len() {
        0 => None,
        1..=SHOWN_MAX => Some(names.join(", ")),
        many => Some(format!(
            "{} and {} more",
            names[..SHOWN_MAX].join(", "),
            many - SHOWN_MAX
        )),
    }
}

/// Pickles and numerics may differ between versions; some jobs don't mind.
fn warn_of_versions(nodes: &[Reached]) {
    let first = &nodes[0];
    let other = nodes
        .iter()
        .find(|node| node.survey.python_version != first.survey.python_version);
    if let Some(other) = other {
        say(&format!(
            "warning: Python {} ({}) on {}, but {} ({}) on {}",
            first.survey.python_version,
            first.survey.python,
            first.name,
            other.survey.python_version,
            other.survey.python,
            other.name
        ));
    }
}
