//! What is known of each host and rank.

use std::time::Duration;

use super::event::{Ending, HostSetup, LossKind};
use super::printed::Printed;
use crate::verdict::{Fate, Findings};

#[derive(Debug)]
pub(super) struct HostState {
    pub(super) name: String,
    /// In ascending order.
    pub(super) ranks: Vec<u32>,
    pub(super) status: HostStatus,
    pub(super) heard_at: Duration,
    /// Its silence was named.
    pub(super) warned: bool,
    /// Offset and error of its clock, once known.
    pub(super) clock: Option<(i64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostStatus {
    Connected,
    Finished,
    Lost {
        kind: LossKind,
        detail: String,
    },
    /// Alive, but did not finish in time.
    GivenUp {
        waited: Duration,
    },
}

#[derive(Debug)]
pub(super) struct RankState {
    pub(super) host: usize,
    pub(super) pid: Option<u32>,
    pub(super) life: Life,
    /// On the launcher's time line.
    pub(super) started_at_us: Option<i64>,
    pub(super) printed: Printed,
    pub(super) findings: Findings,
    pub(super) joined: bool,
    pub(super) left: bool,
    /// The peer that its runtime says it lost.
    pub(super) blames: Option<u32>,
    /// It called abort: on what, and why, as a peer told.
    pub(super) aborted: Option<String>,
    /// Its peers have lost it: what it still does, it does alone.
    pub(super) is_shut_out: bool,
    /// Since when it is stopped by a signal.
    pub(super) stopped_at: Option<Duration>,
    /// It was shut out or stopped to the end, and we ended it.
    pub(super) is_ended_shut_out: bool,
    /// Its peers were told of its end.
    pub(super) told: bool,
    /// Returned 0 without leaving; peers are told then, unless its leave arrives.
    pub(super) tell_at: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Starting,
    Running,
    /// `stopped`: by us.
    Ended {
        ending: Ending,
        stopped: bool,
        at_us: i64,
    },
    NeverStarted,
    /// Its host was lost, or its agent did not say.
    Unknown,
}

/// Something that ends the job, on the launcher's time line.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) at_us: i64,
    /// `at_us` is right to within this.
    pub(super) error_us: u64,
    pub(super) host: usize,
    pub(super) kind: FailureKind,
}

#[derive(Debug, Clone)]
pub(super) enum FailureKind {
    Exit {
        rank: u32,
        ending: Ending,
        core_dumped: bool,
    },
    Launch {
        rank: u32,
        what: String,
        path: String,
        errno: i32,
    },
    HostLost {
        ranks: Vec<u32>,
        kind: LossKind,
        detail: String,
        silent: Duration,
    },
    AgentBroke {
        rank: u32,
        reason: &'static str,
    },
    NotStarted {
        ranks: Vec<u32>,
    },
}

impl HostState {
    pub(super) fn new(setup: &HostSetup, now: Duration) -> Self {
        Self {
            name: setup.name.clone(),
            ranks: setup.ranks.clone(),
            status: HostStatus::Connected,
            heard_at: now,
            warned: false,
            clock: None,
        }
    }

    pub(super) fn connected(&self) -> bool {
        self.status == HostStatus::Connected
    }

    pub(super) fn rank_indices(&self) -> impl Iterator<Item = usize> {
        self.ranks.iter().map(|&rank| rank as usize)
    }
}

impl RankState {
    pub(super) fn new(host: usize) -> Self {
        Self {
            host,
            pid: None,
            life: Life::Starting,
            started_at_us: None,
            printed: Printed::default(),
            findings: Findings::default(),
            joined: false,
            left: false,
            blames: None,
            aborted: None,
            is_shut_out: false,
            stopped_at: None,
            is_ended_shut_out: false,
            told: false,
            tell_at: None,
        }
    }

    /// Nothing more is to be learnt of it.
    pub(super) fn over(&self) -> bool {
        !matches!(self.life, Life::Starting | Life::Running)
    }

    pub(super) fn returned_0(&self) -> bool {
        matches!(
            self.life,
            Life::Ended {
                ending: Ending::Code(0),
                stopped: false,
                ..
            }
        )
    }

    /// Takes part in the runtime's world now.
    pub(super) fn in_world(&self) -> bool {
        self.joined && !self.left && !self.over()
    }

    pub(super) fn fate(&self) -> Fate {
        match self.life {
            Life::Starting | Life::NeverStarted => Fate::NeverStarted,
            Life::Running | Life::Unknown => Fate::Unknown,
            Life::Ended {
                ending,
                stopped: false,
                ..
            } => Fate::Ended(ending),
            Life::Ended {
                ending,
                stopped: true,
                ..
            } => Fate::Stopped(ending),
        }
    }
}
