//! What each report of a rank or an agent means.

use std::time::Duration;

use super::event::{Action, Ending};
use super::limits::{JOIN_WARNING, LEAVE_DELAY};
use super::machine::{Phase, Supervisor, micros};
use super::state::{Failure, FailureKind, HostStatus, Life, RankState};
use crate::text::{count, ranges, show};
use crate::verdict::{Leftover, signal_name};

/// Who ended a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Itself, or somebody whom rlaunch does not know.
    Own,
    Agent,
    /// The death of the keeper.
    Keeper,
}

const KEEPER_KILLED: &str =
    "lost the process that starts and ends its ranks (rlaunch-keeper), and the ranks with it";

impl Supervisor {
    pub(super) fn started(&mut self, rank: u32, pid: u32, host_time_us: i64, now: Duration) {
        let host = self.ranks[rank as usize].host;
        let (at_us, _) = self.common_time(host, host_time_us, now);
        let rank = &mut self.ranks[rank as usize];
        rank.started_at_us = Some(at_us);
        rank.pid = Some(pid);
        if rank.life == Life::Starting {
            rank.life = Life::Running;
        }
    }

    pub(super) fn leftover(&mut self, leftover: Leftover) {
        let Leftover {
            host,
            pid,
            command,
            state,
            why,
        } = &leftover;
        let command = show(command);
        self.warn(format!(
            "{host}: process {pid} ({command}, state {state}) {why}"
        ));
        self.leftovers.push(leftover);
    }

    pub(super) fn exited(
        &mut self,
        rank: u32,
        (ending, core_dumped): (Ending, bool),
        whose: Whose,
        host_time_us: i64,
        now: Duration,
    ) {
        let index = rank as usize;
        if self.ranks[index].over() {
            return;
        }
        let host = self.ranks[index].host;
        let (at_us, error_us) = self.common_time(host, host_time_us, now);
        let by_us = whose != Whose::Own;
        let stopped = self.is_stopped_by_us(by_us, at_us);
        self.ranks[index].life = Life::Ended {
            ending,
            stopped,
            at_us,
        };
        if ending == Ending::Code(0) {
            if !self.ranks[index].left && !self.is_ending() {
                self.ranks[index].tell_at = Some(now + LEAVE_DELAY);
            }
            return;
        }
        let (kind, cause) = if by_us && !self.ranks[index].is_ended_shut_out {
            let (reason, cause) = match whose {
                Whose::Keeper => (KEEPER_KILLED, "ended with its keeper"),
                _ => (
                    "ended its ranks without being told to",
                    "ended by its agent",
                ),
            };
            (FailureKind::AgentBroke { rank, reason }, cause.to_owned())
        } else {
            let cause = match ending {
                Ending::Code(code) => format!("exit code {code}"),
                Ending::Signal(signal) => format!("ended by {}", signal_name(signal)),
            };
            (
                FailureKind::Exit {
                    rank,
                    ending,
                    core_dumped,
                },
                cause,
            )
        };
        // What the others did while it was stopped is no earlier failure.
        let stopped_at = self.ranks[index].stopped_at;
        let (at_us, error_us) = match stopped_at.filter(|_| self.ranks[index].is_ended_shut_out) {
            Some(at) => (micros(at), 0),
            None => (at_us, error_us),
        };
        let failure = Failure {
            at_us,
            error_us,
            host,
            kind,
        };
        self.fail(failure, &[rank], &cause, now);
    }

    pub(super) fn launch_failed(
        &mut self,
        rank: u32,
        what: String,
        path: String,
        errno: i32,
        now: Duration,
    ) {
        let index = rank as usize;
        if self.ranks[index].over() {
            return;
        }
        self.ranks[index].life = Life::NeverStarted;
        let kind = FailureKind::Launch {
            rank,
            what,
            path,
            errno,
        };
        let host = self.ranks[index].host;
        let failure = Failure {
            at_us: micros(now),
            error_us: 0,
            host,
            kind,
        };
        self.fail(failure, &[rank], "was not started", now);
    }

