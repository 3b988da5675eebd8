//! `--json`: the job's report, one document for programs.
//!
//! ```json
//! {"rlaunch": "0.1.0", "job": "ab12cd34", "started_us": …, "ended_us": …, "exit_code": 3,
//!  "error": null, "verdict": {…}, "text": "rlaunch: rank 1 …", "restarts": [{…}], "map": {…}}
//! ```
//! The verdict has every rank's host, pid, times and end. `error` stands in its place where the job
//! could not be started. It goes to the end of stderr, since stdout is the ranks', or to the file
//! of `--json=FILE`, which is opened before anything else: a mistake in its name costs no job.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use rlaunch_plan::Verdict;
use rlaunch_plan::map::Map;
use serde::Serialize;

use super::reach::wall_us;
use super::{DriveError, Plan, show};
use crate::settings::{Json, Settings};

#[derive(Serialize)]
struct Report<'a> {
    rlaunch: &'static str,
    job: Option<&'a str>,
    /// Microseconds since 1970 on this machine's clock.
    started_us: i64,
    ended_us: i64,
    exit_code: u8,
    /// Why the job could not be started.
    error: Option<String>,
    /// Of the last attempt.
    verdict: Option<&'a Verdict>,
    /// The verdict as people read it.
    text: Option<String>,
    /// What earlier attempts ended with.
    restarts: &'a [Verdict],
    /// Of the last attempt, as `--dry-run --json` shows it.
    map: Option<&'a Map>,
}

/// Collects the report of a job; does nothing where none is asked for.
pub(super) struct Reporter {
    to: Option<To>,
    started_us: i64,
    map: Option<Map>,
    verdicts: Vec<Verdict>,
}

enum To {
    Stderr,
    File { path: PathBuf, file: File },
}

impl Reporter {
    pub(super) fn begin(settings: &Settings) -> Result<Self, DriveError> {
        let to = match &settings.json {
            // What is only shown is on stdout, and no report.
            _ if settings.dry_run => None,
            None => None,
            Some(Json::Standard) => Some(To::Stderr),
            Some(Json::File(path)) => {
                let path = path.clone();
                match File::create(&path) {
                    Ok(file) => Some(To::File { path, file }),
                    Err(error) => return Err(DriveError::Report { path, error }),
                }
            }
        };
        Ok(Self {
            to,
            started_us: wall_us(),
            map: None,
            verdicts: Vec::new(),
        })
    }

    pub(super) fn planned(&mut self, settings: &Settings, plan: &Plan) {
        if self.to.is_some() {
            self.map = Some(show::make(settings, plan));
        }
    }

    pub(super) fn ended(&mut self, verdict: Verdict) {
        if self.to.is_some() {
            self.verdicts.push(verdict);
        }
    }

    pub(super) fn finish(self, ended: &Result<u8, DriveError>) -> Result<(), DriveError> {
        let Some(to) = self.to else { return Ok(()) };
        let (exit_code, error) = match ended {
            Ok(code) => (*code, None),
            Err(error) => (error.exit_code(), Some(error.to_string())),
        };
        // After an error the last attempt has none.
        let (verdict, restarts) = match (self.verdicts.split_last(), &error) {
            (Some((last, earlier)), None) => (Some(last), earlier),
            _ => (None, &self.verdicts[..]),
        };
        let report = Report {
            rlaunch: env!("CARGO_PKG_VERSION"),
            job: self.map.as_ref().map(|map| map.job.as_str()),
            started_us: self.started_us,
            ended_us: wall_us(),
            exit_code,
            error,
            verdict,
            text: verdict.map(Verdict::render),
            restarts,
            map: self.map.as_ref(),
        };
        let mut text = serde_json::to_string(&report).expect("strings and numbers only");
        text.push('\n');
        match to {
            // That nobody listens is no failure.
            To::Stderr => {
                std::io::stderr().write_all(text.as_bytes()).ok();
                Ok(())
            }
            To::File { path, mut file } => file
                .write_all(text.as_bytes())
                .map_err(|error| DriveError::Report { path, error }),
        }
    }
}
