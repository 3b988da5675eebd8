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
use std::io::{self, Write};
use std::path::PathBuf;

use rlaunch_agent::Standard;
use rlaunch_plan::map::Map;
use rlaunch_plan::{Verdict, exit_code};
use serde::Serialize;

use crate::clock::wall_us;
use crate::settings::Json;
use crate::talk;

/// Why no job was begun.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// As it was said.
    pub(crate) text: String,
    pub(crate) code: u8,
}

impl Refusal {
    pub(crate) fn usage(text: String) -> Self {
        let code = exit_code::USAGE;
        Self { text, code }
    }
}

/// The file of `--json=FILE` cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("--json={}: {error}", path.display())]
pub(crate) struct ReportError {
    pub(crate) path: PathBuf,
    pub(crate) error: io::Error,
}

#[derive(Serialize)]
struct Report<'a> {
    rlaunch: &'static str,
    job: Option<&'a str>,
    /// Microseconds since 1970 on this machine's clock.
    started_us: i64,
    ended_us: i64,
    exit_code: u8,
    /// Why the job could not be started.
    error: Option<&'a str>,
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
pub struct Reporter {
    to: Option<To>,
    started_us: i64,
    map: Option<Map>,
    verdicts: Vec<Verdict>,
    /// `--dry-run`: what stands in the file in place of the report.
    plan: Option<String>,
}

enum To {
    Stderr,
    File { path: PathBuf, file: File },
}

impl Reporter {
    pub(crate) fn begin(to: Option<Json>) -> Result<Self, ReportError> {
        let to = match to {
            None => None,
            Some(Json::Standard) => Some(To::Stderr),
            Some(Json::File(path)) => match File::create(&path) {
                Ok(file) => Some(To::File { path, file }),
                Err(error) => return Err(ReportError { path, error }),
            },
        };
        Ok(Self {
            to,
            started_us: wall_us(),
            map: None,
            verdicts: Vec::new(),
            plan: None,
        })
    }

    /// What an attempt is about to do; `map` is made only where it is wanted.
    pub(crate) fn planned(&mut self, map: impl FnOnce() -> Map) {
        if self.to.is_some() {
            self.map = Some(map());
        }
    }

    pub(crate) fn ended(&mut self, verdict: Verdict) {
        if self.to.is_some() {
            self.verdicts.push(verdict);
        }
    }

    /// The plan, which is all that was asked for, in place of a report: in the file, or on stdout.
    pub(crate) fn show_plan(&mut self, text: String) -> u8 {
        match self.to {
            Some(To::File { .. }) => {
                self.plan = Some(text);
                exit_code::SUCCESS
            }
            Some(To::Stderr) | None => {
                self.to = None;
                talk::print(&text)
            }
        }
    }

    /// Says why no job was begun, if so, and writes the report behind all else; the exit code. It
    /// stays that of the job, but a report that is lost is no success.
    pub(crate) fn finish(self, ended: Result<u8, Refusal>) -> u8 {
        if let Err(refusal) = &ended {
            talk::say(&refusal.text);
        }
        let code = match &ended {
            Ok(code) => *code,
            Err(refusal) => refusal.code,
        };
        let text = match &self.plan {
            Some(plan) if ended.is_ok() => plan.clone(),
            _ => self.text(code, ended.as_ref().err()),
        };
        let (name, written) = match self.to {
            None => return code,
            Some(To::Stderr) => ("stderr".to_owned(), write_stderr(&text)),
            Some(To::File { path, mut file }) => {
                let name = format!("--json={}", path.display());
                (name, file.write_all(text.as_bytes()))
            }
        };
        match written {
            // That nobody listens any more is no failure.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                talk::say(&format!(
                    "{name}: {}: the report is lost",
                    talk::plain(error)
                ));
                if code == exit_code::SUCCESS {
                    return exit_code::LAUNCHER;
                }
            }
            Ok(()) | Err(_) => {}
        }
        code
    }

    fn text(&self, exit_code: u8, refusal: Option<&Refusal>) -> String {
        // After an error the last attempt has none.
        let (verdict, restarts) = match self.verdicts.split_last() {
            Some((last, earlier)) if refusal.is_none() => (Some(last), earlier),
            _ => (None, &self.verdicts[..]),
        };
        let report = Report {
            rlaunch: env!("CARGO_PKG_VERSION"),
            job: self.map.as_ref().map(|map| map.job.as_str()),
            started_us: self.started_us,
            ended_us: wall_us(),
            exit_code,
            error: refusal.map(|refusal| refusal.text.as_str()),
            verdict,
            text: verdict.map(Verdict::render),
            restarts,
            map: self.map.as_ref(),
        };
        let text = serde_json::to_string(&report).expect("strings and numbers only");
        text + "\n"
    }
}

fn write_stderr(text: &str) -> io::Result<()> {
    if rlaunch_agent::was_closed(Standard::Stderr) {
        return Err(nix::errno::Errno::EBADF.into());
    }
    io::stderr().write_all(text.as_bytes())
}
