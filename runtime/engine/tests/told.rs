//! What has failed, and the program knows, is not an error again at the end; what it does not know is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::{Communicator, Error, Op, World};

/// The end races with what others have just found.
const TIMES: usize = 20;
/// Of what has been seen to be told once only.
const FEW: usize = 4;

type Failing = fn(&Communicator) -> Error;

const FAILURES: [(usize, Failing); 3] = [(TIMES, mismatch), (FEW, timeout), (FEW, abort)];

fn mismatch(part: &Communicator) -> Error {
    let count = 4 + usize::from(part.rank() > 0);
    let error = part.all_reduce(&mut vec![0.0f64; count], Op::Sum);
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    error
}

fn timeout(part: &Communicator) -> Error {
    part.set_timeout(Some(Duration::from_millis(20))).unwrap();
    if part.rank() == 2 {
        while part.error().is_none() {
            std::thread::yield_now();
        }
    }
    let error = part.barrier().unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    error
}

fn abort(part: &Communicator) -> Error {
    if part.rank() == 1 {
        part.abort("enough");
    }
    let error = part.barrier().unwrap_err();
    assert!(matches!(error, Error::Aborted { .. }), "{error}");
    error
}

/// An error that every rank was told, on a communicator that those of `frees` free before the end.
fn is_told_once(times: usize, fail: Failing, frees: fn(u32) -> bool) {
    for transports in [SHM, TCP] {
        for time in 0..times {
            let results = ranks(&config(3, transports), |world| {
                let part = world.duplicate().unwrap();
                fail(&part);
                let kept = (!frees(world.rank())).then_some(part);
                let end = world.finalize();
                drop(kept);
                end
            });
            let at = format!("{transports:?}, time {time}: {results:?}");
            assert!(results.iter().all(Result::is_ok), "{at}");
        }
    }
}

#[test]
fn what_was_told_of_a_freed_communicator_is_not_told_again() {
    for (times, fail) in FAILURES {
        is_told_once(times, fail, |_| true);
    }
}

#[test]
fn nor_where_some_have_freed_it() {
    for (times, fail) in FAILURES {
        is_told_once(times, fail, |rank| rank == 0);
        is_told_once(times, fail, |rank| rank != 0);
    }
}

#[test]
fn nor_of_one_that_is_kept() {
    is_told_once(FEW, mismatch, |_| false);
}

/// Who reads the error, without a call, knows of it.
#[test]
fn nor_what_was_asked_for() {
    let results = ranks(&config(2, SHM), |world| {
        let part = world.duplicate()?;
        differ(&part);
        while part.error().is_none() {
            std::thread::yield_now();
        }
        world.finalize()
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// A root that needs nobody has ended its call before the other's differs, which is told.
fn differ(part: &Communicator) {
    if part.rank() == 0 {
        part.broadcast(&mut [0i64; 4], 0).unwrap();
    } else {
        let error = part.all_reduce(&mut [0i64; 4], Op::Sum).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    }
}

/// Whenever the other's word of it comes: before the communicator is freed, after, or at the end. Who
/// frees it and leaves at once may be gone before.
#[test]
fn a_difference_that_one_was_not_told_is_told_it_at_the_end() {
    let hears = |world: &World| {
        if world.rank() == 1 {
            std::thread::sleep(Duration::from_millis(30));
        }
        world.barrier().unwrap();
    };
    for transports in [SHM, TCP] {
        for (hears_before, frees, hears_after) in [
            (false, false, false),
            (true, false, false),
            (true, true, false),
            (false, true, true),
        ] {
            let results = ranks(&config(2, transports), |world| {
                let part = world.duplicate().unwrap();
                differ(&part);
                if hears_before {
                    hears(&world);
                }
                let kept = (!frees).then_some(part);
                if hears_after {
                    hears(&world);
                }
                let end = world.finalize();
                drop(kept);
                end
            });
            let at = format!("{transports:?}, {hears_before}, {frees}, {hears_after}: {results:?}");
            assert!(matches!(results[0], Err(Error::Mismatch { .. })), "{at}");
            assert!(results[1].is_ok(), "{at}");
        }
    }
}
