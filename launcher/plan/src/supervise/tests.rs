//! The job of these tests has two hosts with two ranks each, unless said otherwise.

use std::time::Duration;

use super::*;
use crate::verdict::{Cause, Fate, Findings, HostFateKind, Outcome, Verdict};

mod failures;
mod goes_on;
mod named;
mod random;
mod silence;
mod stops;
mod world;

/// The launcher's wall clock at time zero.
const WALL_START_US: i64 = 1_700_000_000_000_000;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A machine under test and everything it has said.
struct Job {
    machine: Supervisor,
    now: Duration,
    actions: Vec<Action>,
}

impl Job {
    /// So many ranks on each host.
    fn with(hosts: &[u32], change: impl FnOnce(&mut Settings)) -> Self {
        let mut first_rank = 0;
        let hosts = hosts.iter().enumerate().map(|(index, &ranks)| {
            first_rank += ranks;
            HostSetup {
                name: format!("n{index}"),
                ranks: (first_rank - ranks..first_rank).collect(),
            }
        });
        let mut settings = Settings {
            hosts: hosts.collect(),
            wall_start_us: WALL_START_US,
            host_timeout: ms(30_000),
            kill_after: ms(10_000),
            job_timeout: None,
            start_timeout: None,
            on_failure: OnFailure::Stop,
        };
        change(&mut settings);
        let machine = Supervisor::new(settings, Duration::ZERO);
        Self {
            machine,
            now: Duration::ZERO,
            actions: Vec::new(),
        }
    }

    fn new() -> Self {
        Self::with(&[2, 2], |_| {})
    }

    /// All four ranks run.
    fn running() -> Self {
        let mut job = Self::new();
        (0..4).for_each(|rank| job.started(rank));
        job
    }

    fn event(&mut self, event: Event) {
        self.machine.handle_event(event, self.now);
        while let Some(action) = self.machine.poll_action() {
            self.actions.push(action);
        }
    }

    fn started(&mut self, rank: u32) {
        self.event(Event::Started {
            rank,
            pid: 1000 + rank,
            host_time_us: 0,
        });
    }

    fn exit(&mut self, rank: u32, ending: Ending) {
        let at_us = WALL_START_US + i64::try_from(self.now.as_micros()).unwrap();
        self.exit_at(rank, ending, at_us);
    }

    fn exit_at(&mut self, rank: u32, ending: Ending, host_time_us: i64) {
        let (core_dumped, by_us) = (false, false);
        self.event(Event::Exited {
            rank,
            ending,
            core_dumped,
            by_us,
            keeper_killed: false,
            host_time_us,
            findings: Findings::default(),
        });
    }

    fn finish(&mut self, host: usize) {
        self.event(Event::Finished { host });
    }

    fn finish_all(&mut self) {
        (0..self.machine.hosts.len()).for_each(|host| self.finish(host));
    }

    /// The launcher waits until `until`, calling when it is asked to. All but `silent` are heard.
    fn wait_without(&mut self, until: Duration, silent: &[usize]) {
        let mut calls = 0;
        while let Some(at) = self.machine.poll_timeout().filter(|&at| at <= until) {
            self.now = at.max(self.now);
            for host in 0..self.machine.hosts.len() {
                if !silent.contains(&host) {
                    self.event(Event::Activity { host });
                }
            }
            self.machine.handle_timeout(self.now);
            while let Some(action) = self.machine.poll_action() {
                self.actions.push(action);
            }
            let next = self.machine.poll_timeout();
            assert!(
                next.is_none_or(|next| next > self.now),
                "a timer that stays due"
            );
            calls += 1;
            assert!(calls < 10_000, "too many wake-ups");
        }
        self.now = until;
    }

    fn wait(&mut self, until: Duration) {
        self.wait_without(until, &[]);
    }

    fn verdict(&self) -> &Verdict {
        match self.actions.last() {
            Some(Action::Done(verdict)) => verdict,
            last => panic!("not done: {last:?}"),
        }
    }

    fn cause(&self) -> &Cause {
        match &self.verdict().outcome {
            Outcome::Failed { cause } => cause,
            outcome => panic!("no failure: {outcome:?}"),
        }
    }

    /// The cause's rank and the exit code.
    fn blamed(&self) -> (Option<u32>, u8) {
        (self.cause().rank(), self.verdict().exit_code)
    }

    fn terminates(&self) -> Vec<(Vec<usize>, Duration)> {
        let terminate = |action: &Action| match action {
            Action::Terminate { hosts, kill_after } => Some((hosts.clone(), *kill_after)),
            _ => None,
        };
        self.actions.iter().filter_map(terminate).collect()
    }

    fn told(&self) -> Vec<u32> {
        let told = |action: &Action| match action {
            Action::TellPeersFailed { rank, .. } => Some(*rank),
            _ => None,
        };
        self.actions.iter().filter_map(told).collect()
    }

    fn warnings(&self) -> Vec<&str> {
        fn text(action: &Action) -> Option<&str> {
            match action {
                Action::Warn(text) => Some(text),
                _ => None,
            }
        }
        self.actions.iter().filter_map(text).collect()
    }

    fn disconnected(&self) -> Vec<usize> {
        let host = |action: &Action| match action {
            Action::Disconnect { host } => Some(*host),
            _ => None,
        };
        self.actions.iter().filter_map(host).collect()
    }
}
