//! The command line: typed words → [`Options`].
//!
//! A mistake is a [`CliError`] of one line; nothing here prints, and nothing contacts a host.

mod defaulting;
mod foreign;
mod hosts_asked;
mod manual;
mod normalise;
mod options;
mod parts;
mod reap;
mod spelled;
#[cfg(test)]
mod tests;
mod topo;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::knobs::{Format, KnobError, Layers, Loaded, Origins};
pub use hosts_asked::HostsAsked;
use options::OF_A_PROGRAM;
pub use options::{
    AfterFailure, HostOptions, Inherit, LimitOptions, LookOptions, Options, OutputOptions,
    PlaceOptions, ProgramOptions, ReachOptions, RendezvousOptions, Scheduler,
};
pub use reap::ReapOptions;
pub use topo::TopoOptions;

/// What the words ask for.
#[derive(Debug)]
pub enum Request {
    /// Run a job. `notes` are words that were accepted but are not followed.
    Job {
        options: Box<Options>,
        notes: Vec<String>,
    },
    /// Look for what jobs have left on hosts.
    Reap {
        options: Box<ReapOptions>,
        notes: Vec<String>,
    },
    /// Show what machines are.
    Topo {
        options: Box<TopoOptions>,
        notes: Vec<String>,
    },
    /// Print this on stdout (`--help`, `--version`, `man`).
    Show(String),
    /// List the settings.
    Settings(Format),
}

/// A mistake on the command line: exit code 2, before any host is contacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    #[error(
        "unknown option {option}{}; `rlaunch --help` lists all",
        .suggestion.as_ref().map(|name| format!(", did you mean {name}?")).unwrap_or_default()
    )]
    UnknownOption {
        option: String,
        suggestion: Option<String>,
    },
    #[error("{option} needs a value")]
    ValueMissing { option: String },
    #[error("{option} takes no value but true and false")]
    NoValueTaken { option: String },
    #[error("{option}: {why}")]
    Refused { option: String, why: &'static str },
    #[error("{option} is an option of the whole job\nhint: write it before the first program")]
    OfTheJob { option: String },
    #[error("program {program}: {error}")]
    InProgram { program: usize, error: Box<Self> },
    #[error(
        "`{word}` is not in this version; a program of that name runs as `./{word}` or after `--`"
    )]
    Reserved { word: String },
    #[error("it is `{form}`; a program of that name runs as `./NAME` or after `--`")]
    Form { form: &'static str },
    #[error(transparent)]
    Knob(#[from] KnobError),
    #[error("no program given: rlaunch [options] PROGRAM [args]; see `rlaunch --help`")]
    NoProgram,
    /// What clap found, in its words, on one line.
    #[error("{0}")]
    Value(String),
}

/// First words kept for parts of rlaunch; only as the very first argument.
const RESERVED: [&str; 4] = ["doctor", "status", "top", "plan"];

/// `arguments` are those after the executable's name; `defaults` tells what stands in files and
/// variables, and is not asked where nothing is run.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    defaults: impl FnOnce(&Command) -> Loaded,
) -> Result<Request, CliError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let first = arguments.first().and_then(|word| word.to_str());
    if let Some(word) = first.filter(|word| RESERVED.contains(word)) {
        return Err(CliError::Reserved {
            word: word.to_owned(),
        });
    }
    if let Some(request) = manual::request(&arguments) {
        return request;
    }
    match first {
        Some("reap") => return reap::parse(arguments.into_iter().skip(1), defaults),
        Some("topo") => return topo::parse(arguments.into_iter().skip(1), defaults),
        _ => {}
    }
    let mut command = Options::command();
    let mut normalised = normalise::normalise(&command, arguments)?;
    let origins = match defaulting::only_shows(&normalised.programs) {
        true => vec![Origins::default(); normalised.programs.len()],
        false => {
            let layers = defaults(&command).right()?;
            defaulting::put_in_front(&layers, &mut normalised.programs)
        }
    };
    normalised
        .programs
        .iter_mut()
        .for_each(defaulting::leave_out_off);
    let several = normalised.programs.len() > 1;
    let mut programs = Vec::with_capacity(normalised.programs.len());
    for (number, (words, origins)) in normalised.programs.into_iter().zip(origins).enumerate() {
        let words = [OsString::from("rlaunch")].into_iter().chain(words);
        let matches = match command.try_get_matches_from_mut(words) {
            Ok(matches) => matches,
            Err(error) => return shown(&error, &origins),
        };
        let mut options = program(&command, &matches, number).map_err(|error| match error {
            error if several => CliError::InProgram {
                program: number,
                error: Box::new(error),
            },
            error => error,
        })?;
        options.origins = origins;
        programs.push(options);
    }
    let others = programs.split_off(1);
    let mut options = Box::new(programs.remove(0));
    options.others = others;
    let notes = normalised.notes;
    Ok(Request::Job { options, notes })
}

