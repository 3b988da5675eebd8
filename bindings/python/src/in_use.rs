//! Whose arrays the calls under way have: what one of them writes to no other may touch.
//!
//! Calls that read the same memory are fine. It is a help, not a guard: it knows the calls of this
//! process alone, and of two threads that start at the same moment it may miss one.

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use rlaunch_runtime::Watch;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory that a call reads, or writes.
#[derive(Clone)]
pub(crate) struct Use {
    pub(crate) argument: &'static str,
    pub(crate) addresses: Range<usize>,
    pub(crate) writes: bool,
}

struct Taken {
    of: Use,
    call: &'static str,
    watch: Watch,
}

static TAKEN: Mutex<Vec<Taken>> = Mutex::new(Vec::new());
/// How many there are in it, also such as are complete: calls look there first.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Entries of complete calls are thrown out when there are so many, or twice as many as last stayed.
const SWEEP_MIN: usize = 64;

/// Refuses what a call under way forbids.
pub(crate) fn check<'a>(call: &str, wanted: impl IntoIterator<Item = &'a Use>) -> PyResult<()> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let taken = lock();
    for want in wanted {
        let found = taken.iter().find(|held| {
            let overlap = held.of.addresses.start < want.addresses.end
                && want.addresses.start < held.of.addresses.end;
            overlap && (held.of.writes || want.writes) && !held.watch.is_over()
        });
        if let Some(held) = found {
            return Err(refusal(call, want, held));
        }
    }
    Ok(())
}

fn refusal(call: &str, want: &Use, held: &Taken) -> PyErr {
    let does = |writes: bool| if writes { "writes to" } else { "reads" };
    PyBufferError::new_err(format!(
        "{} of {call} is memory that a started {}, which is under way, {} as its {}, and {call} {} \
         it; hint: wait() for that request first, or give each call an array of its own",
        want.argument,
        held.call,
        does(held.of.writes),
        held.of.argument,
        does(want.writes),
    ))
}

/// Notes what a started call has until it is complete.
pub(crate) fn note(call: &'static str, uses: Vec<Use>, watch: &Watch) {
    let mut taken = lock();
    if taken.len() >= SWEEP_MIN && taken.len() == taken.capacity() {
        taken.retain(|held| !held.watch.is_over());
        let twice = taken.len();
        taken.reserve(twice.max(SWEEP_MIN));
    }
    taken.extend(uses.into_iter().map(|of| Taken {
        of,
        call,
        watch: watch.clone(),
    }));
    COUNT.store(taken.len(), Ordering::Relaxed);
}

/// Forgets all calls that are complete: when one has been waited for.
pub(crate) fn sweep() {
    if COUNT.load(Ordering::Relaxed) > SWEEP_MIN {
        return; // note() does it, not each wait of many
    }
    let mut taken = lock();
    taken.retain(|held| !held.watch.is_over());
    COUNT.store(taken.len(), Ordering::Relaxed);
}

fn lock() -> MutexGuard<'static, Vec<Taken>> {
    // Nothing that runs under the lock can leave it half done.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
