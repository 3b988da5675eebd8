//! Failures as a code and a text.

use rlaunch_runtime::Error;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

// As in rlaunch.h; a test compares them.
const OK: c_int = 0;
const ARGUMENT: c_int = 1;
const INIT: c_int = 2;
const MISMATCH: c_int = 3;
const PEER_FAILED: c_int = 4;
const TIMEOUT: c_int = 5;
const CONNECTION: c_int = 6;
const INTERNAL: c_int = 7;

pub(crate) struct Failure {
    code: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn argument(text: &str) -> Self {
        Self {
            code: ARGUMENT,
            text: text.to_owned(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Argument(_) | Error::Finalized => ARGUMENT,
            Error::Init(_) => INIT,
            Error::Mismatch { .. } | Error::MessageMismatch { .. } => MISMATCH,
            Error::PeerFailed { .. } | Error::PeerLeft { .. } => PEER_FAILED,
            Error::Timeout { .. } => TIMEOUT,
            Error::Connection { .. } => CONNECTION,
            _ => INTERNAL,
        };
        Self {
            code,
            text: error.to_string(),
        }
    }
}

/// Runs the body of the C function `name`; a panic in it becomes a code, too.
pub(crate) fn guarded(name: &str, body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // What a panic leaves half done is the world, and the world poisons itself.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let text = "a fault of rlaunch itself, told on stderr; please report it".to_owned();
        Err(Failure {
            code: INTERNAL,
            text,
        })
    });
    match result {
        Ok(()) => OK,
        Err(Failure { code, text }) => {
            remember(&format!("{name}: {text}"));
            code
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn remember(text: &str) {
    let text = CString::new(text.replace('\0', "")).unwrap_or_default();
    // While a thread ends there is nobody left to ask for it.
    let _ = LAST.try_with(|last| last.replace(text));
}

/// Valid until this thread's next failure.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}
