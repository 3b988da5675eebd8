//! Connecting to one peer: its addresses are tried side by side, each a little after the one
//! before, and the first that proves to be the peer is taken. Poll until it is not pending.

use std::ffi::c_short;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use super::handshake::{Connector, Identity, Purpose, Verdict};
use super::routes::Route;
use super::socket::{begin_connect, is_connected};

#[derive(Debug)]
pub(super) struct Dial {
    to: u32,
    purpose: Purpose,
    routes: Vec<Route>,
    /// Of `routes`, counted on over the rounds.
    next: usize,
    attempts: Vec<Attempt>,
    begun: Instant,
    next_start: Instant,
    last: String,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Pending,
    Connected(TcpStream),
    /// The peer connects to this rank, and its socket stands.
    Yielded,
    /// No route leads there; what the last attempt met.
    Failed(String),
}

#[derive(Debug)]
struct Attempt {
    route: usize,
    begun: Instant,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Connecting(TcpStream),
    /// Waits for the peer's proof, however long: it comes when the peer is in a call.
    Greeted(Connector),
    /// This side is proven too, over this attempt only; the peer decides.
    Confirmed(Connector),
}

/// A route that answers needs less; only then is the next one begun too.
const HEAD_START: Duration = Duration::from_millis(150);
const ATTEMPTS_MAX: usize = 8;
/// For an address that says nothing.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// For addresses that all refuse: the peer's process has ended, and somebody knows how.
const REFUSED_MAX: Duration = Duration::from_secs(1);
/// Between two rounds over the routes.
const PAUSE: Duration = Duration::from_millis(50);

impl Dial {
    pub(super) fn new(to: u32, purpose: Purpose, routes: Vec<Route>) -> Self {
        let now = Instant::now();
        Self {
            to,
            purpose,
            routes,
            next: 0,
            attempts: Vec::new(),
            begun: now,
            next_start: now,
            last: "it has no address that can be reached from here".into(),
        }
    }

    /// Does what can be done now.
    pub(super) fn poll(&mut self, identity: &Identity) -> Outcome {
        let now = Instant::now();
        self.start(now);
        for attempt in std::mem::take(&mut self.attempts) {
            let route = attempt.route;
            match attempt.poll(identity, self.to, self.purpose, now) {
                Ok(Step::Verdict(Verdict::Accepted, stream)) => return Outcome::Connected(stream),
                Ok(Step::Verdict(Verdict::Mine, _)) => return Outcome::Yielded,
                Ok(Step::Still(attempt)) if matches!(attempt.stage, Stage::Confirmed(_)) => {
                    // This one alone; the others are dropped before they prove anything.
                    self.attempts = vec![attempt];
                    break;
                }
                Ok(Step::Still(attempt)) => self.attempts.push(attempt),
                Err(error) => {
                    self.last = format!("{}: {error}", self.routes[route].remote);
                    self.next_start = self.next_start.min(now + PAUSE);
                }
            }
        }
        self.outcome(now)
    }

    fn start(&mut self, now: Instant) {
        let is_chosen = |attempt: &Attempt| matches!(attempt.stage, Stage::Confirmed(_));
        while now >= self.next_start
            && !self.routes.is_empty()
            && self.attempts.len() < ATTEMPTS_MAX.min(self.routes.len())
            && !self.attempts.iter().any(is_chosen)
        {
            let route = self.next % self.routes.len();
            self.next += 1;
            if self.attempts.iter().any(|attempt| attempt.route == route) {
                continue;
            }
            match begin_connect(&self.routes[route]) {
                Ok(stream) => {
                    self.attempts.push(Attempt {
                        route,
                        begun: now,
                        stage: Stage::Connecting(stream),
                    });
                    self.next_start = now + HEAD_START;
                }
                Err(error) => {
                    self.last = format!("{}: {error}", self.routes[route].remote);
                    if self.next.is_multiple_of(self.routes.len()) {
                        self.next_start = now + PAUSE;
                    }
                }
            }
        }
    }

    fn outcome(&self, now: Instant) -> Outcome {
        let waited = now - self.begun;
        let is_trying = !self.attempts.is_empty();
        let answers = |attempt: &Attempt| !matches!(attempt.stage, Stage::Connecting(_));
        let rounds = self.next / self.routes.len().max(1);
        let is_over = self.routes.is_empty()
            || (!is_trying && rounds > 1 && waited > REFUSED_MAX)
            || (waited > CONNECT_MAX && !self.attempts.iter().any(answers));
        if is_over {
            Outcome::Failed(self.last.clone())
        } else {
            Outcome::Pending
        }
    }

    /// What to sleep on; a new attempt may be due before.
    pub(super) fn wait_on(&self, on: &mut Vec<(RawFd, c_short)>) {
        on.extend(self.attempts.iter().map(|attempt| match &attempt.stage {
            Stage::Connecting(stream) => (stream.as_raw_fd(), libc::POLLOUT),
            Stage::Greeted(connector) | Stage::Confirmed(connector) => {
                (connector.stream().as_raw_fd(), libc::POLLIN)
            }
        }));
    }
}

enum Step {
    Still(Attempt),
    Verdict(Verdict, TcpStream),
}

impl Attempt {
    fn poll(
        mut self,
        identity: &Identity,
        to: u32,
        purpose: Purpose,
        now: Instant,
    ) -> std::io::Result<Step> {
        if let Stage::Connecting(stream) = self.stage {
            if !is_connected(&stream)? {
                if now - self.begun > CONNECT_MAX {
                    return Err(std::io::ErrorKind::TimedOut.into());
                }
                self.stage = Stage::Connecting(stream);
                return Ok(Step::Still(self));
            }
            self.stage = Stage::Greeted(Connector::new(stream, identity, to, purpose)?);
        }
        if let Stage::Greeted(mut connector) = self.stage {
            if connector.poll_reply(identity)?.is_none() {
                self.stage = Stage::Greeted(connector);
                return Ok(Step::Still(self));
            }
            connector.confirm(identity)?;
            self.stage = Stage::Confirmed(connector);
        }
        let Stage::Confirmed(mut connector) = self.stage else {
            unreachable!("the stages before lead here");
        };
        match connector.poll_verdict()? {
            Some(verdict) => Ok(Step::Verdict(verdict, connector.into_stream())),
            None => {
                self.stage = Stage::Confirmed(connector);
                Ok(Step::Still(self))
            }
        }
    }
}
