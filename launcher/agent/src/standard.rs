//! Whether this process was started without a stdout or stderr (`>&-`).
//!
//! Before `main`, Rust's runtime opens /dev/null in place of a standard stream that is closed, so that
//! no other file gets its number. From then on what is printed seems to arrive. This looks earlier.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standard {
    Stdout,
    Stderr,
}

static CLOSED: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

/// What is printed there goes nowhere, and nobody asked for that by naming /dev/null.
pub fn was_closed(stream: Standard) -> bool {
    CLOSED[stream as usize].load(Ordering::Relaxed)
}

extern "C" fn look() {
    for (stream, closed) in [libc::STDOUT_FILENO, libc::STDERR_FILENO]
        .iter()
        .zip(&CLOSED)
    {
        // SAFETY: fcntl on any number is sound; a closed one gives an error.
        let flags = unsafe { libc::fcntl(*stream, libc::F_GETFD) };
        closed.store(flags < 0, Ordering::Relaxed);
    }
}

// SAFETY: the C library calls what stands in this section before `main`, once and in the only thread;
// `look` needs nothing of Rust's runtime and does not unwind.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
