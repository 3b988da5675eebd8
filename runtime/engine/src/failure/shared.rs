//! What of a communicator is reached without the engine's lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::recorder::Recorder;

/// One for each communicator, held by its handles and by the engine.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: u32,
    /// The call that made it, or `init`.
    pub(crate) made_by: &'static str,
    pub(crate) recorder: Recorder,
    is_aborted: AtomicBool,
    reason: OnceLock<String>,
}

impl Shared {
    /// Times of the recorder are told since `epoch`.
    pub(crate) fn new(id: u32, made_by: &'static str, epoch: Instant) -> Self {
        Self {
            id,
            made_by,
            recorder: Recorder::new(epoch),
            is_aborted: AtomicBool::new(false),
            reason: OnceLock::new(),
        }
    }

    /// From any thread, at any time; of several reasons the first stays. Whoever drives the engine
    /// sees it at its next idle poll, within a few milliseconds.
    pub(crate) fn abort(&self, reason: &str) {
        // An earlier reason stays.
        let _ = self.reason.set(reason.to_owned());
        self.is_aborted.store(true, Ordering::Release);
    }

    /// The reason of an abort on this rank. One load where there was none.
    #[inline]
    pub(crate) fn aborted(&self) -> Option<&str> {
        if !self.is_aborted.load(Ordering::Relaxed) {
            return None;
        }
        // What was stored before the flag is seen after it.
        std::sync::atomic::fence(Ordering::Acquire);
        self.reason.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let shared = Shared::new(0, "init", Instant::now());
        assert_eq!(shared.aborted(), None);
        shared.abort("loss is NaN");
        shared.abort("another");
        assert_eq!(shared.aborted(), Some("loss is NaN"));
    }
}
