//! Calls that differ between ranks: an error on every rank that names both sides, within a second.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{SHM, TCP, at_most, config, ranks};
use rlaunch_runtime::config::Transports;
use rlaunch_runtime::{Error, Op, World};

type Call = fn(&World) -> Result<(), Error>;

/// Rank 1 makes `other`, all others `usual`; then everybody goes on until it fails.
fn disagree(transports: Transports, size: u32, usual: Call, other: Call) -> Vec<Error> {
    let begin = Instant::now();
    let errors = ranks(&config(size, transports), |world| {
        let call = if world.rank() == 1 { other } else { usual };
        // Who is late in the barrier may hear of the others' next call before its end.
        (world.barrier())
            .and_then(|()| call(&world))
            .and_then(|()| (0..50).try_for_each(|_| world.barrier()))
            .unwrap_err()
    });
    assert!(
        begin.elapsed() < at_most(Duration::from_secs(3)),
        "{:?}",
        begin.elapsed()
    );
    errors
}

fn all_reduce<const COUNT: usize>(world: &World) -> Result<(), Error> {
    world.all_reduce(&mut vec![1.0f32; COUNT], Op::Sum)
}

/// Both ways, with few and with more ranks.
fn is_found(kind: &str, usual: Call, other: Call) {
    for (transports, size) in [(SHM, 2), (SHM, 4), (TCP, 2), (TCP, 4)] {
        let errors = disagree(transports, size, usual, other);
        for (rank, error) in errors.into_iter().enumerate() {
            let at = format!("{kind}, {transports:?}, rank {rank} of {size}: {error}");
            let Error::Mismatch {
                left_rank,
                right_rank,
                left,
                right,
                ..
            } = error
            else {
                panic!("{at}");
            };
            assert!(left_rank.rank == 1 || right_rank.rank == 1, "{at}");
            assert_ne!(left, right, "{at}");
        }
    }
}

#[test]
fn every_kind_is_found_on_every_rank() {
    let kinds: [(&str, Call, Call); 9] = [
        ("count", all_reduce::<100>, all_reduce::<101>),
        (
            "long count",
            all_reduce::<1_000_000>,
            all_reduce::<1_000_001>,
        ),
        ("short and long", all_reduce::<10>, all_reduce::<1_000_000>),
        ("type", all_reduce::<100>, |world| {
            world.all_reduce(&mut [1i32; 100], Op::Sum)
        }),
        ("op", all_reduce::<100>, |world| {
            world.all_reduce(&mut [1.0f32; 100], Op::Max)
        }),
        ("order", all_reduce::<100>, |world| world.barrier()),
        (
            "root",
            |world| world.broadcast(&mut [0i64; 70_000], 0),
            |world| world.broadcast(&mut [0i64; 70_000], 1),
        ),
        // Neither needs the other's data in the call that differs.
        (
            "root of few",
            |world| {
                world
                    .broadcast(&mut [0i64; 4], 0)
                    .and_then(|()| world.barrier())
            },
            |world| {
                world
                    .broadcast(&mut [0i64; 4], 1)
                    .and_then(|()| world.barrier())
            },
        ),
        (
            "reduction's root",
            |world| {
                let input = [1i64; 4];
                world.reduce(&input, &mut [0; 4], Op::Sum, 1)?;
                world.barrier()
            },
            |world| {
                let input = [1i64; 4];
                world.reduce(&input, &mut [0; 4], Op::Sum, 0)?;
                world.barrier()
            },
        ),
    ];
    for (kind, usual, other) in kinds {
        is_found(kind, usual, other);
    }
}

#[test]
fn ranks_that_never_exchange_a_message_are_compared() {
    // Rank 1 waits for rank 0 alone, rank 0 for rank 1 alone, in different places of the sequence.
    let errors = disagree(
        TCP,
        3,
        |world| world.broadcast(&mut [0i64; 70_000], 1),
        |world| world.broadcast(&mut [0i64; 70_000], 2),
    );
    for error in errors {
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    }
}

