//! The state machine itself.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Action, Event, Settings};

/// Decides how a job ends.
///
/// **Calls.** `handle_event` for each event and `handle_timeout` once `poll_timeout` is reached,
/// in any order; after each, `poll_action` until `None`. After [`Action::Done`] everything is
/// ignored and no timeout is left.
///
/// **Time** is the time since the launcher's start, monotonic; `now` never goes back. Events that
/// arrived are handled before a timer that is due at the same time: `handle_event` fires no timer.
#[derive(Debug)]
pub struct Supervisor {
    settings: Settings,
    actions: VecDeque<Action>,
}

impl Supervisor {
    pub fn new(settings: Settings, now: Duration) -> Self {
        let _ = now;
        Self {
            settings,
            actions: VecDeque::new(),
        }
    }

    pub fn handle_event(&mut self, event: Event, now: Duration) {
        let _ = (event, now, &self.settings);
    }

    /// Fires what is due at `now`; harmless if nothing is.
    pub fn handle_timeout(&mut self, now: Duration) {
        let _ = now;
    }

    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When `handle_timeout` is to be called next, on the time line of `now`.
    pub fn poll_timeout(&self) -> Option<Duration> {
        None
    }

    /// Whether `Done` was given out or waits in `poll_action`.
    pub fn is_done(&self) -> bool {
        false
    }
}
