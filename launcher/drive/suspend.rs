//! ^Z: the whole job stops, and `fg` continues it.
//!
//! ```text
//! TSTP ─► Suspend to every agent ─► each has Suspended, or 2 s ─► this process stops (SIGSTOP)
//! CONT ─► Resume to every agent
//! ```
//! A stopped launcher is silent. Its agents know, and don't take it for lost; should it be killed,
//! they see its stream end and clean up as always.

use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use rlaunch_control::v1::{self, to_agent};
use rlaunch_plan::supervise::Event;
use tracing::info;

use super::driver::Driver;

/// For the slowest agent's answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Asked for; the agents' answers are awaited.
pub(super) struct Suspension {
    /// Hosts that have not answered.
    open: Vec<usize>,
    /// On the time line of the launcher's start.
    give_up_at: Duration,
}

impl Driver<'_> {
    pub(super) fn begin_suspension(&mut self) {
        if self.suspension.is_some() || self.supervisor.is_ending() {
            return;
        }
        let is_open = |host: &usize| !self.hosts[*host].finished;
        self.suspension = Some(Suspension {
            open: (0..self.hosts.len()).filter(is_open).collect(),
            give_up_at: self.start.elapsed() + ANSWER_MAX,
        });
        self.links
            .send_all(&to_agent::Message::Suspend(v1::Suspend {}));
    }

    pub(super) fn handle_suspended(&mut self, host: usize) {
        if let Some(suspension) = &mut self.suspension {
            suspension.open.retain(|open| *open != host);
        }
    }

    pub(super) fn suspension_due(&self) -> Option<Duration> {
        self.suspension
            .as_ref()
            .map(|suspension| suspension.give_up_at)
    }

    /// Every rank stands still, or nothing more is waited for; an ending job is not stopped.
    pub(super) fn is_to_stop(&mut self) -> bool {
        let now = self.start.elapsed();
        let is_ready = |it: &Suspension| it.open.is_empty() || it.give_up_at <= now;
        let stops = self.suspension.take_if(|it| is_ready(it)).is_some();
        stops && !self.supervisor.is_ending()
    }

    /// Stops this process; returns when it is continued.
    pub(super) fn stop(&mut self) {
        let stopped_at = self.start.elapsed();
        if raise(Signal::SIGSTOP).is_err() {
            self.printer.talk("rlaunch: this process cannot be stopped");
        }
        let paused = self.start.elapsed() - stopped_at;
        info!(?paused, "continued");
        // What continued us will be heard as a signal, too.
        self.has_resumed = true;
        self.event(Event::Resumed { paused });
        self.links
            .send_all(&to_agent::Message::Resume(v1::Resume {}));
    }

    /// After our own stop, and after one that we were not told of (SIGSTOP).
    pub(super) fn handle_continue(&mut self) {
        if !std::mem::take(&mut self.has_resumed) && self.suspension.is_none() {
            let signal = Signal::SIGCONT as i32;
            self.links
                .send_all(&to_agent::Message::Signal(v1::Signal { signal }));
        }
    }
}
