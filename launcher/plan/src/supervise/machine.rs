//! The state machine: events in, actions out. The other files of this folder add to it: `reports`
//! (what ranks and agents say), `silence` (who is heard), `choose` (what came first), `ending`
//! (from the decision to the verdict).

use std::collections::VecDeque;
use std::time::Duration;

use super::event::{Action, Event, OnFailure, Settings};
use super::limits::{COLLECT, TICK};
use super::reports::Whose;
use super::state::{Failure, FailureKind, HostState, RankState};
use crate::verdict::Leftover;

/// Decides how a job ends.
///
/// **Calls.** `handle_event` for each event and `handle_timeout` once `poll_timeout` is reached,
/// in any order; after each, `poll_action` until `None`. After [`Action::Done`] everything is
/// ignored and no timeout is left. Events that name a rank or host that the job does not have are
/// ignored, and so is a second end of one rank: agents are other programs.
///
/// **Time** is the time since the launcher's start, monotonic; `now` never goes back. Events that
/// arrived are handled before a timer that is due at the same time: `handle_event` fires no timer.
#[derive(Debug)]
pub struct Supervisor {
    pub(super) settings: Settings,
    pub(super) hosts: Vec<HostState>,
    pub(super) ranks: Vec<RankState>,
    pub(super) phase: Phase,
    pub(super) failures: Vec<Failure>,
    pub(super) leftovers: Vec<Leftover>,
    pub(super) actions: VecDeque<Action>,
    pub(super) job_deadline: Option<Duration>,
    /// When ranks that do not run yet end the job.
    pub(super) start_deadline: Option<Duration>,
    /// When ranks that have not joined are named.
    pub(super) join_warning_at: Option<Duration>,
    /// When ranks are ended that are left alone, and stopped or shut out by the others.
    pub(super) shut_out_end_at: Option<Duration>,
    pub(super) has_ended_shut_out: bool,
    pub(super) last_call: Duration,
    /// When the supervision began.
    pub(super) began_us: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    Collecting { until: Duration },
    Ending(super::ending::EndingState),
    Done,
}

impl Supervisor {
    /// # Panics
    /// If the hosts' ranks together are not 0, 1, 2, …, each once.
    pub fn new(settings: Settings, now: Duration) -> Self {
        let hosts = settings.hosts.iter().enumerate();
        let mut host_of: Vec<(u32, usize)> = hosts
            .flat_map(|(index, host)| host.ranks.iter().map(move |&rank| (rank, index)))
            .collect();
        host_of.sort_unstable();
        assert!(!host_of.is_empty(), "a job has a rank");
        let is_dense = (0..).zip(&host_of).all(|(index, (rank, _))| index == *rank);
        assert!(is_dense, "each rank is on one host");
        let ranks = host_of
            .into_iter()
            .map(|(_, host)| RankState::new(host))
            .collect();
        Self {
            hosts: settings
                .hosts
                .iter()
                .map(|host| HostState::new(host, now))
                .collect(),
            ranks,
            phase: Phase::Running,
            failures: Vec::new(),
            leftovers: Vec::new(),
            actions: VecDeque::new(),
            job_deadline: settings
                .job_timeout
                .map(|limit| now.saturating_add(limit.left)),
            start_deadline: settings
                .start_timeout
                .map(|limit| now.saturating_add(limit.left)),
            join_warning_at: None,
            shut_out_end_at: None,
            has_ended_shut_out: false,
            last_call: now,
            began_us: micros(now),
            settings,
        }
    }

    pub fn handle_event(&mut self, event: Event, now: Duration) {
        if self.is_done() || !self.knows(&event) {
            return;
        }
        self.observe(now);
        if let Some(host) = self.host_of(&event) {
            self.heard(host, now);
        }
        self.apply(event, now);
        self.settle(now);
    }

