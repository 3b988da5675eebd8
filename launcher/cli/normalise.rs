//! From the words a user typed to the words clap parses, once and in one place.
//!
//! * Long options have one dash or two, `-` or `_` inside, their value behind `=` or as the next
//!   word; all come out as `--name=value` or `--name`.
//! * The first word that is no option, or what follows `--` or `-m MODULE`, is the program; from
//!   there on every word is passed on as it stands, after a `--`.
//! * A lone `:` among a program's arguments begins the options of the next program, unless that
//!   program stood after `--`.
//! * Words of other launchers ([`super::foreign`]) are translated, noted or refused.
//!
//! Pure: no environment, no printing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::Command;

use super::CliError;
use super::defaulting::off;
use super::foreign::{self, Meaning};
use super::spelled::{COUNTING, Known, Table};
use crate::knobs::switch;

/// Words for clap, and what to tell the user about words that are not followed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Normalised {
    /// Of each program; at least one.
    pub(super) programs: Vec<Vec<OsString>>,
    pub(super) notes: Vec<String>,
}

/// `arguments` are those after the executable's name.
pub(super) fn normalise(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Normalised, CliError> {
    let mut scan = Scan::new(command, arguments);
    let mut programs = Vec::new();
    loop {
        let another = scan.program()?;
        programs.push(std::mem::take(&mut scan.words));
        if !another {
            for words in &mut programs {
                words.splice(0..0, scan.of_all.iter().cloned());
            }
            let notes = scan.notes;
            return Ok(Normalised { programs, notes });
        }
    }
}

/// The options of the first program, up to the first mistake.
pub(super) fn understood(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let mut scan = Scan::new(command, arguments);
    // What it stopped at is told elsewhere.
    scan.program().ok();
    let options = scan.words.into_iter().take_while(|word| word != "--");
    options.collect()
}

struct Scan {
    table: Table,
    input: std::vec::IntoIter<OsString>,
    /// Of the program at hand.
    words: Vec<OsString>,
    /// Of every program.
    of_all: Vec<OsString>,
    notes: Vec<String>,
}

impl Scan {
    fn new(command: &Command, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            table: Table::new(command),
            input: arguments.into_iter().collect::<Vec<_>>().into_iter(),
            words: Vec::new(),
            of_all: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// One program with its options; whether another one follows.
    fn program(&mut self) -> Result<bool, CliError> {
        while let Some(word) = self.input.next() {
            let bytes = word.as_bytes();
            if bytes == b"--" {
                return Ok(self.arguments(None, false));
            }
            if bytes == b":" {
                return Ok(true);
            }
            if bytes.len() < 2 || bytes[0] != b'-' {
                return Ok(self.arguments(Some(word), true));
            }
            if self.option(&word)? {
                return Ok(self.arguments(None, true));
            }
        }
        Ok(false)
    }

    /// The rest of the line, or of it up to a lone `:`, behind which another program stands.
    fn arguments(&mut self, first: Option<OsString>, colon_ends: bool) -> bool {
        self.words.push("--".into());
        self.words.extend(first);
        for word in self.input.by_ref() {
            if colon_ends && word == ":" {
                return true;
            }
            self.words.push(word);
        }
        false
    }

    /// One option; true if it ends the options.
    fn option(&mut self, word: &OsStr) -> Result<bool, CliError> {
        let bytes = word.as_bytes();
        let dashes = if bytes.starts_with(b"--") { 2 } else { 1 };
        let body = &bytes[dashes..];
        let (name, attached) = match body.iter().position(|&byte| byte == b'=') {
            Some(at) => (
                &body[..at],
                Some(OsStr::from_bytes(&body[at + 1..]).to_owned()),
            ),
            None => (body, None),
        };
        let name = String::from_utf8_lossy(name).replace('_', "-");
        if dashes == 1 && name == "env" && attached.is_none() && !self.asks_for_environment() {
            self.pair(word, None, false)?;
            return Ok(false);
        }
        if let Some(known) = self.table.longs.get(&name).cloned() {
            return self.known(&known, word, attached);
        }
        if let Some(foreign) = foreign::find(&name) {
            self.foreign(foreign, word, attached)?;
            return Ok(false);
        }
        if dashes == 1 {
            if let Some((known, number)) = self.table.joined_number(body) {
                return self.known(&known, word, Some(number));
            }
            return self.short(word);
        }
        Err(self.unknown(word, &name))
    }

    /// `-env all`, and not Hydra's `-env NAME VALUE`.
    fn asks_for_environment(&self) -> bool {
        let next = self.input.as_slice().first();
        next.is_some_and(|next| next == "all" || next == "none")
    }

    /// `WORD NAME VALUE` or `WORD NAME=VALUE`.
    fn pair(
        &mut self,
        typed: &OsStr,
        attached: Option<OsString>,
        of_all: bool,
    ) -> Result<(), CliError> {
        let mut pair = attached.map_or_else(|| self.value(typed), Ok)?;
        if !pair.as_bytes().contains(&b'=') {
            pair.push("=");
            pair.push(self.value(typed)?);
        }
        let word = option("export", &pair);
        match of_all {
            true => self.of_all.push(word),
            false => self.words.push(word),
        }
        Ok(())
    }

    fn known(
        &mut self,
        known: &Known,
        typed: &OsStr,
        attached: Option<OsString>,
    ) -> Result<bool, CliError> {
        if attached.is_none() && known.value_is_optional {
            self.words.push(format!("--{}", known.long).into());
            return Ok(false);
        }
        let on = attached.as_deref().and_then(OsStr::to_str).and_then(switch);
        match on {
            Some(on) if !known.takes_value || known.value_is_optional => {
                self.switch(known, on);
                return Ok(false);
            }
            _ => {}
        }
        if !known.takes_value {
            if attached.is_some() {
                let option = typed.to_string_lossy();
                let option = option.split('=').next().unwrap_or_default().to_owned();
                return Err(CliError::NoValueTaken { option });
            }
            self.switch(known, true);
            return Ok(false);
        }
        let value = match attached {
            Some(value) => value,
            None => self.value(typed)?,
        };
        match known.long.as_str() {
            // Of a variable with such a name nobody has heard.
            "export" if typed.as_bytes().starts_with(b"--") && is_sruns(&value) => {
                self.sruns_export(&value);
            }
            long => self.push(long, &value),
        }
        Ok(known.long == "module")
    }

    /// Off takes back what was typed before, and what files and variables would give.
    fn switch(&mut self, known: &Known, on: bool) {
        let word = OsString::from(format!("--{}", known.long));
        let off = off(&known.long);
        self.words.retain(|it| *it != off && (on || *it != word));
        self.words.push(if on { word } else { off });
    }

    /// srun's `--export=ALL,A=1` and `--export=NONE`.
    fn sruns_export(&mut self, value: &OsStr) {
        for part in value.as_bytes().split(|&byte| byte == b',') {
            match part {
                // What fits another host is passed anyway.
                b"ALL" | b"" => {}
                b"NONE" | b"NIL" => self.push("env", OsStr::new("none")),
                part => self.push("export", OsStr::from_bytes(part)),
            }
        }
    }

    /// `-n 4`, `-n4`, `-vv`, `-xNAME=VALUE`, `-h`.
    fn short(&mut self, word: &OsStr) -> Result<bool, CliError> {
        let bytes = word.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            let Some(known) = self.table.shorts.get(&bytes[at]).cloned() else {
                let name = String::from_utf8_lossy(&bytes[1..]);
                let name = name.split('=').next().unwrap_or_default().replace('_', "-");
                return Err(self.unknown(word, &name));
            };
            at += 1;
            if known.takes_value {
                let rest = bytes[at..].strip_prefix(b"=").unwrap_or(&bytes[at..]);
                let attached = (at < bytes.len()).then(|| OsStr::from_bytes(rest).to_owned());
                // `-npernod 2` is no number of ranks, `-Hostfile` no host.
                let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
                let counts = COUNTING.contains(&known.long.as_str());
                let is_value = !counts || rest.first().is_none_or(is_number);
                let name = String::from_utf8_lossy(&bytes[1..]).to_ascii_lowercase();
                if attached.is_some() && (!is_value || self.table.longs.contains_key(&name)) {
                    return Err(self.unknown(word, &name));
                }
                return self.known(&known, word, attached);
            }
            self.known(&known, word, None)?;
        }
        Ok(false)
    }

    fn foreign(
        &mut self,
        foreign: &foreign::Word,
        typed: &OsStr,
        attached: Option<OsString>,
    ) -> Result<(), CliError> {
        if foreign.meaning == Meaning::ExportPair {
            return self.pair(typed, attached, true);
        }
        let mut values: Vec<OsString> = attached.into_iter().collect();
        while values.len() < foreign.values {
            let value = self.value(typed)?;
            values.push(value);
        }
        match foreign.meaning {
            Meaning::Silent => {}
            Meaning::Noted(why) => {
                let shown = foreign::shown(foreign.name);
                if !self.notes.iter().any(|note| note.starts_with(&shown)) {
                    self.notes
                        .push(format!("{shown} is noted, not followed: {why}"));
                }
            }
            Meaning::Refused(why) => {
                return Err(CliError::Refused {
                    option: foreign::shown(foreign.name),
                    why,
                });
            }
            Meaning::ExportPair => unreachable!("taken above"),
            Meaning::ExportList(of_all) => {
                for name in values[0].as_bytes().split(|&byte| byte == b',') {
                    let word = option("export", OsStr::from_bytes(name));
                    match of_all {
                        true => self.of_all.push(word),
                        false => self.words.push(word),
                    }
                }
            }
            Meaning::OutputKeys => return self.output_keys(&values[0]),
            Meaning::As(long, "") => self.words.push(format!("--{long}").into()),
            Meaning::As(long, value) => self.push(long, OsStr::new(value)),
        }
        Ok(())
    }

    /// Each key of Open MPI's `--output tag,timestamp,merge,dir=DIR` as the option that does it.
    fn output_keys(&mut self, keys: &OsStr) -> Result<(), CliError> {
        for key in keys.as_bytes().split(|&byte| byte == b',') {
            match key {
                b"tag" | b"rank" | b"tag-detailed" => self.words.push("--tag-output".into()),
                b"timestamp" => self.words.push("--timestamp".into()),
                b"merge" => self.words.push("--merge-stderr".into()),
                _ => {
                    let directory = key.strip_prefix(b"dir=");
                    let directory = directory.ok_or_else(|| CliError::Refused {
                        option: format!("--output {}", String::from_utf8_lossy(key)),
                        why: "known are tag, rank, timestamp, merge and dir=DIR",
                    })?;
                    self.push("output-dir", OsStr::from_bytes(directory));
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, long: &str, value: &OsStr) {
        self.words.push(option(long, value));
    }

    fn value(&mut self, typed: &OsStr) -> Result<OsString, CliError> {
        self.input.next().ok_or_else(|| CliError::ValueMissing {
            option: typed.to_string_lossy().into_owned(),
        })
    }

    fn unknown(&self, word: &OsStr, name: &str) -> CliError {
        let ours = self.table.longs.keys().map(String::as_str);
        let theirs = foreign::names().map(|name| -> &str { name });
        let known = ours.chain(theirs);
        let near = super::suggest(name, known).map(|name| format!("--{name}"));
        CliError::UnknownOption {
            option: word.to_string_lossy().into_owned(),
            suggestion: near.or_else(|| self.table.joined(word, name)),
        }
    }
}

fn is_sruns(value: &OsStr) -> bool {
    let first = value.as_bytes().split(|&byte| byte == b',').next();
    first.is_some_and(|first| matches!(first, b"ALL" | b"NONE" | b"NIL"))
}

fn option(long: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{long}="));
    word.push(value);
    word
}
