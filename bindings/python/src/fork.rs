//! A world belongs to the process that joined. A forked child (a data loader's worker) holds a copy
//! of its sockets: were it to use or to leave the world, the parent's peers would be misled.

use crate::error;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks lie between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// `os.register_at_fork` has it called in each child.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process that something was made in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn current() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// That this is still the process.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<()> {
        if self == Self::current() {
            return Ok(());
        }
        let text = "this process was forked from a rank; the world belongs to its parent; \
                    hint: call rlaunch before the fork, or from the parent only";
        Err(error::plain(py, "ForkedError", text))
    }
}
