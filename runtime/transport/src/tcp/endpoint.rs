//! A rank's place on the network: the one port it listens on, and the streams that came in.
//!
//! Whoever waits polls it. A connection counts once it has proven the job's secret; all else is
//! dropped within [`ATTEMPT_MAX`], and can't keep ranks out: when there are too many, those go first
//! that have not even greeted. Strangers are told of on stderr, attempts that ranks gave up are not.
//!
//! Two ranks that connect to each other at once: the lower rank's socket stands. A rank that is
//! connecting answers [`Verdict::Mine`] to a higher one, which then drops its own attempt.

use std::collections::HashMap;
use std::ffi::c_short;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::handshake::{Acceptor, Hello, Identity, Purpose, Verdict};

/// What is the same for all connections of a rank.
#[derive(Debug)]
pub struct TcpEndpoint {
    pub(super) identity: Identity,
    /// Sent bytes that stay unacknowledged for this long end a connection.
    pub(super) silence_max: Duration,
    listener: TcpListener,
    port: u16,
    slots: Mutex<HashMap<u32, Arc<Slot>>>,
    visitors: Mutex<Visitors>,
    last_poll_ms: AtomicU64,
}

/// Where a connection and the endpoint meet.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Something is in `state.streams`; looked at without the lock.
    has_arrived: AtomicBool,
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    is_dialing: bool,
    is_up: bool,
    streams: Vec<TcpStream>,
}

#[derive(Debug, Default)]
struct Visitors {
    proving: Vec<(Acceptor, SocketAddr, Instant)>,
    /// Strangers' connections dropped so far.
    dropped: u64,
}

/// To be proven.
const ATTEMPT_MAX: Duration = Duration::from_secs(3);
/// Unproven connections at a time.
const VISITORS_MAX: usize = 256;
/// Accepted at one poll.
const ACCEPTED_MAX: usize = 64;
/// Told one by one; then only every power of two.
const TOLD_MAX: u64 = 16;
/// Sockets that one peer may have.
const STREAMS_MAX: usize = 2 * super::SOCKETS_MAX;

impl TcpEndpoint {
    pub fn new(
        listener: TcpListener,
        identity: Identity,
        silence_max: Duration,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            identity,
            silence_max,
            port: listener.local_addr()?.port(),
            listener,
            slots: Mutex::default(),
            visitors: Mutex::default(),
            last_poll_ms: AtomicU64::new(0),
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections of strangers that were dropped.
    pub fn strangers(&self) -> u64 {
        lock(&self.visitors).dropped
    }

    pub(super) fn slot(&self, rank: u32) -> Arc<Slot> {
        lock(&self.slots).entry(rank).or_default().clone()
    }

    /// Lets in who has come. Cheap enough for a look now and then, not for every poll of a busy
    /// wait.
    pub fn poll(&self) {
        let mut visitors = lock(&self.visitors);
        self.accept(&mut visitors);
        let now = Instant::now();
        let mut index = 0;
        while index < visitors.proving.len() {
            let (acceptor, address, begun) = &mut visitors.proving[index];
            let result = match acceptor.poll(&self.identity) {
                Ok(None) if now - *begun > ATTEMPT_MAX => Err(io::ErrorKind::TimedOut.into()),
                Ok(Some(hello)) => Ok(Some(hello)),
                other => other,
            };
            let address = *address;
            match result {
                Ok(None) => index += 1,
                Ok(Some(hello)) => {
                    let (acceptor, ..) = visitors.proving.swap_remove(index);
                    self.admit(acceptor, &hello);
                }
                Err(error) => {
                    let is_told = !acceptor.is_members_affair(&self.identity, &error);
                    visitors.proving.swap_remove(index);
                    if is_told {
                        visitors.tell(self, address, &error);
                    }
                }
            }
        }
    }

    /// As [`TcpEndpoint::poll`], at most once in some milliseconds.
    pub(super) fn poll_rarely(&self) {
        let now = coarse_ms();
        if self.last_poll_ms.swap(now, Ordering::Relaxed) != now {
            self.poll();
        }
    }

    fn accept(&self, visitors: &mut Visitors) {
        for _ in 0..ACCEPTED_MAX {
            let (stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Who gave up already, or no descriptors left: those in line wait on.
                Err(_) => continue,
            };
            if visitors.proving.len() >= VISITORS_MAX {
                let silent = |(acceptor, ..): &(Acceptor, _, _)| !acceptor.has_greeted();
                let at = visitors.proving.iter().position(silent).unwrap_or(0);
                let (_, address, _) = visitors.proving.remove(at);
                visitors.tell(self, address, &io::Error::other("too many at once"));
            }
            let acceptor = stream
                .set_nonblocking(true)
                .and_then(|()| Acceptor::new(stream));
            if let Ok(acceptor) = acceptor {
                visitors.proving.push((acceptor, address, Instant::now()));
            }
        }
    }

    /// Decides about a proven connection. One that ends now concerns nobody else.
    fn admit(&self, mut acceptor: Acceptor, hello: &Hello) {
        let slot = self.slot(hello.from);
        let mut state = lock(&slot.state);
        let is_welcome = match hello.purpose {
            Purpose::Control => return,
            Purpose::Data => !state.is_up && (!state.is_dialing || hello.from < self.identity.rank),
            Purpose::DataMore => state.is_up && state.streams.len() < STREAMS_MAX,
        };
        let verdict = if is_welcome {
            Verdict::Accepted
        } else {
            Verdict::Mine
        };
        if acceptor.answer(verdict).is_err() || !is_welcome {
            return;
        }
        state.is_up = true;
        state.streams.push(acceptor.into_stream());
        slot.has_arrived.store(true, Ordering::Release);
    }

    /// What to sleep on to let others in.
    pub fn wait_on(&self, on: &mut Vec<(RawFd, c_short)>) {
        on.push((self.listener.as_raw_fd(), libc::POLLIN));
        let visitors = lock(&self.visitors);
        on.extend(
            visitors
                .proving
                .iter()
                .map(|(acceptor, ..)| (acceptor.stream().as_raw_fd(), libc::POLLIN)),
        );
    }
}

impl Slot {
    /// Streams that came in since the last call; the first of a peer's comes first.
    pub(super) fn take(&self) -> Vec<TcpStream> {
        if !self.has_arrived.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut state = lock(&self.state);
        self.has_arrived.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.streams)
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived.load(Ordering::Acquire)
    }

    /// Claims the right to connect; false if the peer has already.
    pub(super) fn begin_dial(&self) -> bool {
        let mut state = lock(&self.state);
        state.is_dialing = !state.is_up;
        state.is_dialing
    }

    pub(super) fn end_dial(&self, is_up: bool) {
        let mut state = lock(&self.state);
        state.is_dialing = false;
        state.is_up |= is_up;
    }
}

impl Visitors {
    fn tell(&mut self, endpoint: &TcpEndpoint, address: SocketAddr, why: &io::Error) {
        self.dropped += 1;
        if self.dropped <= TOLD_MAX || self.dropped.is_power_of_two() {
            crate::say(format_args!(
                "rlaunch: rank {} dropped connection {} to its data port {}, from {address}: {why}",
                endpoint.identity.rank, self.dropped, endpoint.port
            ));
        }
    }
}

/// A panic elsewhere leaves no state here half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// By a clock that costs next to nothing.
fn coarse_ms() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec; it can't fail for this clock, and a zero would only
    // delay a look.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}
