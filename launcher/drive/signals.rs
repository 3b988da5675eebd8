//! Signals to the launcher.
//!
//! INT, TERM and HUP end the job, in order at first; USR1 and USR2 go to the ranks. HUP that is
//! ignored when we start stays so (nohup). A terminal's stop (^Z) is refused with a word: a
//! stopped launcher is silent, and its hosts would take it for lost.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// End the job.
    End(i32),
    /// To every rank.
    Forward(i32),
    Suspend,
}

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
    user1: Signal,
    user2: Signal,
    suspend: Option<Signal>,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        let ignored = Ignored::now();
        let unless_ignored = |kind: SignalKind| {
            if ignored.has(kind.as_raw_value()) {
                Ok(None)
            } else {
                signal(kind).map(Some)
            }
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: unless_ignored(SignalKind::hangup())?,
            user1: signal(SignalKind::user_defined1())?,
            user2: signal(SignalKind::user_defined2())?,
            suspend: unless_ignored(SignalKind::from_raw(nix::libc::SIGTSTP))?,
        })
    }

    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Received {
        use nix::libc::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
        tokio::select! {
            Some(()) = self.interrupt.recv() => Received::End(SIGINT),
            Some(()) = self.terminate.recv() => Received::End(SIGTERM),
            () = optional(&mut self.hangup) => Received::End(SIGHUP),
            Some(()) = self.user1.recv() => Received::Forward(SIGUSR1),
            Some(()) = self.user2.recv() => Received::Forward(SIGUSR2),
            () = optional(&mut self.suspend) => Received::Suspend,
        }
    }
}

async fn optional(signal: &mut Option<Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
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
        assert!(ignored.has(nix::libc::SIGPIPE));
        assert!(!ignored.has(nix::libc::SIGUSR1));
    }
}
