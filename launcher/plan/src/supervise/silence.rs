//! Who is heard, and what time it was there.

use std::time::Duration;

use super::event::{Action, LossKind};
use super::limits::{ASLEEP, SILENCE_WARNING};
use super::machine::{Phase, Supervisor, micros};
use super::state::{Failure, FailureKind, HostStatus};
use crate::text::seconds;

impl Supervisor {
    /// Each call begins with this. A launcher that was stopped itself has heard nobody, and does
    /// not count that time against the hosts.
    pub(super) fn observe(&mut self, now: Duration) {
        let pause = now.saturating_sub(self.last_call);
        if pause > ASLEEP {
            for host in &mut self.hosts {
                host.heard_at = (host.heard_at + pause).min(now);
            }
            // Whoever stopped the launcher with its ranks continues them together.
            self.shut_out_end_at = self.shut_out_end_at.map(|at| at.saturating_add(pause));
        }
        self.last_call = now.max(self.last_call);
    }

    /// The time of a suspension counts against nobody, and against no limit.
    pub(super) fn resumed(&mut self, paused: Duration, now: Duration) {
        for host in &mut self.hosts {
            host.heard_at = now;
        }
        for deadline in [
            &mut self.job_deadline,
            &mut self.start_deadline,
            &mut self.join_warning_at,
        ] {
            *deadline = deadline.map(|at| at.saturating_add(paused));
        }
    }

    pub(super) fn heard(&mut self, host: usize, now: Duration) {
        let state = &mut self.hosts[host];
        let silent = now.saturating_sub(state.heard_at);
        state.heard_at = now;
        if std::mem::take(&mut state.warned) && state.connected() {
            let text = format!("{} answers again, after {}", state.name, seconds(silent));
            self.warn(text);
        }
    }

    pub(super) fn check_silence(&mut self, now: Duration) {
        let (warning, timeout) = (self.silence_warning(), self.settings.host_timeout);
        for host in 0..self.hosts.len() {
            let state = &mut self.hosts[host];
            let silent = now.saturating_sub(state.heard_at);
            if !state.connected() || silent < warning {
                continue;
            }
            if silent >= timeout {
                let detail = format!("silent for {}", seconds(silent));
                self.host_lost(host, LossKind::Silent, detail, silent, now);
            } else if !std::mem::replace(&mut state.warned, true) {
                let text = format!(
                    "{} has been silent for {}; it counts as lost after {} (--host-timeout)",
                    state.name,
                    seconds(silent),
                    seconds(timeout)
                );
                self.warn(text);
            }
        }
    }

    pub(super) fn silence_timer(&self) -> Option<Duration> {
        let (warning, timeout) = (self.silence_warning(), self.settings.host_timeout);
        let connected = self.hosts.iter().filter(|host| host.connected());
        connected
            .map(|host| {
                host.heard_at
                    .saturating_add(if host.warned { timeout } else { warning })
            })
            .min()
    }

    /// The connection is gone, or the host is silent for too long.
    pub(super) fn host_lost(
        &mut self,
        host: usize,
        kind: LossKind,
        detail: String,
        silent: Duration,
        now: Duration,
    ) {
        if !self.hosts[host].connected() {
            return;
        }
        self.hosts[host].status = HostStatus::Lost {
            kind,
            detail: detail.clone(),
        };
        self.actions.push_back(Action::Disconnect { host });
        let ranks = self.close_ranks(host);
        let name = &self.hosts[host].name;
        if matches!(self.phase, Phase::Ending(_)) || ranks.is_empty() {
            let mut text = format!("{name} was lost at the end of the job");
            if !detail.is_empty() {
                text.push_str(&format!(": {detail}"));
            }
            self.warn(text);
            return;
        }
        let cause = format!("host {name} was lost");
        // What fell silent did so when it was last heard.
        let at = if kind == LossKind::Silent {
            self.hosts[host].heard_at
        } else {
            now
        };
        let kind = FailureKind::HostLost {
            ranks: ranks.clone(),
            kind,
            detail,
            silent,
        };
        let failure = Failure {
            at_us: micros(at),
            error_us: 0,
            host,
            kind,
        };
        self.fail(failure, &ranks, &cause, now);
    }

    /// A host's wall clock time on the launcher's time line, and how exact that is. Nothing that
    /// is reported can be later than `now`; a host of unknown clock is taken at `now`.
    pub(super) fn common_time(&self, host: usize, host_time_us: i64, now: Duration) -> (i64, u64) {
        let now_us = micros(now);
        let Some((offset_us, error_us)) = self.hosts[host].clock else {
            return (now_us, 0);
        };
        let wall_us = host_time_us.saturating_sub(offset_us);
        let since_start_us = wall_us.saturating_sub(self.settings.wall_start_us);
        (since_start_us.clamp(0, now_us), error_us)
    }

    /// 5 s, or half of a short `host_timeout`.
    fn silence_warning(&self) -> Duration {
        let timeout = self.settings.host_timeout;
        if timeout > SILENCE_WARNING {
            SILENCE_WARNING
        } else {
            timeout / 2
        }
    }
}
