//! Moves bytes between a channel and the launcher's socket, until either ends.
//!
//! Nothing blocks but `poll`: on the ssh socket, in the directions that libssh2 wants, and on the
//! launcher's. libssh2 wants a write that would block repeated with the same bytes, so each
//! direction has one buffer, filled again only when it is empty: that is the back pressure, too.
//! stderr is read always, or its window would fill and stop the channel.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ssh2::{BlockDirections, Channel, Session};

use crate::diagnostics::Lines;

const BUFFER_BYTES: usize = 256 * 1024;
/// So that firewalls do not forget a quiet connection, unless the user has a wish.
const KEEPALIVE_SECONDS: u32 = 15;
/// After the launcher has closed its side, the host may take this long to end by itself.
const LINGER_MAX: Duration = Duration::from_secs(1);
/// For each of the last words of the protocol.
const GOODBYE_MAX_MS: u32 = 300;

/// Bytes on their way in one direction.
struct Flow {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// No more will come.
    closed: bool,
}

/// Pumps; says how the command ended. The sockets are closed when it returns.
pub(super) fn run(
    session: &Session,
    channel: Channel,
    local: UnixStream,
    lines: Lines,
    alive_interval: Option<u32>,
) -> String {
    session.set_blocking(false);
    session.set_keepalive(true, alive_interval.unwrap_or(KEEPALIVE_SECONDS));
    let mut pump = Pump {
        session,
        channel,
        local,
        lines,
        outward: Flow::new(),
        inward: Flow::new(),
        end_sent: false,
        leave_at: None,
    };
    match pump.carry() {
        Ok(()) => pump.status(),
        Err(error) => format!("a broken connection ({error})"),
    }
}

struct Pump<'a> {
    session: &'a Session,
    channel: Channel,
    local: UnixStream,
    lines: Lines,
    /// From the launcher to the host.
    outward: Flow,
    inward: Flow,
    end_sent: bool,
    leave_at: Option<Instant>,
}

impl Pump<'_> {
    fn carry(&mut self) -> io::Result<()> {
        loop {
            let mut moved = self.move_outward()?;
            moved |= self.move_inward()?;
            moved |= self.move_stderr();
            if self.inward.closed && self.inward.is_empty() {
                return Ok(());
            }
            if self
                .leave_at
                .is_some_and(|leave_at| Instant::now() >= leave_at)
            {
                return Ok(());
            }
            if !moved {
                self.wait()?;
            }
        }
    }

    fn move_outward(&mut self) -> io::Result<bool> {
        let mut moved = self.outward.fill(&mut self.local).unwrap_or_else(|_| {
            // A reset by the launcher's side is an end like any other.
            self.outward.closed = true;
            true
        });
        moved |= self.outward.drain(&mut self.channel)?;
        if self.outward.closed && self.outward.is_empty() && !self.end_sent {
            match self.channel.send_eof().map_err(io::Error::from) {
                Ok(()) => {
                    self.end_sent = true;
                    self.leave_at = Some(Instant::now() + LINGER_MAX);
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    fn move_inward(&mut self) -> io::Result<bool> {
        let mut moved = self.inward.fill(&mut self.channel)?;
        moved |= self.inward.drain(&mut self.local).unwrap_or_else(|_| {
            // Nobody reads any more: the rest is dropped and the host told.
            self.inward.start = self.inward.end;
            self.outward.closed = true;
            true
        });
        Ok(moved)
    }

    fn move_stderr(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.channel.stderr().read(&mut buffer) {
            Ok(length @ 1..) => {
                self.lines.feed(&buffer[..length]);
                true
            }
            // An error will show again on the channel itself.
            _ => false,
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        let mut limit = Duration::from_secs(u64::from(KEEPALIVE_SECONDS));
        // A keepalive in the middle of another packet would confuse libssh2.
        if self.outward.is_empty() {
            let seconds = self
                .session
                .keepalive_send()
                .map_err(io::Error::from)
                .or_else(|error| {
                    if error.kind() == ErrorKind::WouldBlock {
                        Ok(1)
                    } else {
                        Err(error)
                    }
                })?;
            limit = limit.min(Duration::from_secs(u64::from(seconds.max(1))));
        }
        if let Some(leave_at) = self.leave_at {
            limit = limit.min(leave_at.saturating_duration_since(Instant::now()));
        }
        let mut remote_events = PollFlags::POLLIN;
        if matches!(
            self.session.block_directions(),
            BlockDirections::Outbound | BlockDirections::Both
        ) {
            remote_events |= PollFlags::POLLOUT;
        }
        let mut local_events = PollFlags::empty();
        if self.outward.is_empty() && !self.outward.closed {
            local_events |= PollFlags::POLLIN;
        }
        if !self.inward.is_empty() {
            local_events |= PollFlags::POLLOUT;
        }
        let remote = self.session.as_raw_fd();
        // SAFETY: the session owns the descriptor and outlives this call.
        let remote = unsafe { BorrowedFd::borrow_raw(remote) };
        let mut fds = vec![PollFd::new(remote, remote_events)];
        // A hang-up is reported unasked, over and over: who waits for nothing there is left out.
        if !local_events.is_empty() {
            fds.push(PollFd::new(self.local.as_fd(), local_events));
        }
        let limit =
            PollTimeout::try_from(limit + Duration::from_millis(1)).unwrap_or(PollTimeout::NONE);
        match poll(&mut fds, limit) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Closes the channel and asks how the command ended; bounded, for the host may be gone.
    fn status(&mut self) -> String {
        self.session.set_timeout(GOODBYE_MAX_MS);
        self.session.set_blocking(true);
        let _ = self.channel.close();
        let _ = self.channel.wait_close();
        let signal = self
            .channel
            .exit_signal()
            .ok()
            .and_then(|signal| signal.exit_signal);
        match (signal, self.channel.exit_status()) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, Ok(status)) => format!("exit status {status}"),
            (None, Err(error)) => error.message().to_owned(),
        }
    }
}

impl Flow {
    fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            closed: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// True if something happened.
    fn fill(&mut self, from: &mut impl Read) -> io::Result<bool> {
        if self.closed || !self.is_empty() {
            return Ok(false);
        }
        match from.read(&mut self.buffer) {
            Ok(length) => {
                self.closed = length == 0;
                (self.start, self.end) = (0, length);
                Ok(true)
            }
            Err(error) => would_block(error),
        }
    }

    fn drain(&mut self, to: &mut impl Write) -> io::Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        match to.write(&self.buffer[self.start..self.end]) {
            Ok(length) => {
                self.start += length;
                Ok(length > 0)
            }
            Err(error) => would_block(error),
        }
    }
}

fn would_block(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(false),
        _ => Err(error),
    }
}
