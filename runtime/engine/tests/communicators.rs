//! Communicators made of others: who is in them, and that they don't meet.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{BOTH, SHM, TCP, config, ranks, ranks_with};
use rlaunch_runtime::{Communicator, Config, Error, Op};

fn sum_of_ranks(communicator: &Communicator, count: usize) -> i64 {
    let world_rank = communicator.ranks()[communicator.rank() as usize];
    let mut buffer = vec![i64::from(world_rank); count];
    communicator.all_reduce(&mut buffer, Op::Sum).unwrap();
    assert!(buffer.iter().all(|value| *value == buffer[0]));
    buffer[0]
}

#[test]
fn a_split_is_ordered_by_key_and_leaves_out_who_gives_no_color() {
    for transports in [SHM, TCP] {
        ranks(&config(5, transports), |world| {
            let me = world.rank();
            let color = (me != 2).then_some(me % 2);
            let part = world.split(color, -i64::from(me)).unwrap();
            assert_eq!(part.is_some(), me != 2);
            if let Some(part) = part {
                let expected: &[u32] = if me % 2 == 0 { &[4, 0] } else { &[3, 1] };
                assert_eq!(part.ranks(), expected);
                assert_eq!(part.ranks()[part.rank() as usize], me);
                assert_ne!(part.id(), world.id());
                for count in [1, 100, 50_000] {
                    assert_eq!(sum_of_ranks(&part, count), 4);
                }
                let (mine, mut got) = ([me], [0u32]);
                let other = 1 - part.rank();
                part.group(|group| {
                    group.send(&mine, other, 7);
                    group.recv(&mut got, other, 7);
                })
                .unwrap();
                assert_eq!(got[0], part.ranks()[other as usize]);
            }
            world.barrier().unwrap();
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_list_of_ranks_gives_their_order() {
    ranks(&config(4, SHM), |world| {
        let part = world.from_ranks(&[3, 0, 2]).unwrap();
        assert_eq!(part.is_none(), world.rank() == 1);
        if let Some(part) = part {
            assert_eq!(part.ranks(), &[3, 0, 2]);
            let mut buffer = vec![world.rank(); 3000];
            part.broadcast(&mut buffer, 0).unwrap();
            assert_eq!(buffer, vec![3; 3000]);
        }
        let wrong = world.from_ranks(&[0, 0]);
        assert!(matches!(wrong, Err(Error::Argument(_))));
        world.finalize().unwrap();
    });
}

/// Ranks 0, 2 and 1, 3 share memory by pairs; the rest goes over TCP.
#[test]
fn communicators_inside_and_across_hosts() {
    let change = |config: Config| Config {
        host_id: Some(format!("h{}", config.rank % 2)),
        ..config
    };
    ranks_with(&config(4, BOTH), change, |world| {
        let me = world.rank();
        let near = world.split(Some(me % 2), 0).unwrap().unwrap();
        let far = world.split(Some(me / 2), 0).unwrap().unwrap();
        for count in [1, 5000, 100_000] {
            assert_eq!(sum_of_ranks(&near, count), i64::from(2 + 2 * (me % 2)));
            assert_eq!(sum_of_ranks(&far, count), i64::from(1 + 4 * (me / 2)));
            assert_eq!(sum_of_ranks(&world, count), 6);
        }
        world.finalize().unwrap();
    });
}

/// Rank 0 is in A while rank 1 is in B, and both have messages under way to each other in both.
#[test]
fn communicators_do_not_wait_for_each_other() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            let (a, b) = (world.duplicate().unwrap(), world.duplicate().unwrap());
            let count = 300_000;
            for round in 0..3 {
                let mine = vec![world.rank() + round; count];
                let pending_a = a.start_all_reduce(mine.clone(), Op::Sum).unwrap();
                let pending_b = b.start_all_reduce(mine, Op::Sum).unwrap();
                // Waited for in different orders, with a call on the world in between.
                let (first, second) = if world.rank() == 0 {
                    (pending_a, pending_b)
                } else {
                    (pending_b, pending_a)
                };
                let got = first.wait().unwrap();
                assert_eq!(got, vec![1 + 2 * round; count]);
                world.barrier().unwrap();
                let got = second.wait().unwrap();
                assert_eq!(got, vec![1 + 2 * round; count]);
            }
            world.finalize().unwrap();
        });
    }
}

