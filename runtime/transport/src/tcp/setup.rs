//! Connects this rank with all its TCP peers: to lower ranks it connects, from higher ones it
//! accepts, all at once in one poll loop, so that no order of arrival can block.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::TcpConnection;
use super::handshake::{Acceptor, Connector, Identity};

/// A peer and where it may be reached, best first.
#[derive(Debug, Clone)]
pub struct TcpPeer {
    pub rank: u32,
    pub addresses: Vec<SocketAddr>,
}

#[derive(Debug, Clone)]
pub struct TcpSetup {
    pub identity: Identity,
    pub peers: Vec<TcpPeer>,
    pub deadline: Instant,
    /// Sent bytes that stay unacknowledged for this long end a connection.
    pub silence_max: Duration,
}

/// Why not all peers are connected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TcpSetupError {
    /// A firewall, or no route between the hosts.
    #[error(
        "rank {rank} can't be reached at any of {addresses:?} (last: {last}); hint: open the \
             ports between the hosts, or check their routes"
    )]
    Unreachable {
        rank: u32,
        addresses: Vec<SocketAddr>,
        last: String,
    },
    #[error("ranks {missing:?} did not connect to this rank in time")]
    Missing { missing: Vec<u32> },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One attempt to connect or to be proven.
const ATTEMPT_MAX: Duration = Duration::from_secs(3);
/// Unproven connections at a time; more are left in the kernel's queue.
const PENDING_MAX: usize = 256;
const BACKLOG: i32 = 1024;
/// A host that vanished is noticed this soon although nothing is being sent.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Listens on a port of the system's choice, for IPv6 and IPv4 where the system has both.
pub fn listen() -> io::Result<TcpListener> {
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    bind(any).or_else(|_| bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Addresses of this host's interfaces that are up: others first, loopback last. Link-local IPv6
/// is left out, since its scope means nothing on another host.
pub fn local_addresses() -> io::Result<Vec<IpAddr>> {
    let mut addresses = Vec::new();
    for interface in nix::ifaddrs::getifaddrs()? {
        if !interface
            .flags
            .contains(nix::net::if_::InterfaceFlags::IFF_UP)
        {
            continue;
        }
        let Some(address) = interface.address else {
            continue;
        };
        if let Some(v4) = address.as_sockaddr_in() {
            addresses.push(IpAddr::V4(v4.ip()));
        } else if let Some(v6) = address.as_sockaddr_in6()
            && !v6.ip().is_unicast_link_local()
        {
            addresses.push(IpAddr::V6(v6.ip()));
        }
    }
    addresses.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    addresses.dedup();
    Ok(addresses)
}

/// Connects with all peers; returns the connections in the order of `peers`.
pub fn setup(
    setup: &TcpSetup,
    listener: &TcpListener,
) -> Result<Vec<TcpConnection>, TcpSetupError> {
    listener.set_nonblocking(true)?;
    let mut mesh = Mesh::new(setup);
    while !mesh.is_complete() {
        if Instant::now() >= setup.deadline {
            return Err(mesh.failure());
        }
        mesh.accept(listener)?;
        mesh.poll_acceptors();
        mesh.poll_connectors();
        if !mesh.is_complete() {
            mesh.wait(listener)?;
        }
    }
    let mut connections = Vec::with_capacity(setup.peers.len());
    for stream in mesh.established {
        connections.push(TcpConnection::new(
            stream.expect("the mesh is complete"),
            setup.silence_max,
        )?);
    }
    Ok(connections)
}

/// Everything under way.
struct Mesh<'a> {
    setup: &'a TcpSetup,
    established: Vec<Option<TcpStream>>,
    connecting: Vec<Attempt>,
    accepting: Vec<(Acceptor, Instant)>,
}

/// Getting through to one lower rank.
struct Attempt {
    peer: usize,
    next_address: usize,
    begun: Instant,
    stage: Stage,
    last: String,
}

/// Of [`Stage`].
const STAGES: usize = 3;

enum Stage {
    Resting,
    Connecting(TcpStream),
    Proving(Connector),
}

impl<'a> Mesh<'a> {
    fn new(setup: &'a TcpSetup) -> Self {
        let now = Instant::now();
        let connecting = (0..setup.peers.len())
            .filter(|peer| setup.peers[*peer].rank < setup.identity.rank)
            .map(|peer| Attempt {
                peer,
                next_address: 0,
                begun: now,
                stage: Stage::Resting,
                last: "not tried".into(),
            })
            .collect();
        let established = setup.peers.iter().map(|_| None).collect();
        Self {
            setup,
            established,
            connecting,
            accepting: Vec::new(),
        }
    }

    fn is_complete(&self) -> bool {
        self.established.iter().all(Option::is_some)
    }

    fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        while self.accepting.len() < PENDING_MAX {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    self.accepting
                        .push((Acceptor::new(stream)?, Instant::now()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The stranger gave up already.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn poll_acceptors(&mut self) {
        let mut still = Vec::new();
        for (mut acceptor, begun) in self.accepting.drain(..) {
            match acceptor.poll(&self.setup.identity) {
                Ok(Some(rank)) => {
                    let peer = self.setup.peers.iter().position(|peer| peer.rank == rank);
                    // A proven peer that connects again gave up on its earlier try.
                    if let Some(peer) = peer {
                        self.established[peer] = Some(acceptor.into_stream());
                    }
                }
                Ok(None) if begun.elapsed() < ATTEMPT_MAX => still.push((acceptor, begun)),
                // Strangers, the silent and the garbled: dropped.
                Ok(None) | Err(_) => {}
            }
        }
        self.accepting = still;
    }

    fn poll_connectors(&mut self) {
        let mut still = Vec::new();
        for mut attempt in self.connecting.drain(..) {
            match attempt.poll(self.setup) {
                Some(stream) => self.established[attempt.peer] = Some(stream),
                None => still.push(attempt),
            }
        }
        self.connecting = still;
    }

    fn wait(&self, listener: &TcpListener) -> io::Result<()> {
        // Attempts that rest are tried again after this.
        const PERIOD: u16 = 20;
        let mut entries = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        for (acceptor, _) in &self.accepting {
            entries.push(PollFd::new(acceptor.stream().as_fd(), PollFlags::POLLIN));
        }
        for attempt in &self.connecting {
            if let Some((descriptor, flags)) = attempt.interest() {
                entries.push(PollFd::new(descriptor, flags));
            }
        }
        match poll(&mut entries, PollTimeout::from(PERIOD)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn failure(&self) -> TcpSetupError {
        if let Some(attempt) = self.connecting.first() {
            let peer = &self.setup.peers[attempt.peer];
            return TcpSetupError::Unreachable {
                rank: peer.rank,
                addresses: peer.addresses.clone(),
                last: attempt.last.clone(),
            };
        }
        let missing = self.setup.peers.iter().zip(&self.established);
        let missing = missing
            .filter(|(_, stream)| stream.is_none())
            .map(|(peer, _)| peer.rank);
        TcpSetupError::Missing {
            missing: missing.collect(),
        }
    }
}

impl Attempt {
    /// Does what can be done now; the proven stream at the end.
    fn poll(&mut self, setup: &TcpSetup) -> Option<TcpStream> {
        if !matches!(self.stage, Stage::Resting) && self.begun.elapsed() > ATTEMPT_MAX {
            self.last = "no answer".into();
            self.stage = Stage::Resting;
        }
        // Each stage leads to the next at once where it can; only then is there something to wait
        // for.
        for _ in 0..STAGES {
            match self.step(setup) {
                Ok(None) => {}
                Ok(stream) => return stream,
                Err(error) => {
                    self.last = error.to_string();
                    self.stage = Stage::Resting;
                    return None;
                }
            }
        }
        None
    }

    fn step(&mut self, setup: &TcpSetup) -> io::Result<Option<TcpStream>> {
        let peer = &setup.peers[self.peer];
        match std::mem::replace(&mut self.stage, Stage::Resting) {
            Stage::Resting => {
                let Some(count) = std::num::NonZeroUsize::new(peer.addresses.len()) else {
                    return Err(io::Error::other("it has no address"));
                };
                let address = peer.addresses[self.next_address % count];
                self.next_address += 1;
                self.begun = Instant::now();
                self.stage = Stage::Connecting(begin_connect(address)?);
            }
            Stage::Connecting(stream) => match is_connected(&stream)? {
                true => {
                    let connector = Connector::new(stream, &setup.identity, peer.rank)?;
                    self.stage = Stage::Proving(connector);
                }
                false => self.stage = Stage::Connecting(stream),
            },
            Stage::Proving(mut connector) => match connector.poll(&setup.identity)? {
                Some(()) => return Ok(Some(connector.into_stream())),
                None => self.stage = Stage::Proving(connector),
            },
        }
        Ok(None)
    }

    fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.stage {
            Stage::Resting => None,
            Stage::Connecting(stream) => Some((stream.as_fd(), PollFlags::POLLOUT)),
            Stage::Proving(connector) => Some((connector.stream().as_fd(), PollFlags::POLLIN)),
        }
    }
}

fn begin_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(address)) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

fn is_connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// What every established connection gets.
pub(super) fn tune(stream: &TcpStream, silence_max: Duration) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 2)
        .with_retries(4);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(silence_max))
}
