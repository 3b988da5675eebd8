//! Failures as a code and a text.

use crate::codes::rl_code;
use rlaunch_runtime::Error;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) struct Failure {
    pub(crate) code: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn argument(text: &str) -> Self {
        Self {
            code: rl_code::RL_ERROR_ARGUMENT as c_int,
            text: text.to_owned(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Argument(_) => rl_code::RL_ERROR_ARGUMENT,
            Error::Init(_) => rl_code::RL_ERROR_INIT,
            Error::Mismatch { .. } | Error::MessageMismatch { .. } => rl_code::RL_ERROR_MISMATCH,
            Error::PeerFailed { .. } | Error::PeerLeft { .. } => rl_code::RL_ERROR_PEER_FAILED,
            Error::Timeout { .. } => rl_code::RL_ERROR_TIMEOUT,
            Error::Connection { .. } => rl_code::RL_ERROR_CONNECTION,
            Error::Aborted { .. } => rl_code::RL_ERROR_ABORTED,
            Error::Excluded { .. } => rl_code::RL_ERROR_EXCLUDED,
            Error::Forked => rl_code::RL_ERROR_FORKED,
            Error::Finalized => rl_code::RL_ERROR_FINALIZED,
            Error::Cancelled => rl_code::RL_ERROR_CANCELLED,
            Error::Allocation { .. } => rl_code::RL_ERROR_MEMORY,
            _ => rl_code::RL_ERROR_INTERNAL,
        };
        Self {
            code: code as c_int,
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
            code: rl_code::RL_ERROR_INTERNAL as c_int,
            text,
        })
    });
    match result {
        Ok(()) => rl_code::RL_OK as c_int,
        Err(Failure { code, text }) => {
            remember(&format!("{name}: {text}"));
            code
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
    static TEXT: RefCell<CString> = RefCell::default();
}

fn remember(text: &str) {
    // While a thread ends there is nobody left to ask for it.
    let _ = LAST.try_with(|last| last.replace(c_text(text)));
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// A text for C, valid until this thread asks for the next one.
pub(crate) fn lend(text: &str) -> *const c_char {
    TEXT.try_with(|held| {
        held.replace(c_text(text));
        held.borrow().as_ptr()
    })
    .unwrap_or(c"".as_ptr())
}

/// What the calling thread's last failed call has to say: where, with which rank, and what to try.
/// "" if none failed. Valid until the next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn rl_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}
