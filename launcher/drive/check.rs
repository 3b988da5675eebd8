//! What only the hosts can answer: directory, interpreter, versions. Refused here, before any
//! rank starts, naming every host concerned.

use rlaunch_control::v1;
use rlaunch_plan::Placement;
use rlaunch_plan::allocation::Allocation;
use rlaunch_plan::details::HostDetails;
use rlaunch_plan::environment::{DropReason, is_rdma_device};
use rlaunch_plan::placement::Node;

use super::DriveError;
use super::reach::Reached;
use super::start::Start;
use crate::output::Files;
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
    allocation: &Allocation,
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
            .map(|(place, node)| Found {
                host: node.name.as_str(),
                start: Start::new(program, &allocation.hosts[place.host].details),
                found: node.found(index),
            })
            .collect();
        directory(settings, program, &here)?;
        interpreter(&here)?;
    }
    for (place, node) in placement.nodes.iter().zip(nodes) {
        interfaces(&allocation.hosts[place.host].details, node)?;
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

/// What one host has of a program that runs there.
struct Found<'a> {
    host: &'a str,
    start: Start<'a>,
    found: v1::ProgramFound,
}

/// The user's own is there or refused; `--wdir` is made later.
fn directory(
    settings: &Settings,
    program: &ProgramSettings,
    here: &[Found<'_>],
) -> Result<(), DriveError> {
    let lacks = |one: &&Found<'_>| !one.found.directory_exists;
    let Some(first) = here.iter().find(lacks) else {
        return Ok(());
    };
    let absent = first.start.directory();
    let directory = absent.display().to_string();
    let lack_it = |one: &Found<'_>| lacks(&one) && one.start.directory() == absent;
    let hosts = named(here, lack_it).expect("one was found");
    if !program.create_directory {
        return Err(DriveError::NoDirectory { hosts, directory });
    }
    if settings.dry_run {
        note(&format!("{hosts}: directory {directory} would be created"));
    }
    Ok(())
}

fn interpreter(here: &[Found<'_>]) -> Result<(), DriveError> {
    // The agent searches PATH for a name without a slash when it starts the ranks.
    let lacks = |one: &Found<'_>| match one.start.named_python() {
        Some(path) if path.starts_with('/') => one.found.python != path,
        _ => !one.start.asked().python.is_empty() && one.found.python.is_empty(),
    };
    if let Some(first) = here.iter().find(|one| lacks(one)) {
        let python = first.start.named_python().unwrap_or("python3").to_owned();
        let alike =
            |one: &Found<'_>| lacks(one) && one.start.named_python() == first.start.named_python();
        let hosts = named(here, alike).expect("one was found");
        return Err(DriveError::NoPython { hosts, python });
    }
    warn_of_versions(here);
    Ok(())
}

/// `nics=` names what the host has.
fn interfaces(details: &HostDetails, node: &Reached) -> Result<(), DriveError> {
    let has = |nic: &str| node.survey.interfaces.iter().any(|it| it.name == nic);
    let mut named = details.nics.iter().filter(|nic| !is_rdma_device(nic));
    let Some(absent) = named.find(|nic| !has(nic)) else {
        return Ok(());
    };
    let there = node.survey.interfaces.iter().filter(|it| !it.loopback);
    let there: Vec<&str> = there.map(|it| it.name.as_str()).collect();
    Err(DriveError::NoInterface {
        host: node.name.clone(),
        interface: absent.clone(),
        there: there.join(", "),
    })
}

/// Hosts shown when many are concerned.
const SHOWN_MAX: usize = 8;

fn named(here: &[Found<'_>], concerned: impl Fn(&Found<'_>) -> bool) -> Option<String> {
    let names: Vec<&str> = here
        .iter()
        .filter(|one| concerned(one))
        .map(|one| one.host)
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
    let Some(first) = here.first() else {
        return;
    };
    let version = |one: &Found<'_>| one.found.python_version.clone();
    if let Some(other) = here.iter().find(|one| version(one) != version(first)) {
        note(&format!(
            "warning: Python {} ({}) on {}, but {} ({}) on {}",
            version(first),
            first.found.python,
            first.host,
            version(other),
            other.found.python,
            other.host,
        ));
    }
}
