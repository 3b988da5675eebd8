//! From what each source says to the words in front of the typed ones.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use super::table::{ADDING_UP, Kind, Knob, same, table};

/// Where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `path:line`
    File(String),
    Variable(String),
}

impl Origin {
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::File(text) | Self::Variable(text)) = self;
        f.write_str(text)
    }
}

/// What one source says of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// For a switch: as many empty ones as it is typed times.
    pub(super) values: Vec<OsString>,
    pub(super) origin: Origin,
}

/// `--verbose` five times is as much as can be.
const COUNT_MAX: usize = 5;

impl Setting {
    pub(super) fn switch(on: bool) -> Vec<OsString> {
        vec![OsString::new(); usize::from(on)]
    }

    pub(super) fn count(text: &str) -> Option<Vec<OsString>> {
        let count = text.parse::<usize>().ok()?;
        (count <= COUNT_MAX).then(|| vec![OsString::new(); count])
    }
}

impl Knob {
    /// One value, if it can be one.
    pub(super) fn accept(&self, value: OsString) -> Result<OsString, String> {
        if self.possible.is_empty() || self.possible.iter().any(|known| value == **known) {
            return Ok(value);
        }
        Err(format!(
            "`{}` is none of {}",
            value.to_string_lossy(),
            self.possible.join(", ")
        ))
    }

    /// As typed.
    pub(super) fn words(&self, values: &[OsString]) -> Vec<OsString> {
        let word = |value: &OsString| {
            let mut word = OsString::from(format!("--{}", self.name));
            let bare = matches!(self.kind, Kind::Switch | Kind::Count)
                || (self.kind == Kind::Optional && value.is_empty());
            if !bare {
                word.push("=");
                word.push(value);
            }
            word
        };
        values.iter().map(word).collect()
    }
}

/// What one source says, by the option's name.
#[derive(Debug, Default)]
pub(super) struct Layer(BTreeMap<String, Setting>);

impl Layer {
    pub(super) fn insert(&mut self, name: &str, setting: Setting) {
        self.0.insert(name.to_owned(), setting);
    }
}

/// Where the values that nobody typed come from, by the option's name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// `option` with or without dashes.
    pub fn of(&self, option: &str) -> Option<&Origin> {
        self.0.get(option.trim_start_matches('-'))
    }
}

/// All sources, from far to near.
#[derive(Debug, Default)]
pub struct Layers {
    pub(super) knobs: Vec<Knob>,
    layers: Vec<Layer>,
}

impl Layers {
    pub(super) fn new(knobs: Vec<Knob>, layers: Vec<Layer>) -> Self {
        Self { knobs, layers }
    }

    /// The table without a source.
    pub fn none(command: &clap::Command) -> Self {
        Self::new(table(command), Vec::new())
    }

    /// The words to put in front of the normalised words `typed`, for options that are `wanted`;
    /// remembers their origins.
    pub fn words(
        &self,
        typed: &[OsString],
        wanted: impl Fn(&str) -> bool,
        origins: &mut Origins,
    ) -> Vec<OsString> {
        let typed: Vec<&str> = typed.iter().map_while(|word| name(word)).collect();
        let mut words = Vec::new();
        for knob in self.knobs.iter().filter(|knob| wanted(&knob.name)) {
            let is_typed = typed.iter().any(|name| same(name, &knob.name));
            for setting in self.settings(knob, is_typed) {
                words.extend(knob.words(&setting.values));
                let origin = setting.origin.clone();
                origins.0.insert(knob.name.clone(), origin);
            }
        }
        words
    }

    /// What counts of `knob`, from far to near.
    pub(super) fn settings(&self, knob: &Knob, is_typed: bool) -> Vec<&Setting> {
        if ADDING_UP.contains(&knob.name.as_str()) {
            let all = self.layers.iter();
            return all.filter_map(|layer| layer.0.get(&knob.name)).collect();
        }
        let speaks = |layer: &&Layer| layer.0.keys().any(|name| same(name, &knob.name));
        let nearest = self.layers.iter().rev().find(speaks);
        let setting = nearest.and_then(|layer| layer.0.get(&knob.name));
        setting.filter(|_| !is_typed).into_iter().collect()
    }
}

/// `--name=value` and `--name` are of that name; `--` ends the options.
fn name(word: &OsStr) -> Option<&str> {
    let bytes = word.as_bytes().strip_prefix(b"--")?;
    let end = bytes.iter().position(|&byte| byte == b'=');
    let name = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()?;
    (!name.is_empty()).then_some(name)
}
