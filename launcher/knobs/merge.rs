//! From what each source says to the words in front of the typed ones.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use super::table::{ADDING_UP, Kind, Knob, same, table};

/// Where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    File { path: String, line: usize },
    Variable(String),
}

impl Origin {
    /// As a sentence ends with it: `set by …`.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::File { .. } => self.to_string(),
            Self::Variable(name) => format!("the environment variable {name}"),
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable(name) => f.write_str(name),
        }
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

    fn given(&self, setting: &Setting) -> Given {
        Given {
            words: self.words(&setting.values),
            values: setting.values.clone(),
            origin: setting.origin.clone(),
        }
    }

    /// As typed.
    fn words(&self, values: &[OsString]) -> Vec<OsString> {
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
pub struct Origins(BTreeMap<String, Vec<Given>>);

/// What one source gave of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    values: Vec<OsString>,
    /// As they would be typed.
    pub(crate) words: Vec<OsString>,
    pub(crate) origin: Origin,
}

impl Origins {
    /// `option` with or without dashes. Of one whose sources add up, the nearest.
    pub fn of(&self, option: &str) -> Option<&Origin> {
        let given = self.0.get(option.trim_start_matches('-'))?;
        given.last().map(|given| &given.origin)
    }

    /// Who gave this value of `option`; of one whose sources add up it may be that nobody did, for it
    /// was typed.
    pub(crate) fn of_value(&self, option: &str, value: Option<&OsStr>) -> Option<&Origin> {
        if !ADDING_UP.contains(&option) {
            return self.of(option);
        }
        let is_it = |given: &&Given| given.values.iter().any(|it| Some(it.as_os_str()) == value);
        let given = self.0.get(option)?.iter().find(is_it);
        given.map(|given| &given.origin)
    }

    pub(crate) fn given(&self) -> impl Iterator<Item = &Given> {
        self.0.values().flatten()
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

    /// All that the sources say, whether it counts or not, from far to near.
    pub(super) fn given(&self) -> Vec<Given> {
        let of_layer = |layer: &Layer| -> Vec<Given> {
            let of_knob = |knob: &Knob| layer.0.get(&knob.name).map(|it| knob.given(it));
            self.knobs.iter().filter_map(of_knob).collect()
        };
        self.layers.iter().flat_map(of_layer).collect()
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
                let given = knob.given(setting);
                words.extend(given.words.iter().cloned());
                let known = origins.0.entry(knob.name.clone()).or_default();
                known.push(given);
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
