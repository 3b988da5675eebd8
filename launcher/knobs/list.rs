//! All knobs, for people (`rlaunch settings`), the manual and the runtime's table of names.

use super::find::VARIABLE;
use super::merge::Layers;
use super::table::{Kind, Knob};

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What is set here, and by what.
    Here,
    /// A page of the manual.
    Markdown,
    /// A table of names in Rust.
    Names,
}

pub fn list(layers: &Layers, format: Format) -> String {
    match format {
        Format::Here => here(layers),
        Format::Markdown => markdown(&layers.knobs),
        Format::Names => names(&layers.knobs),
    }
}

fn here(layers: &Layers) -> String {
    let mut text = String::new();
    for knob in &layers.knobs {
        let settings = layers.settings(knob, false);
        let line = match settings.last() {
            None => format!("# {}\n", knob.name),
            Some(nearest) => {
                let values = settings.iter().flat_map(|setting| &setting.values);
                let values: Vec<String> = values
                    .map(|value| format!("{:?}", value.to_string_lossy()))
                    .collect();
                let shown = match knob.kind {
                    Kind::Switch => (!values.is_empty()).to_string(),
                    Kind::Count => values.len().to_string(),
                    Kind::List => format!("[{}]", values.join(", ")),
                    Kind::Text | Kind::Optional if values.is_empty() => "false".to_owned(),
                    Kind::Text | Kind::Optional => values.join(", "),
                };
                format!("{} = {shown}    # {}\n", knob.name, nearest.origin)
            }
        };
        text.push_str(&line);
    }
    text
}

fn markdown(knobs: &[Knob]) -> String {
    let mut text = "\
<!-- Made by `cargo x gen` from the options themselves. -->
# Every setting

Each option is also a key of `rlaunch.toml` and a variable: [settings.md](settings.md) tells how.
"
    .to_owned();
    let mut heading = "";
    for knob in knobs {
        if knob.heading != heading {
            heading = &knob.heading;
            text.push_str(&format!(
                "\n## {heading}\n| option | `rlaunch.toml` | variable | |\n|---|---|---|---|\n"
            ));
        }
        let form = match knob.kind {
            Kind::Switch => "true".to_owned(),
            Kind::Count => "1".to_owned(),
            Kind::Text | Kind::Optional => "\"…\"".to_owned(),
            Kind::List => "[\"…\"]".to_owned(),
        };
        let own = if knob.own_only {
            " (not from a project's file)"
        } else {
            ""
        };
        let possible = match knob.possible.as_slice() {
            [] => String::new(),
            possible => format!(" [{}]", possible.join(", ")),
        };
        let help = format!("{}{possible}{own}", knob.help).replace('|', "\\|");
        text.push_str(&format!(
            "| `{}` | `{} = {form}` | `{}` | {help} |\n",
            knob.typed, knob.name, knob.variable
        ));
    }
    text
}

fn names(knobs: &[Knob]) -> String {
    let mut names: Vec<&str> = knobs.iter().map(|knob| knob.variable.as_str()).collect();
    names.push(VARIABLE);
    names.sort_unstable();
    let rows: String = names
        .iter()
        .map(|name| format!("    {name:?},\n"))
        .collect();
    format!(
        "//! Variables of the launcher, made by `cargo x gen` from its options.\n\n\
         pub const LAUNCHER: [&str; {}] = [\n{rows}];\n",
        names.len()
    )
}
