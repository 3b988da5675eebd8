//! How a program ends a long wait from inside: Ctrl-C in a language whose signal handlers only set
//! a flag.

use std::sync::OnceLock;

static CHECK: OnceLock<fn() -> bool> = OnceLock::new();

/// Has `check` called about ten times a second while a call waits long; where it returns true, the
/// call ends with [`crate::Error::Interrupted`] and its world is of no further use. Of several
/// settings the first stays.
pub fn set_interrupt(check: fn() -> bool) {
    // A second binding in the process has no better right.
    let _ = CHECK.set(check);
}

pub(crate) fn is_interrupted() -> bool {
    CHECK.get().is_some_and(|check| check())
}
