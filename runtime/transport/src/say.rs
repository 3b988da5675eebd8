//! Words for people, on a rank's stderr.
//!
//! The process is the user's: whatever becomes of its stderr, what the runtime says there must neither end
//! it nor go anywhere else.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// One line, or several. That stderr has no reader or no room any more is no failure.
pub fn say(line: Arguments<'_>) {
    let text = format!("{line}\n");
    quietly(|| std::io::stderr().write_all(text.as_bytes()));
}

/// Writes, without the signal that ends a C program whose reader has gone.
fn quietly(write: impl FnOnce() -> std::io::Result<()>) {
    let mut pipe = SigSet::empty();
    pipe.add(Signal::SIGPIPE);
    let Ok(before) = pipe.thread_swap_mask(SigmaskHow::SIG_BLOCK) else {
        return;
    };
    // One that waits already is not ours.
    let waited = is_pending(&pipe);
    let result = write();
    if !waited && result.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        take_pending(&pipe);
    }
    before.thread_set_mask().ok();
}

fn is_pending(signals: &SigSet) -> bool {
    let mut pending = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigpending writes the whole set, or fails, and then it is not read.
    let pending = unsafe {
        if libc::sigpending(pending.as_mut_ptr()) != 0 {
            return false;
        }
        SigSet::from_sigset_t_unchecked(pending.assume_init())
    };
    signals.iter().any(|signal| pending.contains(signal))
}

/// One that a write has sent to this thread.
fn take_pending(signals: &SigSet) {
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: set and time are valid for the call; null: nobody asks for details.
    while unsafe { libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), &now) } == -1
        && std::io::Error::last_os_error().kind() == ErrorKind::Interrupted
    {}
}

/// Where stderr is closed /dev/null takes its place, as in every Rust program. Else a socket or the
/// memory shared with other ranks would be opened there, and get what is said.
pub fn keep_stderr() {
    const STDERR: libc::c_int = 2;
    // SAFETY: only asks.
    if unsafe { libc::fcntl(STDERR, libc::F_GETFD) } != -1 {
        return;
    }
    // SAFETY: a constant text. Kept by programs that are started from this one, as stderr is.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null == -1 || null == STDERR {
        return;
    }
    // SAFETY: the descriptor is ours. Whatever another thread opens meanwhile is not replaced.
    let kept = unsafe { libc::fcntl(null, libc::F_DUPFD, STDERR) };
    // SAFETY: both were made here and nobody else knows them.
    unsafe {
        libc::close(null);
        if kept > STDERR {
            libc::close(kept);
        }
    }
}
