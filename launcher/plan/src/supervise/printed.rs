//! What ranks print that may tell why they fail.

use std::time::Duration;

use super::event::Words;
use super::machine::Supervisor;

#[derive(Debug, Default)]
pub(super) struct Printed {
    /// It wrote to stderr.
    pub(super) stderr: bool,
    /// When its Python printed its last exception, on the launcher's time line.
    pub(super) traceback_at_us: Option<i64>,
}

impl Supervisor {
    pub(super) fn printed(&mut self, rank: u32, words: Words, host_time_us: i64, now: Duration) {
        let host = self.ranks[rank as usize].host;
        let (at_us, _) = self.common_time(host, host_time_us, now);
        let printed = &mut self.ranks[rank as usize].printed;
        match words {
            Words::Stderr => printed.stderr = true,
            Words::Traceback => printed.traceback_at_us = Some(at_us),
        }
    }
}
