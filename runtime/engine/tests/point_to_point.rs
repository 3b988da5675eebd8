//! Send and recv: tags, sizes on both sides of eager, self, and both directions at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::Error;

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
            let lengths = [1usize, 40_000, 3, 100_000, 0, 1_000_000, 5];
            for (index, length) in lengths.into_iter().enumerate() {
                let value = index as f64;
                if world.rank() == 0 {
                    world.send(&vec![value; length], 1, 9).unwrap();
                } else {
                    let mut buffer = vec![-1.0; length];
                    world.recv(&mut buffer, 0, 9).unwrap();
                    assert!(buffer.iter().all(|got| *got == value), "message {index}");
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

#[test]
fn a_rank_can_send_to_itself_what_is_small() {
    ranks(&config(2, SHM), |world| {
        let me = world.rank();
        world.send(&[1.0f32, 2.0], me, 1).unwrap();
        world.send(&[3.0f32], me, 2).unwrap();
        let (mut two, mut one) = ([0.0f32; 2], [0.0f32]);
        world.recv(&mut one, me, 2).unwrap();
        world.recv(&mut two, me, 1).unwrap();
        assert_eq!((two, one), ([1.0, 2.0], [3.0]));
        // What can't work says so and harms nothing.
        assert!(matches!(
            world.recv(&mut one, me, 2),
            Err(Error::Argument(_))
        ));
        assert!(matches!(
            world.send(&vec![0.0f32; 1 << 20], me, 2),
            Err(Error::Argument(_))
        ));
        assert!(matches!(world.send(&one, 7, 2), Err(Error::Argument(_))));
        world.barrier().unwrap();
        world.finalize().unwrap();
    });
}

#[test]
fn a_wrong_length_is_an_error_that_names_both() {
    let errors = ranks(&config(2, SHM), |world| {
        if world.rank() == 0 {
            world
                .send(&[1i32; 5], 1, 0)
                .and_then(|()| world.barrier())
                .unwrap_err()
        } else {
            world.recv(&mut [0i32; 6], 0, 0).unwrap_err()
        }
    });
    let text = errors[1].to_string();
    assert!(
        text.contains("of 5 int32") && text.contains("of 6 int32"),
        "{text}"
    );
    assert!(errors[0].to_string().contains("rank 1"), "{}", errors[0]);
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
