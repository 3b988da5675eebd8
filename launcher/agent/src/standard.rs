//! Whether this process was started without a stdout (`>&-`).
//!
//! Before `main`, Rust's runtime opens /dev/null in place of a standard stream that is closed, so that
//! no other file gets its number. From then on what is printed seems to arrive. This looks earlier.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// What is printed on stdout goes nowhere, and nobody asked for that by naming /dev/null.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    // SAFETY: fcntl on any number is sound; a closed one gives an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags < 0, Ordering::Relaxed);
}

// SAFETY: the C library calls what stands in this section before `main`, once and in the only thread;
// `look` needs nothing of Rust's runtime and does not unwind.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