/// A thread for each communicator, all at once, many calls.
#[test]
fn threads_with_a_communicator_each() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let parts: Vec<Communicator> = (0..4).map(|_| world.duplicate().unwrap()).collect();
            std::thread::scope(|scope| {
                for (number, part) in parts.iter().enumerate() {
                    scope.spawn(move || {
                        // Often enough that one's message is taken in the middle of another's.
                        for round in 0..300 {
                            let count = [1, 700, 40_000][(round + number) % 3];
                            assert_eq!(sum_of_ranks(part, count), 3);
                        }
                    });
                }
            });
            world.finalize().unwrap();
        });
    }
}

#[test]
fn a_failed_communicator_leaves_the_others_alone() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            let broken = world.duplicate().unwrap();
            let count = 40_000 + world.rank() as usize;
            let first = broken
                .all_reduce(&mut vec![0i32; count], Op::Sum)
                .unwrap_err();
            assert!(matches!(first, Error::Mismatch { .. }), "{first}");
            assert_eq!(broken.barrier().unwrap_err(), first);
            assert_eq!(broken.error(), Some(first));
            for count in [1, 40_000] {
                assert_eq!(sum_of_ranks(&world, count), 3);
            }
            let next = world.duplicate().unwrap();
            assert_eq!(sum_of_ranks(&next, 100_000), 3);
            world.finalize().unwrap();
        });
    }
}

#[test]
fn an_abort_ends_a_wait_in_another_thread() {
    ranks(&config(2, SHM), |world| {
        let part = world.duplicate().unwrap();
        if world.rank() == 0 {
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| part.barrier().unwrap_err());
                part.abort("loss is NaN");
                let error = waiting.join().unwrap();
                assert!(error.to_string().contains("loss is NaN"), "{error}");
            });
        } else {
            let error = loop {
                if let Some(error) = part.error() {
                    break error;
                }
                std::thread::yield_now();
            };
            assert!(error.to_string().contains("loss is NaN"), "{error}");
        }
        world.barrier().unwrap();
        world.finalize().unwrap();
    });
}

#[test]
fn what_makes_a_communicator_is_called_by_its_name() {
    for transports in [SHM, TCP] {
        ranks(&config(2, transports), |world| {
            let made = [
                world.split(Some(0), 0).unwrap().unwrap(),
                world.duplicate().unwrap(),
                world.from_ranks(&[1, 0]).unwrap().unwrap(),
                world.shrink().unwrap(),
            ];
            let names = ["init", "split", "duplicate", "from_ranks", "shrink"];
            let record = made[0].rank();
            assert_eq!(record, world.rank());
            let recorder = world.flight_recorder();
            let found: Vec<&str> = recorder
                .communicators
                .iter()
                .map(|one| one.made_by)
                .collect();
            assert_eq!(found, names);
            let text = recorder.to_string();
            assert!(text.contains("the world, made by init"), "{text}");
            for name in &names[1..4] {
                assert!(text.contains(&format!("{name} #")), "{text}");
            }
            assert!(
                !text.contains("communicator 0") && !text.contains("create"),
                "{text}"
            );
        });
        ranks(&config(2, transports), |world| {
            let error = match world.rank() {
                0 => world.split(Some(0), 0).map(|_| ()).unwrap_err(),
                _ => world.duplicate().map(|_| ()).unwrap_err(),
            };
            let text = error.to_string();
            assert!(matches!(error, Error::Mismatch { .. }), "{text}");
            assert!(
                text.contains("split #0") && text.contains("duplicate #0"),
                "{text}"
            );
        });
        ranks(&config(2, transports), |world| {
            if world.rank() == 0 {
                world.abort("enough");
            }
            let text = world.barrier().unwrap_err().to_string();
            assert!(text.contains("aborted the world: enough"), "{text}");
        });
    }
}
