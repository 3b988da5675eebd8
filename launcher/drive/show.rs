//! `--display-map` and `--dry-run`.

use std::io::Write;

use rlaunch_plan::environment::{self, Master};
use rlaunch_plan::map::Map;

use super::{DriveError, Plan};
use crate::settings::Settings;

/// The plan on stdout: here it is the data. Nothing is run.
pub(super) fn dry_run(settings: &Settings, plan: &Plan) -> Result<u8, DriveError> {
    let map = make(settings, plan);
    let mut text = if settings.json {
        map.to_json()
    } else {
        map.render()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if !settings.json {
        text.push_str(&variables(settings, plan));
    }
    // A reader that has seen enough is no failure.
    std::io::stdout().write_all(text.as_bytes()).ok();
    Ok(rlaunch_plan::exit_code::SUCCESS)
}

/// The map on stderr: stdout is the ranks'.
pub(super) fn map(settings: &Settings, plan: &Plan) {
    let map = make(settings, plan);
    let text = if settings.json {
        map.to_json()
    } else {
        map.render()
    };
    eprintln!("{}", text.trim_end());
}

fn make(settings: &Settings, plan: &Plan) -> Map {
    let master = plan
        .master
        .as_ref()
        .map(|master| match master.address.contains(':') {
            true => format!("[{}]:{}", master.address, master.port),
            false => format!("{}:{}", master.address, master.port),
        });
    let command = settings.program.shown();
    Map::new(
        plan.identity.short(),
        command,
        master,
        &plan.allocation,
        &plan.placement,
    )
}

fn variables(settings: &Settings, plan: &Plan) -> String {
    let from = if settings.overlay.clear {
        "nothing"
    } else {
        "its login environment"
    };
    let mut text = format!(
        "directory: {}\nenvironment on each host, over {from}:\n",
        settings.directory.display()
    );
    let mut lines: Vec<String> = settings
        .overlay
        .variables
        .iter()
        .map(|(name, value)| {
            let shown = environment::display_value(name, value);
            format!("  {}={shown}\n", String::from_utf8_lossy(name))
        })
        .collect();
    lines.sort();
    text.extend(lines);
    if !settings.overlay.dropped.is_empty() {
        let names: Vec<&str> = settings
            .overlay
            .dropped
            .iter()
            .map(|dropped| dropped.name.as_str())
            .collect();
        text.push_str(&format!("not passed: {}\n", names.join(" ")));
    }
    text.push_str("of rank 0:\n");
    let open = Master {
        address: "(chosen at launch)".into(),
        port: 0,
    };
    let master = plan.master.as_ref().unwrap_or(&open);
    for (name, value) in environment::rank_variables(&plan.placement, 0, master, &plan.identity.id)
    {
        let value = if name == "MASTER_PORT" && value == "0" {
            "(chosen at launch)"
        } else {
            &value
        };
        text.push_str(&format!("  {name}={value}\n"));
    }
    text
}
