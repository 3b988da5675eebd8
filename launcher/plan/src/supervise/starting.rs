//! `--start-timeout`: a job whose ranks do not all run by then is ended, and they are named.

use std::time::Duration;

use super::event::Limit;
use super::machine::{Phase, Supervisor, micros};
use super::state::{Failure, FailureKind, Life};
use crate::verdict::Cause;

impl Supervisor {
    pub(super) fn check_start(&mut self, now: Duration) {
        let waits = |life: &Life| *life == Life::Starting;
        if self.phase != Phase::Running || !self.ranks.iter().any(|rank| waits(&rank.life)) {
            self.start_deadline = None;
            return;
        }
        if self.start_deadline.is_none_or(|at| now < at) {
            return;
        }
        self.start_deadline = None;
        let ranks = (0_u32..).zip(&self.ranks);
        let ranks: Vec<u32> = ranks
            .filter(|(_, rank)| waits(&rank.life))
            .map(|(number, _)| number)
            .collect();
        let failure = Failure {
            at_us: micros(now),
            error_us: 0,
            host: self.ranks[ranks[0] as usize].host,
            kind: FailureKind::NotStarted {
                ranks: ranks.clone(),
            },
        };
        self.fail(failure, &ranks, "was not started in time", now);
    }

    pub(super) fn not_started(&self, ranks: &[u32]) -> Cause {
        let mut hosts: Vec<usize> = ranks
            .iter()
            .map(|rank| self.ranks[*rank as usize].host)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        Cause::NotStarted {
            ranks: ranks.to_vec(),
            hosts: hosts
                .into_iter()
                .map(|host| self.hosts[host].name.clone())
                .collect(),
            timeout_ms: self.settings.start_timeout.map_or(0, Limit::whole_ms),
        }
    }
}
