//! Worlds leave nothing behind. A binary of its own, so that no other test opens descriptors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::config::Transports;

#[test]
fn fifty_worlds_leave_neither_descriptors_nor_files_behind() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let shared_files = || {
        let names = std::fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .flatten();
        names
            .filter(|entry| entry.file_name().to_string_lossy().contains("rlaunch"))
            .count()
    };
    let before = (descriptors(), shared_files());
    for number in 0..51 {
        let both = Transports {
            shm: true,
            tcp: true,
        };
        let transports = [SHM, TCP, both][number % 3];
        ranks(&config(2, transports), |world| {
            // Large enough for the ring; every other world is dropped without finalize.
            world
                .all_reduce(&mut vec![1.0f32; 10_000], rlaunch_runtime::Op::Sum)
                .unwrap();
            if number % 2 == 0 {
                world.finalize().unwrap();
            }
        });
    }
    assert_eq!((descriptors(), shared_files()), before);
}
