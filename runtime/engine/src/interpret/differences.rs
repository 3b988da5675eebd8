//! What an interpreter says of messages that are not as its call has them.

use std::ops::Range;

use rlaunch_schedule::Layout;

use super::Interpreter;
use crate::Error;
use crate::core::Core;
use crate::error::counts_differ;

/// Of a long list, the first ones are shown.
const COUNTS_SHOWN_MAX: usize = 16;

impl Interpreter {
    /// A message that is not as long as it must be.
    pub(super) fn other_length(
        &self,
        core: &Core,
        peer: u32,
        came_bytes: u64,
        due: usize,
    ) -> Error {
        let call = self.task.descriptor;
        let size = self.task.dtype.size_bytes() as u64;
        if call.collective.has_counts() {
            let differ = counts_differ(peer, came_bytes / size, core.rank, due as u64);
            return core.mismatch(call, peer, call).detailed(differ);
        }
        let cause = format!(
            "a part of {came_bytes} bytes where {} are due; do all ranks set the same \
             RLAUNCH_ALGO and RLAUNCH_TUNE_FILE?",
            due as u64 * size
        );
        core.garbled(peer, cause, &call)
    }

    /// Says what this rank's counts are, where another's whole list differs.
    pub(super) fn with_counts(&self, core: &Core, error: Error) -> Error {
        let Error::Mismatch { left, right, .. } = &error else {
            return error;
        };
        let Layout::Ranges { input, output } = &self.task.layout else {
            return error;
        };
        if !left.differs_in_counts_only(right) {
            return error;
        }
        let whole = if input.len() > 1 { input } else { output };
        let counts: Vec<usize> = whole
            .iter()
            .take(COUNTS_SHOWN_MAX)
            .map(Range::len)
            .collect();
        let more = if whole.len() > counts.len() {
            " …"
        } else {
            ""
        };
        error.detailed(format!(
            "rank {} gives the counts {counts:?}{more}",
            core.rank
        ))
    }
}
