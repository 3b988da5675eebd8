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

use super::error::{At, Mistake};
use super::find::Found;
use super::merge::{Layer, Origin, Setting};
use super::table::{Kind, Knob};

/// More is surely no file of settings.
const BYTES_MAX: u64 = 1 << 20;

pub(super) fn read(found: &Found, knobs: &[Knob], wrong: &mut Vec<Mistake>) -> Layer {
    match text_of(&found.path) {
        Ok(text) => parse(found, &text, knobs, wrong),
        Err(error) => {
            let path = found.path.display().to_string();
            let text = format!("{path}: {error}");
            let at = At::File { path, line: 0 };
            wrong.push(Mistake { at, text });
            Layer::default()
        }
    }
}

fn text_of(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| crate::files::why(path, error))?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(std::io::Error::other("too long"));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("not UTF-8 text"))
}

/// What is right; what is not is added to `wrong`.
pub(super) fn parse(found: &Found, text: &str, knobs: &[Knob], wrong: &mut Vec<Mistake>) -> Layer {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let path = found.path.display().to_string();
    let mut tell = |start: usize, problem: String| {
        let (line, column) = position(text, start);
        let at = At::File {
            path: path.clone(),
            line,
        };
        let text = format!("{path}:{line}:{column}: {problem}");
        wrong.push(Mistake { at, text });
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let start = error.span().map_or(0, |span| span.start);
        tell(start, error.message().replace('\n', ", "));
    }
    let mut layer = Layer::default();
    // A broken document would only give more of the same.
    for (key, value) in document.get_ref().iter().filter(|_| errors.is_empty()) {
        let start = key.span().start;
        match setting(found, key.get_ref(), value, knobs) {
            Ok((name, values)) => {
                let origin = Origin::File {
                    path: path.clone(),
                    line: position(text, start).0,
                };
                layer.insert(name, Setting { values, origin });
            }
            Err(problem) => tell(start, problem),
        }
    }
    layer
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
    let path = crate::files::from_home(Path::new(&value));
    if path.is_absolute() {
        return path.into_os_string();
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
