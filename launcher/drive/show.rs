//! `--display-map` and `--dry-run`.

use rlaunch_plan::environment::{self, Master};
use rlaunch_plan::map::{Map, ProgramShown, RankShown, Shown};

use super::start::Start;
use super::{Plan, absent};
use crate::report::Reporter;
use crate::settings::{ProgramSettings, Settings};
use crate::talk;

/// What stands for a value that is not known before the job is started.
const LATER: &str = "(chosen at launch)";

/// The plan on stdout: here it is the data. Nothing is run.
pub(super) fn dry_run(settings: &Settings, plan: &Plan, report: &mut Reporter) -> u8 {
    let map = make(settings, plan);
    let text = if settings.json.is_some() {
        map.to_json() + "\n"
    } else {
        map.render() + &variables(&map)
    };
    absent::tell(settings, plan);
    report.show_plan(text)
}

/// The map on stderr, for people: stdout is the ranks', and `--json` has it in the report.
pub(super) fn map(settings: &Settings, plan: &Plan) {
    let map = make(settings, plan);
    talk::show(map.render().trim_end());
}

pub(super) fn make(settings: &Settings, plan: &Plan) -> Map {
    let master = plan
        .master
        .as_ref()
        .map(|master| match master.address.contains(':') {
            true => format!("[{}]:{}", master.address, master.port),
            false => format!("{}:{}", master.address, master.port),
        });
    let ranks = (0..).zip(&plan.placement.ranks);
    Map::new(
        plan.identity.short(),
        master,
        &plan.allocation,
        &plan.placement,
        settings.programs.iter().map(program_shown).collect(),
        ranks
            .map(|(rank, _)| rank_shown(settings, plan, rank))
            .collect(),
    )
}

fn program_shown(program: &ProgramSettings) -> ProgramShown {
    let overlay = &program.overlay;
    ProgramShown {
        command: program.program.words(),
        line: program.program.shown().join(" "),
        directory: program.directory.display().to_string(),
        login_environment: !overlay.clear,
        environment: shown(&overlay.variables),
        not_passed: overlay
            .dropped
            .iter()
            .map(|dropped| dropped.name.clone())
            .collect(),
    }
}

fn rank_shown(settings: &Settings, plan: &Plan, rank: u32) -> RankShown {
    let open = Master {
        address: LATER.to_owned(),
        port: 0,
    };
    let place = plan.placement.ranks[rank as usize];
    let details = &plan.allocation.hosts[place.host].details;
    let start = Start::new(&settings.programs[place.program as usize], details);
    let mut environment: Shown = shown(&start.host_variables());
    environment.extend(plan.rank_variables(rank, &open));
    if plan.master.is_none() {
        environment.insert("MASTER_PORT".to_owned(), LATER.to_owned());
    }
    RankShown {
        cores: plan.cores[rank as usize].clone(),
        directory: start.directory().display().to_string(),
        environment,
    }
}

fn shown(variables: &[environment::Variable]) -> Shown {
    variables
        .iter()
        .map(|(name, value)| {
            let shown = environment::display_value(name, value);
            (String::from_utf8_lossy(name).into_owned(), shown)
        })
        .collect()
}

/// The variables of each program and of its first rank.
fn variables(map: &Map) -> String {
    let mut text = String::new();
    let list = |shown: &Shown, text: &mut String| {
        for (name, value) in shown {
            text.push_str(&format!("  {name}={value}\n"));
        }
    };
    for (index, program) in map.programs.iter().enumerate() {
        if map.programs.len() > 1 {
            text.push_str(&format!("program {index}:\n"));
        }
        let what = &program.what;
        let from = if what.login_environment {
            "its login environment"
        } else {
            "nothing"
        };
        text.push_str(&format!(
            "directory: {}\nenvironment on each host, over {from}:\n",
            what.directory
        ));
        list(&what.environment, &mut text);
        if !what.not_passed.is_empty() {
            text.push_str(&format!("not passed: {}\n", what.not_passed.join(" ")));
        }
        let first = program.first_rank;
        text.push_str(&format!("of rank {first}:\n"));
        list(&map.ranks[first as usize].environment, &mut text);
    }
    text
}
