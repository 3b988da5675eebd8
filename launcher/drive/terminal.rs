//! The terminal we were started from, while its input goes to a rank with a terminal of its own.
//!
//! The rank's terminal echoes and edits lines; ours must not do so too, or each letter would be
//! seen twice and a debugger's line editing would not work. ^C stays ours: it ends the job. The
//! settings are put back when [`Terminal`] is dropped.

use std::io::{IsTerminal, Stdin, stdin};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

pub(super) struct Terminal {
    input: Stdin,
    before: Termios,
}

impl Terminal {
    /// None if standard input is no terminal, or is not ours to set.
    pub(super) fn pass_letters_on() -> Option<Self> {
        let input = stdin();
        if !input.is_terminal() || is_in_background() {
            return None;
        }
        let before = tcgetattr(&input).ok()?;
        let mut quiet = before.clone();
        quiet
            .local_flags
            .remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(&input, SetArg::TCSANOW, &quiet).ok()?;
        Some(Self { input, before })
    }
}

/// Whether standard input is a terminal that another process group has now.
pub(super) fn is_in_background() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp())
}

impl Drop for Terminal {
    fn drop(&mut self) {
        tcsetattr(&self.input, SetArg::TCSANOW, &self.before).ok();
    }
}
