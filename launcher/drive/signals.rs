//! Signals to the launcher.
//!
//! INT, TERM, HUP, QUIT and XCPU end the job, in order at first; USR1, USR2, WINCH and others of no
//! meaning to the launcher go to the ranks; a terminal's stop (^Z) suspends the whole job, and
//! what continues the launcher continues the ranks. What was ignored when we started stays so:
//! HUP under nohup, INT and QUIT of a shell's background job. TERM is always heard.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::libc;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// End the job.
    End(i32),
    /// To every rank.
    Forward(i32),
    Suspend,
    Continue,
}

pub(super) struct Signals {
    caught: Vec<(Received, Signal)>,
    suspend: bool,
}

const ENDING: [i32; 5] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    // Of a batch system, before it kills, or of our own CPU time's limit.
    libc::SIGXCPU,
];
/// Batch systems and people send them for the program's sake.
const FORWARDED: [i32; 5] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGURG,
    libc::SIGPWR,
];
/// A background job that reads its terminal is stopped like one by ^Z.
const SUSPENDING: [i32; 2] = [libc::SIGTSTP, libc::SIGTTIN];

impl Signals {
    /// All but those that suspend: without ranks there is nothing to suspend but the launcher.
    pub(super) fn catch() -> io::Result<Self> {
        let ignored = Ignored::now();
        let mut signals = Self {
            caught: Vec::new(),
            suspend: false,
        };
        for number in ENDING {
            if number == libc::SIGTERM || !ignored.has(number) {
                signals.add(Received::End(number), number)?;
            }
        }
        for number in FORWARDED {
            signals.add(Received::Forward(number), number)?;
        }
        Ok(signals)
    }

    /// From the first ranks' start on.
    pub(super) fn catch_suspension(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.suspend, true) {
            return Ok(());
        }
        let ignored = Ignored::now();
        for number in SUSPENDING {
            if !ignored.has(number) {
                self.add(Received::Suspend, number)?;
            }
        }
        self.add(Received::Continue, libc::SIGCONT)
    }

    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Received {
        poll_fn(|context| {
            for (received, signal) in &mut self.caught {
                if signal.poll_recv(context) == Poll::Ready(Some(())) {
                    return Poll::Ready(*received);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next one that ends the job; others say nothing to whoever waits so.
    pub(super) async fn next_end(&mut self) -> i32 {
        loop {
            if let Received::End(number) = self.next().await {
                return number;
            }
        }
    }

    fn add(&mut self, received: Received, number: i32) -> io::Result<()> {
        let signal = signal(SignalKind::from_raw(number))?;
        self.caught.push((received, signal));
        Ok(())
    }
}

/// The signals that this process ignores, from the kernel's own account: one bit each.
struct Ignored(u64);

impl Ignored {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        Self(mask.unwrap_or(0))
    }

    fn has(&self, number: i32) -> bool {
        self.0 & (1 << (number - 1)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rust's start-up code ignores SIGPIPE, and only that.
    #[test]
    fn ignored_signals_are_known() {
        let ignored = Ignored::now();
        assert!(ignored.has(libc::SIGPIPE));
        assert!(!ignored.has(libc::SIGUSR1));
    }
}
