//! `RLAUNCH_NAME=VALUE` for each option.
//!
//! An empty variable is as none. Switches take 1, true, yes, on and their opposites. Lists are parted
//! by commas, lists of paths by colons.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::error::{At, Mistake};
use super::merge::{Layer, Origin, Setting};
use super::table::{Kind, Knob};

pub(super) fn read(
    variables: &[(OsString, OsString)],
    knobs: &[Knob],
    wrong: &mut Vec<Mistake>,
) -> Layer {
    let mut layer = Layer::default();
    for (variable, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
        let Some(knob) = knobs.iter().find(|knob| *variable == *knob.variable) else {
            continue;
        };
        match values(knob, value) {
            Ok(values) => {
                let origin = Origin::Variable(knob.variable.clone());
                layer.insert(&knob.name, Setting { values, origin });
            }
            Err(problem) => {
                let (name, value) = (&knob.variable, value.to_string_lossy());
                let text = format!("the environment variable {name}={value}: {problem}");
                wrong.push(Mistake {
                    at: At::Variable,
                    text,
                });
            }
        }
    }
    layer
}

fn values(knob: &Knob, value: &OsStr) -> Result<Vec<OsString>, String> {
    let on = value.to_str().and_then(switch);
    match (knob.kind, on) {
        (Kind::Switch | Kind::Optional | Kind::Count, Some(on)) => Ok(Setting::switch(on)),
        (Kind::Switch, None) => Err("expected 1 or 0".to_owned()),
        (Kind::Count, None) => value
            .to_str()
            .and_then(Setting::count)
            .ok_or_else(|| "expected a small number".to_owned()),
        (Kind::Text | Kind::Optional, _) => Ok(vec![knob.accept(value.to_owned())?]),
        (Kind::List, _) => {
            let between = if knob.is_path { b':' } else { b',' };
            // A list of hosts is parted where it is understood: commas stand in brackets too.
            if knob.name == "host" {
                return Ok(vec![value.to_owned()]);
            }
            value
                .as_bytes()
                .split(|&byte| byte == between)
                .filter(|part| !part.is_empty())
                .map(|part| knob.accept(OsString::from_vec(part.to_vec())))
                .collect()
        }
    }
}

/// What people write for on and off.
pub(crate) fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
