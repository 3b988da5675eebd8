//! `--dry-run`: a program that this machine, as a host of the job, has not.
//!
//! What other hosts have is not asked, since nothing is contacted for a plan.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rlaunch_plan::placement::Node;
use rlaunch_remote::is_this_machine;

use super::Plan;
use super::start::Start;
use crate::program::{Program, is_executable, printable};
use crate::settings::Settings;
use crate::talk::note;

pub(super) fn tell(settings: &Settings, plan: &Plan) {
    // Files that are still to be brought may be what is run.
    if settings.remote.never_local || !settings.preload.paths.is_empty() {
        return;
    }
    for (index, program) in settings.programs.iter().enumerate() {
        let host = |node: &Node| &plan.allocation.hosts[node.host];
        let runs_here = |node: &&Node| {
            let ranks = &plan.placement.ranks;
            let mut own = node.ranks.iter().map(|rank| ranks[*rank as usize].program);
            is_this_machine(&host(node).host.name) && own.any(|own| own as usize == index)
        };
        let Some(node) = plan.placement.nodes.iter().find(runs_here) else {
            continue;
        };
        let start = Start::new(program, &host(node).details);
        if let Some(word) = absent(&program.program, &start) {
            let host = &host(node).host.name;
            note(&format!(
                "{host} has no program {}: a run would end with 127",
                printable(word)
            ));
        }
    }
}

/// The program's first word, if nothing that can be run is behind it. What a script's Python lacks is
/// told by it.
fn absent<'a>(program: &'a Program, start: &Start<'_>) -> Option<&'a OsStr> {
    let Program::Command(argv) = program else {
        return None;
    };
    let word = argv.first()?;
    let directory = start.directory();
    if word.as_bytes().contains(&b'/') {
        // One that is there and can't be run has another code.
        return (!directory.join(word).exists()).then_some(word);
    }
    let environment = start.environment();
    let own = environment.iter().find(|(name, _)| name == b"PATH");
    let path = match own {
        Some((_, path)) => OsStr::from_bytes(path).to_owned(),
        None => std::env::var_os("PATH")?,
    };
    let found = std::env::split_paths(&path)
        .any(|folder| is_executable(&directory.join(folder).join(word)));
    (!found).then_some(word)
}