    pub(super) fn stopped(&mut self, rank: u32, signal: i32, continued: bool, now: Duration) {
        let index = rank as usize;
        if self.is_ending() || self.has_ended_shut_out || self.ranks[index].over() {
            return;
        }
        self.ranks[index].stopped_at = (!continued).then_some(now);
        let label = self.rank_label(index);
        self.warn(match (continued, self.ranks[index].pid) {
            (true, _) => format!("{label} continues"),
            (false, pid) => {
                let there = pid.map(|pid| format!(": `kill -CONT {pid}` there continues it"));
                let signal = signal_name(signal);
                format!(
                    "{label} was stopped by {signal}{}",
                    there.unwrap_or_default()
                )
            }
        });
    }

    pub(super) fn peer_lost(&mut self, rank: u32, peer: u32, has_left: bool) {
        self.blamed(rank, peer, None);
        self.ranks[peer as usize].is_shut_out |= !has_left;
    }

    /// The first one that a rank blames stays.
    pub(super) fn blamed(&mut self, rank: u32, peer: u32, aborted: Option<String>) {
        let rank = &mut self.ranks[rank as usize];
        rank.blames = rank.blames.or(Some(peer));
        let peer = &mut self.ranks[peer as usize];
        peer.aborted = peer.aborted.take().or(aborted);
    }

    pub(super) fn joined(&mut self, rank: u32, now: Duration) {
        if self.ranks.iter().all(|rank| !rank.joined) {
            self.join_warning_at = Some(now + JOIN_WARNING);
        }
        self.ranks[rank as usize].joined = true;
        if self.ranks.iter().all(|rank| rank.joined) {
            self.join_warning_at = None;
        }
        // Whoever has returned without joining will be waited for in vain.
        for rank in &mut self.ranks {
            if rank.returned_0() && !rank.left && !rank.told {
                rank.tell_at = Some(now + LEAVE_DELAY);
            }
        }
    }

    pub(super) fn finished(&mut self, host: usize, now: Duration) {
        if !self.hosts[host].connected() {
            return;
        }
        self.hosts[host].status = HostStatus::Finished;
        let open = self.close_ranks(host);
        if let Some(&rank) = open.first() {
            let reason = "finished without saying how the rank ended";
            let kind = FailureKind::AgentBroke { rank, reason };
            let failure = Failure {
                at_us: micros(now),
                error_us: 0,
                host,
                kind,
            };
            self.fail(failure, &open, "its agent finished without it", now);
        }
    }

    /// Those of the host's ranks of which nothing more will be heard.
    pub(super) fn close_ranks(&mut self, host: usize) -> Vec<u32> {
        let mut open = Vec::new();
        for &rank in &self.hosts[host].ranks {
            let state = &mut self.ranks[rank as usize];
            if !state.over() {
                state.life = Life::Unknown;
                open.push(rank);
            }
        }
        open
    }

    pub(super) fn tell_peers(&mut self, rank: usize, cause: String) {
        if !std::mem::replace(&mut self.ranks[rank].told, true) {
            self.actions.push_back(Action::TellPeersFailed {
                rank: rank as u32,
                host: self.hosts[self.ranks[rank].host].name.clone(),
                pid: self.ranks[rank].pid.unwrap_or(0),
                cause,
            });
        }
    }

    /// A rank that returned 0 without leaving, if any other is still in the world.
    pub(super) fn tell_left_early(&mut self, rank: usize) {
        let state = &self.ranks[rank];
        if !state.left && !self.is_ending() && self.ranks.iter().any(RankState::in_world) {
            let what = if state.joined {
                "without finalize"
            } else {
                "before it joined"
            };
            self.tell_peers(rank, format!("exited {what}"));
        }
    }

    pub(super) fn warn_of_missing(&mut self) {
        let missing = |rank: &RankState| !rank.joined;
        let numbers: Vec<u32> = (0_u32..)
            .zip(&self.ranks)
            .filter(|(_, rank)| missing(rank))
            .map(|(n, _)| n)
            .collect();
        let waiting = self.ranks.iter().filter(|rank| rank.in_world()).count();
        if !numbers.is_empty() && waiting > 0 && self.phase == Phase::Running {
            let verb = if waiting == 1 { "waits" } else { "wait" };
            let waiting = count(waiting as u64, "rank");
            self.warn(format!(
                "{waiting} {verb} in init for {}: not joined {} s after the first; does every rank \
                 run the same program, and reach rlaunch's init?",
                ranges(&numbers),
                JOIN_WARNING.as_secs()
            ));
        }
    }
}
