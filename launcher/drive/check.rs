//! What only the hosts can answer: directory, interpreter, versions. Refused here, before any
//! rank starts, naming every host concerned.

use rlaunch_control::v1;
use rlaunch_plan::Placement;
use rlaunch_plan::environment::DropReason;
use rlaunch_plan::placement::Node;

use super::DriveError;
use super::reach::Reached;
use crate::output::Files;
use crate::program::Program;
use crate::settings::{ProgramSettings, Settings, dropped_names};
use crate::talk::note;

/// Ranks that options name.
pub(super) fn ranks(settings: &Settings, placement: &Placement) -> Result<(), DriveError> {
    let world = placement.ranks.len();
    for (option, rank) in settings.named_ranks() {
        if rank as usize >= world {
            return Err(DriveError::NoSuchRank {
                option,
                rank,
                world,
            });
        }
    }
    Ok(())
}

/// Before hosts are contacted: the wrong name is told at once.
pub(super) fn output_directory(settings: &Settings) -> Result<(), DriveError> {
    if let Some(path) = &settings.streams.output_directory {
        Files::make_directory(path)?;
    }
    Ok(())
}

pub(super) fn hosts(
    settings: &Settings,
    placement: &Placement,
    nodes: &[Reached],
) -> Result<(), DriveError> {
    for (index, program) in settings.programs.iter().enumerate() {
        let runs_on = |node: &Node| {
            let ranks = node.ranks.iter();
            let mut programs = ranks.map(|&rank| placement.ranks[rank as usize].program);
            programs.any(|program| program as usize == index)
        };
        let here: Vec<Found<'_>> = placement
            .nodes
            .iter()
            .zip(nodes)
            .filter(|(node, _)| runs_on(node))
            .map(|(_, node)| (node.name.as_str(), node.found(index)))
            .collect();
        directory(settings, program, &here)?;
        interpreter(program, &here)?;
    }
    let overlays = settings.programs.iter().map(|program| &program.overlay);
    let mut dropped =
        overlays.filter_map(|overlay| dropped_names(overlay, |reason| reason == DropReason::Local));
    if nodes.iter().any(|node| !node.local)
        && let Some(names) = dropped.next()
    {
        note(&format!(
            "not passed to other hosts: {names}\nhint: -x NAME passes it"
        ));
    }
    Ok(())
}

/// A host's name, and what it has of a program.
type Found<'a> = (&'a str, v1::ProgramFound);

/// The user's own is there or refused; `--wdir` is made, and that is said.
fn directory(
    settings: &Settings,
    program: &ProgramSettings,
    here: &[Found<'_>],
) -> Result<(), DriveError> {
    let Some(hosts) = named(here, |found| !found.directory_exists) else {
        return Ok(());
    };
    let directory = program.directory.display().to_string();
    if !program.create_directory {
        return Err(DriveError::NoDirectory { hosts, directory });
    }
    let will = if settings.dry_run { "would be" } else { "is" };
    note(&format!("{hosts}: directory {directory} {will} created"));
    Ok(())
}

fn interpreter(program: &ProgramSettings, here: &[Found<'_>]) -> Result<(), DriveError> {
    let Program::Python { named: wanted, .. } = &program.program else {
        return Ok(());
    };
    if let Some(hosts) = named(here, |found| found.python.is_empty()) {
        let python = wanted.clone().unwrap_or_else(|| "python3".to_owned());
        return Err(DriveError::NoPython { hosts, python });
    }
    if let Some(wanted) = wanted.as_deref().filter(|path| path.starts_with('/'))
        && let Some(hosts) = named(here, |found| found.python != wanted)
    {
        let python = wanted.to_owned();
        return Err(DriveError::NoPython { hosts, python });
    }
    warn_of_versions(here);
    Ok(())
}

/// Hosts shown when many are concerned.
const SHOWN_MAX: usize = 8;

fn named(here: &[Found<'_>], concerned: impl Fn(&v1::ProgramFound) -> bool) -> Option<String> {
    let names: Vec<&str> = here
        .iter()
        .filter(|(_, found)| concerned(found))
        .map(|(name, _)| *name)
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
fn warn_of_versions(here: &[Found<'_>]) {
    let Some((first_name, first)) = here.first() else {
        return;
    };
    let differs = |(_, found): &&Found<'_>| found.python_version != first.python_version;
    if let Some((name, other)) = here.iter().find(differs) {
        note(&format!(
            "warning: Python {} ({}) on {first_name}, but {} ({}) on {name}",
            first.python_version, first.python, other.python_version, other.python,
        ));
    }
}
