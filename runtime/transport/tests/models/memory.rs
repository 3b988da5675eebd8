//! What all models share: bounded exploration, tracked data, orders that can be weakened.

use loom::cell::UnsafeCell;
use loom::sync::atomic::Ordering;

/// What a run is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orders {
    AsWritten,
    /// Publishes without `Release`.
    Weakened,
}

impl Orders {
    /// The order of a store that publishes.
    pub(crate) fn publish(self) -> Ordering {
        match self {
            Self::AsWritten => Ordering::Release,
            Self::Weakened => Ordering::Relaxed,
        }
    }
}

/// Memory that one side writes and another reads, with no order of its own.
#[derive(Debug)]
pub(crate) struct Plain(UnsafeCell<u64>);

// SAFETY: loom fails the test where an access is not ordered after a conflicting one.
unsafe impl Sync for Plain {}
// SAFETY: as above.
unsafe impl Send for Plain {}

impl Plain {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    pub(crate) fn write(&self, value: u64) {
        // SAFETY: loom checks that nobody else accesses it now.
        self.0.with_mut(|cell| unsafe { *cell = value });
    }

    pub(crate) fn read(&self) -> u64 {
        // SAFETY: loom checks that nobody writes it now.
        self.0.with(|cell| unsafe { *cell })
    }
}

/// Polls, letting others run in between.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        loom::thread::yield_now();
    }
}

/// Preemptions per walk: defects of such protocols show with two.
const PREEMPTIONS: usize = 2;

pub(crate) fn explore(walk: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = 10_000;
    builder.check(walk);
}
