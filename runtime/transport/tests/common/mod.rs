//! What the transport's tests share: pairs of connections, and blocking calls on them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_transport::tcp::handshake::Identity;
use rlaunch_transport::tcp::{Family, Route, Routes, TcpConnection, TcpEndpoint, TcpPeer, listen};
use rlaunch_transport::{Connection, Header, Incoming, Kind, Outgoing, Progress, Secret, Sink};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

pub(crate) type Pair = (Box<dyn Connection>, Box<dyn Connection>);

pub(crate) const LOOPBACK_V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const LOOPBACK_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Longer than any test runs.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(30);

pub(crate) fn identity(rank: u32, secret: &[u8]) -> Identity {
    Identity {
        secret: Secret::new(secret),
        job: [9; 16],
        rank,
    }
}

pub(crate) fn endpoint(rank: u32, secret: &[u8]) -> Arc<TcpEndpoint> {
    let listener = listen(Family::Any, None).unwrap();
    Arc::new(TcpEndpoint::new(listener, identity(rank, secret), SILENCE_MAX).unwrap())
}

pub(crate) fn at(endpoint: &TcpEndpoint, address: IpAddr) -> SocketAddr {
    SocketAddr::from((address, endpoint.port()))
}

/// The peer of `rank`, tried at these addresses in turn.
pub(crate) fn peer(rank: u32, addresses: &[SocketAddr], sockets: usize) -> TcpPeer {
    let first = addresses.iter().map(|remote| Route {
        remote: *remote,
        local: None,
    });
    TcpPeer {
        rank,
        routes: Routes {
            first: first.collect(),
            rails: Vec::new(),
        },
        port: addresses.last().map_or(0, SocketAddr::port),
        sockets,
    }
}

/// Ranks 0 and 1, not connected yet.
pub(crate) fn unconnected(address: IpAddr, sockets: usize) -> (TcpConnection, TcpConnection) {
    let (zero, one) = (endpoint(0, b"s"), endpoint(1, b"s"));
    let to_zero = peer(0, &[at(&zero, address)], sockets);
    let to_one = peer(1, &[at(&one, address)], sockets);
    (
        TcpConnection::new(zero, to_one),
        TcpConnection::new(one, to_zero),
    )
}

/// The same, connected by one of them.
pub(crate) fn connected(address: IpAddr, sockets: usize) -> (TcpConnection, TcpConnection) {
    let (mut one, mut other) = unconnected(address, sockets);
    let deadline = deadline();
    while one.poll_connect().unwrap() != Progress::Done || !other.is_connected() {
        assert!(Instant::now() < deadline, "two ranks don't connect");
        assert!(other.poll_header().unwrap().is_none());
    }
    (one, other)
}

pub(crate) fn boxed((one, other): (TcpConnection, TcpConnection)) -> Pair {
    (Box::new(one), Box::new(other))
}

pub(crate) fn header(sequence: u64, length: usize) -> Header {
    Header {
        descriptor: Descriptor {
            communicator: 0,
            sequence,
            collective: Collective::AllReduce,
            dtype: DType::F64,
            op: Some(Op::Sum),
            root: 0,
            digest: 0,
            count: length as u64,
        },
        length_bytes: length as u64,
        tag: sequence as u32,
        kind: Kind::Collective,
    }
}

pub(crate) fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

pub(crate) fn send(connection: &mut dyn Connection, header: Header, payload: &[u8]) {
    let mut message = Outgoing::new(header, payload.as_ptr());
    let deadline = deadline();
    // SAFETY: the payload outlives the loop and has the header's length.
    while unsafe { connection.poll_send(&mut message) }.unwrap() != Progress::Done {
        assert!(Instant::now() < deadline, "a send got stuck");
        std::thread::yield_now();
    }
}

pub(crate) fn next_header(connection: &mut dyn Connection) -> Header {
    let deadline = deadline();
    loop {
        if let Some(header) = connection.poll_header().unwrap() {
            return header;
        }
        assert!(Instant::now() < deadline, "no header came");
        std::thread::yield_now();
    }
}

pub(crate) fn receive(connection: &mut dyn Connection, sink: Sink) {
    let mut incoming = Incoming::new(sink);
    let deadline = deadline();
    // SAFETY: the callers' sinks have room for the message.
    while unsafe { connection.poll_payload(&mut incoming) }.unwrap() != Progress::Done {
        assert!(Instant::now() < deadline, "a payload got stuck");
        std::thread::yield_now();
    }
}

pub(crate) fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index * 31 + seed * 7 + index / 251) as u8)
        .collect()
}
