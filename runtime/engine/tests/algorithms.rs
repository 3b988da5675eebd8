//! Every algorithm of every collective over real connections, cut in many segments, against a plain
//! computation: over TCP alone, and as two hosts that share memory inside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{BOTH, TCP, config, ranks, ranks_with};
use rlaunch_runtime::{
    Algorithm, Call, Choice, Collective, Config, Counts, DType, Error, Op, Reduction, UserOp, World,
};
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

const I64: DType = DType::I64;

fn start(numbers: &[i64]) -> *const u8 {
    numbers.as_ptr().cast()
}

fn start_mut(numbers: &mut [i64]) -> *mut u8 {
    numbers.as_mut_ptr().cast()
}

struct Run<'a> {
    world: &'a World,
    choice: Choice,
    call: i64,
    at: String,
}

impl Run<'_> {
    /// By the algorithm that is this one's turn. The call's buffers are valid and outlive it.
    fn run(&self, call: Call) {
        let call = Call {
            schedule: Some(self.choice),
            ..call
        };
        // SAFETY: as is said above, and each call below does.
        unsafe { self.world.run(&call) }.unwrap();
    }

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

    fn prefixes(&self, collective: Collective, in_order: bool, mut own: Vec<i64>) {
        let rank = self.world.rank();
        let op = || match in_order {
            true => composition(),
            false => Op::Sum.into(),
        };
        let result = |index, ranks| match in_order {
            true => self.composed(index, ranks),
            false => self.sum(index, ranks),
        };
        let in_place = start_mut(&mut own);
        if collective == Collective::Scan {
            self.run(Call::scan(in_place, in_place, COUNT, I64, op()));
            self.expect(&own, |index| result(index, 0..rank + 1));
            return;
        }
        self.run(Call::exscan(in_place, in_place, COUNT, I64, op()));
        let expected = |index| match rank {
            0 => number(self.call, 0, index),
            _ => result(index, 0..rank),
        };
        self.expect(&own, expected);
    }

    /// Blocks of different lengths, some of none.
    fn lengths(&self) {
        let (rank, size) = (self.world.rank(), self.world.size());
        let lengths: Vec<usize> = (0..size as usize).map(|rank| rank * 97 % 300).collect();
        let own = vector(self.call, rank, lengths[rank as usize]);
        let mut output = vec![0; lengths.iter().sum()];
        let counts = Counts::contiguous(&[], &lengths);
        self.run(Call::all_gather_v(
            start(&own),
            start_mut(&mut output),
            I64,
            counts,
        ));
        let mut places = (0..size)
            .zip(&lengths)
            .flat_map(|(rank, count)| (0..*count).map(move |index| (rank, index)));
        for value in output {
            let (rank, index) = places.next().unwrap();
            assert_eq!(value, number(self.call, rank, index), "{}", self.at);
        }
    }

    fn vectors(&self, collective: Collective, in_order: bool) {
        let (rank, size) = (self.world.rank(), self.world.size());
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
                self.run(Call::all_reduce(
                    start(&own),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                    op(),
                ));
                self.expect(&output, |index| result(index, 0..size));
                let in_place = start_mut(&mut own);
                self.run(Call::all_reduce(in_place, in_place, COUNT, I64, op()));
                self.expect(&own, |index| result(index, 0..size));
            }
            Collective::Reduce => {
                let mut output = vec![0; if rank == root { COUNT } else { 0 }];
                self.run(Call::reduce(
                    start(&own),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                    op(),
                    root,
                ));
                self.expect(&output, |index| result(index, 0..size));
            }
            Collective::Scan | Collective::Exscan => self.prefixes(collective, in_order, own),
            Collective::ReduceScatter => {
                let input = vector(self.call, rank, COUNT * size as usize);
                let mut output = vec![0; COUNT];
                self.run(Call::reduce_scatter(
                    start(&input),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                    op(),
                ));
                let first = rank as usize * COUNT;
                self.expect(&output, |index| result(first + index, 0..size));
            }
            Collective::Broadcast => {
                self.run(Call::broadcast(start_mut(&mut own), COUNT, I64, root));
                self.expect(&own, |index| number(self.call, root, index));
            }
            _ => {}
        }
    }

    fn blocks(&self, collective: Collective) {
        let (rank, size) = (self.world.rank(), self.world.size());
        let root = self.call as u32 % size;
        let all = COUNT * size as usize;
        let own = vector(self.call, rank, COUNT);
        let many = vector(self.call, rank, all);
        let of_each = |index: usize| number(self.call, (index / COUNT) as u32, index % COUNT);
        match collective {
            Collective::AllGather => {
                let mut output = vec![0; all];
                self.run(Call::all_gather(
                    start(&own),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                ));
                self.expect(&output, of_each);
            }
            Collective::Gather => {
                let mut output = vec![0; if rank == root { all } else { 0 }];
                self.run(Call::gather(
                    start(&own),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                    root,
                ));
                self.expect(&output, of_each);
            }
            Collective::Scatter => {
                let mut output = vec![0; COUNT];
                let input = if rank == root { &many[..] } else { &[] };
                self.run(Call::scatter(
                    start(input),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                    root,
                ));
                let first = rank as usize * COUNT;
                self.expect(&output, |index| number(self.call, root, first + index));
            }
            Collective::AllToAll => {
                let mut output = vec![0; all];
                self.run(Call::all_to_all(
                    start(&many),
                    start_mut(&mut output),
                    COUNT,
                    I64,
                ));
                let first = rank as usize * COUNT;
                let from = |index: usize| (index / COUNT) as u32;
                self.expect(&output, |index| {
                    number(self.call, from(index), first + index % COUNT)
                });
            }
            Collective::AllGatherV => self.lengths(),
            _ => self.run(Call::barrier()),
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
                for in_order in [false, true] {
                    call += 1;
                    let at = format!(
                        "{collective} by {algorithm}, segments of {segment_bytes}, in order: \
                         {in_order}, rank {} of {}",
                        world.rank(),
                        world.size()
                    );
                    let run = Run {
                        world,
                        choice,
                        call,
                        at,
                    };
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
        let question = world
            .question(Collective::AllReduce, 1 << 20, Some((DType::F32, Op::Sum)))
            .unwrap();
        let predictions = world.explain(question).unwrap();
        assert!(predictions.len() > 3);
        assert_eq!(predictions.iter().filter(|one| one.is_chosen).count(), 1);
    });
}
