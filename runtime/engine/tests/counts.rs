//! v-calls whose counts don't fit each other: an error on every rank that names both sides and what
//! each gave, whichever way the call goes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{SHM, TCP, at_most, config, ranks};
use rlaunch_runtime::config::Transports;
use rlaunch_runtime::{Error, Op, World};

type Call = fn(&World, longer: usize) -> Result<(), Error>;

/// A long part passes through several blocks.
const PARTS: [usize; 2] = [3, 300_000];

fn counts(world: &World, part: usize) -> Vec<usize> {
    vec![part; world.size() as usize]
}

/// Rank 1 makes its call with `longer` elements more, where it has a say.
const CALLS: [(&str, Call); 7] = [
    ("all_gather_v", |world, longer| {
        let mut counts = counts(world, PARTS[0]);
        counts[0] += longer;
        let input = vec![1u16; counts[world.rank() as usize]];
        let mut output = vec![0; counts.iter().sum()];
        world.all_gather_v(&input, &mut output, &counts)
    }),
    // The sum is the same.
    ("all_gather_v moved", |world, longer| {
        let mut counts = counts(world, PARTS[1]);
        counts[0] += longer;
        counts[1] -= longer;
        let input = vec![1u16; counts[world.rank() as usize]];
        let mut output = vec![0; counts.iter().sum()];
        world.all_gather_v(&input, &mut output, &counts)
    }),
    ("reduce_scatter_v", |world, longer| {
        let mut counts = counts(world, PARTS[0]);
        counts[0] += longer;
        counts[1] -= longer;
        let input = vec![1i32; counts.iter().sum()];
        let mut output = vec![0; counts[world.rank() as usize]];
        world.reduce_scatter_v(&input, &counts, &mut output, Op::Sum)
    }),
    ("gather_v", |world, longer| {
        let counts = counts(world, PARTS[0]);
        let input = vec![1u8; PARTS[0] + longer];
        let mut output = vec![0; counts.iter().sum()];
        world.gather_v(&input, &mut output, &counts, 0)
    }),
    ("gather_v long", |world, longer| {
        let counts = counts(world, PARTS[1]);
        let input = vec![1u8; PARTS[1] + longer];
        let mut output = vec![0; counts.iter().sum()];
        world.gather_v(&input, &mut output, &counts, 0)
    }),
    ("scatter_v", |world, longer| {
        let counts = counts(world, PARTS[0]);
        let input = vec![1u8; counts.iter().sum()];
        let mut output = vec![0; PARTS[0] + longer];
        world.scatter_v(&input, &counts, &mut output, 0)
    }),
    ("all_to_all_v", |world, longer| {
        let send = counts(world, PARTS[0]);
        let mut recv = send.clone();
        recv[0] += longer;
        let input = vec![1f64; send.iter().sum()];
        let mut output = vec![0.0; recv.iter().sum()];
        world.all_to_all_v(&input, &send, &mut output, &recv)
    }),
];

fn differ(transports: Transports, size: u32, call: Call) -> Vec<Error> {
    ranks(&config(size, transports), |world| {
        let longer = if world.rank() == 1 { 2 } else { 0 };
        // Who is late in the barrier may hear of the others' next call before its end.
        (world.barrier())
            .and_then(|()| call(&world, longer))
            .and_then(|()| (0..50).try_for_each(|_| world.barrier()))
            .unwrap_err()
    })
}

#[test]
fn counts_that_differ_are_a_mismatch_on_every_rank() {
    for transports in [SHM, TCP] {
        for size in [2, 4] {
            for (name, call) in CALLS {
                let begin = Instant::now();
                for (rank, error) in differ(transports, size, call).into_iter().enumerate() {
                    let at = format!("{name}, {transports:?}, rank {rank} of {size}: {error}");
                    let Error::Mismatch {
                        left_rank,
                        right_rank,
                        detail,
                        ..
                    } = &error
                    else {
                        panic!("{at}");
                    };
                    assert!(left_rank.rank == 1 || right_rank.rank == 1, "{at}");
                    assert!(!detail.is_empty(), "{at}");
                }
                let took = begin.elapsed();
                assert!(took < at_most(Duration::from_secs(3)), "{name}: {took:?}");
            }
        }
    }
}

#[test]
fn counts_that_fit_are_none() {
    for transports in [SHM, TCP] {
        ranks(&config(3, transports), |world| {
            for (name, call) in CALLS {
                let result = call(&world, 0);
                assert_eq!(result, Ok(()), "{name}, {transports:?}");
            }
            world.finalize().unwrap();
        });
    }
}