    /// Fires what is due at `now`; harmless if nothing is.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.is_done() {
            return;
        }
        self.observe(now);
        self.check_silence(now);
        for rank in 0..self.ranks.len() {
            if self.ranks[rank].tell_at.is_some_and(|at| at <= now) {
                self.ranks[rank].tell_at = None;
                self.tell_left_early(rank);
            }
        }
        if self.join_warning_at.is_some_and(|at| at <= now) {
            self.join_warning_at = None;
            self.warn_of_missing();
        }
        let all_over = self.ranks.iter().all(RankState::over);
        if self.job_deadline.is_some_and(|at| at <= now) && !all_over {
            self.job_deadline = None;
            self.timed_out(now);
        }
        self.check_start(now);
        if matches!(self.phase, Phase::Collecting { until } if until <= now) {
            self.begin_ending(None, now);
        }
        if self.shut_out_end_at.is_some_and(|at| at <= now) {
            self.shut_out_end_at = None;
            self.end_shut_out();
        }
        self.check_ending(now);
        self.settle(now);
    }

    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When `handle_timeout` is to be called next, on the time line of `now`.
    pub fn poll_timeout(&self) -> Option<Duration> {
        if self.is_done() {
            return None;
        }
        let collecting = match self.phase {
            Phase::Collecting { until } => Some(until),
            _ => None,
        };
        let running = self.ranks.iter().any(|rank| !rank.over());
        let timers = [
            Some(self.last_call + TICK),
            collecting,
            self.job_deadline.filter(|_| running),
            self.start_deadline,
            self.shut_out_end_at,
            self.join_warning_at,
            self.ending_timer(),
            self.silence_timer(),
            self.ranks.iter().filter_map(|rank| rank.tell_at).min(),
        ];
        timers.into_iter().flatten().min()
    }

    /// Whether `Done` was given out or waits in `poll_action`.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    pub(super) fn warn(&mut self, text: String) {
        self.actions.push_back(Action::Warn(text));
    }

    /// `rank 3 on node01 (pid 77)`
    pub(super) fn rank_label(&self, rank: usize) -> String {
        let host = &self.hosts[self.ranks[rank].host].name;
        match self.ranks[rank].pid {
            Some(pid) => format!("rank {rank} on {host} (pid {pid})"),
            None => format!("rank {rank} on {host}"),
        }
    }

    /// Records a failure and tells the peers, unless the job is being ended already.
    pub(super) fn fail(&mut self, failure: Failure, ranks: &[u32], cause: &str, now: Duration) {
        match self.phase {
            // The last one has no others.
            Phase::Running
                if self.goes_on(&failure.kind) && self.ranks.iter().all(RankState::over) => {}
            Phase::Running if self.goes_on(&failure.kind) => {
                let who = match ranks {
                    [rank] => self.rank_label(*rank as usize),
                    _ => format!("host {}", self.hosts[failure.host].name),
                };
                self.warn(format!(
                    "{who} failed ({cause}); the others go on (--on-failure continue)"
                ));
            }
            Phase::Running => {
                self.phase = Phase::Collecting {
                    until: now + COLLECT,
                }
            }
            Phase::Collecting { .. } => {}
            Phase::Ending(_) | Phase::Done => return,
        }
        self.failures.push(failure);
        for &rank in ranks {
            self.tell_peers(rank as usize, cause.to_owned());
        }
    }

    /// Whether the others are left alone after such a failure.
    fn goes_on(&self, kind: &FailureKind) -> bool {
        self.settings.on_failure == OnFailure::Continue
            && matches!(
                kind,
                FailureKind::Exit { .. } | FailureKind::HostLost { .. }
            )
    }

    /// Whether the job is being ended, or has.
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending(_) | Phase::Done)
    }

    fn knows(&self, event: &Event) -> bool {
        let rank_ok = |rank: u32| (rank as usize) < self.ranks.len();
        match *event {
            Event::Activity { host }
            | Event::Clock { host, .. }
            | Event::Leftover { host, .. }
            | Event::Finished { host }
            | Event::HostLost { host, .. } => host < self.hosts.len(),
            Event::Started { rank, .. }
            | Event::Joined { rank }
            | Event::Left { rank }
            | Event::Exited { rank, .. }
            | Event::Printed { rank, .. }
            | Event::Stopped { rank, .. }
            | Event::LaunchFailed { rank, .. } => rank_ok(rank),
            Event::PeerLost { rank, peer, .. } | Event::Blamed { rank, peer, .. } => {
                rank_ok(rank) && rank_ok(peer)
            }
            Event::UserSignal { .. } | Event::Resumed { .. } => true,
        }
    }

    /// The host that shows life by this event.
    fn host_of(&self, event: &Event) -> Option<usize> {
        match *event {
            Event::Activity { host } | Event::Leftover { host, .. } | Event::Finished { host } => {
                Some(host)
            }
            Event::Started { rank, .. }
            | Event::Joined { rank }
            | Event::Left { rank }
            | Event::Exited { rank, .. }
            | Event::Printed { rank, .. }
            | Event::Stopped { rank, .. }
            | Event::LaunchFailed { rank, .. }
            | Event::PeerLost { rank, .. }
            | Event::Blamed { rank, .. } => Some(self.ranks[rank as usize].host),
            Event::Clock { .. }
            | Event::HostLost { .. }
            | Event::Resumed { .. }
            | Event::UserSignal { .. } => None,
        }
    }

    fn apply(&mut self, event: Event, now: Duration) {
        match event {
            Event::Activity { .. } => {}
            Event::Clock {
                host,
                offset_us,
                error_us,
            } => {
                self.hosts[host].clock = Some((offset_us, error_us));
            }
            Event::Resumed { paused } => self.resumed(paused, now),
            Event::Leftover {
                host,
                pid,
                command,
                state,
                why,
            } => {
                let host = self.hosts[host].name.clone();
                self.leftover(Leftover {
                    host,
                    pid,
                    command,
                    state,
                    why,
                });
            }
            Event::Finished { host } => self.finished(host, now),
            Event::HostLost { host, kind, detail } => {
                self.host_lost(host, kind, detail, Duration::ZERO, now);
            }
            Event::UserSignal { signal } => self.user_signal(signal, now),
            of_rank => self.apply_of_rank(of_rank, now),
        }
    }

    fn apply_of_rank(&mut self, event: Event, now: Duration) {
        match event {
            Event::Started {
                rank,
                pid,
                host_time_us,
            } => self.started(rank, pid, host_time_us, now),
            Event::Joined { rank } => self.joined(rank, now),
            Event::Left { rank } => {
                self.ranks[rank as usize].left = true;
                self.ranks[rank as usize].tell_at = None;
            }
            Event::Exited {
                rank,
                ending,
                core_dumped,
                by_us,
                keeper_killed,
                host_time_us,
                findings,
            } => {
                self.ranks[rank as usize].findings = findings;
                let whose = match (by_us, keeper_killed) {
                    (_, true) => Whose::Keeper,
                    (true, false) => Whose::Agent,
                    (false, false) => Whose::Own,
                };
                self.exited(rank, (ending, core_dumped), whose, host_time_us, now);
            }
            Event::Printed {
                rank,
                words,
                host_time_us,
            } => self.printed(rank, words, host_time_us, now),
            Event::Stopped {
                rank,
                signal,
                continued,
            } => self.stopped(rank, signal, continued, now),
            Event::LaunchFailed {
                rank,
                what,
                path,
                errno,
            } => {
                self.launch_failed(rank, what, path, errno, now);
            }
            Event::PeerLost {
                rank,
                peer,
                has_left,
            } => self.peer_lost(rank, peer, has_left),
            Event::Blamed {
                rank,
                peer,
                aborted,
            } => self.blamed(rank, peer, aborted),
            _ => unreachable!("the others are no rank's"),
        }
    }

    /// Ends what can be ended: all hosts are through.
    fn settle(&mut self, now: Duration) {
        self.watch_shut_out(now);
        if !self.is_done() && !self.hosts.iter().any(HostState::connected) {
            self.finish(now);
        }
    }
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