/// `--json`, for a command line with a mistake: where the report of it goes. It counts if it stands
/// before the mistake, or in `layers`, which is asked for a job alone.
pub fn wanted_json(
    arguments: &[OsString],
    layers: impl FnOnce(&Command) -> Layers,
) -> Option<PathBuf> {
    if manual::request(arguments).is_some() {
        return None;
    }
    let rest = || arguments.iter().skip(1).cloned();
    let mut words = match arguments.first().and_then(|word| word.to_str()) {
        Some("reap") => normalise::understood(&ReapOptions::command(), rest()),
        Some("topo") => normalise::understood(&TopoOptions::command(), rest()),
        _ => {
            let command = Options::command();
            let typed = normalise::understood(&command, arguments.iter().cloned());
            let wanted = |name: &str| name == "json";
            let mut words = layers(&command).words(&typed, wanted, &mut Origins::default());
            words.extend(typed);
            words
        }
    };
    defaulting::leave_out_off(&mut words);
    words.iter().rev().find_map(|word| {
        let rest = word.to_str()?.strip_prefix("--json")?;
        match rest.strip_prefix('=') {
            Some(path) => Some(path.into()),
            None => rest.is_empty().then(|| "-".into()),
        }
    })
}

/// The options of one program; only the first one's may be of the job.
fn program(command: &Command, matches: &ArgMatches, number: usize) -> Result<Options, CliError> {
    let of_the_job = command.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        number > 0
            && !OF_A_PROGRAM.contains(&id)
            && matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    });
    if let Some(argument) = of_the_job {
        let option = format!("--{}", argument.get_long().unwrap_or_default());
        return Err(CliError::OfTheJob { option });
    }
    let options = Options::from_arg_matches(matches)
        .map_err(|error| one_line(&error, &Origins::default()))?;
    if options.program.command.is_empty() && options.program.module.is_none() {
        return Err(CliError::NoProgram);
    }
    Ok(options)
}

fn shown(error: &clap::Error, origins: &Origins) -> Result<Request, CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let colour = std::io::IsTerminal::is_terminal(&std::io::stdout())
                && std::env::var_os("NO_COLOR").is_none();
            Ok(Request::Show(if colour {
                text.ansi().to_string()
            } else {
                text.to_string()
            }))
        }
        _ => Err(one_line(error, origins)),
    }
}

/// clap's first paragraph, without its "error: ", and where the value stands that is not typed.
fn one_line(error: &clap::Error, origins: &Origins) -> CliError {
    let text = error.render().to_string();
    let lines = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim);
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.split([' ', '=']).next(),
        _ => None,
    };
    match argument.and_then(|option| origins.of(option)) {
        Some(origin) => CliError::Value(format!("{text}\nset by {}", origin.told())),
        None => CliError::Value(text),
    }
}

/// The known word nearest to `typed`, if it is near.
pub(crate) fn suggest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (typed.chars().count() / 3).clamp(1, 3);
    known
        .filter(|word| word.len() > 1)
        .map(|word| (edits(typed, word), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, word)| word)
}

/// Levenshtein's distance.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
