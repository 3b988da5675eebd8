//! Ctrl-C, and every other signal with a handler in Python, while a call waits.
//!
//! Python's own handler only notes a signal; the main thread runs what the user gave for it between
//! two steps of the interpreter. A wait is no such step, so the runtime asks in here now and then.

use crate::error;
use pyo3::prelude::*;
use std::cell::Cell;

thread_local! {
    /// What a handler raised, from the question to the end of the wait.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
    static IS_WAITING: Cell<bool> = const { Cell::new(false) };
}

/// Held while this thread is inside a call of the runtime. A signal's handler that makes another
/// one would wait for itself.
pub(crate) struct Waiting;

impl Waiting {
    /// Refused to a thread that is inside a call already.
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Self> {
        if IS_WAITING.replace(true) {
            let text = "this thread is inside a call of rlaunch already; \
                        hint: a signal's handler may set a flag or raise, but not communicate";
            return Err(error::plain(py, "Error", text));
        }
        Ok(Self)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        IS_WAITING.set(false);
    }
}

pub(crate) fn install() {
    rlaunch_runtime::set_interrupt(handler_has_raised);
}

/// What ended the wait, if a signal's handler did. For the thread that waited.
pub(crate) fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// Runs the handlers of signals that came; on threads but the main one there are none.
fn handler_has_raised() -> bool {
    let raised = Python::try_attach(|py| py.check_signals().err()).flatten();
    let is_raised = raised.is_some();
    if is_raised {
        RAISED.set(raised);
    }
    is_raised
}
