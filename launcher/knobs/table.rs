//! The table of knobs, made from clap's.

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, Command, ValueHint};

/// An option, as files and variables know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// Its long name, and its key.
    pub name: String,
    /// `RLAUNCH_…`
    pub variable: String,
    pub kind: Kind,
    /// Relative ones in a file begin at that file's folder.
    pub is_path: bool,
    /// What it can be, where that is a short list.
    pub possible: Vec<String>,
    /// Not from a project's file: it would choose what runs, or whom to trust.
    pub own_only: bool,
    /// The heading of `--help` it stands under.
    pub heading: String,
    /// As typed: `--hostfile <FILE>`.
    pub typed: String,
    pub help: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// There or not.
    Switch,
    /// There so many times.
    Count,
    /// One value.
    Text,
    /// One value, or none.
    Optional,
    /// Several values.
    List,
}

/// What belongs to one command line alone.
pub(super) const NEVER: [&str; 6] = [
    "help",
    "version",
    "module",
    "dry-run",
    "display-map",
    "report-bindings",
];

/// What a project that one only looks into must not choose.
const OWN_ONLY: [&str; 5] = [
    "agent",
    "identity",
    "preload-replace",
    "ssh-accept-new",
    "ssh-program",
];

/// Names that mean something else to the runtime: `RLAUNCH_TIMEOUT` is a call's.
const VARIABLES: [(&str, &str); 2] = [
    ("timeout", "RLAUNCH_JOB_TIMEOUT"),
    ("agent", "RLAUNCH_AGENT_PATH"),
];

/// Lists whose sources add up.
pub(super) const ADDING_UP: [&str; 2] = ["export", "env-file"];

/// Options of which one speaks for both.
const ONE_THING: [&str; 2] = ["host", "hostfile"];

/// In the order of `--help`.
pub(crate) fn table(command: &Command) -> Vec<Knob> {
    command.get_arguments().filter_map(knob).collect()
}

/// Whether two names are one question.
pub(super) fn same(one: &str, other: &str) -> bool {
    one == other || (ONE_THING.contains(&one) && ONE_THING.contains(&other))
}

fn knob(argument: &Arg) -> Option<Knob> {
    let name = argument.get_long()?;
    if NEVER.contains(&name) || argument.is_hide_set() {
        return None;
    }
    let optional = argument
        .get_num_args()
        .is_some_and(|range: ValueRange| range.min_values() == 0);
    let kind = match argument.get_action() {
        ArgAction::SetTrue => Kind::Switch,
        ArgAction::Count => Kind::Count,
        ArgAction::Append => Kind::List,
        _ if optional => Kind::Optional,
        _ => Kind::Text,
    };
    let path = [
        ValueHint::AnyPath,
        ValueHint::FilePath,
        ValueHint::DirPath,
        ValueHint::ExecutablePath,
    ];
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let typed = match kind {
        Kind::Switch | Kind::Count => format!("--{name}"),
        Kind::Optional => format!("--{name}[={values}]"),
        Kind::Text | Kind::List => format!("--{name} {values}"),
    };
    Some(Knob {
        name: name.to_owned(),
        variable: variable(name),
        kind,
        is_path: path.contains(&argument.get_value_hint()),
        possible: argument
            .get_possible_values()
            .iter()
            .filter(|_| matches!(kind, Kind::Text | Kind::Optional | Kind::List))
            .map(|value| value.get_name().to_owned())
            .collect(),
        own_only: OWN_ONLY.contains(&name),
        heading: argument.get_help_heading().unwrap_or_default().to_owned(),
        typed,
        help: argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default(),
    })
}

fn variable(name: &str) -> String {
    let own = VARIABLES.iter().find(|(known, _)| *known == name);
    own.map_or_else(
        || format!("RLAUNCH_{}", name.to_uppercase().replace('-', "_")),
        |(_, variable)| (*variable).to_owned(),
    )
}
