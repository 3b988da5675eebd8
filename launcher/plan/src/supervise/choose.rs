//! Which of the collected failures is the cause.
//!
//! 1. A rank whose runtime said "I lost peer N" failed because of N, if anything explains N's
//!    end: a failure of its own, a host that is silent, or its early return.
//!    The same goes for a peer that called abort: that call is the cause.
//! 2. Of the others the earliest on the common clock is the cause.
//! 3. Clocks are known to within half a round trip. Where a process that a signal ended and one
//!    that returned a code are closer than that, on two hosts, the signal is the cause: a killed
//!    peer makes others return codes, hardly the other way round.
//! 4. Of several that return the same code within the time of collecting, the one that tells why
//!    is the cause: the first whose Python printed an exception, else the first that wrote to
//!    stderr. Programs that find the same mistake on all ranks often tell it on one.

use std::time::Duration;

use super::event::{Ending, LossKind};
use super::limits::{COLLECT, SUSPECT};
use super::machine::Supervisor;
use super::state::{Failure, FailureKind, HostState};
use crate::exit_code;
use crate::verdict::{Cause, Suspect};

const ENOENT: i32 = 2;
const ENOTDIR: i32 = 20;

impl Supervisor {
    /// The cause, when it came about, and the job's exit code. There is at least one failure.
    pub(super) fn choose(&self, now: Duration) -> (Cause, i64, u8) {
        let primary = self
            .failures
            .iter()
            .filter(|failure| !self.is_secondary(failure));
        let primary: Vec<&Failure> = primary.collect();
        let failure = self
            .first(&primary)
            .expect("not every failure can follow from another");
        let (cause, code) = self.describe(failure);
        let (cause, code) = match self.abort_behind(failure) {
            Some(cause) => (cause, code),
            None => self.explain(failure, code, now).unwrap_or((cause, code)),
        };
        (cause, failure.at_us, code)
    }

    /// Hosts that were silent when something failed elsewhere.
    pub(super) fn suspects(&self, now: Duration) -> Vec<Suspect> {
        let silent = |host: &HostState| now.saturating_sub(host.heard_at);
        let suspected = |host: &&HostState| host.connected() && silent(host) >= SUSPECT;
        let hosts = self.hosts.iter().filter(suspected);
        hosts
            .map(|host| Suspect {
                host: host.name.clone(),
                silent_ms: millis(silent(host)),
            })
            .collect()
    }

    /// Ranks that returned 0 and left others waiting.
    pub(super) fn left_early(&self) -> Vec<u32> {
        let ranks = (0_u32..).zip(&self.ranks);
        ranks
            .filter(|(_, rank)| rank.told && rank.returned_0())
            .map(|(number, _)| number)
            .collect()
    }

