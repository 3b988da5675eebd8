//! What communicators leave behind in their process. Alone in its program, since others' descriptors
//! would be counted too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::Op;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A number of `/proc/self/status`.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

#[test]
fn a_thousand_communicators_leave_nothing_behind() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            let cycle = |times: usize| {
                for _ in 0..times {
                    let part = world.duplicate().unwrap();
                    for count in [2, 2000] {
                        let mut buffer = vec![1i64; count];
                        part.all_reduce(&mut buffer, Op::Sum).unwrap();
                        assert_eq!(buffer, vec![2; count]);
                    }
                    // Driven by a thread of the runtime's own.
                    let started = part.start_all_reduce(vec![1i64; 10], Op::Sum).unwrap();
                    assert_eq!(started.wait().unwrap(), [2; 10]);
                }
                world.barrier().unwrap();
                // One looks, while the other opens nothing.
                let held = (world.rank() == 0)
                    .then(|| (descriptors(), status("Threads:"), status("VmRSS:")));
                world.barrier().unwrap();
                held
            };
            if let (Some(before), Some(after)) = (cycle(100), cycle(900)) {
                assert!(after.0 <= before.0, "descriptors: {before:?}, {after:?}");
                assert!(after.1 <= before.1, "threads: {before:?}, {after:?}");
                assert!(after.2 < before.2 + 8192, "KiB: {before:?}, {after:?}");
            }
            world.finalize().unwrap();
        });
    }
}
