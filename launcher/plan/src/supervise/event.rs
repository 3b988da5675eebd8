//! What the state machine is told, and what it tells.

use std::time::Duration;

use serde::Serialize;

use crate::verdict::{Findings, Verdict};

/// What the job is. Hosts are the placement's nodes, by node rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub hosts: Vec<HostSetup>,
    /// The launcher's wall clock at time zero of `now`, in microseconds since 1970: host times in
    /// events are put on the launcher's time line with it.
    pub wall_start_us: i64,
    /// `--host-timeout`: a host silent for so long is lost.
    pub host_timeout: Duration,
    /// `--kill-after`: from TERM to KILL.
    pub kill_after: Duration,
    /// `--timeout`
    pub job_timeout: Option<Limit>,
    /// `--start-timeout`: all ranks run by then.
    pub start_timeout: Option<Limit>,
    /// `--on-failure`
    pub on_failure: OnFailure,
}

/// A limit of the user's, of which earlier attempts, or the way to the hosts, have used a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// As the user gave it; messages tell it.
    pub whole: Duration,
    /// Counted from `Supervisor::new`.
    pub left: Duration,
}

impl Limit {
    pub fn fresh(whole: Duration) -> Self {
        let left = whole;
        Self { whole, left }
    }

    pub(super) fn whole_ms(self) -> u64 {
        u64::try_from(self.whole.as_millis()).unwrap_or(u64::MAX)
    }
}

/// What a rank's failure means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// They are ended.
    #[default]
    Stop,
    /// They are told and go on, for programs that shrink their communicators. What was never
    /// started, and an agent that broke, end the job all the same.
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSetup {
    /// As messages call it.
    pub name: String,
    /// In ascending order.
    pub ranks: Vec<u32>,
}

/// What happened. `host` is a node rank. Host times are the host's wall clock in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Any byte from the host.
    Activity { host: usize },
    /// The current estimate of the host's clock.
    Clock {
        host: usize,
        offset_us: i64,
        error_us: u64,
    },
    Started {
        rank: u32,
        pid: u32,
        host_time_us: i64,
    },
    /// The rank joined the runtime's world.
    Joined { rank: u32 },
    /// The rank left the runtime's world in order.
    Left { rank: u32 },
    /// After waitpid.
    Exited {
        rank: u32,
        ending: Ending,
        core_dumped: bool,
        /// Ended by a signal that the agent sent.
        by_us: bool,
        /// The keeper, which starts and ends ranks, was killed, and its ranks with it.
        keeper_killed: bool,
        host_time_us: i64,
        findings: Findings,
    },
    /// The rank was stopped (SIGSTOP, SIGTTIN) or continued.
    Stopped {
        rank: u32,
        signal: i32,
        continued: bool,
    },
    /// The rank was never started. `what` is "program", "directory", "interpreter" or "fork".
    LaunchFailed {
        rank: u32,
        what: String,
        path: String,
        errno: i32,
    },
    /// Rank `rank`'s runtime says that it lost `peer`: secondary to whatever ended `peer`.
    PeerLost {
        rank: u32,
        peer: u32,
        /// It finalized in order, but too early.
        has_left: bool,
    },
    /// Rank `rank`'s program is told that a call of its failed because of `peer`.
    Blamed {
        rank: u32,
        peer: u32,
        /// Where that one called abort: on what, and its reason.
        aborted: Option<String>,
    },
    /// The rank printed something that may tell why it fails. Reported again for what is later.
    Printed {
        rank: u32,
        words: Words,
        host_time_us: i64,
    },
    /// The launcher and its ranks had been suspended, and go on.
    Resumed { paused: Duration },
    /// A process that could not be ended on the host.
    Leftover {
        host: usize,
        pid: u32,
        command: String,
        state: String,
        why: String,
    },
    /// Every process of the job on this host is gone.
    Finished { host: usize },
    /// The connection ended, or broke, before `Finished`.
    HostLost {
        host: usize,
        kind: LossKind,
        detail: String,
    },
    /// The launcher got SIGINT, SIGTERM, SIGHUP or SIGQUIT; or its output has no reader any more
    /// (SIGPIPE), which ends a job like the others but does not hurry one that is ending.
    UserSignal { signal: i32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Anything on stderr, for the first time.
    Stderr,
    /// Python's traceback of an exception.
    Traceback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Code(i32),
    Signal(i32),
}

/// How a host was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// The stream ended.
    Closed,
    /// The stream broke.
    Reset,
    /// Nothing was heard for `--host-timeout`. Found by the machine itself.
    Silent,
}

/// What the driver has to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send `Terminate` to these hosts' agents: TERM at once, KILL after `kill_after`. A second
    /// one shortens the first.
    Terminate {
        hosts: Vec<usize>,
        kill_after: Duration,
    },
    /// Send `PeerFailed` to every connected agent.
    TellPeersFailed {
        rank: u32,
        host: String,
        pid: u32,
        cause: String,
    },
    /// Print to stderr.
    Warn(String),
    /// Drop the connection to this host; nothing is awaited from it any more. Its agent and
    /// keeper end the ranks when they see the stream end.
    Disconnect { host: usize },
    /// The last action: print the verdict, exit with its code.
    Done(Box<Verdict>),
}
