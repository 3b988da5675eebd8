//! The verdict: how the job ended, as data, and as the one paragraph that people read.

use serde::Serialize;

use crate::supervise::{Ending, LossKind};

mod hint;
mod holders;
mod render;
mod signal;
mod traceback;
mod why;

pub use signal::{signal_hint, signal_name};
pub use traceback::Tracebacks;
pub use why::{DeviceHolder, Findings, OutOfMemory, SharedMemory, Victim, Why};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub exit_code: u8,
    pub outcome: Outcome,
    /// When the cause came about; of a stop from outside, when it was asked for.
    pub at: Moment,
    /// What its host found out about the causing rank's end.
    pub findings: Findings,
    /// What is behind the causing rank's exit status; filled in by [`Verdict::read`].
    pub why: Option<Why>,
    /// The causing rank's program, where the job has several: `program 1 (worker.py)`; filled in by
    /// the driver.
    pub program: Option<String>,
    /// Where the limit that was reached was set, if nobody typed it: `rlaunch.toml:3`; filled in by the
    /// driver.
    pub limit_set_by: Option<String>,
    /// How each rank ended, by rank.
    pub ranks: Vec<RankFate>,
    /// Hosts that were silent when something failed elsewhere.
    pub suspects: Vec<Suspect>,
    /// Ranks that returned 0 without finalize while others waited for them.
    pub left_early: Vec<u32>,
    /// Hosts that did not confirm that nothing is left on them.
    pub unconfirmed: Vec<HostFate>,
    /// Processes that ranks left behind, or that could not be ended; `why` says which.
    pub leftovers: Vec<Leftover>,
    /// The causing rank's last lines, oldest first; filled in by [`Verdict::read`].
    pub last_lines: Vec<LastLine>,
    /// Errors that ranks printed shortly before, which had not ended by then; filled in by
    /// [`Verdict::read`].
    pub earlier_errors: Vec<EarlierError>,
}

/// On the launcher's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// Since the causing rank's start, or else the job's.
    pub after_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierError {
    pub rank: u32,
    pub host: String,
    pub line: String,
    pub before_ms: u64,
}

/// What a rank printed, as far as a verdict needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    pub last_lines: Vec<LastLine>,
    /// The last exception that Python told of, and when on the launcher's clock.
    pub error: Option<(String, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Every rank returned 0.
    Success,
    Failed {
        cause: Cause,
    },
    /// `--timeout` ran out.
    TimedOut {
        timeout_ms: u64,
    },
    /// The user's signal.
    Interrupted {
        signal: i32,
    },
}

