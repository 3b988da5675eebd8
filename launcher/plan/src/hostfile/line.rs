//! One line of a hostfile: a host, then its options.

use super::LineError;
use crate::spec::{self, Spec, SpecError, SpecSlots};
use crate::text::{nearest, show};

const OPTIONS: [&str; 4] = ["slots", "port", "max_slots", "max-slots"];
const OPTIONS_FORM: &str = "slots=N, port=N or max_slots=N";
const HOST_FORM: &str = "a host: name, name:N, user@name, name[01-04] or [IPv6]";

const COLON_FORM: &str = "name:N for N slots";

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) spec: Spec,
    pub(super) slots: Option<u32>,
    pub(super) max_slots: Option<u32>,
    pub(super) port: Option<u16>,
}

/// Where a word begins, in bytes, and the word.
type Word<'a> = (usize, &'a str);

/// An error and its column, from 1, in characters.
pub(super) type Located = (u32, LineError);

/// `Ok(None)` for a line without a word. `text` has no line end.
pub(super) fn parse(text: &str) -> Result<Option<Line>, Located> {
    let meant = text
        .split('#')
        .next()
        .expect("split gives at least one part");
    let words = words(meant);
    let Some((&(start, first), options)) = words.split_first() else {
        return Ok(None);
    };
    let at = |offset: usize| column(text, offset);
    let spec = spec::parse(first).map_err(|error| {
        let column = at(start + error.offset);
        let before = first
            .get(error.offset.saturating_sub(1)..)
            .unwrap_or_default();
        let expected = if before.starts_with(':') {
            COLON_FORM
        } else {
            HOST_FORM
        };
        (column, line_error(first, error, expected))
    })?;
    let slots = match spec.slots {
        None => None,
        Some(SpecSlots::Number(slots)) => Some(slots),
        Some(SpecSlots::All) => {
            let error = SpecError::new(0, "`:*` is for -H alone")
                .hint("a host without a number has as many slots as GPUs, else cores");
            return Err((at(start), line_error(first, error, HOST_FORM)));
        }
    };
    let mut line = Line {
        spec,
        slots,
        max_slots: None,
        port: None,
    };
    for (index, &(start, word)) in options.iter().enumerate() {
        line.option(word, &options[index + 1..])
            .map_err(|(error, expected)| {
                (at(start + error.offset), line_error(word, error, expected))
            })?;
    }
    if let (Some(slots), Some(max)) = (line.slots, line.max_slots)
        && slots > max
    {
        let error = SpecError::new(0, format!("slots={slots} is more than max_slots={max}"));
        return Err((at(start), line_error(first, error, "slots up to max_slots")));
    }
    Ok(Some(line))
}

impl Line {
    fn option(&mut self, word: &str, rest: &[Word<'_>]) -> Result<(), (SpecError, &'static str)> {
        let Some((key, value)) = word.split_once('=') else {
            return Err((not_an_option(word, rest), OPTIONS_FORM));
        };
        let offset = key.len() + 1;
        if !OPTIONS.contains(&key) {
            return Err((unknown_option(key, value), OPTIONS_FORM));
        }
        if value.is_empty() {
            let error = SpecError::new(0, format!("{key}= without a number"));
            let error = match blanks_around_equals(key, rest) {
                Some(hint) => error.hint(hint),
                None => error,
            };
            return Err((error, OPTIONS_FORM));
        }
        let number = spec::number(value, offset, key).map_err(|error| (error, OPTIONS_FORM))?;
        let twice = SpecError::new(0, format!("{key} is given twice for this host"));
        match key {
            "slots" if self.slots.is_some() => Err((twice, "slots once, as :N or slots=N")),
            "slots" => {
                self.slots = Some(number);
                Ok(())
            }
            "port" => match u16::try_from(number) {
                _ if self.port.is_some() => Err((twice, "one port")),
                Ok(port) if port > 0 => {
                    self.port = Some(port);
                    Ok(())
                }
                _ => {
                    let error = SpecError::new(offset, format!("there is no port {number}"));
                    Err((error, "port=N with N from 1 to 65535"))
                }
            },
            _ if self.max_slots.is_some() => Err((twice, "one max_slots")),
            _ => {
                self.max_slots = Some(number);
                Ok(())
            }
        }
    }
}

/// A word without `=`: a blank too many, a bare number, or a second host.
fn not_an_option(word: &str, rest: &[Word<'_>]) -> SpecError {
    let error = SpecError::new(0, "not an option of a host");
    match nearest(word, &OPTIONS) {
        Some(option) => match blanks_around_equals(option, rest) {
            Some(hint) => error.hint(hint),
            None => error.hint(format!("write {option}=N")),
        },
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => {
            error.hint(format!("for {} slots write slots={0}", show(word)))
        }
        None => error.hint("one host a line"),
    }
}

/// `slots = 4`, `slots =4`, `slots= 4`: what stands behind `slots` or `slots=`.
fn blanks_around_equals(key: &str, rest: &[Word<'_>]) -> Option<String> {
    let behind: String = rest.iter().take(2).map(|&(_, word)| word).collect();
    let value = behind.strip_prefix('=').unwrap_or(&behind);
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| format!("no blanks around `=`: {key}={}", show(&value[..digits])))
}

fn unknown_option(key: &str, value: &str) -> SpecError {
    let error = SpecError::new(0, format!("unknown option `{}`", show(key)));
    let value = show(value);
    match key {
        "user" | "username" => {
            error.hint(format!("write the user before the host: {value}@node01"))
        }
        "gpus" | "gpu" | "cpu" | "cpus" | "ncpus" | "np" | "count" | "ppn" => {
            error.hint(format!("did you mean slots={value}?"))
        }
        _ => match nearest(key, &OPTIONS) {
            Some(option) => error.hint(format!("did you mean {option}={value}?")),
            None => error,
        },
    }
}

fn line_error(word: &str, error: SpecError, expected: &str) -> LineError {
    LineError {
        word: show(word),
        problem: error.problem,
        expected: expected.to_owned(),
        hint: error.hint,
    }
}

/// The words of a line and where each begins, in bytes.
fn words(text: &str) -> Vec<Word<'_>> {
    let blank = |character: char| character.is_ascii_whitespace();
    let mut words = Vec::new();
    let mut at = 0;
    for part in text.split(blank) {
        if !part.is_empty() {
            words.push((at, part));
        }
        at += part.len() + 1;
    }
    words
}

/// Column, from 1 and in characters, of the byte `offset`.
fn column(text: &str, offset: usize) -> u32 {
    let characters = text
        .char_indices()
        .take_while(|(at, _)| *at < offset)
        .count();
    u32::try_from(characters + 1).unwrap_or(u32::MAX)
}
