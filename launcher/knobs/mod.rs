//! Where an option's value comes from when it is not typed: one table for all of them.
//!
//! ```text
//! typed  >  RLAUNCH_NAME  >  rlaunch.toml of the project  >  rlaunch.toml of the user  >  default
//! ```
//! The table is clap's own: every option but those in [`table::NEVER`] is a key of `rlaunch.toml`,
//! by its long name, and a variable, `RLAUNCH_` and that name. So `--help`, the files, the variables
//! and the manual can't differ. The nearest source that has an option gives its value, and lists
//! replace each other, except `export` and `env-file`, which add up. `host` and `hostfile` are one
//! thing: whoever types `-H` is not limited by a hostfile that a file names.
//!
//! What comes out are words like those a user types; they are put in front of the typed ones. A
//! mistake names file, line and column, or the variable; all mistakes of a file are told together.

mod environment;
mod error;
mod file;
mod find;
mod list;
mod merge;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

pub(crate) use environment::switch;
pub use error::{Check, KnobError};
pub use list::{Format, list};
pub use merge::{Layers, Origins};
pub use table::{Kind, Knob};

/// What stands in files and variables.
#[derive(Debug, Default)]
pub struct Loaded {
    /// As far as it is right in its form.
    pub layers: Layers,
    pub wrong: Option<KnobError>,
}

impl Loaded {
    /// All of it, if nothing is wrong.
    pub fn right(self) -> Result<Layers, KnobError> {
        self.wrong.map_or(Ok(self.layers), Err)
    }

    /// Also the values that count, where their form is right: a job would tell them.
    pub(crate) fn checked(mut self, check: Check<'_>) -> Self {
        let mut origins = Origins::default();
        self.layers.words(&[], |_| true, &mut origins);
        self.wrong = self.wrong.or_else(|| mistakes([&origins], check));
        self
    }
}

/// For this directory and environment. Notes are for the user.
pub fn load(command: &clap::Command, notes: &mut Vec<String>, check: Check<'_>) -> Loaded {
    let knobs = table::table(command);
    let variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let (mut layers, mut mistakes) = (Vec::new(), Vec::new());
    let (files, unnamed) = match find::files(notes) {
        Ok(files) => (files, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    for found in files {
        layers.push(file::read(&found, &knobs, &mut mistakes));
    }
    layers.push(environment::read(&variables, &knobs, &mut mistakes));
    let layers = Layers::new(knobs, layers);
    let wrong = match mistakes.is_empty() {
        true => None,
        false => KnobError::mistakes(mistakes, layers.given().iter(), check),
    };
    Loaded {
        layers,
        wrong: unnamed.or(wrong),
    }
}

/// What is wrong in itself among the values that count, all of it; [`load`] knows only their form.
pub fn mistakes<'a>(
    origins: impl IntoIterator<Item = &'a Origins>,
    check: Check<'_>,
) -> Option<KnobError> {
    let given = origins.into_iter().flat_map(Origins::given);
    KnobError::mistakes(Vec::new(), given, check)
}
