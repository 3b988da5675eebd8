//! What every transport must do, run over each of them: the same bytes, in order, whatever the
//! length, the sink, and the pace of either side.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{
    LOOPBACK_V4, LOOPBACK_V6, Pair, boxed, bytes, connected, deadline, header, next_header,
    receive, send, unconnected,
};
use rlaunch_transport::shm::{Arena, ShmConnection};
use rlaunch_transport::{Incoming, Outgoing, Progress, Sink};
use rlaunch_wire::{DType, Op};

fn shm_pair() -> Pair {
    let arena = Arena::create(2).unwrap();
    (
        Box::new(ShmConnection::new(arena.clone(), 0, 1)),
        Box::new(ShmConnection::new(arena, 1, 0)),
    )
}

fn tcp_pair() -> Pair {
    boxed(connected(LOOPBACK_V4, 1))
}

fn four_sockets() -> Pair {
    boxed(connected(LOOPBACK_V4, 4))
}

fn ipv6() -> Pair {
    boxed(connected(LOOPBACK_V6, 2))
}

/// Connected by its first message; the receiver has to look for it.
fn lazy() -> Pair {
    boxed(unconnected(LOOPBACK_V4, 4))
}

type MakePair = fn() -> Pair;

const PAIRS: [(&str, MakePair); 4] = [
    ("shm", shm_pair),
    ("tcp", tcp_pair),
    ("tcp, 4 sockets", four_sockets),
    ("tcp, IPv6", ipv6),
];

/// Those and one for tests whose receiver runs while something is being sent.
fn all_pairs() -> impl Iterator<Item = (&'static str, MakePair)> {
    let lazy: (&str, MakePair) = ("tcp, lazy", lazy);
    PAIRS.into_iter().chain([lazy])
}

/// Around every border: the inline word, cache lines, pieces, the ring's and the buffer's size.
const LENGTHS: &[usize] = &[
    0, 1, 7, 8, 9, 16, 63, 64, 65, 100, 1000, 4095, 4096, 4104, 65_528, 65_536, 65_544, 131_071,
    131_072, 300_000, 524_288, 524_296, 1_000_003, 3_000_000,
];

#[test]
fn every_length_arrives_as_it_was_sent() {
    for (name, pair) in all_pairs() {
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
    for (name, pair) in all_pairs() {
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
                        payload_first: false,
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
    for (name, pair) in all_pairs() {
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
    for (name, pair) in all_pairs() {
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
        assert_eq!(name.split(',').next(), Some(capabilities.name));
        assert_eq!(one.one_sided().is_some(), capabilities.one_sided);
        assert_eq!(capabilities.completion.is_some(), capabilities.one_sided);
    }
}
