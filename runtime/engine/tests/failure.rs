//! Abort, shrink, the flight recorder, forked children.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::{SHM, TCP, at_most, config, ranks};
use rlaunch_runtime::{Bound, Collective, Doing, Error, Op, OperationState, Source, Tag, World};

/// nccl#863, pytorch#119215: abort must not wait for what it is to end.
#[test]
fn abort_ends_a_blocked_call_at_once_and_the_others_learn_why() {
    for transports in [SHM, TCP] {
        let is_blocked = Barrier::new(2);
        let errors = ranks(&config(3, transports), |world| {
            world.barrier().unwrap();
            if world.rank() != 1 {
                return world.barrier().unwrap_err();
            }
            std::thread::scope(|scope| {
                let blocked = scope.spawn(|| {
                    is_blocked.wait();
                    let error = world.recv(&mut [0u8], 0, 7).unwrap_err();
                    (error, Instant::now())
                });
                is_blocked.wait();
                // It may be anywhere on its way into the call, or asleep in it.
                std::thread::sleep(Duration::from_millis(30));
                let begin = Instant::now();
                world.abort("the loss is NaN");
                let took = begin.elapsed();
                let (error, ended) = blocked.join().unwrap();
                let until = ended.saturating_duration_since(begin);
                assert!(took < at_most(Duration::from_millis(100)), "{took:?}");
                assert!(until < at_most(Duration::from_millis(100)), "{until:?}");
                assert_eq!(world.barrier().unwrap_err(), error);
                error
            })
        });
        for error in errors {
            let Error::Aborted { by, reason, .. } = error else {
                panic!("{error}");
            };
            assert_eq!((by.rank, reason.as_str()), (1, "the loss is NaN"));
        }
    }
}

/// The others' error is the same, word by word, and not that a rank failed.
#[test]
fn a_timeout_is_the_same_error_on_every_rank() {
    for transports in [SHM, TCP] {
        let errors = ranks(&config(3, transports), |world| {
            world.barrier().unwrap();
            if world.rank() == 0 {
                world.set_timeout(Some(Duration::from_millis(300))).unwrap();
                return world.recv(&mut [0u8], 2, 7).unwrap_err();
            }
            world.recv(&mut [0u8], 0, 8).unwrap_err()
        });
        for error in &errors {
            let Error::Timeout {
                by, missing, bound, ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!((by.rank, missing[0].rank, missing.len()), (0, 2, 1));
            assert_eq!(*bound, Bound::Communicator);
            assert_eq!(error, &errors[1]);
            assert!(error.to_string().contains("set_timeout"), "{error}");
        }
    }
}

/// Rank 3 is late or leaves; each of the others waits in a call of its own, of whatever kind, and every
/// error tells what all of them do.
#[test]
fn errors_tell_what_the_others_were_doing() {
    for (transports, leaves) in [(SHM, true), (TCP, true), (SHM, false), (TCP, false)] {
        let is_told = Barrier::new(4);
        let errors = ranks(&config(4, transports), |world| {
            world.barrier().unwrap();
            let mut part = [0u8; 4];
            let timeout = at_most(Duration::from_secs(if leaves { 20 } else { 2 }));
            let result = match world.rank() {
                0 => {
                    world.set_timeout(Some(timeout)).unwrap();
                    world.recv(&mut part, 3, 7).map(drop)
                }
                1 => world.barrier(),
                2 => world.recv(&mut part, 1, 9).map(drop),
                _ => {
                    // The others are in their calls, and have told so, also on a busy machine.
                    std::thread::sleep(Duration::from_secs(1));
                    if leaves {
                        drop(world);
                        is_told.wait();
                        return None;
                    }
                    is_told.wait();
                    return world.barrier().err();
                }
            };
            is_told.wait();
            result.err()
        });
        let expected = [Collective::Recv, Collective::Barrier, Collective::Recv];
        for (rank, error) in errors.iter().enumerate() {
            let Some(error) = error else {
                assert!(rank == 3 && leaves);
                continue;
            };
            let is_left = matches!(error, Error::PeerLeft { peer, .. } if peer.rank == 3);
            let is_late = matches!(error, Error::Timeout { missing, .. } if missing[0].rank == 3);
            assert!(if leaves { is_left } else { is_late }, "{error}");
            let teller = if leaves { rank } else { 0 };
            let others = error.others().unwrap();
            for (other, collective) in expected.into_iter().enumerate() {
                let doing = others.of(other as u32);
                let is_it = matches!(doing, Doing::In(call) if call.collective == collective);
                assert!(is_it || other == teller, "{other} {doing:?}: {error}");
            }
            assert_eq!((others.seen.len(), others.seen[0].rank.rank), (3, 3));
        }
    }
}

#[test]
fn a_message_that_does_not_fit_is_the_same_error_on_every_rank() {
    for transports in [SHM, TCP] {
        let errors = ranks(&config(3, transports), |world| {
            world.barrier().unwrap();
            match world.rank() {
                0 => world.recv(&mut [0u8; 2], 1, 7).map(drop),
                1 => world.send(&[0u8; 3], 0, 7),
                _ => Ok(()),
            }
            .and_then(|()| world.recv(&mut [0u8], Source::Any, 9).map(drop))
            .unwrap_err()
        });
        for error in &errors {
            assert_eq!(error, &errors[0]);
            let Error::MessageMismatch {
                sender, receiver, ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!((sender.rank, receiver.rank), (1, 0));
        }
    }
}

#[test]
fn abort_while_nobody_calls_is_the_next_calls_error() {
    ranks(&config(2, SHM), |world| {
        if world.rank() == 0 {
            world.abort("enough");
        }
        let text = world.barrier().unwrap_err().to_string();
        assert!(text.contains("enough") && text.contains("rank 0"), "{text}");
    });
}

/// All use `world` for what works on any number of ranks.
fn exercise(world: &rlaunch_runtime::Communicator) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    for count in [1usize, 1000, 100_000] {
        let mut sum = vec![1i64; count];
        world.all_reduce(&mut sum, Op::Sum)?;
        assert!(sum.iter().all(|got| *got == i64::from(size)));
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        let mine = vec![me; count];
        let mut theirs = vec![u32::MAX; count];
        world.sendrecv((&mine, right, 3), (&mut theirs, left, 3))?;
        assert!(theirs.iter().all(|got| *got == left));
    }
    Ok(())
}

/// One after the other dies in the middle of a large exchange, rank 0 among them; the others go on.
#[test]
fn survivors_shrink_again_and_again() {
    for transports in [SHM, TCP] {
        let left = ranks(&config(5, transports), |world| {
            let mut current: Option<rlaunch_runtime::Communicator> = None;
            for victim in [3, 0, 4] {
                let here = current.as_deref_or(&world);
                exercise(here).unwrap();
                let rank = here.ranks()[here.rank() as usize];
                if rank == victim {
                    // It goes in the middle of a call.
                    return rank;
                }
                let mut buffer = vec![1.0f32; 3_000_000];
                let error = loop {
                    match here.all_reduce(&mut buffer, Op::Max) {
                        Ok(()) => {}
                        Err(error) => break error,
                    }
                };
                assert!(!matches!(error, Error::Argument(_)), "{error}");
                current = Some(here.shrink().unwrap());
            }
            let last = current.unwrap();
            assert_eq!(last.ranks(), [1, 2]);
            exercise(&last).unwrap();
            let rank = rank_of(&world);
            world.finalize().unwrap();
            rank
        });
        assert_eq!(left, [0, 1, 2, 3, 4]);
    }
}

fn rank_of(world: &World) -> u32 {
    world.rank()
}

trait AsDerefOr {
    fn as_deref_or<'a>(&'a self, world: &'a World) -> &'a rlaunch_runtime::Communicator;
}

impl AsDerefOr for Option<rlaunch_runtime::Communicator> {
    fn as_deref_or<'a>(&'a self, world: &'a World) -> &'a rlaunch_runtime::Communicator {
        self.as_ref().unwrap_or(world)
    }
}

#[test]
fn shrink_without_a_failure_keeps_everybody() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let again = world.shrink().unwrap();
            assert_eq!(again.ranks(), [0, 1, 2]);
            exercise(&again).unwrap();
            let third = again.shrink().unwrap();
            exercise(&third).unwrap();
            exercise(&third).unwrap();
            // What was shrunk has been dealt with.
            world.finalize().unwrap();
        });
    }
}

