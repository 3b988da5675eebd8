//! What every transport must do, run over each of them: the same bytes, in order, whatever the
//! length, the sink, and the pace of either side.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rlaunch_transport::shm::{Arena, ShmConnection};
use rlaunch_transport::tcp::handshake::Identity;
use rlaunch_transport::tcp::{TcpConnection, TcpPeer, TcpSetup, TcpSetupError, listen, setup};
use rlaunch_transport::{
    Connection, ConnectionError, Header, Incoming, Kind, Outgoing, Progress, Secret, Sink,
};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

type Pair = (Box<dyn Connection>, Box<dyn Connection>);

fn shm_pair() -> Pair {
    let arena = Arena::create(2).unwrap();
    (
        Box::new(ShmConnection::new(arena.clone(), 0, 1)),
        Box::new(ShmConnection::new(arena, 1, 0)),
    )
}

fn tcp_pair() -> Pair {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = listener.accept().unwrap().0;
    (
        Box::new(TcpConnection::new(one, SILENCE_MAX).unwrap()),
        Box::new(TcpConnection::new(other, SILENCE_MAX).unwrap()),
    )
}

type MakePair = fn() -> Pair;

const PAIRS: [(&str, MakePair); 2] = [("shm", shm_pair), ("tcp", tcp_pair)];

/// Around every border: the inline word, cache lines, pieces, the ring's and the buffer's size.
const LENGTHS: &[usize] = &[
    0, 1, 7, 8, 9, 16, 63, 64, 65, 100, 1000, 4095, 4096, 4104, 65_528, 65_536, 65_544, 131_071,
    131_072, 300_000, 524_288, 524_296, 1_000_003, 3_000_000,
];

fn header(sequence: u64, length: usize) -> Header {
    Header {
        descriptor: Descriptor {
            communicator: 0,
            sequence,
            collective: Collective::AllReduce,
            dtype: DType::F64,
            op: Some(Op::Sum),
            root: 0,
            count: length as u64,
        },
        length_bytes: length as u64,
        tag: sequence as u32,
        kind: Kind::Collective,
    }
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn send(connection: &mut dyn Connection, header: Header, payload: &[u8]) {
    let mut message = Outgoing::new(header, payload.as_ptr());
    let deadline = deadline();
    // SAFETY: the payload outlives the loop and has the header's length.
    while unsafe { connection.poll_send(&mut message) }.unwrap() != Progress::Done {
        assert!(Instant::now() < deadline, "a send got stuck");
        std::thread::yield_now();
    }
}

fn next_header(connection: &mut dyn Connection) -> Header {
    let deadline = deadline();
    loop {
        if let Some(header) = connection.poll_header().unwrap() {
            return header;
        }
        assert!(Instant::now() < deadline, "no header came");
        std::thread::yield_now();
    }
}

fn receive(connection: &mut dyn Connection, sink: Sink) {
    let mut incoming = Incoming::new(sink);
    let deadline = deadline();
    // SAFETY: the callers' sinks have room for the message.
    while unsafe { connection.poll_payload(&mut incoming) }.unwrap() != Progress::Done {
        assert!(Instant::now() < deadline, "a payload got stuck");
        std::thread::yield_now();
    }
}

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (index * 31 + seed * 7 + index / 251) as u8)
        .collect()
}

#[test]
fn every_length_arrives_as_it_was_sent() {
    for (name, pair) in PAIRS {
        let (mut sender, mut receiver) = pair();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (number, length) in LENGTHS.iter().enumerate() {
                    let payload = bytes(*length, number);
                    send(&mut *sender, header(number as u64, *length), &payload);
                }
            });
            for (number, length) in LENGTHS.iter().enumerate() {
                let expected = header(number as u64, *length);
                assert_eq!(next_header(&mut *receiver), expected, "{name}");
                // It stays until the payload is taken.
                assert_eq!(receiver.poll_header().unwrap(), Some(expected), "{name}");
                let mut place = vec![0u8; *length];
                let streaming = number % 2 == 1;
                receive(
                    &mut *receiver,
                    Sink::Copy {
                        to: place.as_mut_ptr(),
                        streaming,
                    },
                );
                assert_eq!(place, bytes(*length, number), "{name}, {length} bytes");
            }
            assert!(receiver.poll_header().unwrap().is_none(), "{name}");
        });
    }
}

