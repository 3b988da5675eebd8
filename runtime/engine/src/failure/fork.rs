//! A forked child must not speak with its parent's connections: its copies of the handles are inert.
//!
//! A handler that `fork` runs in the child counts up; each world remembers the count of the process
//! that made it. Checking it is one load, before any lock is taken, since another thread of the
//! parent may have held that lock at the fork. The shared memory stays mapped in the child and is
//! not touched; descriptors are closed there by exec.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

static FORKS: AtomicU32 = AtomicU32::new(0);
static INSTALL: Once = Once::new();

/// Of the process that a world was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl Process {
    pub(crate) fn current() -> Self {
        INSTALL.call_once(|| {
            // SAFETY: the handler is async-signal-safe and lives as long as the program. It fails
            // only for want of memory; then a child is as unprotected as without it.
            unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// False in a child forked after this was made.
    #[inline]
    pub(crate) fn is_current(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }

    #[inline]
    pub(crate) fn check(self) -> Result<(), Error> {
        if self.is_current() {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }
}
