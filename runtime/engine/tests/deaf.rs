//! Ranks whose stderr takes nothing: what the runtime says there ends nobody and goes nowhere else.
//!
//! The test binary runs itself again as the ranks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::os::fd::{AsRawFd, OwnedFd};

use common::process::{say, start};
use rlaunch_runtime::{Error, Op, World};

/// Where a rank's stderr leads.
const STDERR: [&str; 4] = ["closed pipe", "full disk", "nothing", "a file"];

#[test]
#[ignore = "run by the test below, as a rank"]
fn rank_process() {
    let Ok(stderr) = std::env::var("TEST_ROLE") else {
        return;
    };
    lose_stderr(&stderr);
    let said = match rlaunch_runtime::init().and_then(talk) {
        Ok(()) => "well".to_owned(),
        Err(error) => error.to_string(),
    };
    say(&said);
}

/// As a C program that was started so: a pipe that breaks is not ignored.
fn lose_stderr(how: &str) {
    // SAFETY: no other thread of this process uses descriptor 2 or this signal yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let end: OwnedFd = match how {
        "closed pipe" => {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer.into()
        }
        "full disk" => {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).open("/dev/full").unwrap().into()
        }
        "a file" => {
            let file = std::env::var_os("TEST_FILE").unwrap();
            let mut options = std::fs::OpenOptions::new();
            options.append(true).open(file).unwrap().into()
        }
        _ => {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::close(2) }, 0);
            return;
        }
    };
    // SAFETY: as above; both are open.
    assert_eq!(unsafe { libc::dup2(end.as_raw_fd(), 2) }, 2);
}

/// Everything of which the runtime speaks on its own: a setting nobody reads (told by the start), calls
/// after an error whose file can't be written, messages that nobody received (told at the end).
fn talk(world: World) -> Result<(), Error> {
    let other = 1 - world.rank();
    let part = world.duplicate()?;
    world.send(&[world.rank(); 100], other, 3)?;
    part.abort("enough");
    let error = part.barrier().unwrap_err();
    assert!(matches!(error, Error::Aborted { .. }), "{error}");
    drop(part);
    for number in 1..100u32 {
        let mut sum = [number; 3];
        world.all_reduce(&mut sum, Op::Sum)?;
        assert_eq!(sum, [2 * number; 3]);
    }
    world.finalize()
}

#[test]
fn ranks_that_can_say_nothing_end_well() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for transport in ["shm", "tcp"] {
        for stderr in STDERR {
            let more = [
                ("TEST_FILE", file.path().to_str().unwrap()),
                ("RLAUNCH_TIMEOUT", "20"),
                ("RLAUNCH_TIMEOUTS", "a slip"),
                ("RLAUNCH_RECORDER_FILE", "/dev/full"),
            ];
            let mut ranks = start(2, 2, transport, stderr, &more);
            for rank in &mut ranks {
                assert_eq!(rank.line(), "well", "{transport}, stderr: {stderr}");
            }
            for rank in &mut ranks {
                let status = rank.child.wait().unwrap();
                assert!(status.success(), "{transport}, stderr: {stderr}: {status}");
            }
        }
    }
    // They do speak of all that.
    let said = std::fs::read_to_string(file.path()).unwrap();
    for part in [
        "RLAUNCH_TIMEOUTS",
        "/dev/full: No space",
        "has not received",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
