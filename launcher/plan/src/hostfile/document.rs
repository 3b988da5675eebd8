//! The hostfile as TOML, for what lines can't say: defaults, and variables of one host.
//!
//! ```toml
//! [defaults]                    # of every host that does not say otherwise
//! slots = 8
//! user = "trainer"
//!
//! [[host]]
//! name = "node[01-16]"          # as in a line: ranges, user@, :N
//! gpus = [0, 1, 2, 3]
//! workdir = "/scratch/my job"
//!
//! [host.env]                    # variables of the ranks on these hosts
//! NCCL_IB_HCA = "mlx5_0,mlx5_1"
//! ```
//! The keys are the options of a line, with `-` or `_`. All mistakes of the file are gathered.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::Mistakes;
use super::line::{Line, line_error};
use super::merge::Merge;
use super::option::{self, Key};
use super::{HostEntry, HostfileError, LineError};
use crate::spec::SpecError;
use crate::text::{nearest, show};

const FORM: &str = "[defaults] and, for each host, [[host]] with name = \"node01\"";
const KEYS_FORM: &str = "name, slots, max-slots, port, user, gpus, nics, python, workdir or env";
const ENV_FORM: &str = "NAME = \"value\"";

pub(super) fn parse(file: &str, text: &str) -> Result<Vec<HostEntry>, HostfileError> {
    let mut reader = Reader {
        text,
        found: Vec::new(),
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let start = error.span().map_or(0, |span| span.start);
        reader.mistake(
            start,
            LineError {
                word: show(
                    text.get(start..)
                        .unwrap_or_default()
                        .lines()
                        .next()
                        .unwrap_or_default(),
                ),
                problem: show(&error.message().replace('\n', ", ")),
                expected: "TOML".to_owned(),
                hint: Some("lines stand in a file whose name does not end in .toml".to_owned()),
            },
        );
    }
    let mut merge = Merge::default();
    // A broken document would only give more of the same.
    if errors.is_empty() {
        reader.document(document.get_ref(), &mut merge);
    }
    reader.found.sort_by_key(|(offset, _)| *offset);
    let mut mistakes = Mistakes::default();
    for (offset, error) in reader.found {
        let (line, column) = position(text, offset);
        mistakes.push(line, (column, error));
    }
    mistakes.or(file, merge.finish())
}

struct Reader<'a> {
    text: &'a str,
    /// In bytes from the beginning of the text.
    found: Vec<(usize, LineError)>,
}

type Entry<'a, 'b> = (&'b str, usize, &'b Spanned<DeValue<'a>>);

fn entries<'a, 'b>(table: &'b DeTable<'a>) -> impl Iterator<Item = Entry<'a, 'b>> {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().as_ref(), key.span().start, value))
}

