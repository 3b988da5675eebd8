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
use knobs::Loaded;
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
    match cli::parse(arguments.iter().cloned(), defaults) {
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
            let layers = |command: &clap::Command| {
                // Their mistakes and notes are told already.
                knobs::load(command, &mut Vec::new(), &|_| None).layers
            };
            let json = cli::wanted_json(&arguments, layers).map(Json::new);
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
    let json = options.look.json.clone();
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
    let json = options.json;
    let refusal = match settings::resolve_reap(options) {
        Ok(settings) => match reap::run(&settings) {
            Ok(code) => return code,
            Err(error) => Refusal {
                text: source.explain(&error.to_string(), error.about()),
                code: error.exit_code(),
            },
        },
        Err(error) => Refusal::usage(source.explain(&error.to_string(), error.about())),
    };
    report_refusal(json, refusal)
}

fn topo(options: cli::TopoOptions, notes: &[String], start: Instant) -> u8 {
    let source = begin_asking(&options.asked, notes, start);
    let json = options.json;
    let refusal = match settings::resolve_topo(options) {
        Ok(settings) => match topo::run(&settings) {
            Ok(code) => return code,
            Err(error) => Refusal {
                text: error.to_string(),
                code: error.exit_code(),
            },
        },
        Err(error) => Refusal::usage(source.explain(&error.to_string(), error.about())),
    };
    report_refusal(json, refusal)
}

/// Of a command whose `--json` is on stdout: a report tells only why that is not there, or not whole.
fn report_refusal(json: bool, refusal: Refusal) -> u8 {
    let report = Reporter::begin(json.then_some(Json::Standard));
    report.map_or(refusal.code, |report| report.finish(Err(refusal)))
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
    let Loaded { layers, wrong } = match format {
        knobs::Format::Here => {
            let loaded = knobs::load(&command, &mut notes, &about::wrong);
            loaded.checked(&about::wrong)
        }
        knobs::Format::Markdown | knobs::Format::Names => Loaded {
            layers: knobs::Layers::none(&command),
            wrong: None,
        },
    };
    notes.iter().for_each(|note| talk::note(note));
    let code = talk::print(&knobs::list(&layers, format));
    // What is right is shown all the same.
    wrong.map_or(code, |error| refuse(&error.to_string()))
}

fn refuse(error: &str) -> u8 {
    talk::say(error);
    exit_code::USAGE
}