    fn first<'a>(&self, failures: &[&'a Failure]) -> Option<&'a Failure> {
        // min_by_key keeps the first of equals, so arrival decides between them.
        let earliest = *failures.iter().min_by_key(|failure| failure.at_us)?;
        if is_signal(earliest) {
            return Some(earliest);
        }
        let close = |failure: &&&Failure| {
            let apart_us = failure.at_us.abs_diff(earliest.at_us);
            let error_us = failure.error_us.saturating_add(earliest.error_us);
            failure.host != earliest.host && apart_us <= error_us && is_signal(failure)
        };
        let returned_code = matches!(earliest.kind, FailureKind::Exit { .. });
        let signal = failures
            .iter()
            .filter(close)
            .min_by_key(|failure| failure.at_us);
        if let Some(signal) = signal.filter(|_| returned_code) {
            return Some(signal);
        }
        let alike = failures.iter().filter(|other| {
            let apart_us = other.at_us.abs_diff(earliest.at_us);
            apart_us <= COLLECT.as_micros() as u64 && are_alike(earliest, other)
        });
        let telling = alike.filter_map(|failure| Some((self.telling(failure)?, *failure)));
        let telling = telling.min_by_key(|(rank_and_time, _)| *rank_and_time);
        Some(telling.map_or(earliest, |(_, failure)| failure))
    }

    /// How much its rank said of why: the smaller, the more. None: nothing.
    fn telling(&self, failure: &Failure) -> Option<(u8, i64)> {
        let FailureKind::Exit { rank, .. } = failure.kind else {
            return None;
        };
        let printed = &self.ranks[rank as usize].printed;
        match (printed.traceback_at_us, printed.stderr) {
            (Some(at_us), _) => Some((0, at_us)),
            (None, true) => Some((1, failure.at_us)),
            (None, false) => None,
        }
    }

    /// Whether its rank blames a peer that failed by itself.
    fn is_secondary(&self, failure: &Failure) -> bool {
        self.root(failure).is_some_and(|root| self.has_failed(root))
    }

    /// Whom the failed rank blames, or whom that one blames in turn, and so on. `None` if it
    /// blames nobody, or if blame runs in a circle.
    fn root(&self, failure: &Failure) -> Option<usize> {
        let FailureKind::Exit { rank, .. } = failure.kind else {
            return None;
        };
        let mut root = self.ranks[rank as usize].blames? as usize;
        for _ in 0..self.ranks.len() {
            match self.ranks[root].blames {
                Some(peer) => root = peer as usize,
                None => return Some(root),
            }
        }
        None
    }

    fn has_failed(&self, rank: usize) -> bool {
        self.failures.iter().any(|failure| match &failure.kind {
            FailureKind::HostLost { ranks, .. } => ranks.contains(&(rank as u32)),
            FailureKind::NotStarted { .. } => false,
            FailureKind::Exit { rank: failed, .. }
            | FailureKind::Launch { rank: failed, .. }
            | FailureKind::AgentBroke { rank: failed, .. } => *failed as usize == rank,
        })
    }

    /// The call of abort that the failed rank made, or that its peers blame.
    fn abort_behind(&self, failure: &Failure) -> Option<Cause> {
        let FailureKind::Exit { rank, .. } = failure.kind else {
            return None;
        };
        let rank = self.root(failure).unwrap_or(rank as usize);
        let state = &self.ranks[rank];
        Some(Cause::RankAborted {
            rank: rank as u32,
            host: self.hosts[state.host].name.clone(),
            pid: state.pid,
            what: state.aborted.clone()?,
        })
    }

    /// What became of the peer that the failed rank blames, where that is no failure itself.
    fn explain(&self, failure: &Failure, code: u8, now: Duration) -> Option<(Cause, u8)> {
        let peer = self.root(failure)?;
        let state = &self.ranks[peer];
        let host = &self.hosts[state.host];
        if state.returned_0() {
            let host = host.name.clone();
            return Some((
                Cause::RankLeftEarly {
                    rank: peer as u32,
                    host,
                    pid: state.pid,
                },
                code,
            ));
        }
        let silent = now.saturating_sub(host.heard_at);
        if !host.connected() || silent < SUSPECT {
            return None;
        }
        let cause = Cause::HostLost {
            host: host.name.clone(),
            ranks: host.ranks.clone(),
            kind: LossKind::Silent,
            detail: format!("a rank lost its connection to rank {peer} there"),
            silent_ms: millis(silent),
        };
        Some((cause, exit_code::HOST_LOST))
    }

    fn describe(&self, failure: &Failure) -> (Cause, u8) {
        let host = self.hosts[failure.host].name.clone();
        match &failure.kind {
            &FailureKind::Exit {
                rank,
                ending,
                core_dumped,
            } => self.describe_exit((rank, host), ending, core_dumped),
            FailureKind::Launch {
                rank,
                what,
                path,
                errno,
            } => {
                let program = !matches!(what.as_str(), "directory" | "fork");
                let absent = matches!(*errno, ENOENT | ENOTDIR);
                let code = if program && absent {
                    exit_code::NOT_FOUND
                } else {
                    exit_code::CANNOT_START
                };
                let cause = Cause::LaunchFailed {
                    rank: *rank,
                    host,
                    what: what.clone(),
                    path: path.clone(),
                    errno: *errno,
                    also: self.also_not_launched(failure.host, path),
                };
                (cause, code)
            }
            FailureKind::HostLost {
                ranks,
                kind,
                detail,
                silent,
            } => {
                let cause = Cause::HostLost {
                    host,
                    ranks: ranks.clone(),
                    kind: *kind,
                    detail: detail.clone(),
                    silent_ms: millis(*silent),
                };
                (cause, exit_code::HOST_LOST)
            }
            FailureKind::NotStarted { ranks } => (self.not_started(ranks), exit_code::LAUNCHER),
            &FailureKind::AgentBroke { rank, reason } => {
                let reason = reason.to_owned();
                (
                    Cause::AgentBroke { host, rank, reason },
                    exit_code::LAUNCHER,
                )
            }
        }
    }

    fn describe_exit(
        &self,
        (rank, host): (u32, String),
        ending: Ending,
        core_dumped: bool,
    ) -> (Cause, u8) {
        let state = &self.ranks[rank as usize];
        let pid = state.pid;
        let code = match ending {
            Ending::Code(code) => exit_code::of_exit(code),
            Ending::Signal(signal) => exit_code::of_signal(signal),
        };
        if state.is_ended_shut_out {
            let stopped = state.stopped_at.is_some();
            let cause = Cause::RankShutOut {
                rank,
                host,
                pid,
                stopped,
            };
            return (cause, code);
        }
        let cause = Cause::RankEnded {
            rank,
            host,
            pid,
            ending,
            core_dumped,
        };
        (cause, code)
    }

    /// Other hosts on which the same could not be started.
    fn also_not_launched(&self, host: usize, path: &str) -> Vec<String> {
        let mut hosts: Vec<usize> = Vec::new();
        for failure in &self.failures {
            let same = matches!(&failure.kind, FailureKind::Launch { path: p, .. } if p == path);
            if same && failure.host != host && !hosts.contains(&failure.host) {
                hosts.push(failure.host);
            }
        }
        hosts.sort_unstable();
        hosts
            .into_iter()
            .map(|host| self.hosts[host].name.clone())
            .collect()
    }
}

/// Whether they returned the same code.
fn are_alike(failure: &Failure, other: &Failure) -> bool {
    match (&failure.kind, &other.kind) {
        (
            FailureKind::Exit {
                ending: Ending::Code(code),
                ..
            },
            FailureKind::Exit {
                ending: Ending::Code(also),
                ..
            },
        ) => code == also,
        _ => false,
    }
}

fn is_signal(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::Exit {
            ending: Ending::Signal(_),
            ..
        }
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
