//! A program's own wish ends a wait. A binary of its own, since the hook is for the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{SHM, at_most, config, ranks};
use rlaunch_runtime::Error;

static WISH: AtomicBool = AtomicBool::new(false);

#[test]
fn a_wish_to_stop_ends_a_wait_soon() {
    rlaunch_runtime::set_interrupt(|| WISH.load(Ordering::Relaxed));
    ranks(&config(2, SHM), |world| {
        world.barrier().unwrap();
        if world.rank() == 1 {
            std::thread::sleep(Duration::from_millis(50));
            WISH.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(400));
            // Not to be told at the process's end.
            world.finalize().unwrap_err();
            return;
        }
        let begin = Instant::now();
        let error = world.barrier().unwrap_err();
        assert!(matches!(error, Error::Interrupted { .. }), "{error}");
        assert!(begin.elapsed() < at_most(Duration::from_secs(2)));
    });
}
