//! Every algorithm of every collective over real connections, cut in many segments, against a plain
//! computation: over TCP alone, and as two hosts that share memory inside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{BOTH, TCP, config, ranks, ranks_with};
use rlaunch_runtime::{Algorithm, Choice, Collective, Config, Error, Op, Reduction, UserOp, World};
use std::sync::Arc;

const COUNT: usize = 701;

/// Rank `rank`'s element, for a call numbered `call`.
fn number(call: i64, rank: u32, index: usize) -> i64 {
    (call * 31 + i64::from(rank) * 7 + index as i64 * 3) % 1000
}

fn vector(call: i64, rank: u32, length: usize) -> Vec<i64> {
    (0..length).map(|index| number(call, rank, index)).collect()
}

/// An operation that does not commute, nor lose anything: x → m x + a, one after another.
fn compose(first: i64, second: i64) -> i64 {
    let split = |map: i64| ((map as u64 >> 32) as u32 | 1, map as u32);
    let ((m, a), (n, b)) = (split(first), split(second));
    let (factor, offset) = (m.wrapping_mul(n), a.wrapping_mul(n).wrapping_add(b));
    (u64::from(factor) << 32 | u64::from(offset)) as i64
}

fn composition() -> Reduction {
    let function = |inout: *mut u8, input: *const u8, count: usize| {
        let (inout, input) = (inout.cast::<i64>(), input.cast::<i64>());
        for index in 0..count {
            // SAFETY: the runtime gives as many elements as it says.
            let (first, second) = unsafe {
                (
                    inout.add(index).read_unaligned(),
                    input.add(index).read_unaligned(),
                )
            };
            // SAFETY: as above.
            unsafe { inout.add(index).write_unaligned(compose(first, second)) };
        }
    };
    Reduction::user(UserOp {
        function: Arc::new(function),
        is_commutative: false,
    })
}

struct Run<'a> {
    world: &'a World,
    call: i64,
    at: String,
}

impl Run<'_> {
    fn sum(&self, index: usize, ranks: std::ops::Range<u32>) -> i64 {
        ranks.map(|rank| number(self.call, rank, index)).sum()
    }

    fn composed(&self, index: usize, ranks: std::ops::Range<u32>) -> i64 {
        let numbers = ranks.map(|rank| number(self.call, rank, index));
        numbers.reduce(compose).unwrap_or_default()
    }

    fn expect(&self, found: &[i64], expected: impl Fn(usize) -> i64) {
        for (index, value) in found.iter().enumerate() {
            assert_eq!(*value, expected(index), "{}, element {index}", self.at);
        }
    }

    fn vectors(&self, collective: Collective, in_order: bool) {
        let (world, rank, size) = (self.world, self.world.rank(), self.world.size());
        let op = || {
            if in_order {
                composition()
            } else {
                Op::Sum.into()
            }
        };
        let result = |index, ranks| match in_order {
            true => self.composed(index, ranks),
            false => self.sum(index, ranks),
        };
        let root = self.call as u32 % size;
        let mut own = vector(self.call, rank, COUNT);
        match collective {
            Collective::AllReduce => {
                let mut output = vec![0; COUNT];
                world.all_reduce_into(&own, &mut output, op()).unwrap();
                self.expect(&output, |index| result(index, 0..size));
                world.all_reduce(&mut own, op()).unwrap();
                self.expect(&own, |index| result(index, 0..size));
            }
            Collective::Reduce => {
                let mut output = vec![0; if rank == root { COUNT } else { 0 }];
                world.reduce(&own, &mut output, op(), root).unwrap();
                self.expect(&output, |index| result(index, 0..size));
            }
            Collective::Scan => {
                world.scan(&mut own, op()).unwrap();
                self.expect(&own, |index| result(index, 0..rank + 1));
            }
            Collective::Exscan => {
                world.exscan(&mut own, op()).unwrap();
                let expected = |index| match rank {
                    0 => number(self.call, 0, index),
                    _ => result(index, 0..rank),
                };
                self.expect(&own, expected);
            }
            Collective::ReduceScatter => {
                let input = vector(self.call, rank, COUNT * size as usize);
                let mut output = vec![0; COUNT];
                world.reduce_scatter(&input, &mut output, op()).unwrap();
                let first = rank as usize * COUNT;
                self.expect(&output, |index| result(first + index, 0..size));
            }
            Collective::Broadcast => {
                world.broadcast(&mut own, root).unwrap();
                self.expect(&own, |index| number(self.call, root, index));
            }
            _ => {}
        }
    }

    fn blocks(&self, collective: Collective) {
        let (world, rank, size) = (self.world, self.world.rank(), self.world.size());
        let root = self.call as u32 % size;
        let all = COUNT * size as usize;
        let own = vector(self.call, rank, COUNT);
        let many = vector(self.call, rank, all);
        let of_each = |index: usize| number(self.call, (index / COUNT) as u32, index % COUNT);
        match collective {
            Collective::AllGather => {
                let mut output = vec![0; all];
                world.all_gather(&own, &mut output).unwrap();
                self.expect(&output, of_each);
            }
            Collective::Gather => {
                let mut output = vec![0; if rank == root { all } else { 0 }];
                world.gather(&own, &mut output, root).unwrap();
                self.expect(&output, of_each);
            }
            Collective::Scatter => {
                let mut output = vec![0; COUNT];
                let input = if rank == root { &many[..] } else { &[] };
                world.scatter(input, &mut output, root).unwrap();
                let first = rank as usize * COUNT;
                self.expect(&output, |index| number(self.call, root, first + index));
            }
            Collective::AllToAll => {
                let mut output = vec![0; all];
                world.all_to_all(&many, &mut output).unwrap();
                let first = rank as usize * COUNT;
                let from = |index: usize| (index / COUNT) as u32;
                self.expect(&output, |index| {
                    number(self.call, from(index), first + index % COUNT)
                });
            }
            Collective::AllGatherV => {
                let counts: Vec<usize> = (0..size as usize).map(|rank| rank * 97 % 300).collect();
                let own = vector(self.call, rank, counts[rank as usize]);
                let mut output = vec![0; counts.iter().sum()];
                world.all_gather_v(&own, &mut output, &counts).unwrap();
                let mut places = (0..size)
                    .zip(&counts)
                    .flat_map(|(rank, count)| (0..*count).map(move |index| (rank, index)));
                for value in output {
                    let (rank, index) = places.next().unwrap();
                    assert_eq!(value, number(self.call, rank, index), "{}", self.at);
                }
            }
            _ => world.barrier().unwrap(),
        }
    }
}

