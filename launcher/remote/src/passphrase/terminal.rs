//! A question on the terminal, its answer unseen.
//!
//! The terminal is the process's own (`/dev/tty`), not stdin, which may be the job's. While the
//! answer is typed the terminal gives every key as it comes, shows none and makes no signals of
//! them, so that ^C can put the terminal in order first. Where a signal from elsewhere ends the
//! process in order (by `exit`), the terminal is put in order then.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use nix::sys::signal::{Signal, raise};
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr, tcsetattr};

/// Longer than any passphrase; a pasted file is no answer.
const ANSWER_MAX_BYTES: usize = 4096;

pub(super) fn ask(prompt: &str) -> io::Result<String> {
    let terminal = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .map_err(|_| io::Error::other("there is no terminal"))?;
    // In the background the kernel would stop the process for touching the terminal.
    let foreground = nix::unistd::tcgetpgrp(&terminal)?;
    if foreground != nix::unistd::getpgrp() {
        return Err(io::Error::other("the launcher runs in the background"));
    }
    let answer = {
        // First: who types as soon as the question is there must not be seen.
        let _unseen = Unseen::begin(&terminal)?;
        (&terminal).write_all(prompt.as_bytes())?;
        read_answer(&mut &terminal)
    };
    (&terminal).write_all(b"\n")?;
    match answer? {
        Answer::Line(line) => Ok(line),
        Answer::Interrupt => {
            raise(Signal::SIGINT)?;
            // If the signal is ignored or waits for somebody to handle it.
            Err(ErrorKind::Interrupted.into())
        }
    }
}

enum Answer {
    Line(String),
    /// ^C.
    Interrupt,
}

fn read_answer(keys: &mut impl Read) -> io::Result<Answer> {
    let mut line = Vec::new();
    loop {
        let mut key = [0];
        match keys.read(&mut key) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match key[0] {
            b'\n' | b'\r' | 0x04 => break,
            0x03 | 0x1c => return Ok(Answer::Interrupt),
            0x08 | 0x7f => erase(&mut line),
            // ^U and ^W: it is unseen, so that a word is all of it.
            0x15 | 0x17 => line.clear(),
            byte if line.len() < ANSWER_MAX_BYTES => line.push(byte),
            _ => return Err(io::Error::other("what was typed is too long")),
        }
    }
    let line = String::from_utf8(line);
    line.map(Answer::Line)
        .map_err(|_| io::Error::other("what was typed is not UTF-8"))
}

/// A whole character, of one byte or of several.
fn erase(line: &mut Vec<u8>) {
    while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
}

/// The terminal and what it was like, for the end of the process.
static CHANGED: Mutex<Option<(RawFd, libc::termios)>> = Mutex::new(None);
/// One question at a time in a process.
static ASKING: Mutex<()> = Mutex::new(());

/// While it lives, nothing typed is shown.
struct Unseen(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Unseen {
    fn begin(terminal: &File) -> io::Result<Self> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: a function without arguments that may run at any time.
            unsafe { libc::atexit(restore) };
        });
        let asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
        let before = tcgetattr(terminal)?;
        *changed() = Some((terminal.as_raw_fd(), before.clone().into()));
        let unseen = Self(asking);
        let mut quiet = before;
        let shown = LocalFlags::ECHO | LocalFlags::ECHONL | LocalFlags::ICANON | LocalFlags::ISIG;
        quiet.local_flags.remove(shown);
        quiet.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
        quiet.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
        tcsetattr(terminal, SetArg::TCSAFLUSH, &quiet)?;
        Ok(unseen)
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        restore();
    }
}

fn changed() -> MutexGuard<'static, Option<(RawFd, libc::termios)>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Also at the end of the process, which may come from another thread while somebody is asked.
extern "C" fn restore() {
    if let Some((terminal, before)) = changed().take() {
        // SAFETY: whoever changed the terminal keeps it open until it is taken here.
        unsafe { libc::tcsetattr(terminal, libc::TCSADRAIN, &raw const before) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_an_answer() {
        for (keys, answer) in [
            ("secret\n", Some("secret")),
            ("secret\r", Some("secret")),
            ("secret", Some("secret")),
            ("wrong\x15right\x7f\x7fht\n", Some("right")),
            ("a\u{fc}\x7fb\n", Some("ab")),
            ("\x7f\x7f\n", Some("")),
            ("with blank \n", Some("with blank ")),
            ("sec\x03ret\n", None),
        ] {
            match read_answer(&mut keys.as_bytes()).unwrap() {
                Answer::Line(line) => assert_eq!(Some(line.as_str()), answer, "{keys:?}"),
                Answer::Interrupt => assert_eq!(None, answer, "{keys:?}"),
            }
        }
        assert!(read_answer(&mut &[b'x'; ANSWER_MAX_BYTES + 1][..]).is_err());
        assert!(read_answer(&mut &b"\xff\n"[..]).is_err());
    }
}