/// A rank that has not seen the failure is not left waiting.
#[test]
fn who_still_waits_learns_that_the_others_shrink() {
    ranks(&config(3, SHM), |world| {
        if world.rank() == 2 {
            let error = world.recv(&mut [0u8], Source::Any, Tag::Any).unwrap_err();
            assert!(matches!(error, Error::Revoked { .. }), "{error}");
        }
        let shrunk = world.shrink().unwrap();
        exercise(&shrunk).unwrap();
    });
}

#[test]
fn the_flight_recorder_tells_what_was_called_and_how_it_ended() {
    ranks(&config(2, SHM), |world| {
        let peer = 1 - world.rank();
        world.all_reduce(&mut [1.0f32; 10], Op::Sum).unwrap();
        world
            .sendrecv((&[1u8; 5], peer, 4), (&mut [0u8; 5], peer, 4))
            .unwrap();
        let started = world.start_recv(vec![0u16; 3], peer, 9).unwrap();
        let records = world.flight_recorder();
        assert_eq!((records.rank.rank, records.world_size), (world.rank(), 2));
        let operations = &records.communicators[0].operations;
        let first = &operations[0];
        assert_eq!(first.call.to_string(), "all_reduce #0 of 10 float32, sum");
        assert_eq!((first.state, first.bytes), (OperationState::Done, 40));
        let last = operations.last().unwrap();
        assert_eq!(
            (last.state, last.peer, last.tag, last.bytes),
            (OperationState::Running, Some(peer), Some(9), 6)
        );
        world.barrier().unwrap();
        world.send(&[1u16; 3], peer, 9).unwrap();
        started.wait().unwrap();
        let records = world.flight_recorder();
        let is_over =
            |record: &rlaunch_runtime::OperationRecord| record.state == OperationState::Done;
        assert!(records.communicators[0].operations.iter().all(is_over));
        world.barrier().unwrap();
    });
}

/// pytorch/gloo#340: a data loader's worker must not disturb the job.
#[test]
fn a_forked_child_is_refused_and_the_parent_goes_on() {
    ranks(&config(2, SHM), |world| {
        world.barrier().unwrap();
        if world.rank() == 0 {
            // SAFETY: the child calls what is safe after a fork of a process with threads: it looks
            // at one number and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let is_refused = matches!(world.barrier(), Err(Error::Forked));
                drop(world);
                // SAFETY: ends the child without running what belongs to the parent.
                unsafe { libc::_exit(i32::from(!is_refused)) };
            }
            let mut status = 0;
            // SAFETY: the child is ours; the kernel writes one int.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the child was not refused");
        }
        exercise(&world).unwrap();
        world.finalize().unwrap();
    });
}
