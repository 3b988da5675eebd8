//! The launcher: from a command line to a job that ends cleanly.
//!
//! ```text
//! cli (typed words) ─► settings (a job as meant) ─► drive (reach, plan, launch, supervise) ─► exit code
//!     ▲ knobs (files, variables)                          │
//!                                                         └► output (printing thread)
//! ```
//! Decisions are made in `rlaunch-plan`, hosts are reached by `rlaunch-remote`; here they meet the
//! command line, time and signals. stdout carries what ranks print and what was asked for; all
//! other talk goes to stderr and begins with `rlaunch:`.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod about;
mod ask;
pub mod cli;
mod clock;
pub mod drive;
mod files;
pub mod knobs;
mod number;
pub mod output;
pub mod program;
pub mod reap;
mod report;
pub mod settings;
mod talk;
pub mod topo;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use rlaunch_plan::exit_code;

use about::{About, Source};
use cli::Request;
use report::{Refusal, Reporter};
use settings::Json;

/// Where nothing can be begun here, as launcher or agent.
pub fn refuse_to_begin(error: &str) -> ExitCode {
    talk::say(error);
    ExitCode::from(exit_code::LAUNCHER)
}

/// `rlaunch` with these arguments (without the executable's name); the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let start = Instant::now();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut notes = Vec::new();
    let defaults = |command: &clap::Command| knobs::load(command, &mut notes, &about::wrong);
    match cli::parse(arguments.clone(), defaults) {
        Ok(Request::Job {
            options,
            notes: more,
        }) => {
            notes.extend(more);
            job(*options, notes, start)
        }
        Ok(Request::Reap {
            options,
            notes: more,
        }) => {
            notes.extend(more);
            reap(*options, &notes, start)
        }
        Ok(Request::Topo {
            options,
            notes: more,
        }) => {
            notes.extend(more);
            topo(*options, &notes, start)
        }
        Ok(Request::Show(text)) => talk::print(&text),
        Ok(Request::Settings(format)) => list_settings(format),
        Err(error) => {
            // Where even its file is a mistake, the first one counts.
            let json = cli::typed_json(arguments).map(Json::new);
            let report = Reporter::begin(json).or_else(|_| Reporter::begin(None));
            let refused = Err(Refusal::usage(error.to_string()));
            report.map_or(exit_code::USAGE, |report| report.finish(refused))
        }
    }
}

fn job(options: cli::Options, notes: Vec<String>, start: Instant) -> u8 {
    talk::start_tracing(options.output.verbose, start);
    if options.output.quiet {
        talk::leave_out_notes();
    }
    let source = Source::new(&options);
    // What is only shown is on stdout, and no report.
    let json = options.look.json.clone().filter(|_| !options.look.dry_run);
    match Reporter::begin(json.map(Json::new)) {
        Ok(mut report) => {
            let ended = attempt(options, notes, start, &source, &mut report);
            report.finish(ended)
        }
        Err(error) => refuse(&source.explain(&error.to_string(), About::of(&["json"]))),
    }
}

/// The job's exit code.
fn attempt(
    options: cli::Options,
    mut notes: Vec<String>,
    start: Instant,
    source: &Source,
    report: &mut Reporter,
) -> Result<u8, Refusal> {
    let settings = settings::resolve(options, &mut notes);
    for note in &notes {
        talk::note(note);
    }
    let settings = settings
        .map_err(|error| Refusal::usage(source.explain(&error.to_string(), error.about())))?;
    drive::run(settings, start, report).map_err(|error| Refusal {
        text: source.explain(&error.to_string(), error.about()),
        code: error.exit_code(),
    })
}

fn reap(options: cli::ReapOptions, notes: &[String], start: Instant) -> u8 {
    let source = begin_asking(&options.asked, notes, start);
    let settings = match settings::resolve_reap(options) {
        Ok(settings) => settings,
        Err(error) => return refuse(&source.explain(&error.to_string(), error.about())),
    };
    reap::run(&settings).unwrap_or_else(|error| {
        talk::say(&source.explain(&error.to_string(), error.about()));
        error.exit_code()
    })
}

fn topo(options: cli::TopoOptions, notes: &[String], start: Instant) -> u8 {
    let source = begin_asking(&options.asked, notes, start);
    let settings = match settings::resolve_topo(options) {
        Ok(settings) => settings,
        Err(error) => return refuse(&source.explain(&error.to_string(), error.about())),
    };
    topo::run(&settings).unwrap_or_else(|error| {
        talk::say(&error.to_string());
        error.exit_code()
    })
}

fn begin_asking(asked: &cli::HostsAsked, notes: &[String], start: Instant) -> Source {
    talk::start_tracing(asked.verbose, start);
    for note in notes {
        talk::note(note);
    }
    Source::of_one(asked.origins.clone())
}

/// What can be set, and what is.
fn list_settings(format: knobs::Format) -> u8 {
    let command = <cli::Options as clap::CommandFactory>::command();
    let mut notes = Vec::new();
    let layers = match format {
        knobs::Format::Here => knobs::load(&command, &mut notes, &about::wrong),
        knobs::Format::Markdown | knobs::Format::Names => Ok(knobs::Layers::none(&command)),
    };
    notes.iter().for_each(|note| talk::note(note));
    match layers {
        Ok(layers) => talk::print(&knobs::list(&layers, format)),
        // What there is helps to mend it.
        Err(error) => {
            talk::print(&knobs::list(&knobs::Layers::none(&command), format));
            refuse(&error.to_string())
        }
    }
}

fn refuse(error: &str) -> u8 {
    talk::say(error);
    exit_code::USAGE
}
