//! How often a host is tried, and how long is waited in between.

use std::time::{Duration, Instant};

use crate::error::{ReachCause, ReachError};
use crate::settings::Settings;
use crate::target::{HostTarget, RemoteOptions};

/// The first pause before another attempt; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(150);
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// An sshd at MaxStartups takes the next ones soon; a host that has none does not get one.
const ATTEMPTS_CLOSED_MAX: u32 = 12;
const ATTEMPTS_REFUSED_MAX: u32 = 3;
/// `ConnectionAttempts` pause for this long, as those of ssh.
const PAUSE_ASKED_FOR: Duration = Duration::from_secs(1);
/// A mistyped number must not hold a job up for a day.
const ATTEMPTS_ASKED_FOR_MAX: u32 = 1000;

/// What is allowed for one host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From the first packet to the end of the ssh handshake.
    pub(crate) connect: Duration,
    /// For all attempts that are made on our own account.
    total: Duration,
    /// The user's own wish for hosts that are still coming up; 1 for none.
    attempts: u32,
}

impl Limits {
    /// The user's `ConnectTimeout` and `ConnectionAttempts` go before ours.
    pub(crate) fn new(options: &RemoteOptions, settings: &Settings) -> Self {
        let connect = settings.connect_timeout.unwrap_or(options.connect_timeout);
        Self {
            connect,
            total: connect,
            attempts: settings
                .connection_attempts
                .clamp(1, ATTEMPTS_ASKED_FOR_MAX),
        }
    }

    /// ssh keeps to the user's by itself.
    pub(crate) fn of_program(options: &RemoteOptions) -> Self {
        Self {
            connect: options.connect_timeout,
            total: options.connect_timeout,
            attempts: 1,
        }
    }
}

/// Counts attempts and pauses between them; pure but for the pause.
pub(crate) struct Retry {
    attempts: u32,
    attempts_asked_for: u32,
    pause: Duration,
    deadline: Instant,
    /// Hosts that were turned away together must not come back together.
    spread: u32,
}

impl Retry {
    pub(crate) fn new(target: &HostTarget, limits: Limits) -> Self {
        let name = target.to_string();
        let spread = name.bytes().fold(std::process::id(), |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        Self {
            attempts: 0,
            attempts_asked_for: limits.attempts,
            pause: PAUSE_FIRST,
            deadline: Instant::now() + limits.total,
            spread,
        }
    }

    /// Waits before the next attempt, or gives the error back if there is to be none.
    pub(crate) async fn pause(&mut self, error: ReachError) -> Result<(), ReachError> {
        match self.next(&error.cause, Instant::now()) {
            Some(pause) => {
                tracing::debug!(host = error.host, ?pause, cause = %error.cause, "again");
                tokio::time::sleep(pause).await;
                Ok(())
            }
            None => Err(self.counted(error)),
        }
    }

    fn next(&mut self, cause: &ReachCause, now: Instant) -> Option<Duration> {
        self.attempts += 1;
        let attempts_max = match cause {
            ReachCause::ClosedEarly { .. } => ATTEMPTS_CLOSED_MAX,
            ReachCause::Refused => ATTEMPTS_REFUSED_MAX,
            ReachCause::TimedOut(_) | ReachCause::Unconnected(_) => 1,
            _ => return None,
        };
        // Between three and five quarters of the nominal pause.
        self.spread = self
            .spread
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        let spread = |pause: Duration| pause * (768 + (self.spread >> 16) % 512) / 1024;
        let pause = spread(self.pause);
        if self.attempts < attempts_max && now + pause < self.deadline {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
            return Some(pause);
        }
        (self.attempts < self.attempts_asked_for).then(|| spread(PAUSE_ASKED_FOR))
    }

    fn counted(&self, mut error: ReachError) -> ReachError {
        if let ReachCause::ClosedEarly { attempts } = &mut *error.cause {
            *attempts = self.attempts;
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(cause: &ReachCause, limits: Limits) -> u32 {
        let mut retry = Retry::new(&HostTarget::new("h"), limits);
        let mut now = Instant::now();
        while let Some(pause) = retry.next(cause, now) {
            assert!(pause <= 2 * PAUSE_MAX, "{pause:?}");
            now += pause;
        }
        retry.attempts
    }

    #[test]
    fn only_what_may_pass_is_tried_again_and_not_for_ever() {
        let limits = Limits::of_program(&RemoteOptions::default());
        let closed = ReachCause::ClosedEarly { attempts: 1 };
        let many = attempts(&closed, limits);
        assert!((8..=ATTEMPTS_CLOSED_MAX).contains(&many), "{many}");
        assert_eq!(attempts(&ReachCause::Refused, limits), ATTEMPTS_REFUSED_MAX);
        assert_eq!(attempts(&ReachCause::TimedOut(1), limits), 1);
        let short = Limits {
            total: Duration::from_secs(1),
            ..limits
        };
        assert!(attempts(&closed, short) < 5);
    }

    #[test]
    fn connection_attempts_are_as_many_as_the_user_asked_for() {
        let limits = Limits {
            attempts: 40,
            ..Limits::of_program(&RemoteOptions::default())
        };
        for cause in [
            ReachCause::Refused,
            ReachCause::TimedOut(1),
            ReachCause::ClosedEarly { attempts: 1 },
        ] {
            assert_eq!(attempts(&cause, limits), 40, "{cause}");
        }
        let refused = ReachCause::NoCommand(String::new());
        assert_eq!(attempts(&refused, limits), 1);
    }

    #[test]
    fn hosts_that_were_turned_away_together_come_back_apart() {
        let limits = Limits::of_program(&RemoteOptions::default());
        let first = |host: usize| {
            let mut retry = Retry::new(&HostTarget::new(format!("node{host}")), limits);
            let closed = ReachCause::ClosedEarly { attempts: 1 };
            retry.next(&closed, Instant::now()).unwrap()
        };
        let pauses: std::collections::BTreeSet<_> = (0..32).map(first).collect();
        assert!(pauses.len() > 20, "{pauses:?}");
        let spread = *pauses.last().unwrap() - *pauses.first().unwrap();
        assert!(spread > PAUSE_FIRST / 4, "{pauses:?}");
    }
}