#[test]
fn reductions_take_every_element_once() {
    for (name, pair) in PAIRS {
        let (mut sender, mut receiver) = pair();
        std::thread::scope(|scope| {
            // An odd number of 4-byte elements before the 8-byte ones shifts their alignment.
            scope.spawn(|| {
                for (number, length) in LENGTHS.iter().enumerate() {
                    let (odd, count) = ([number as u8; 4], length / 8);
                    send(&mut *sender, header(0, 4), &odd);
                    let payload: Vec<u8> = (0..count)
                        .flat_map(|index| (index as f64).to_ne_bytes())
                        .collect();
                    send(&mut *sender, header(number as u64, count * 8), &payload);
                }
            });
            for length in LENGTHS {
                next_header(&mut *receiver);
                let mut odd = [0u8; 4];
                receive(
                    &mut *receiver,
                    Sink::Copy {
                        to: odd.as_mut_ptr(),
                        streaming: false,
                    },
                );
                next_header(&mut *receiver);
                let local: Vec<f64> = (0..length / 8).map(|index| index as f64 * 0.5).collect();
                let mut place = vec![-1.0f64; length / 8];
                receive(
                    &mut *receiver,
                    Sink::Reduce {
                        dtype: DType::F64,
                        op: Op::Sum,
                        local: local.as_ptr().cast(),
                        to: place.as_mut_ptr().cast(),
                    },
                );
                let expected = (0..length / 8).map(|index| index as f64 * 1.5);
                assert!(place.iter().copied().eq(expected), "{name}, {length} bytes");
            }
        });
    }
}

/// After a failed operation either side may have stopped in the middle of a message.
#[test]
fn a_message_given_up_halfway_leaves_the_next_one_whole() {
    const LENGTH: usize = 3_000_000;
    for (name, pair) in PAIRS {
        let (mut sender, mut receiver) = pair();
        let mut half = vec![7u8; LENGTH];
        let mut message = Outgoing::new(header(0, LENGTH), half.as_ptr());
        // SAFETY: the payload outlives this poll and has the header's length.
        unsafe { sender.poll_send(&mut message) }.unwrap();
        assert!(message.is_begun(), "{name}");
        message.abandon();
        half.fill(9);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let deadline = deadline();
                // SAFETY: what is abandoned is not read.
                while unsafe { sender.poll_send(&mut message) }.unwrap() != Progress::Done {
                    assert!(Instant::now() < deadline, "{name}: the filler got stuck");
                    std::thread::yield_now();
                }
                send(&mut *sender, header(1, 4), &[1, 2, 3, 4]);
            });
            assert_eq!(next_header(&mut *receiver), header(0, LENGTH), "{name}");
            receive(&mut *receiver, Sink::Discard);
            assert_eq!(next_header(&mut *receiver), header(1, 4), "{name}");
            let mut place = [0u8; 4];
            let to = place.as_mut_ptr();
            let streaming = false;
            receive(&mut *receiver, Sink::Copy { to, streaming });
            assert_eq!(place, [1, 2, 3, 4], "{name}");
        });
    }
}

#[test]
fn many_small_messages_wait_for_a_slow_receiver() {
    const MESSAGES: u64 = 2000;
    for (name, pair) in PAIRS {
        let (mut sender, mut receiver) = pair();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    send(&mut *sender, header(number, 8), &number.to_le_bytes());
                }
            });
            for number in 0..MESSAGES {
                if number % 500 == 0 {
                    std::thread::sleep(Duration::from_millis(3));
                }
                assert_eq!(
                    next_header(&mut *receiver).descriptor.sequence,
                    number,
                    "{name}"
                );
                let mut place = [0u8; 8];
                receive(
                    &mut *receiver,
                    Sink::Copy {
                        to: place.as_mut_ptr(),
                        streaming: false,
                    },
                );
                assert_eq!(u64::from_le_bytes(place), number, "{name}");
            }
        });
    }
}

#[test]
fn both_directions_at_once_do_not_block_each_other() {
    const LENGTH: usize = 4_000_000;
    for (name, pair) in PAIRS {
        let (one, other) = pair();
        std::thread::scope(|scope| {
            for (mut connection, seed) in [(one, 1), (other, 2)] {
                scope.spawn(move || {
                    let payload = bytes(LENGTH, seed);
                    let mut place = vec![0u8; LENGTH];
                    let mut message = Outgoing::new(header(0, LENGTH), payload.as_ptr());
                    let sink = Sink::Copy {
                        to: place.as_mut_ptr(),
                        streaming: true,
                    };
                    let mut incoming = Incoming::new(sink);
                    let (mut sent, mut received) = (false, false);
                    let deadline = deadline();
                    while !(sent && received) {
                        assert!(Instant::now() < deadline, "{name} got stuck");
                        if !sent {
                            // SAFETY: the payload outlives the loop.
                            let progress = unsafe { connection.poll_send(&mut message) };
                            sent = progress.unwrap() == Progress::Done;
                        }
                        if !received && connection.poll_header().unwrap().is_some() {
                            // SAFETY: the place has room for the message.
                            let progress = unsafe { connection.poll_payload(&mut incoming) };
                            received = progress.unwrap() == Progress::Done;
                        }
                    }
                    assert!(place == bytes(LENGTH, 3 - seed), "{name}");
                });
            }
        });
    }
}

