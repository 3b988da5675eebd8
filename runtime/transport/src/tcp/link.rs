//! How a connection gets its sockets: it connects when it has something to send, or takes what the
//! endpoint let in; later it adds sockets for large messages.

use std::ffi::c_short;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::dial::{Dial, Outcome};
use super::endpoint::{Slot, TcpEndpoint};
use super::handshake::Purpose;
use super::routes::{Route, Routes};
use crate::ConnectionError;

/// A peer and how it may be reached.
#[derive(Debug, Clone)]
pub struct TcpPeer {
    pub rank: u32,
    pub routes: Routes,
    /// Its data port.
    pub port: u16,
    /// Sockets for messages large enough to be spread.
    pub sockets: usize,
}

#[derive(Debug)]
pub(super) struct Link {
    endpoint: Arc<TcpEndpoint>,
    slot: Arc<Slot>,
    peer: TcpPeer,
    first: Option<Dial>,
    /// Not before this to be connected to: the peer is about to connect itself.
    resume_at: Option<Instant>,
    /// All routes failed; still the peer may find one to here until then.
    failed: Option<(String, Instant)>,
    has_dialed_first: bool,
    more: Vec<Dial>,
    /// When more sockets were first wanted; `None` again once they were begun.
    wanted_more_since: Option<Instant>,
    has_begun_more: bool,
    next_look: Instant,
}

/// A peer that said it connects itself and doesn't.
const RESUME_AFTER: Duration = Duration::from_millis(200);
/// For a peer that can reach this rank where this rank can't reach it.
const GRACE: Duration = Duration::from_millis(500);
/// Who was connected to leaves further sockets to who connected, unless nothing comes.
const MORE_PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks at sockets that are being made, in a busy wait.
const LOOK_PERIOD: Duration = Duration::from_micros(20);

impl Link {
    pub(super) fn new(endpoint: Arc<TcpEndpoint>, peer: TcpPeer) -> Self {
        let slot = endpoint.slot(peer.rank);
        Self {
            endpoint,
            slot,
            peer,
            first: None,
            resume_at: None,
            failed: None,
            has_dialed_first: false,
            more: Vec::new(),
            wanted_more_since: None,
            has_begun_more: false,
            next_look: Instant::now(),
        }
    }

    pub(super) fn endpoint(&self) -> &TcpEndpoint {
        &self.endpoint
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.slot.has_arrived()
    }

    /// While there is no socket: what came in or got through. Connects if `wanted`.
    pub(super) fn poll_first(&mut self, wanted: bool) -> Result<Vec<TcpStream>, ConnectionError> {
        let arrived = self.take_arrived();
        if !arrived.is_empty() {
            return Ok(arrived);
        }
        let now = Instant::now();
        // Neither is put off to the next look: who asks may sleep now, and has to sleep on the
        // sockets that this makes. A waiter that looks for a message and then sends always asks
        // twice within a look's time.
        let has_begun = self.first.is_none() && self.begin_first(wanted, now)?;
        if now < self.next_look && !has_begun {
            return Ok(Vec::new());
        }
        self.next_look = now + LOOK_PERIOD;
        self.endpoint.poll();
        let arrived = self.take_arrived();
        if !arrived.is_empty() {
            return Ok(arrived);
        }
        let Some(dial) = &mut self.first else {
            return Ok(Vec::new());
        };
        match dial.poll(&self.endpoint.identity) {
            Outcome::Pending => Ok(Vec::new()),
            Outcome::Connected(stream) => {
                self.first = None;
                self.has_dialed_first = true;
                self.slot.end_dial(true);
                Ok(vec![stream])
            }
            Outcome::Yielded => {
                self.first = None;
                self.slot.end_dial(false);
                self.resume_at = Some(now + RESUME_AFTER);
                Ok(Vec::new())
            }
            Outcome::Failed(last) => {
                self.first = None;
                self.slot.end_dial(false);
                self.failed = Some((last, now + GRACE));
                Ok(Vec::new())
            }
        }
    }

    /// What the endpoint let in; its sockets stand, whatever is being tried from here.
    fn take_arrived(&mut self) -> Vec<TcpStream> {
        let arrived = self.slot.take();
        if !arrived.is_empty() {
            self.first = None;
            self.slot.end_dial(true);
        }
        arrived
    }

    /// Begins to connect, if it is `wanted` and due.
    fn begin_first(&mut self, wanted: bool, now: Instant) -> Result<bool, ConnectionError> {
        if let Some((last, until)) = &self.failed
            && now > *until
        {
            return Err(self.unreachable(last.clone()));
        }
        let is_due = self.failed.is_none() && self.resume_at.is_none_or(|at| now >= at);
        if !wanted || !is_due || !self.slot.begin_dial() {
            return Ok(false);
        }
        let routes = self.peer.routes.first.clone();
        self.first = Some(Dial::new(self.peer.rank, Purpose::Data, routes));
        Ok(true)
    }

    fn unreachable(&self, last: String) -> ConnectionError {
        let routes = self.peer.routes.first.iter();
        ConnectionError::Unreachable {
            addresses: routes.map(|route| route.remote).collect(),
            last,
        }
    }

    /// Asks for the further sockets, once there is a first one.
    pub(super) fn want_more(&mut self, first: &TcpStream, have: usize) {
        if self.has_begun_more || have >= self.peer.sockets {
            return;
        }
        let since = *self.wanted_more_since.get_or_insert_with(Instant::now);
        if !self.has_dialed_first && since.elapsed() < MORE_PATIENCE {
            return;
        }
        self.has_begun_more = true;
        let Ok(address) = first.peer_addr() else {
            return;
        };
        for route in self.further_routes(address).take(self.peer.sockets - have) {
            let routes = vec![route];
            self.more
                .push(Dial::new(self.peer.rank, Purpose::DataMore, routes));
        }
    }

    /// Over the networks in turn, beginning behind the one that the first socket uses.
    fn further_routes(&self, first: SocketAddr) -> impl Iterator<Item = Route> + use<> {
        let address = first.ip().to_canonical();
        let mut rails = self.peer.routes.rails.clone();
        match rails.iter().position(|rail| rail.remote.ip() == address) {
            Some(at) => rails.rotate_left(at + 1),
            None if rails.is_empty() => rails.push(Route {
                remote: SocketAddr::from((address, self.peer.port)),
                local: None,
            }),
            None => {}
        }
        rails.into_iter().cycle()
    }

    /// Further sockets that came in or got through. One that can't be made is done without.
    pub(super) fn poll_more(&mut self) -> Vec<TcpStream> {
        let mut streams = self.slot.take();
        if self.more.is_empty() {
            return streams;
        }
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + LOOK_PERIOD;
            let identity = &self.endpoint.identity;
            self.more.retain_mut(|dial| match dial.poll(identity) {
                Outcome::Pending => true,
                Outcome::Connected(stream) => {
                    streams.push(stream);
                    false
                }
                Outcome::Yielded | Outcome::Failed(_) => false,
            });
        }
        streams
    }

    /// What to sleep on while there is no socket.
    pub(super) fn wait_on(&self, on: &mut Vec<(RawFd, c_short)>) {
        self.endpoint.wait_on(on);
        if let Some(dial) = &self.first {
            dial.wait_on(on);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.slot.end_dial(false);
    }
}
