//! Send and recv: tags, sizes on both sides of eager, self, and both directions at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::{DType, Error, Source, Tag};

/// Around the borders: inline, eager, one piece, the ring.
const LENGTHS: [usize; 11] = [
    0, 1, 8, 9, 1000, 16_383, 16_384, 16_385, 65_537, 600_001, 2_000_003,
];

#[test]
fn tags_match_out_of_order() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            if world.rank() == 0 {
                for tag in 0..5u32 {
                    world.send(&[i64::from(tag); 10], 1, tag).unwrap();
                }
            } else {
                for tag in [3u32, 0, 4, 1, 2] {
                    let mut buffer = [0i64; 10];
                    world.recv(&mut buffer, 0, tag).unwrap();
                    assert_eq!(buffer, [i64::from(tag); 10]);
                }
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn one_tag_keeps_its_order_across_sizes() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            for (index, length) in LENGTHS.into_iter().enumerate() {
                let value = index as u8 + 1;
                if world.rank() == 0 {
                    world.send(&vec![value; length], 1, 9).unwrap();
                } else {
                    let mut buffer = vec![0u8; length];
                    world.recv(&mut buffer, 0, 9).unwrap();
                    assert!(buffer.iter().all(|got| *got == value), "message {index}");
                }
            }
            world.finalize().unwrap();
        });
    }
}

