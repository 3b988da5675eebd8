//! Private buffers, which the kernel copies between ranks where it may, and which pass through staging
//! where one of them does not want that: the same results.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{SHM, config, ranks_with};
use rlaunch_runtime::{Config, Error, World};

/// On both sides of where copying by the kernel, and sharing the work, begin; and not whole pages.
const LENGTHS: [usize; 8] = [
    8191, 8192, 24_575, 24_577, 65_536, 131_073, 300_001, 2_000_003,
];

fn bytes(rank: u32, length: usize) -> Vec<u8> {
    let seed = rank as usize * 7919;
    (0..length).map(|at| ((at + seed) * 31 / 7) as u8).collect()
}

fn every_copy(world: &World) {
    let (me, size) = (world.rank(), world.size());
    for (index, length) in LENGTHS.into_iter().enumerate() {
        let root = index as u32 % size;
        let own = bytes(me, length);
        let all: Vec<u8> = (0..size).flat_map(|rank| bytes(rank, length)).collect();

        let mut buffer = if me == root {
            own.clone()
        } else {
            vec![0; length]
        };
        world.broadcast(&mut buffer, root).unwrap();
        assert_eq!(buffer, bytes(root, length), "broadcast of {length}");

        let mut gathered = vec![0; if me == root { all.len() } else { 0 }];
        world.gather(&own, &mut gathered, root).unwrap();
        assert!(me != root || gathered == all, "gather of {length}");

        let mut part = vec![0; length];
        let given = if me == root { &all[..] } else { &[] };
        world.scatter(given, &mut part, root).unwrap();
        assert_eq!(part, own, "scatter of {length}");

        let mut everything = vec![0; all.len()];
        world.all_gather(&own, &mut everything).unwrap();
        assert_eq!(everything, all, "all_gather of {length}");

        let parts: Vec<u8> = (0..size)
            .flat_map(|to| bytes(me * size + to, length))
            .collect();
        let mut from_all = vec![0; all.len()];
        world.all_to_all(&parts, &mut from_all).unwrap();
        let expected: Vec<u8> = (0..size)
            .flat_map(|from| bytes(from * size + me, length))
            .collect();
        assert_eq!(from_all, expected, "all_to_all of {length}");

        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        for _ in 0..2 {
            let sending = world.start_send(own.clone(), next, 1).unwrap();
            let mut taken = vec![0; length];
            world.recv(&mut taken, before, 1).unwrap();
            sending.wait().unwrap();
            assert_eq!(taken, bytes(before, length), "message of {length}");
        }
    }
}

/// None, one, or all want it.
#[test]
fn results_are_the_same_with_and_without() {
    for size in [2, 5] {
        for without in [0, 1, size] {
            let change = |config: Config| Config {
                single_copy: Some(config.rank >= without),
                ..config
            };
            ranks_with(&config(size, SHM), change, |world| {
                every_copy(&world);
                world.finalize().unwrap();
            });
        }
    }
}

/// Who gives up in the middle has its buffer for itself: nobody who comes late writes to it.
#[test]
fn a_buffer_is_its_owners_again_after_a_timeout() {
    const LENGTH: usize = 8 << 20;
    let change = |config: Config| Config {
        timeout: Duration::from_millis(300),
        ..config
    };
    ranks_with(&config(2, SHM), change, |world| {
        let me = world.rank();
        let mut buffer = vec![me as u8 + 1; LENGTH];
        world.broadcast(&mut buffer, 1).unwrap();
        buffer.fill(me as u8 + 1);
        world.barrier().unwrap();
        if me == 1 {
            std::thread::sleep(Duration::from_millis(900));
        }
        let begun = Instant::now();
        let error = world.broadcast(&mut buffer, 1).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(2));
        if me == 0 {
            buffer.fill(9);
            std::thread::sleep(Duration::from_millis(1200));
            assert!(buffer.iter().all(|byte| *byte == 9));
        }
    });
}

/// Memory that is not there, as of a mapped file that was cut, is an error on both, at once.
#[test]
fn memory_that_is_not_there_fails_the_call_on_both_ranks() {
    const LENGTH: usize = 1 << 20;
    let errors = ranks_with(
        &config(2, SHM),
        |config| config,
        |world| {
            let mut buffer = vec![1u8; LENGTH];
            world.broadcast(&mut buffer, 0).unwrap();
            let cut = CutFile::new(LENGTH);
            let begun = Instant::now();
            let error = if world.rank() == 0 {
                // SAFETY: the addresses are this test's own; nobody but the kernel reads them, which finds
                // that nothing is there.
                let missing =
                    unsafe { std::slice::from_raw_parts_mut(cut.at.cast::<u8>(), LENGTH) };
                world.broadcast(missing, 0).unwrap_err()
            } else {
                world.broadcast(&mut buffer, 0).unwrap_err()
            };
            assert!(begun.elapsed() < Duration::from_secs(2), "{error}");
            error.to_string()
        },
    );
    assert!(
        errors.iter().any(|text| text.contains("buffer")),
        "{errors:?}"
    );
}

/// The addresses of a mapped file that has no bytes any more.
struct CutFile {
    at: *mut libc::c_void,
    length: usize,
}

impl CutFile {
    fn new(length: usize) -> Self {
        use std::os::fd::AsRawFd;
        let file = tempfile::tempfile().unwrap();
        file.set_len(length as u64).unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        file.set_len(0).unwrap();
        Self { at, length }
    }
}

impl Drop for CutFile {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and used no more.
        unsafe { libc::munmap(self.at, self.length) };
    }
}
