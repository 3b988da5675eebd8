//! One line of a hostfile: a host, then its options.

use super::words::{self, Word};
use super::{LineError, devices, located, option};
use crate::details::HostDetails;
use crate::spec::{self, Spec, SpecError, SpecSlots};
use crate::text::show;

use option::OPTIONS_FORM;

pub(super) const HOST_FORM: &str = "a host: name, name:N, user@name, name[01-04] or [IPv6]";

const COLON_FORM: &str = "name:N for N slots";

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) spec: Spec,
    pub(super) slots: Option<u32>,
    pub(super) max_slots: Option<u32>,
    pub(super) port: Option<u16>,
    pub(super) details: HostDetails,
}

/// An error and its column, from 1, in characters.
pub(super) type Located = (u32, LineError);

/// `Ok(None)` for a line without a word. `text` has no line end. What is wrong with the host hides
/// what may be wrong behind it; of the options each mistake is told.
pub(super) fn parse(text: &str) -> Result<Option<Line>, Vec<Located>> {
    let words = words::split(text).map_err(|error| vec![error])?;
    let Some((first, options)) = words.split_first() else {
        return Ok(None);
    };
    let one = |offset: usize, error: LineError| vec![located(text, first.at(offset), error)];
    let mut line = Line::new(&first.text).map_err(|(offset, error)| one(offset, error))?;
    let mut mistakes = Vec::new();
    for (index, word) in options.iter().enumerate() {
        if let Err((error, expected)) = line.option(word, &options[index + 1..]) {
            let offset = word.at(error.offset);
            let error = line_error(&word.text, error, expected);
            mistakes.push(located(text, offset, error));
            // What follows a word that is no option is likely of the same kind.
            if !word.text.contains('=') {
                break;
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    line.finish(&first.text).map_err(|error| one(0, error))?;
    Ok(Some(line))
}

impl Line {
    /// Of the host alone, `[user@]name[:N]`.
    pub(super) fn new(host: &str) -> Result<Self, (usize, LineError)> {
        let spec = spec::parse(host).map_err(|error| {
            let before = host
                .get(error.offset.saturating_sub(1)..)
                .unwrap_or_default();
            let expected = if before.starts_with(':') {
                COLON_FORM
            } else {
                HOST_FORM
            };
            (error.offset, line_error(host, error, expected))
        })?;
        let slots = match spec.slots {
            None => None,
            Some(SpecSlots::Number(slots)) => Some(slots),
            Some(SpecSlots::All) => {
                let error = SpecError::new(0, "`:*` is for -H alone")
                    .hint("a host without a number has as many slots as GPUs, else cores");
                return Err((0, line_error(host, error, HOST_FORM)));
            }
        };
        Ok(Self {
            spec,
            slots,
            max_slots: None,
            port: None,
            details: HostDetails::default(),
        })
    }

    /// What only all options together tell.
    pub(super) fn finish(&mut self, host: &str) -> Result<(), LineError> {
        if self.slots.is_none() {
            let gpus = self.details.gpus.as_deref();
            self.slots = gpus.and_then(devices::slots_of_gpus).map(|slots| {
                // The list is no number that the user gave for ranks.
                slots.min(self.max_slots.unwrap_or(slots))
            });
        }
        match (self.slots, self.max_slots) {
            (Some(slots), Some(max)) if slots > max => {
                let problem = format!("slots={slots} is more than max_slots={max}");
                let error = SpecError::new(0, problem);
                Err(line_error(host, error, "slots up to max_slots"))
            }
            _ => Ok(()),
        }
    }

    fn option(&mut self, word: &Word, rest: &[Word]) -> Result<(), option::Wrong> {
        let Some((name, value)) = word.text.split_once('=') else {
            return Err((not_an_option(&word.text, rest), OPTIONS_FORM));
        };
        match option::find(name) {
            Some(key) => option::set(self, key, name, value, name.len() + 1),
            None => Err((option::unknown(name, value), OPTIONS_FORM)),
        }
    }
}

/// A word without `=`: a number without its name, or a second host.
fn not_an_option(word: &str, rest: &[Word]) -> SpecError {
    let error = SpecError::new(0, "not an option of a host");
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let known = option::find(word).map(|_| word).or(option::probably(word));
    match known {
        Some(option) => match rest.first().filter(|next| number(&next.text)) {
            Some(next) => error.hint(format!("write {option}={}", show(&next.text))),
            None => error.hint(format!("write {option}=…")),
        },
        None if number(word) => error.hint(format!("for {} slots write slots={0}", show(word))),
        None => error.hint("one host a line"),
    }
}

pub(super) fn line_error(word: &str, error: SpecError, expected: &str) -> LineError {
    LineError {
        word: show(word),
        problem: error.problem,
        expected: expected.to_owned(),
        hint: error.hint,
    }
}
