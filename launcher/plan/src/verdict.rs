//! The verdict: how the job ended, as data, and as the one paragraph that people read.

use serde::Serialize;

use crate::supervise::{Ending, LossKind};

mod render;
mod signal;

pub use signal::{signal_hint, signal_name};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub exit_code: u8,
    pub outcome: Outcome,
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
    /// The causing rank's last lines; filled in by the driver, oldest first.
    pub last_lines: Vec<LastLine>,
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
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankFate {
    pub rank: u32,
    pub host: String,
    pub pid: Option<u32>,
    pub fate: Fate,
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

    /// The paragraph for stderr, ending in a newline; empty after a success that needs no word.
    pub fn render(&self) -> String {
        render::render(self)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers only")
    }
}

impl Cause {
    pub fn rank(&self) -> Option<u32> {
        match self {
            Self::RankEnded { rank, .. }
            | Self::RankLeftEarly { rank, .. }
            | Self::RankAborted { rank, .. }
            | Self::RankShutOut { rank, .. }
            | Self::LaunchFailed { rank, .. }
            | Self::AgentBroke { rank, .. } => Some(*rank),
            Self::HostLost { .. } => None,
        }
    }
}