/// The first message that was sent is taken, be it of any tag, source or size.
#[test]
fn any_tag_and_any_source_take_what_came_first() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let me = world.rank();
            if me > 0 {
                for (number, length) in LENGTHS.into_iter().enumerate() {
                    let buffer = vec![me as u8; length];
                    world.send(&buffer, 0, number as u32).unwrap();
                }
            } else {
                let mut next = [0usize; 3];
                let mut buffer = vec![0u8; 2_000_003];
                for _ in 0..2 * LENGTHS.len() {
                    let status = world.recv(&mut buffer, Source::Any, Tag::Any).unwrap();
                    let number = &mut next[status.source as usize];
                    assert_eq!(status.tag as usize, *number, "from {}", status.source);
                    assert_eq!(status.count, LENGTHS[*number]);
                    assert_eq!(status.dtype, Some(DType::U8));
                    let message = &buffer[..status.count];
                    assert!(message.iter().all(|got| *got == status.source as u8));
                    *number += 1;
                }
            }
            world.barrier().unwrap();
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_shorter_message_leaves_the_rest_of_the_buffer_alone() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            for length in LENGTHS {
                if world.rank() == 0 {
                    world.send(&vec![3u8; length], 1, 0).unwrap();
                } else {
                    let mut buffer = vec![7u8; length + 10];
                    let status = world.recv(&mut buffer, 0, 0).unwrap();
                    assert_eq!((status.source, status.count), (0, length));
                    assert!(buffer[..length].iter().all(|got| *got == 3));
                    assert!(buffer[length..].iter().all(|got| *got == 7));
                }
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn more_eager_messages_than_credit_are_delivered() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            const MESSAGES: i32 = 3000;
            if world.rank() == 0 {
                for number in 0..MESSAGES {
                    world.send(&[number; 100], 1, 0).unwrap();
                }
            } else {
                for number in 0..MESSAGES {
                    let mut buffer = [0i32; 100];
                    world.recv(&mut buffer, 0, 0).unwrap();
                    assert_eq!(buffer, [number; 100]);
                }
            }
            world.barrier().unwrap();
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_ring_of_eager_sends_does_not_block() {
    for transports in [SHM, TCP] {
        ranks(&config(4, transports), |world| {
            let (rank, size) = (world.rank(), world.size());
            for round in 0..20i32 {
                world.send(&[round; 1000], (rank + 1) % size, 0).unwrap();
                let mut buffer = [0i32; 1000];
                world
                    .recv(&mut buffer, (rank + size - 1) % size, 0)
                    .unwrap();
                assert_eq!(buffer, [round; 1000]);
                let mut sum = [round];
                world
                    .all_reduce(&mut sum, rlaunch_runtime::Op::Sum)
                    .unwrap();
                assert_eq!(sum, [round * size as i32]);
            }
            world.finalize().unwrap();
        });
    }
}

/// Every rank sends to every rank, itself included, in an order that would deadlock one by one.
#[test]
fn a_group_can_not_deadlock() {
    for transports in [SHM, TCP] {
        ranks(&config(4, transports), |world| {
            let (me, size) = (world.rank(), world.size());
            for length in LENGTHS {
                let sent = vec![me as u8; length];
                let mut received = vec![vec![9u8; length]; size as usize];
                let statuses = world
                    .group(|group| {
                        for peer in 0..size {
                            group.send(&sent, peer, me);
                        }
                        for (peer, buffer) in received.iter_mut().enumerate() {
                            group.recv(buffer, peer as u32, peer as u32);
                        }
                    })
                    .unwrap();
                for (peer, (buffer, status)) in received.iter().zip(statuses).enumerate() {
                    assert_eq!((status.source, status.count), (peer as u32, length));
                    assert!(buffer.iter().all(|got| *got == peer as u8), "{length}");
                }
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn sendrecv_goes_round_a_ring() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let (me, size) = (world.rank(), world.size());
            let (right, left) = ((me + 1) % size, (me + size - 1) % size);
            for length in [1usize, 300_000] {
                let mine = vec![me; length];
                let mut theirs = vec![99u32; length];
                let status = world
                    .sendrecv((&mine, right, 5), (&mut theirs, left, 5))
                    .unwrap();
                assert_eq!(status.source, left);
                assert!(theirs.iter().all(|got| *got == left));
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_rank_can_send_to_itself() {
    ranks(&config(2, SHM), |world| {
        let me = world.rank();
        world.send(&[1.0f32, 2.0], me, 1).unwrap();
        world.send(&[3.0f32], me, 2).unwrap();
        // Far over what is eager: kept until it is received.
        world.send(&vec![4.0f32; 1 << 20], me, 3).unwrap();
        let (mut two, mut one) = ([0.0f32; 2], [0.0f32]);
        world.recv(&mut one, me, 2).unwrap();
        world.recv(&mut two, me, 1).unwrap();
        assert_eq!((two, one), ([1.0, 2.0], [3.0]));
        let mut large = vec![0.0f32; 1 << 20];
        let status = world.recv(&mut large, Source::Any, Tag::Any).unwrap();
        assert_eq!((status.source, status.tag), (me, 3));
        assert!(large.iter().all(|got| *got == 4.0));
        // With the receive posted first, and with the send started first.
        for recv_first in [true, false] {
            let start_recv = || world.start_recv(vec![0u16; 100_000], me, 4).unwrap();
            let start_send = || world.start_send(vec![7u16; 100_000], me, 4).unwrap();
            let (sent, received) = if recv_first {
                let recv = start_recv();
                (start_send(), recv)
            } else {
                (start_send(), start_recv())
            };
            assert!(received.wait().unwrap().iter().all(|got| *got == 7));
            sent.wait().unwrap();
        }
        assert!(matches!(world.send(&one, 7, 2), Err(Error::Argument(_))));
        world.barrier().unwrap();
        world.finalize().unwrap();
    });
}

#[test]
fn started_operations_complete_in_any_order() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            const MESSAGES: u32 = 60;
            let peer = 1 - world.rank();
            let length = |tag: u32| LENGTHS[tag as usize % 9];
            let recvs: Vec<_> = (0..MESSAGES)
                .map(|tag| world.start_recv(vec![0u8; length(tag)], peer, tag).unwrap())
                .collect();
            let sends: Vec<_> = (0..MESSAGES)
                .rev()
                .map(|tag| {
                    let buffer = vec![tag as u8; length(tag)];
                    world.start_send(buffer, peer, tag).unwrap()
                })
                .collect();
            for (tag, recv) in recvs.into_iter().enumerate() {
                let buffer = recv.wait().unwrap();
                assert!(buffer.iter().all(|got| *got == tag as u8), "tag {tag}");
            }
            for send in sends {
                send.wait().unwrap();
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_probe_tells_what_a_receive_would_take() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            for length in LENGTHS {
                if world.rank() == 0 {
                    let first = world.start_send(vec![1u8; length], 1, 4).unwrap();
                    world.send(&[length as u64], 1, 5).unwrap();
                    first.wait().unwrap();
                } else {
                    let status = world.probe(Source::Any, 5).unwrap();
                    assert_eq!((status.count, status.dtype), (1, Some(DType::U64)));
                    let status = world.try_probe(0, Tag::Any).unwrap().unwrap();
                    assert_eq!((status.tag, status.count), (4, length));
                    assert_eq!(world.try_probe(0, 6).unwrap(), None);
                    let mut buffer = vec![0u8; length];
                    world.recv(&mut buffer, 0, 4).unwrap();
                    world.recv(&mut [0u64], 0, 5).unwrap();
                }
                world.barrier().unwrap();
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_message_that_does_not_fit_is_an_error_that_names_both() {
    for transports in [SHM, TCP] {
        for (sent, room) in [(5usize, 4usize), (1_000_000, 999_999)] {
            let errors = ranks(&config(2, transports), |world| {
                if world.rank() == 0 {
                    world
                        .send(&vec![1i32; sent], 1, 0)
                        .and_then(|()| world.barrier())
                        .unwrap_err()
                } else {
                    world.recv(&mut vec![0i32; room], 0, 0).unwrap_err()
                }
            });
            let text = errors[1].to_string();
            let (sent, room) = (format!("of {sent} int32"), format!("of {room} int32"));
            assert!(text.contains(&sent) && text.contains(&room), "{text}");
            assert!(errors[0].to_string().contains("rank 1"), "{}", errors[0]);
        }
    }
}

#[test]
fn another_type_is_an_error_that_names_both() {
    let errors = ranks(&config(2, SHM), |world| {
        if world.rank() == 0 {
            world
                .send(&[1i32], 1, 0)
                .and_then(|()| world.barrier())
                .unwrap_err()
        } else {
            world.recv(&mut [0.0f32], 0, 0).unwrap_err()
        }
    });
    let text = errors[1].to_string();
    assert!(
        text.contains("1 int32") && text.contains("1 float32"),
        "{text}"
    );
}

#[test]
fn what_was_sent_before_finalize_arrives() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let mut buffer = vec![world.rank() as i64; 10_000];
            if world.rank() != 0 {
                // The root is long gone when the others look.
                std::thread::sleep(std::time::Duration::from_millis(150));
            }
            world.broadcast(&mut buffer, 0).unwrap();
            assert!(buffer.iter().all(|value| *value == 0));
            world.finalize().unwrap();
        });
    }
}