fn run_all(world: &World) {
    let mut call = 0;
    for &collective in Collective::ALL {
        for algorithm in Algorithm::serving(collective) {
            for segment_bytes in [512, 1 << 20] {
                let choice = Choice {
                    algorithm,
                    segment_bytes,
                };
                world.set_choice(Some(choice)).unwrap();
                for in_order in [false, true] {
                    call += 1;
                    let at = format!(
                        "{collective} by {algorithm}, segments of {segment_bytes}, in order: \
                         {in_order}, rank {} of {}",
                        world.rank(),
                        world.size()
                    );
                    let run = Run { world, call, at };
                    run.vectors(collective, in_order);
                    run.blocks(collective);
                }
            }
        }
    }
}

#[test]
fn over_tcp() {
    for size in [2, 4, 5, 7] {
        ranks(&config(size, TCP), |world| run_all(&world));
    }
}

/// Two hosts of two and three ranks, filled one after the other and in turn.
#[test]
fn between_hosts_of_several_ranks() {
    for host_of in [[0, 0, 1, 1, 1], [0, 1, 0, 1, 0]] {
        let on_host = |config: Config| Config {
            host_id: Some(format!("host {}", host_of[config.rank as usize])),
            ..config
        };
        ranks_with(&config(5, BOTH), on_host, |world| run_all(&world));
    }
}

/// Ranks that would choose differently don't begin.
#[test]
fn different_preferences_are_found_at_init() {
    let config = config(2, TCP);
    let errors = std::thread::scope(|scope| {
        let threads = [None, Some("ring")]
            .into_iter()
            .zip(0..)
            .map(|(algorithm, rank)| {
                let config = Config {
                    rank,
                    algorithm: algorithm.map(str::to_owned),
                    ..config.clone()
                };
                scope.spawn(move || World::new(config).map(|_| ()))
            });
        let threads: Vec<_> = threads.collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.collect::<Vec<Result<(), Error>>>()
    });
    for error in errors {
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("rank 1") && error.contains("RLAUNCH_ALGO"),
            "{error}"
        );
    }
}

/// A model's predictions are there for every call that has algorithms.
#[test]
fn predictions_hold_the_choice() {
    ranks(&config(3, TCP), |world| {
        let question = world.question(Collective::AllReduce, 1 << 20).unwrap();
        let predictions = world.explain(question).unwrap();
        assert!(predictions.len() > 3);
        assert_eq!(predictions.iter().filter(|one| one.is_chosen).count(), 1);
    });
}
