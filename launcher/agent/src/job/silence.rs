//! How long the launcher has said nothing.

use std::time::{Duration, Instant};

use rlaunch_wire::limits::HEARTBEAT_PERIOD;

/// Counts only time that this agent was awake: after a suspend of the whole machine nobody is at
/// fault.
pub(super) struct Silence {
    limit: Option<Duration>,
    so_far: Duration,
    last_tick: Instant,
    /// It said that it would be silent.
    suspended: bool,
}

impl Silence {
    pub(super) fn new(limit_ms: u32) -> Self {
        let limit = (limit_ms > 0).then(|| Duration::from_millis(limit_ms.into()));
        Self {
            limit,
            so_far: Duration::ZERO,
            last_tick: Instant::now(),
            suspended: false,
        }
    }

    /// From now on until it is heard again.
    pub(super) fn suspend(&mut self) {
        self.suspended = true;
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspended
    }

    pub(super) fn heard(&mut self) {
        self.suspended = false;
        self.so_far = Duration::ZERO;
        self.last_tick = Instant::now();
    }

    /// At each heartbeat period: is it too long?
    pub(super) fn tick(&mut self) -> bool {
        let now = Instant::now();
        self.so_far += (now - self.last_tick).min(2 * HEARTBEAT_PERIOD);
        self.last_tick = now;
        if self.suspended {
            return false;
        }
        self.limit.is_some_and(|limit| self.so_far >= limit)
    }
}
