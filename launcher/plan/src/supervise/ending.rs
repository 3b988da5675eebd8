//! From the decision to end the job to the verdict.

use std::time::Duration;

use super::event::{Action, Limit};
use super::limits::{FINISH_WARNING, GRACE};
use super::machine::{Phase, Supervisor, micros};
use super::state::{HostState, HostStatus, Life, RankState};
use crate::exit_code;
use crate::text::{seconds, table};
use crate::verdict::{HostFate, HostFateKind, Moment, Outcome, RankFate, Suspect, Verdict};

const SIGPIPE: i32 = 13;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndingState {
    outcome: Outcome,
    /// On the launcher's time line.
    at_us: i64,
    exit_code: u8,
    suspects: Vec<Suspect>,
    left_early: Vec<u32>,
    since: Duration,
    /// Hosts whose ranks have not been said to have ended are given up then.
    give_up_at: Duration,
    /// KILL was sent at once.
    killing: bool,
    /// Hosts that are through but for their output have been named.
    warned: bool,
}

impl Supervisor {
    /// `stop`: why, if no failure came before; its exit code.
    pub(super) fn begin_ending(&mut self, stop: Option<(Outcome, u8)>, now: Duration) {
        debug_assert!(!self.is_ending());
        let (outcome, at_us, exit_code) = match stop.filter(|_| self.failures.is_empty()) {
            Some((outcome, code)) => (outcome, micros(now), code),
            None => {
                let (cause, at_us, code) = self.choose(now);
                (Outcome::Failed { cause }, at_us, code)
            }
        };
        assert_ne!(
            exit_code,
            exit_code::SUCCESS,
            "what is ended has not succeeded"
        );
        let (suspects, left_early) = (self.suspects(now), self.left_early());
        self.phase = Phase::Ending(EndingState {
            outcome,
            at_us,
            exit_code,
            suspects,
            left_early,
            since: now,
            give_up_at: now
                .saturating_add(self.settings.kill_after)
                .saturating_add(GRACE),
            killing: false,
            warned: false,
        });
        self.terminate(self.settings.kill_after);
    }

    pub(super) fn user_signal(&mut self, signal: i32, now: Duration) {
        let Phase::Ending(ending) = &mut self.phase else {
            let stop = (
                Outcome::Interrupted { signal },
                exit_code::of_signal(signal),
            );
            self.begin_ending(Some(stop), now);
            // Whoever closed the pipe does not listen.
            if signal != SIGPIPE {
                self.warn_of_kill();
            }
            return;
        };
        // Nobody has lost patience: the reader of the output is gone, and the job ends already.
        if signal == SIGPIPE {
            return;
        }
        // The first thing that the user says: ^C reaches `| tee` too, whose end may be seen before.
        if matches!(ending.outcome, Outcome::Interrupted { signal: SIGPIPE }) {
            ending.outcome = Outcome::Interrupted { signal };
            ending.exit_code = exit_code::of_signal(signal);
            self.warn_of_kill();
            return;
        }
        if ending.killing {
            self.give_up(now, |_, _| true);
            return;
        }
        ending.killing = true;
        ending.give_up_at = ending.give_up_at.min(now + GRACE);
        self.terminate(Duration::ZERO);
    }

    fn warn_of_kill(&mut self) {
        let patience = self.settings.kill_after;
        if patience.is_zero() {
            return;
        }
        let patience = seconds(patience);
        self.warn(format!(
            "ending the job (TERM); KILL follows in {patience}, ^C again kills now"
        ));
    }

    pub(super) fn timed_out(&mut self, now: Duration) {
        if !self.is_ending() {
            let timeout_ms = self.settings.job_timeout.map_or(0, Limit::whole_ms);
            self.begin_ending(
                Some((Outcome::TimedOut { timeout_ms }, exit_code::TIMEOUT)),
                now,
            );
        }
    }

    /// A rank that ends after the decision was ended by us, unless it had ended before. Before the
    /// decision nobody has reason to end a rank.
    pub(super) fn is_stopped_by_us(&self, by_us: bool, at_us: i64) -> bool {
        match &self.phase {
            Phase::Ending(ending) => by_us || at_us >= micros(ending.since),
            _ => false,
        }
    }

    pub(super) fn check_ending(&mut self, now: Duration) {
        let Phase::Ending(ending) = &mut self.phase else {
            return;
        };
        if ending.give_up_at <= now {
            self.give_up(now, |host, ranks| {
                host.rank_indices().any(|index| !ranks[index].over())
            });
        }
        let Phase::Ending(ending) = &mut self.phase else {
            return;
        };
        if ending.since + FINISH_WARNING <= now && !std::mem::replace(&mut ending.warned, true) {
            let waited = seconds(now - ending.since);
            let hosts = self.hosts.iter().filter(|host| host.connected());
            let names: Vec<String> = hosts.map(|host| host.name.clone()).collect();
            if !names.is_empty() {
                let names = table(names.into_iter());
                self.warn(format!(
                    "waiting for {names} to finish, {waited} after the job was ended; ^C kills, \
                     ^C again stops waiting"
                ));
            }
        }
    }

