//! Calls that were started: they go on by themselves, in order, and give their buffers back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::{SHM, TCP, at_most, config, ranks};
use rlaunch_runtime::{Call, DType, Error, Op};

#[test]
fn started_calls_are_executed_in_order_and_mix_with_blocking_ones() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let me = world.rank();
            for count in [1usize, 1000, 200_000] {
                let pending: Vec<_> = (0..5u32)
                    .map(|number| {
                        world
                            .start_all_reduce(vec![me + number; count], Op::Sum)
                            .unwrap()
                    })
                    .collect();
                let mut buffer = vec![me; count];
                world.all_reduce(&mut buffer, Op::Max).unwrap();
                assert_eq!(buffer, vec![2; count]);
                for (number, pending) in pending.into_iter().enumerate() {
                    // What comes before a blocking call on its communicator is complete after it.
                    assert!(pending.test().unwrap());
                    let expected = vec![3 + 3 * number as u32; count];
                    assert_eq!(pending.wait().unwrap(), expected);
                }
            }
            world.finalize().unwrap();
        });
    }
}

/// Rank 1 starts and then makes no call until rank 0, which needs its part, is done.
#[test]
fn a_started_call_goes_on_without_any_call() {
    for transports in [SHM, TCP] {
        let (done, is_done) = mpsc::channel::<()>();
        let is_done = std::sync::Mutex::new(is_done);
        ranks(&config(2, transports), |world| {
            let pending = world
                .start_all_reduce(vec![world.rank(); 500_000], Op::Sum)
                .unwrap();
            if world.rank() == 1 {
                let waited = is_done
                    .lock()
                    .unwrap()
                    .recv_timeout(at_most(Duration::from_secs(20)));
                assert!(waited.is_ok(), "{transports:?}");
            }
            assert_eq!(pending.wait().unwrap(), vec![1; 500_000]);
            if world.rank() == 0 {
                done.send(()).unwrap();
            }
            world.barrier().unwrap();
            world.finalize().unwrap();
        });
    }
}

/// Blocking calls in between, whose threads are asked to drive just as their calls are done.
#[test]
fn a_started_receive_outlives_many_blocking_calls() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            let other = 1 - world.rank();
            for round in 0..500u32 {
                let mut place = [u32::MAX];
                let at: *mut u8 = place.as_mut_ptr().cast();
                // SAFETY: the request is complete before the place is looked at or given up.
                let receive =
                    unsafe { world.start_recv_raw(at, 1, DType::U32, other, 7, None) }.unwrap();
                for _ in 0..round % 4 {
                    world.barrier().unwrap();
                }
                world.send(&[round], other, 7).unwrap();
                let is_complete = || receive.status().is_some();
                let patience = std::time::Instant::now() + at_most(Duration::from_secs(20));
                while !is_complete() && std::time::Instant::now() < patience {
                    std::thread::sleep(Duration::from_micros(50));
                }
                assert!(is_complete(), "nobody drove round {round}");
                receive.wait().unwrap();
                assert_eq!(place, [round]);
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_prepared_call_is_started_many_times() {
    ranks(&config(2, SHM), |world| {
        let mut buffer = vec![1i64; 3000];
        let place: *mut u8 = buffer.as_mut_ptr().cast();
        let call = Call::all_reduce(place, place, 3000, DType::I64, Op::Sum);
        // SAFETY: the buffer outlives every start, each of which is waited for.
        let prepared = unsafe { world.prepare(call) }.unwrap();
        for _ in 0..10 {
            prepared.start().unwrap().wait().unwrap();
        }
        assert_eq!(buffer, vec![1 << 10; 3000]);
        world.finalize().unwrap();
    });
}

#[test]
fn completion_is_told_once_also_when_it_came_before() {
    ranks(&config(2, TCP), |world| {
        let (sender, receiver) = mpsc::channel();
        let place = std::ptr::null_mut();
        // SAFETY: nothing is read or written.
        let request = unsafe { world.start(Call::broadcast(place, 0, DType::U8, 0)) }.unwrap();
        let told = sender.clone();
        request.on_complete(move || told.send(1).unwrap());
        assert_eq!(
            receiver.recv_timeout(at_most(Duration::from_secs(20))),
            Ok(1)
        );
        assert!(request.test().unwrap() && request.status().is_some());
        request.on_complete(move || sender.send(2).unwrap());
        assert_eq!(
            receiver.recv_timeout(at_most(Duration::from_secs(20))),
            Ok(2)
        );
        request.wait().unwrap();
        world.finalize().unwrap();
    });
}

#[test]
fn a_wait_can_be_bounded_and_a_timeout_fails_the_communicator() {
    ranks(&config(2, SHM), |world| {
        let part = world.duplicate().unwrap();
        if world.rank() == 0 {
            let pending = part.start_barrier().unwrap();
            assert!(!pending.wait_timeout(Duration::from_millis(20)).unwrap());
            part.set_timeout(Some(Duration::from_millis(50))).unwrap();
            let error = pending.wait().unwrap_err();
            assert!(matches!(error, Error::Timeout { .. }), "{error}");
            assert!(error.to_string().contains("rank 1"), "{error}");
        } else {
            while part.error().is_none() {
                std::thread::yield_now();
            }
            let error = part.barrier().unwrap_err();
            assert!(error.to_string().contains("rank 0"), "{error}");
        }
        world.barrier().unwrap();
        world.finalize().unwrap();
    });
}

/// A broken request's error reaches its owner, and dropping one does not block for ever.
#[test]
fn requests_of_a_failed_communicator_end() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            let part = world.duplicate().unwrap();
            let count = 100 + world.rank() as usize;
            let first = part.start_all_reduce(vec![0i32; count], Op::Sum).unwrap();
            let second = part.start_all_reduce(vec![0i32; 10], Op::Sum).unwrap();
            let error = first.wait().unwrap_err();
            assert!(matches!(error, Error::Mismatch { .. }), "{error}");
            drop(second);
            world.barrier().unwrap();
            world.finalize().unwrap();
        });
    }
}

