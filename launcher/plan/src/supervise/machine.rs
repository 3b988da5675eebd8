//! The state machine: events in, actions out. The other files of this folder add to it: `silence`
//! (who is heard), `choose` (what came first), `ending` (from the decision to the verdict).

use std::collections::VecDeque;
use std::time::Duration;

use super::event::{Action, Ending, Event, Settings};
use super::limits::{COLLECT, JOIN_WARNING, LEAVE_DELAY, TICK};
use super::state::{Failure, FailureKind, HostState, HostStatus, Life, RankState};
use crate::text::{count, ranges, show};
use crate::verdict::{Leftover, signal_name};

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
    /// When ranks that have not joined are named.
    join_warning_at: Option<Duration>,
    pub(super) last_call: Duration,
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
    /// If the hosts' ranks are not 0, 1, 2, … in order.
    pub fn new(settings: Settings, now: Duration) -> Self {
        let mut ranks = Vec::new();
        for (index, host) in settings.hosts.iter().enumerate() {
            assert_eq!(
                host.first_rank as usize,
                ranks.len(),
                "ranks are dense, host by host"
            );
            ranks.extend((0..host.ranks).map(|_| RankState::new(index)));
        }
        assert!(!ranks.is_empty(), "a job has a rank");
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
                .map(|timeout| now.saturating_add(timeout)),
            join_warning_at: None,
            last_call: now,
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
        if matches!(self.phase, Phase::Collecting { until } if until <= now) {
            self.begin_ending(None, now);
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

    pub(super) fn is_ending(&self) -> bool {
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
            | Event::Stopped { rank, .. }
            | Event::LaunchFailed { rank, .. } => rank_ok(rank),
            Event::PeerLost { rank, peer } => rank_ok(rank) && rank_ok(peer),
            Event::UserSignal { .. } => true,
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
            | Event::Stopped { rank, .. }
            | Event::LaunchFailed { rank, .. }
            | Event::PeerLost { rank, .. } => Some(self.ranks[rank as usize].host),
            Event::Clock { .. } | Event::HostLost { .. } | Event::UserSignal { .. } => None,
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
            Event::Started { rank, pid, .. } => self.started(rank, pid),
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
                host_time_us,
            } => {
                self.exited(rank, ending, (core_dumped, by_us), host_time_us, now);
            }
            Event::Stopped {
                rank,
                signal,
                continued,
            } => self.stopped(rank, signal, continued),
            Event::LaunchFailed {
                rank,
                what,
                path,
                errno,
            } => {
                self.launch_failed(rank, what, path, errno, now);
            }
            Event::PeerLost { rank, peer } => {
                let rank = &mut self.ranks[rank as usize];
                rank.blames = rank.blames.or(Some(peer));
            }
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
        }
    }

    fn started(&mut self, rank: u32, pid: u32) {
        let rank = &mut self.ranks[rank as usize];
        rank.pid = Some(pid);
        if rank.life == Life::Starting {
            rank.life = Life::Running;
        }
    }

    fn leftover(&mut self, leftover: Leftover) {
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

    fn exited(
        &mut self,
        rank: u32,
        ending: Ending,
        (core_dumped, by_us): (bool, bool),
        host_time_us: i64,
        now: Duration,
    ) {
        let index = rank as usize;
        if self.ranks[index].over() {
            return;
        }
        let host = self.ranks[index].host;
        let (at_us, error_us) = self.common_time(host, host_time_us, now);
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
        let (kind, cause) = if by_us {
            let reason = "ended its ranks without being told to";
            (
                FailureKind::AgentBroke { rank, reason },
                "ended by its agent".to_owned(),
            )
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
        self.fail(
            Failure {
                at_us,
                error_us,
                host,
                kind,
            },
            &[rank],
            &cause,
            now,
        );
    }

    fn launch_failed(&mut self, rank: u32, what: String, path: String, errno: i32, now: Duration) {
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

    fn stopped(&mut self, rank: u32, signal: i32, continued: bool) {
        let index = rank as usize;
        if self.is_ending() || self.ranks[index].over() {
            return;
        }
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

    fn joined(&mut self, rank: u32, now: Duration) {
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

    fn finished(&mut self, host: usize, now: Duration) {
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
        for index in self.hosts[host].rank_indices() {
            if !self.ranks[index].over() {
                self.ranks[index].life = Life::Unknown;
                open.push(index as u32);
            }
        }
        open
    }

    fn tell_peers(&mut self, rank: usize, cause: String) {
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
    fn tell_left_early(&mut self, rank: usize) {
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

    fn warn_of_missing(&mut self) {
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

    /// Ends what can be ended: all hosts are through.
    fn settle(&mut self, now: Duration) {
        if !self.is_done() && !self.hosts.iter().any(HostState::connected) {
            self.finish(now);
        }
    }
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