    pub(super) fn ending_timer(&self) -> Option<Duration> {
        let Phase::Ending(ending) = &self.phase else {
            return None;
        };
        let any_open = self.ranks.iter().any(|rank| !rank.over());
        let give_up = any_open.then_some(ending.give_up_at);
        let warning = (!ending.warned).then_some(ending.since + FINISH_WARNING);
        give_up.into_iter().chain(warning).min()
    }

    /// Every host is through: the verdict.
    pub(super) fn finish(&mut self, now: Duration) {
        if !self.is_ending() && !self.failures.is_empty() {
            self.begin_ending(None, now);
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Done);
        let (outcome, at_us, exit_code, suspects, left_early) = match phase {
            Phase::Ending(ending) => (
                ending.outcome,
                ending.at_us,
                ending.exit_code,
                ending.suspects,
                ending.left_early,
            ),
            _ => (
                Outcome::Success,
                micros(now),
                exit_code::SUCCESS,
                Vec::new(),
                Vec::new(),
            ),
        };
        let success = outcome == Outcome::Success;
        assert_eq!(
            success,
            exit_code == exit_code::SUCCESS,
            "0 exactly after success"
        );
        assert!(
            !success || self.ranks.iter().all(RankState::returned_0),
            "0 from every rank"
        );
        let ranks = (0_u32..).zip(&self.ranks);
        let ranks = ranks.map(|(rank, state)| self.rank_fate(rank, state));
        let ranks: Vec<RankFate> = ranks.collect();
        let cause = match &outcome {
            Outcome::Failed { cause } => cause.rank(),
            _ => None,
        };
        let cause = cause.map(|rank| &self.ranks[rank as usize]);
        let began_us = cause.and_then(|rank| rank.started_at_us);
        let after_us = at_us.saturating_sub(began_us.unwrap_or(self.began_us));
        let verdict = Verdict {
            exit_code,
            outcome,
            at: Moment {
                wall_us: self.wall_us(at_us),
                after_ms: u64::try_from(after_us / 1000).unwrap_or(0),
            },
            findings: cause.map(|rank| rank.findings.clone()).unwrap_or_default(),
            why: None,
            program: None,
            limit_set_by: None,
            ranks,
            suspects,
            left_early,
            unconfirmed: self.hosts.iter().filter_map(unconfirmed).collect(),
            leftovers: std::mem::take(&mut self.leftovers),
            last_lines: Vec::new(),
            earlier_errors: Vec::new(),
        };
        self.actions.push_back(Action::Done(Box::new(verdict)));
    }

    fn rank_fate(&self, rank: u32, state: &RankState) -> RankFate {
        let ended_at_us = match state.life {
            Life::Ended { at_us, .. } => Some(at_us),
            _ => None,
        };
        RankFate {
            rank,
            host: self.hosts[state.host].name.clone(),
            pid: state.pid,
            fate: state.fate(),
            started_us: state.started_at_us.map(|at_us| self.wall_us(at_us)),
            ended_us: ended_at_us.map(|at_us| self.wall_us(at_us)),
        }
    }

    /// From the launcher's time line to its clock.
    fn wall_us(&self, at_us: i64) -> i64 {
        self.settings.wall_start_us.saturating_add(at_us)
    }

    fn terminate(&mut self, kill_after: Duration) {
        let connected = self
            .hosts
            .iter()
            .enumerate()
            .filter(|(_, host)| host.connected());
        let hosts: Vec<usize> = connected.map(|(index, _)| index).collect();
        if !hosts.is_empty() {
            self.actions
                .push_back(Action::Terminate { hosts, kill_after });
        }
    }

    /// Stops waiting for those connected hosts that `which` names.
    fn give_up(&mut self, now: Duration, which: fn(&HostState, &[RankState]) -> bool) {
        let Phase::Ending(ending) = &self.phase else {
            return;
        };
        let waited = now - ending.since;
        for host in 0..self.hosts.len() {
            let state = &self.hosts[host];
            if state.connected() && which(state, &self.ranks) {
                self.hosts[host].status = HostStatus::GivenUp { waited };
                self.close_ranks(host);
                self.actions.push_back(Action::Disconnect { host });
            }
        }
    }
}

fn unconfirmed(host: &HostState) -> Option<HostFate> {
    let (kind, detail) = match &host.status {
        HostStatus::Connected | HostStatus::Finished => return None,
        HostStatus::Lost { detail, .. } => (HostFateKind::Lost, detail.clone()),
        HostStatus::GivenUp { waited } => (
            HostFateKind::Unresponsive,
            format!("not finished after {}", seconds(*waited)),
        ),
    };
    Some(HostFate {
        host: host.name.clone(),
        kind,
        detail,
    })
}
