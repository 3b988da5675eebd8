//! `rlaunch.toml`: the long names of options, and their values.
//!
//! ```toml
//! hostfile = "hosts"              # relative to this file
//! tag-output = true
//! timeout = "2h"                  # or a number of seconds
//! export = ["NCCL_*", "WANDB_MODE=offline"]
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::KnobError;
use super::find::Found;
use super::merge::{Layer, Origin, Setting};
use super::table::{Kind, Knob};

/// More is surely no file of settings.
const BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(found: &Found, knobs: &[Knob]) -> Result<Layer, KnobError> {
    use std::io::Read;
    let path = &found.path;
    let unreadable = |error| KnobError::Unreadable {
        path: path.clone(),
        error,
    };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(unreadable(std::io::Error::other("too long")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable(std::io::Error::other("not UTF-8 text")))?;
    parse(found, &text, knobs)
}

pub(super) fn parse(found: &Found, text: &str, knobs: &[Knob]) -> Result<Layer, KnobError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shown = found.path.display().to_string();
    let mut wrong: Vec<(usize, String)> = Vec::new();
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let start = error.span().map_or(0, |span| span.start);
        wrong.push((start, error.message().replace('\n', ", ")));
    }
    let mut layer = Layer::default();
    // A broken document would only give more of the same.
    for (key, value) in document.get_ref().iter().filter(|_| errors.is_empty()) {
        let start = key.span().start;
        match setting(found, key.get_ref(), value, knobs) {
            Ok((name, values)) => {
                let line = position(text, start).0;
                let origin = Origin::File(format!("{shown}:{line}"));
                layer.insert(name, Setting { values, origin });
            }
            Err(problem) => wrong.push((start, problem)),
        }
    }
    if wrong.is_empty() {
        return Ok(layer);
    }
    wrong.sort_by_key(|(start, _)| *start);
    let lines = wrong.into_iter().map(|(start, problem)| {
        let (line, column) = position(text, start);
        format!("{shown}:{line}:{column}: {problem}")
    });
    Err(KnobError::mistakes(&shown, lines.collect()))
}

/// The option's name, and what would be typed as its values.
fn setting<'a>(
    found: &Found,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    knobs: &'a [Knob],
) -> Result<(&'a str, Vec<OsString>), String> {
    let name = key.replace('_', "-");
    let Some(knob) = knobs.iter().find(|knob| knob.name == name) else {
        return Err(unknown(key, &name, knobs));
    };
    if knob.own_only && !found.own {
        return Err(format!(
            "`{key}` can't be chosen by a project's file; it stands in your own, in {}, or is typed",
            knob.variable
        ));
    }
    let values = values(knob, value.get_ref()).map_err(|problem| format!("`{key}`: {problem}"))?;
    let folder = found.path.parent().unwrap_or(Path::new("/"));
    let values = values.into_iter().map(|value| match knob.is_path {
        true => at(folder, value),
        false => value,
    });
    Ok((&knob.name, values.collect()))
}

fn unknown(key: &str, name: &str, knobs: &[Knob]) -> String {
    if super::table::NEVER.contains(&name) {
        return format!("`{key}` is of one command line, no setting");
    }
    let names = knobs.iter().map(|knob| knob.name.as_str());
    match crate::cli::suggest(name, names) {
        Some(meant) => format!("unknown setting `{key}`, did you mean `{meant}`?"),
        None => format!("unknown setting `{key}`; `rlaunch settings` lists all"),
    }
}

/// The values behind the option's name: none for a switch that is on, an empty list of words is made
/// of one that is off.
fn values(knob: &Knob, value: &DeValue<'_>) -> Result<Vec<OsString>, String> {
    let wrong = |expected: &str| format!("expected {expected}, found {}", kind(value));
    match (knob.kind, value) {
        (Kind::Switch | Kind::Optional | Kind::Count, DeValue::Boolean(on)) => {
            Ok(Setting::switch(*on))
        }
        (Kind::Switch, _) => Err(wrong("true or false")),
        (Kind::Count, DeValue::Integer(_)) => text(value)
            .and_then(|number| Setting::count(&number))
            .ok_or_else(|| wrong("a small number")),
        (Kind::Count, _) => Err(wrong("a number")),
        (Kind::List, DeValue::Array(items)) => items
            .iter()
            .map(|item| {
                let item = item.get_ref();
                let text = text(item).ok_or_else(|| wrong("a list of texts"))?;
                knob.accept(text.into())
            })
            .collect(),
        (Kind::Text | Kind::Optional | Kind::List, _) => {
            let text = text(value).ok_or_else(|| wrong("text"))?;
            Ok(vec![knob.accept(text.into())?])
        }
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
        DeValue::Datetime(_) => "a date",
    }
}

/// A path of the file as the launcher can open it from anywhere; a bare program name stays.
fn at(folder: &Path, value: OsString) -> OsString {
    let path = Path::new(&value);
    if path.is_absolute() {
        return value;
    }
    let bytes = folder.join(path).into_os_string().into_vec();
    OsString::from_vec(bytes)
}

/// Line and column, from 1, the column in characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[start..].chars().count() + 1,
    )
}