#[test]
fn what_was_sent_before_a_close_arrives() {
    for (name, pair) in PAIRS {
        let (mut sender, mut receiver) = pair();
        let payload = bytes(50_000, 5);
        send(&mut *sender, header(3, payload.len()), &payload);
        let deadline = deadline();
        while sender.poll_close().unwrap() != Progress::Done {
            assert!(Instant::now() < deadline, "{name}");
        }
        drop(sender);
        next_header(&mut *receiver);
        let mut place = vec![0u8; payload.len()];
        receive(
            &mut *receiver,
            Sink::Copy {
                to: place.as_mut_ptr(),
                streaming: false,
            },
        );
        assert!(place == payload, "{name}");
    }
}

#[test]
fn capabilities_are_kept() {
    for (name, pair) in PAIRS {
        let (mut one, _other) = pair();
        let capabilities = one.capabilities();
        assert_eq!(capabilities.name, name);
        assert_eq!(one.one_sided().is_some(), capabilities.one_sided);
        assert_eq!(capabilities.completion.is_some(), capabilities.one_sided);
    }
}

#[test]
fn a_tcp_peer_that_ends_is_an_error_and_garbage_too() {
    let (one, mut other) = tcp_pair();
    drop(one);
    let deadline = deadline();
    let error = loop {
        assert!(Instant::now() < deadline);
        if let Err(error) = other.poll_header() {
            break error;
        }
    };
    assert!(matches!(error, ConnectionError::Closed), "{error}");

    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut connection = TcpConnection::new(listener.accept().unwrap().0, SILENCE_MAX).unwrap();
    stream.write_all(&[0xAB; 64]).unwrap();
    let error = loop {
        assert!(Instant::now() < deadline);
        if let Err(error) = connection.poll_header() {
            break error;
        }
    };
    assert!(matches!(error, ConnectionError::Malformed(_)), "{error}");
}

fn identity(rank: u32, secret: &[u8]) -> Identity {
    Identity {
        secret: Secret::new(secret),
        job: [9; 16],
        rank,
    }
}

/// Longer than any test runs.
const SILENCE_MAX: Duration = Duration::from_secs(30);

fn tcp_setup(rank: u32, secret: &[u8], peers: &[(u32, Vec<SocketAddr>)], seconds: f64) -> TcpSetup {
    let peers = peers.iter().map(|(rank, addresses)| TcpPeer {
        rank: *rank,
        addresses: addresses.clone(),
    });
    TcpSetup {
        identity: identity(rank, secret),
        peers: peers.collect(),
        deadline: Instant::now() + Duration::from_secs_f64(seconds),
        silence_max: SILENCE_MAX,
    }
}

fn local(listener: &TcpListener) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()))
}

/// Rank 2 tries an address of rank 1 first when it wants rank 0, as on two hosts with one docker0.
#[test]
fn a_wrong_rank_at_an_address_is_found_out_and_the_next_one_tried() {
    let (zero, one, two) = (listen().unwrap(), listen().unwrap(), listen().unwrap());
    let (at_zero, at_one, at_two) = (local(&zero), local(&one), local(&two));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let peers = [(1, vec![at_one]), (2, vec![at_two])];
            assert_eq!(
                setup(&tcp_setup(0, b"s", &peers, 10.0), &zero)
                    .unwrap()
                    .len(),
                2
            );
        });
        scope.spawn(move || {
            let peers = [(0, vec![at_two, at_zero]), (2, vec![at_two])];
            assert_eq!(
                setup(&tcp_setup(1, b"s", &peers, 10.0), &one)
                    .unwrap()
                    .len(),
                2
            );
        });
        let peers = [(0, vec![at_one, at_zero]), (1, vec![at_zero, at_one])];
        assert_eq!(
            setup(&tcp_setup(2, b"s", &peers, 10.0), &two)
                .unwrap()
                .len(),
            2
        );
    });
}

#[test]
fn strangers_at_the_data_port_change_nothing() {
    let (zero, one) = (listen().unwrap(), listen().unwrap());
    let (at_zero, at_one) = (local(&zero), local(&one));
    let mut garbage = TcpStream::connect(at_zero).unwrap();
    garbage.write_all(&[7; 500]).unwrap();
    let _silent = TcpStream::connect(at_zero).unwrap();
    std::thread::scope(|scope| {
        let zero = scope.spawn(move || {
            setup(&tcp_setup(0, b"right", &[(1, vec![at_one])], 10.0), &zero).map(|all| all.len())
        });
        let wrong = setup(&tcp_setup(1, b"wrong", &[(0, vec![at_zero])], 0.3), &one);
        assert!(
            matches!(wrong, Err(TcpSetupError::Unreachable { rank: 0, .. })),
            "{wrong:?}"
        );
        setup(&tcp_setup(1, b"right", &[(0, vec![at_zero])], 10.0), &one).unwrap();
        assert_eq!(zero.join().unwrap().unwrap(), 1);
    });
}

#[test]
fn absent_peers_are_named() {
    let zero = listen().unwrap();
    let result = setup(
        &tcp_setup(0, b"s", &[(1, Vec::new()), (2, Vec::new())], 0.1),
        &zero,
    );
    assert!(
        matches!(&result, Err(TcpSetupError::Missing { missing }) if *missing == [1, 2]),
        "{result:?}"
    );
}
