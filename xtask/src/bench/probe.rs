//! How long a store of one core takes to be seen by another.
//!
//! On virtual machines this figure flips between about 0.06 and 0.3 µs from one minute to the next,
//! and short messages follow it. A table of short messages without it means nothing.

use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Alone in its cache lines: two, as processors fetch them in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

const ROUNDS: u64 = 20_000;

/// Nanoseconds one way, the best of some tries; none with a single core.
pub(super) fn flag_latency_ns() -> Option<f64> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return None;
    }
    (0..5).map(|_| ping_pong_ns()).min_by(f64::total_cmp)
}

fn ping_pong_ns() -> f64 {
    let (ping, pong) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                wait_for(&ping, round);
                pong.0.store(round, Ordering::Release);
            }
        });
        // The first rounds bring the thread up.
        let warm = ROUNDS / 10;
        let mut start = Instant::now();
        for round in 1..=ROUNDS {
            if round == warm {
                start = Instant::now();
            }
            ping.0.store(round, Ordering::Release);
            wait_for(&pong, round);
        }
        start.elapsed().as_nanos() as f64 / (2 * (ROUNDS - warm)) as f64
    })
}

fn wait_for(line: &Line, value: u64) {
    let mut spins = 0_u32;
    while line.0.load(Ordering::Acquire) != value {
        hint::spin_loop();
        spins += 1;
        if spins.is_multiple_of(10_000) {
            std::thread::yield_now(); // both threads may have got the same core
        }
    }
}
