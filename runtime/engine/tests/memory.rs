//! Buffers from the runtime: what holds for them by themselves, and in calls that fail.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{SHM, TCP, config, ranks};
use rlaunch_runtime::{Call, Config, DType, Error, Op, SharedBuffer, World};

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

#[test]
fn a_buffer_is_zero_and_aligned_and_a_slice() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            for count in [0, 1, 1000, 1 << 20] {
                let mut buffer: SharedBuffer<f32> = world.allocate(count).unwrap();
                assert_eq!((buffer.len(), buffer.as_ptr() as usize % 64), (count, 0));
                assert!(buffer.iter().all(|value| *value == 0.0));
                assert_eq!(buffer.is_shared(), transports.shm && count > 0);
                buffer.fill(world.rank() as f32);
                world.all_reduce(&mut buffer, Op::Sum).unwrap();
                assert!(buffer.iter().all(|value| *value == 1.0));
            }
            for too_many in [usize::MAX / 4, 1 << 47, usize::MAX] {
                let error = world.allocate::<f64>(too_many).unwrap_err();
                let size = format!("{} bytes", too_many as u128 * 8);
                assert!(matches!(error, Error::Allocation { .. }), "{error}");
                assert!(error.to_string().contains(&size), "{error}");
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_rank_alone_has_plain_memory() {
    let world = World::new(Config::alone()).unwrap();
    let mut buffer = world.allocate::<i32>(5).unwrap();
    buffer[4] = 7;
    world.all_reduce(&mut buffer, Op::Sum).unwrap();
    assert_eq!(
        (&buffer[..], buffer.is_shared()),
        (&[0, 0, 0, 0, 7][..], false)
    );
}

#[test]
fn a_buffer_outlives_its_communicator_and_its_world() {
    ranks(&config(2, SHM), |world| {
        let part = world.duplicate().unwrap();
        let mut buffer = part.allocate::<u64>(10_000).unwrap();
        drop(part);
        buffer.fill(1);
        world.all_reduce(&mut buffer[5000..], Op::Sum).unwrap();
        let handle = world.duplicate().unwrap();
        world.finalize().unwrap();
        assert_eq!(handle.allocate::<u8>(1).unwrap_err(), Error::Finalized);
        drop(handle);
        buffer[0] = 9;
        assert_eq!((buffer[0], buffer[1], buffer[9999]), (9, 1, 2));
    });
}

/// A request owns its buffer and gives it back.
#[test]
fn started_calls_take_buffers_along() {
    ranks(&config(3, SHM), |world| {
        let mut buffer = world.allocate::<i64>(50_000).unwrap();
        buffer.fill(2);
        let request = world.start_all_reduce(buffer, Op::Prod).unwrap();
        assert!(request.wait().unwrap().iter().all(|value| *value == 8));
        world.finalize().unwrap();
    });
}

#[test]
fn nothing_grows_over_cycles() {
    ranks(&config(2, SHM), |world| {
        let mut places = std::collections::HashSet::new();
        let mut cycle = |times: usize| {
            for time in 0..times {
                let kept = world.allocate::<u8>(10_000 + time % 7 * 4096).unwrap();
                let mut buffer = world.allocate::<f32>(100_000).unwrap();
                world.all_reduce(&mut buffer, Op::Sum).unwrap();
                assert!(buffer.iter().all(|value| *value == 0.0));
                buffer.fill(1.0);
                places.insert((kept.as_ptr() as usize, buffer.as_ptr() as usize));
            }
            world.barrier().unwrap();
            let resident = (world.rank() == 0).then(resident_kib);
            world.barrier().unwrap();
            resident
        };
        let (before, after) = (cycle(50), cycle(500));
        if let (Some(before), Some(after)) = (before, after) {
            assert!(after < before + 8192, "KiB: {before}, {after}");
        }
        assert!(places.len() <= 14, "{} places", places.len());
        world.finalize().unwrap();
    });
}

/// One gives up while the others wait for it, or for each other: nobody's call ends well, and the
/// buffers are its own again at once.
#[test]
fn a_rank_that_gives_up_takes_nobody_along() {
    let config = Config {
        timeout: Duration::from_millis(500),
        ..config(3, SHM)
    };
    ranks(&config, |world| {
        let mut buffer = world.allocate::<f32>(1 << 20).unwrap();
        buffer.fill(1.0);
        world.all_reduce(&mut buffer, Op::Sum).unwrap();
        if world.rank() == 2 {
            // Comes too late.
            std::thread::sleep(Duration::from_secs(2));
        }
        let error = world.all_reduce(&mut buffer, Op::Sum).unwrap_err();
        assert!(!matches!(error, Error::Argument(_)), "{error}");
        drop(buffer);
        let mut other = world.allocate::<f32>(1 << 20).unwrap();
        assert!(other.iter().all(|value| *value == 0.0));
        other.fill(5.0);
        std::thread::sleep(Duration::from_millis(200));
        assert!(other.iter().all(|value| *value == 5.0));
        assert!(world.all_reduce(&mut other, Op::Sum).is_err());
    });
}

/// Another type, or count, is found though nothing is staged.
#[test]
fn different_calls_are_found() {
    ranks(&config(2, SHM), |world| {
        let mut buffer = world.allocate::<f32>(100_000).unwrap();
        let count = buffer.len() - world.rank() as usize;
        let error = world.all_reduce(&mut buffer[..count], Op::Sum).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    });
}

/// A child has the memory in common with its parent, and must not free it.
#[test]
fn a_forked_child_leaves_the_buffer_to_its_parent() {
    ranks(&config(2, SHM), |world| {
        let mut buffer = world.allocate::<u32>(10_000).unwrap();
        buffer.fill(3);
        if world.rank() == 0 {
            // SAFETY: the child only frees what it has a copy of, and ends without running anything
            // of the parent's.
            let child = unsafe { libc::fork() };
            if child == 0 {
                drop(buffer);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(0) };
            }
            assert!(child > 0);
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
        world.barrier().unwrap();
        assert!(buffer.iter().all(|value| *value == 3));
        let pointer = buffer.as_mut_ptr().cast::<u8>();
        let call = Call::all_reduce(pointer, pointer, buffer.len(), DType::U32, Op::Sum);
        // SAFETY: the buffer is as long.
        unsafe { world.run(&call) }.unwrap();
        assert!(buffer.iter().all(|value| *value == 6));
        world.finalize().unwrap();
    });
}