/// The sender is long gone when its message is asked for.
#[test]
fn what_was_sent_before_leaving_reaches_a_started_receive() {
    for transports in [SHM, TCP] {
        let (left, has_left) = mpsc::channel::<()>();
        let has_left = std::sync::Mutex::new(has_left);
        ranks(&config(2, transports), |world| {
            // From here on the two are connected, and small messages need no help of the receiver.
            world.barrier().unwrap();
            if world.rank() == 1 {
                let pending = world.start_send(vec![7u32; 7], 0, 5).unwrap();
                pending.wait().unwrap();
                world.finalize().unwrap();
                left.send(()).unwrap();
                return;
            }
            has_left
                .lock()
                .unwrap()
                .recv_timeout(at_most(Duration::from_secs(20)))
                .unwrap();
            let buffer = vec![0u32; 100];
            let pending = world
                .start_recv(buffer, rlaunch_runtime::Source::Any, 5)
                .unwrap();
            assert_eq!(pending.wait().unwrap()[..8], [7, 7, 7, 7, 7, 7, 7, 0]);
            // Nobody is left to send another.
            let pending = world
                .start_recv(vec![0u32; 1], rlaunch_runtime::Source::Any, 5)
                .unwrap();
            let error = pending.wait().unwrap_err();
            assert!(matches!(error, Error::PeerLeft { .. }), "{error}");
        });
    }
}

/// Nothing was matched, so nobody is disturbed: neither this communicator nor the peer.
#[test]
fn a_receive_that_is_dropped_or_cancelled_ends_at_once() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            let other = 1 - world.rank();
            world.barrier().unwrap();
            let begin = std::time::Instant::now();
            drop(world.start_recv(vec![0u8; 100_000], other, 1).unwrap());
            drop(
                world
                    .start_recv(vec![0u8; 1], rlaunch_runtime::Source::Any, 1)
                    .unwrap(),
            );
            let pending = world.start_recv(vec![0u8; 1], other, 1).unwrap();
            assert!(pending.cancel().unwrap());
            assert!(!pending.cancel().unwrap(), "it has ended");
            assert_eq!(pending.wait().unwrap_err(), Error::Cancelled);
            let took = begin.elapsed();
            assert!(
                took < at_most(Duration::from_secs(2)),
                "{transports:?}: {took:?}"
            );
            assert_eq!(world.error(), None);
            // Else what the other sends next might match a receive that is still to be cancelled.
            world.barrier().unwrap();
            // The messages go to receives that come later.
            for count in [3, 200_000] {
                let sent = world
                    .start_send(vec![world.rank(); count], other, 1)
                    .unwrap();
                let mut buffer = vec![9u32; count];
                world.recv(&mut buffer, other, 1).unwrap();
                assert_eq!(buffer, vec![other; count]);
                // It may not have been told yet that it has arrived.
                assert!(!sent.cancel().unwrap(), "a send is not cancelled");
                sent.wait().unwrap();
            }
            world.barrier().unwrap();
            world.finalize().unwrap();
        });
    }
}

/// What was started on the other side stands in the way of what is waited for here, all of it.
#[test]
fn a_long_call_that_one_rank_begins_later_holds_nothing_up() {
    ranks(&config(2, TCP), |world| {
        let (first, second) = (world.duplicate().unwrap(), world.duplicate().unwrap());
        let count = 150 << 20;
        if world.rank() == 0 {
            let pending = first.start_broadcast(vec![7u8; count], 0).unwrap();
            second.barrier().unwrap();
            pending.wait().unwrap();
        } else {
            second.barrier().unwrap();
            let mut buffer = vec![0u8; count];
            first.broadcast(&mut buffer, 0).unwrap();
            assert!(buffer.iter().all(|got| *got == 7));
        }
        world.finalize().unwrap();
    });
}
