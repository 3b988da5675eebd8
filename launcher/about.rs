//! Which option a mistake is about, and where its value stands if nobody typed it.
//!
//! Each kind of mistake says which options it is about; from there on all is alike: the option's
//! origin is told behind the mistake, and if a file of settings has other mistakes, they are told
//! with it.

use std::ffi::{OsStr, OsString};

use crate::cli::{self, Options, Request};
use crate::knobs::{self, Loaded, Origins};
use crate::settings;

/// What a mistake is about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct About<'a> {
    /// Long names, the one to change most likely first; with or without dashes.
    options: &'a [&'static str],
    /// The value in question, of an option that has several.
    value: Option<&'a OsStr>,
    /// Of several programs, as messages call it.
    program: Option<&'a str>,
}

impl<'a> About<'a> {
    pub(crate) fn of(options: &'a [&'static str]) -> Self {
        Self::program(options, None)
    }

    pub(crate) fn program(options: &'a [&'static str], program: Option<&'a str>) -> Self {
        Self {
            options,
            value: None,
            program,
        }
    }

    pub(crate) fn value(options: &'a [&'static str], value: &'a OsStr) -> Self {
        Self {
            value: Some(value),
            ..Self::of(options)
        }
    }

    pub(crate) fn in_program(self, program: &'a str) -> Self {
        Self {
            program: Some(program),
            ..self
        }
    }
}

/// Where the values of a command line's programs stand that nobody typed.
#[derive(Debug)]
pub(crate) struct Source {
    /// With what messages call each of the programs.
    programs: Vec<(String, Origins)>,
}

impl Source {
    pub(crate) fn new(options: &Options) -> Self {
        let all = std::iter::once(options).chain(&options.others);
        let programs = all.enumerate().map(|(number, options)| {
            let label = settings::program_label(number, options);
            (label, options.origins.clone())
        });
        Self {
            programs: programs.collect(),
        }
    }

    pub(crate) fn of_one(origins: Origins) -> Self {
        Self {
            programs: vec![(String::new(), origins)],
        }
    }

    /// The mistake, and where what it is about was set.
    pub(crate) fn explain(&self, error: &str, about: About<'_>) -> String {
        let set_by = self.set_by(about);
        if set_by.is_empty() {
            return error.to_owned();
        }
        let origins = self.programs.iter().map(|(_, origins)| origins);
        match knobs::mistakes(origins, &wrong) {
            Some(all) if all.count() > 1 => all.to_string(),
            _ => format!("{error}\n{}", set_by.join("\n")),
        }
    }

    /// A line for each option; of which one it is, is clear where there is only one.
    fn set_by(&self, about: About<'_>) -> Vec<String> {
        let named = |(label, _): &&(String, Origins)| about.program == Some(label.as_str());
        let program = self.programs.iter().find(named);
        let Some((_, origins)) = program.or_else(|| self.programs.first()) else {
            return Vec::new();
        };
        let told = about.options.iter().filter_map(|option| {
            let name = option.trim_start_matches('-');
            let origin = origins.of_value(name, about.value)?.told();
            Some(match about.options {
                [_] => format!("set by {origin}"),
                _ => format!("--{name} is set by {origin}"),
            })
        });
        told.collect()
    }
}

/// What is wrong with these words of one option, whatever else there may be.
pub(crate) fn wrong(words: &[OsString]) -> Option<String> {
    let program = ["--", "true"].map(OsString::from);
    let all = words.iter().cloned().chain(program);
    match cli::parse(all, |_| Loaded::default()) {
        Err(error) => Some(error.to_string()),
        Ok(Request::Job { options, .. }) => {
            let error = settings::resolve(*options, &mut Vec::new()).err()?;
            error.is_of_one_value().then(|| error.to_string())
        }
        Ok(_) => None,
    }
}