/// What came first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    RankEnded {
        rank: u32,
        host: String,
        pid: Option<u32>,
        ending: Ending,
        core_dumped: bool,
    },
    /// Returned 0 while its peers still needed it; they failed.
    RankLeftEarly {
        rank: u32,
        host: String,
        pid: Option<u32>,
    },
    /// Its program called abort, and its peers failed by that.
    RankAborted {
        rank: u32,
        host: String,
        pid: Option<u32>,
        /// `the world: loss is NaN`
        what: String,
    },
    /// It had not answered its peers, which went on without it, or was stopped when they had ended;
    /// rlaunch ended it after them.
    RankShutOut {
        rank: u32,
        host: String,
        pid: Option<u32>,
        stopped: bool,
    },
    LaunchFailed {
        rank: u32,
        host: String,
        what: String,
        path: String,
        errno: i32,
        also: Vec<String>,
    },
    HostLost {
        host: String,
        ranks: Vec<u32>,
        kind: LossKind,
        detail: String,
        silent_ms: u64,
    },
    /// The agent finished without saying how a rank ended, or ended it by itself.
    AgentBroke {
        host: String,
        rank: u32,
        reason: String,
    },
    /// Not all ranks had been started when `--start-timeout` ran out.
    NotStarted {
        ranks: Vec<u32>,
        hosts: Vec<String>,
        timeout_ms: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankFate {
    pub rank: u32,
    pub host: String,
    pub pid: Option<u32>,
    pub fate: Fate,
    /// On the launcher's clock, microseconds since 1970.
    pub started_us: Option<i64>,
    pub ended_us: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    NeverStarted,
    /// Ended by itself.
    Ended(Ending),
    /// Ended by rlaunch.
    Stopped(Ending),
    /// Its host was lost or did not answer.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suspect {
    pub host: String,
    pub silent_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFate {
    pub host: String,
    pub kind: HostFateKind,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostFateKind {
    Lost,
    /// Its agent lives but did not finish in time.
    Unresponsive,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    pub host: String,
    pub pid: u32,
    pub command: String,
    pub state: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastLine {
    /// Else stdout.
    pub stderr: bool,
    pub text: String,
}

impl Verdict {
    /// The rank whose last lines belong into the verdict.
    pub fn rank(&self) -> Option<u32> {
        match &self.outcome {
            Outcome::Failed { cause } => cause.rank(),
            _ => None,
        }
    }

    /// The option whose limit was reached.
    pub fn limit(&self) -> Option<&'static str> {
        match &self.outcome {
            Outcome::TimedOut { .. } => Some("timeout"),
            Outcome::Failed { cause } => match cause {
                Cause::NotStarted { .. } => Some("start-timeout"),
                Cause::HostLost {
                    kind: LossKind::Silent,
                    ..
                } => Some("host-timeout"),
                _ => None,
            },
            Outcome::Success | Outcome::Interrupted { .. } => None,
        }
    }

    /// Whether the whole job may do better when it is started again: not what a person or a limit
    /// ended, nor what could not be started.
    pub fn may_go_better(&self) -> bool {
        match &self.outcome {
            Outcome::Failed { cause } => {
                !matches!(cause, Cause::LaunchFailed { .. } | Cause::NotStarted { .. })
            }
            Outcome::Success | Outcome::TimedOut { .. } | Outcome::Interrupted { .. } => false,
        }
    }

    /// Takes in what ranks printed. `printed` answers for any rank.
    pub fn read(&mut self, printed: impl Fn(u32) -> Printed) {
        let Some(rank) = self.rank() else { return };
        let Printed { last_lines, error } = printed(rank);
        if let Outcome::Failed {
            cause: Cause::RankEnded { ending, .. },
        } = &self.outcome
        {
            let error = error.as_ref().map(|(line, _)| line.as_str());
            self.why = why::decode(*ending, &self.findings, &last_lines, error);
            self.earlier_errors = self.earlier_errors(rank, printed);
        }
        self.last_lines = last_lines;
    }

    /// A program that failed and hangs in its own end makes others fail first: of those that we
    /// ended, whose last error is a little older than the cause.
    fn earlier_errors(&self, cause: u32, printed: impl Fn(u32) -> Printed) -> Vec<EarlierError> {
        let stopped =
            |fate: &&RankFate| fate.rank != cause && matches!(fate.fate, Fate::Stopped(_));
        let earlier = self.ranks.iter().filter(stopped).filter_map(|fate| {
            let (line, at_us) = printed(fate.rank).error?;
            let before_us = u64::try_from(self.at.wall_us.checked_sub(at_us)?).ok()?;
            (before_us <= EARLIER_ERROR_MAX_US).then(|| EarlierError {
                rank: fate.rank,
                host: fate.host.clone(),
                line,
                before_ms: before_us / 1000,
            })
        });
        let mut earlier: Vec<EarlierError> = earlier.collect();
        earlier.sort_by_key(|error| std::cmp::Reverse(error.before_ms));
        earlier.truncate(EARLIER_ERRORS_MAX);
        earlier
    }

    /// The paragraph for stderr, ending in a newline; empty after a success that needs no word.
    pub fn render(&self) -> String {
        render::render(self)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers only")
    }
}

/// An older error is none of the cause's.
const EARLIER_ERROR_MAX_US: u64 = 60_000_000;
const EARLIER_ERRORS_MAX: usize = 3;

impl Cause {
    pub fn rank(&self) -> Option<u32> {
        match self {
            Self::RankEnded { rank, .. }
            | Self::RankLeftEarly { rank, .. }
            | Self::RankAborted { rank, .. }
            | Self::RankShutOut { rank, .. }
            | Self::LaunchFailed { rank, .. }
            | Self::AgentBroke { rank, .. } => Some(*rank),
            Self::HostLost { .. } | Self::NotStarted { .. } => None,
        }
    }
}