#[test]
fn a_failed_world_returns_its_first_error_again() {
    ranks(&config(2, SHM), |world| {
        let count = 3 + world.rank() as usize;
        let first = world
            .all_reduce(&mut vec![0i32; count], Op::Sum)
            .unwrap_err();
        assert_eq!(world.barrier().unwrap_err(), first);
        assert_eq!(world.send(&[1i32], 0, 0).unwrap_err(), first);
        assert_eq!(world.finalize().unwrap_err(), first);
    });
}

/// Calls that need nothing of the other ranks, where it is the last call that differs.
#[test]
fn the_last_calls_before_the_end_are_compared() {
    let pairs: [(&str, Call, Call); 3] = [
        (
            "roots",
            |world| world.broadcast(&mut [0i64; 4], 0),
            |world| world.broadcast(&mut [0i64; 4], 1),
        ),
        (
            "kinds",
            |world| world.broadcast(&mut [0i64; 4], 0),
            |world| world.gather(&[0i64; 4], &mut [], 0),
        ),
        (
            "counts",
            |world| world.broadcast(&mut [0i64; 4], 0),
            |world| world.reduce(&[0i64; 5], &mut [], Op::Sum, 0),
        ),
    ];
    for (transports, size) in [(SHM, 2), (TCP, 2), (SHM, 3), (TCP, 3)] {
        for (kind, usual, other) in pairs {
            let results = ranks(&config(size, transports), |world| {
                let rank = world.rank();
                let call = if rank == 1 { other } else { usual };
                // Who waits for another root learns it in the call.
                call(&world).and_then(|()| world.finalize())
            });
            for (rank, result) in results.into_iter().enumerate() {
                let at = format!("{kind}, {transports:?}, rank {rank} of {size}: {result:?}");
                assert!(matches!(result, Err(Error::Mismatch { .. })), "{at}");
            }
        }
    }
}

/// No call is left to tell it: then the end does.
#[test]
fn the_last_calls_of_a_part_are_compared_too() {
    let is_found = |result: &Result<(), Error>| matches!(result, Err(Error::Mismatch { .. }));
    for transports in [SHM, TCP] {
        let results = ranks(&config(2, transports), |world| {
            let part = world.duplicate()?;
            part.broadcast(&mut [0i64; 4], world.rank())?;
            world.barrier()?;
            let end = world.finalize();
            drop(part);
            end
        });
        assert!(results.iter().all(is_found), "{transports:?}: {results:?}");
    }
    // Where the last handle is gone, what the other one made may be gone as well.
    let results = ranks(&config(2, SHM), |world| {
        let part = world.duplicate()?;
        part.broadcast(&mut [0i64; 4], world.rank())?;
        drop(part);
        world.finalize()
    });
    assert!(results.iter().any(is_found), "{results:?}");
}

/// A last call that one rank makes alone, and that needs nobody to end.
#[test]
fn a_last_call_that_others_left_without_is_found() {
    let alone: [(&str, Call); 3] = [
        ("a broadcast's root", |world| {
            world.broadcast(&mut [0i64; 4], 1)
        }),
        ("not the root of a gather", |world| {
            world.gather(&[0i64; 4], &mut [], 0)
        }),
        ("nobody waits", |world| {
            let pending = world.start_all_reduce(vec![0i64; 4], Op::Sum)?;
            std::mem::forget(pending);
            Ok(())
        }),
    ];
    for transports in [SHM, TCP] {
        for (name, call) in alone {
            for with_calls_before in [false, true] {
                let results = ranks(&config(2, transports), |world| {
                    if with_calls_before {
                        world.barrier()?;
                    }
                    if world.rank() == 1 {
                        call(&world)?;
                    }
                    world.finalize()
                });
                let at = format!("{name}, {transports:?}, {with_calls_before}: {results:?}");
                assert!(matches!(results[1], Err(Error::PeerLeft { .. })), "{at}");
            }
        }
    }
}

/// Nobody waits at the end for what was the same everywhere.
#[test]
fn an_end_after_equal_calls_takes_no_time() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            world.barrier().unwrap();
            world.broadcast(&mut [world.rank(); 4], 2).unwrap();
            let begin = Instant::now();
            world.finalize().unwrap();
            let took = begin.elapsed();
            assert!(
                took < at_most(Duration::from_millis(500)),
                "{transports:?}: {took:?}"
            );
        });
    }
}
