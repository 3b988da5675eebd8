//! A process that ends well although its world did not must not look well: whoever started it reads
//! the exit status.
//!
//! Nothing can be returned where a world is left implicitly, by dropping it or at the end of a Python
//! program. What failed then, and no call has told, is printed, and if the process would end with
//! status 0 it ends with 1 instead. Where the C library has no `on_exit`, printing is all.

use std::sync::Once;

use crate::Error;

/// Prints what failed, and has the process end with a status other than 0.
pub(crate) fn fail(error: &Error) {
    rlaunch_transport::say(format_args!("rlaunch: at exit: {error}"));
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register);
}

#[cfg(not(target_env = "gnu"))]
fn register() {}

#[cfg(target_env = "gnu")]
fn register() {
    use std::ffi::{c_int, c_void};

    type AtExit = extern "C" fn(c_int, *mut c_void);

    unsafe extern "C" {
        fn on_exit(function: AtExit, argument: *mut c_void) -> c_int;
    }

    extern "C" fn at_exit(status: c_int, process: *mut c_void) {
        // Not in a child that was forked later.
        if status != 0 || process.addr() != std::process::id() as usize {
            return;
        }
        // SAFETY: null flushes every C stream.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        // SAFETY: ends the process. What was registered for its end later has run; of the runtime
        // itself nothing is left to be done.
        unsafe { libc::_exit(1) };
    }

    let process = std::ptr::without_provenance_mut(std::process::id() as usize);
    // SAFETY: the function is valid for as long as the process lives, the argument is a number. It
    // fails only without memory, and then the printed text has to do.
    unsafe { on_exit(at_exit, process) };
}