impl Reader<'_> {
    fn mistake(&mut self, offset: usize, error: LineError) {
        self.found.push((offset, error));
    }

    fn wrong(&mut self, offset: usize, word: &str, problem: &str, expected: &str) {
        self.wrong_with(offset, word, SpecError::new(0, problem), expected);
    }

    fn wrong_with(&mut self, offset: usize, word: &str, error: SpecError, expected: &str) {
        self.mistake(offset, line_error(word, error, expected));
    }

    fn document(&mut self, document: &DeTable<'_>, merge: &mut Merge) {
        let mut defaults = None;
        let mut hosts = Vec::new();
        for (key, at, value) in entries(document) {
            match (key, value.get_ref()) {
                ("defaults", DeValue::Table(table)) => defaults = Some(table),
                ("host" | "hosts", DeValue::Array(tables)) => hosts.extend(tables.iter()),
                ("host" | "hosts", DeValue::Table(_)) => {
                    self.wrong(at, key, "one pair of brackets", "[[host]] for each host");
                }
                _ => {
                    let error = SpecError::new(0, "unknown key");
                    let error = match nearest(key, &["defaults", "host"]) {
                        Some(meant) => error.hint(format!("did you mean {meant}?")),
                        None => error,
                    };
                    self.wrong_with(at, key, error, FORM);
                }
            }
        }
        if let Some(defaults) = defaults {
            let mut nobody = Line::new("nobody").expect("a plain name");
            self.options(defaults, &mut nobody, false);
        }
        for host in hosts {
            let at = host.span().start;
            let DeValue::Table(table) = host.get_ref() else {
                self.wrong(at, "host", "not a table", FORM);
                continue;
            };
            if let Some(line) = self.host(table, at, defaults) {
                let number = position(self.text, at).0;
                if let Err(error) = merge.add(&line, number) {
                    self.mistake(at, error);
                }
            }
        }
    }

    fn host(
        &mut self,
        table: &DeTable<'_>,
        at: usize,
        defaults: Option<&DeTable<'_>>,
    ) -> Option<Line> {
        let Some((_, _, name)) = entries(table).find(|(key, ..)| *key == "name") else {
            self.wrong(at, "[[host]]", "a host without a name", FORM);
            return None;
        };
        let offset = name.span().start;
        let Some(text) = name.get_ref().as_str() else {
            let kind = name.get_ref().type_str();
            self.wrong(
                offset,
                "name",
                &format!("of type {kind}"),
                "name = \"node01\"",
            );
            return None;
        };
        let mut line = match Line::new(text) {
            Ok(line) => line,
            Err((_, error)) => {
                self.mistake(offset, error);
                return None;
            }
        };
        let before = self.found.len();
        self.options(table, &mut line, true);
        if let Some(defaults) = defaults.filter(|_| before == self.found.len()) {
            self.defaults(defaults, &mut line);
        }
        if before < self.found.len() {
            return None;
        }
        line.finish(text)
            .map_err(|error| self.mistake(at, error))
            .ok()
            .map(|()| line)
    }

    /// Sets what the table says; of a host its name is known already.
    fn options(&mut self, table: &DeTable<'_>, line: &mut Line, named: bool) {
        for (key, at, value) in entries(table) {
            match (option::find(key), key) {
                (Some(option), _) => self.option(option, key, at, value, line),
                (None, "name") if named => {}
                (None, "env") => self.variables(at, value, line),
                (None, _) => {
                    let shown = text_of(None, value.get_ref()).unwrap_or_default();
                    self.wrong_with(at, key, option::unknown(key, &shown), KEYS_FORM);
                }
            }
        }
    }

    /// What the host leaves open. That the defaults are right was found before.
    fn defaults(&mut self, defaults: &DeTable<'_>, line: &mut Line) {
        let own = std::mem::take(&mut line.details.variables);
        for (key, at, value) in entries(defaults) {
            match option::find(key) {
                Some(option) if !option::is_set(line, option) => {
                    self.option(option, key, at, value, line);
                }
                None if key == "env" => self.variables(at, value, line),
                _ => {}
            }
        }
        let all = &mut line.details.variables;
        all.retain(|(name, _)| own.iter().all(|(known, _)| known != name));
        all.extend(own);
        all.sort();
    }

    fn option(
        &mut self,
        option: Key,
        key: &str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
        line: &mut Line,
    ) {
        let Some(text) = text_of(Some(option), value.get_ref()) else {
            let kind = value.get_ref().type_str();
            self.wrong(
                at,
                key,
                &format!("can't be of type {kind}"),
                option::form(option),
            );
            return;
        };
        if let Err((error, expected)) = option::set(line, option, key, &text, 0) {
            let word = format!("{key} = {text}");
            self.wrong_with(at, &word, error, expected);
        }
    }

    fn variables(&mut self, at: usize, value: &Spanned<DeValue<'_>>, line: &mut Line) {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong(at, "env", "not a table", ENV_FORM);
            return;
        };
        for (name, at, value) in entries(table) {
            let good = !name.is_empty() && !name.contains(['=', '\0']);
            match value.get_ref().as_str() {
                Some(text) if good && !text.contains('\0') => {
                    line.details
                        .variables
                        .push((name.to_owned(), text.to_owned()));
                }
                Some(_) => self.wrong(at, name, "no name or value of a variable", ENV_FORM),
                None => {
                    let kind = value.get_ref().type_str();
                    self.wrong(at, name, &format!("of type {kind}, not text"), ENV_FORM);
                }
            }
        }
    }
}

/// A value as it would stand in a line.
fn text_of(option: Option<Key>, value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        DeValue::Array(items) if matches!(option, Some(Key::Gpus | Key::Nics)) => {
            let items = items.iter().map(|item| match item.get_ref() {
                DeValue::Array(_) => None,
                item => text_of(None, item),
            });
            let items: Vec<String> = items.collect::<Option<_>>()?;
            match items.as_slice() {
                [] if option == Some(Key::Gpus) => Some("none".to_owned()),
                // In brackets a number alone can't be meant as a count.
                [lone] if lone.parse::<u32>().is_ok() => Some(format!("{lone}-{lone}")),
                items => Some(items.join(",")),
            }
        }
        _ => None,
    }
}

/// Line and column, from 1, the column in characters.
fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[start..].chars().count() + 1;
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    (number(line), number(column))
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
