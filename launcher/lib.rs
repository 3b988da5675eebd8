//! The launcher: from a command line to a job that ends cleanly.
//!
//! ```text
//! cli (typed words) ─► settings (a job as meant) ─► drive (reach, plan, launch, supervise) ─► exit code
//!                          ▲ config                       │
//!                                                         └► output (printing thread)
//! ```
//! Decisions are made in `rlaunch-plan`, hosts are reached by `rlaunch-remote`; here they meet the
//! command line, time and signals. stdout carries what ranks print and what was asked for; all
//! other talk goes to stderr and begins with `rlaunch:`.

pub mod cli;
pub mod config;
pub mod drive;
mod number;
pub mod output;
pub mod program;
pub mod settings;
mod talk;

use std::ffi::OsString;
use std::io::Write;
use std::time::Instant;

use rlaunch_plan::exit_code;

use cli::Request;
use settings::Settings;

/// `rlaunch` with these arguments (without the executable's name); the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let start = Instant::now();
    let (options, notes) = match cli::parse(arguments) {
        Ok(Request::Job { options, notes }) => (options, notes),
        Ok(Request::Show(text)) => {
            // A reader that has seen enough is no failure.
            std::io::stdout().write_all(text.as_bytes()).ok();
            return exit_code::SUCCESS;
        }
        Err(error) => return refuse(&error),
    };
    talk::start_tracing(options.output.verbose, start);
    let settings = match resolve(*options, notes) {
        Ok(settings) => settings,
        Err(error) => return refuse(error.as_ref()),
    };
    drive::run(settings, start).unwrap_or_else(|error| {
        talk::say(&error.to_string());
        error.exit_code()
    })
}

fn resolve(
    options: cli::Options,
    mut notes: Vec<String>,
) -> Result<Settings, Box<dyn std::error::Error>> {
    if options.output.quiet {
        talk::leave_out_notes();
    }
    let config = config::load()?;
    let settings = settings::resolve(options, config, &mut notes);
    for note in &notes {
        talk::note(note);
    }
    Ok(settings?)
}

fn refuse(error: &dyn std::error::Error) -> u8 {
    talk::say(&error.to_string());
    exit_code::USAGE
}
