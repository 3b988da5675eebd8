//! The sweeps.

use rlaunch_runtime::config::Transports;
use rlaunch_runtime::{Call, Collective, Config, DType, Numbers, Op, World};

use crate::cases::{Case, Memory, reductions};
use crate::common::{BOTH, SHM, TCP, config, ranks, ranks_with};
use crate::cover::covering;
use crate::run::check;

/// Runs the cases one after the other on all ranks of a new world.
fn all(transports: Transports, world_size: u32, cases: &[Case]) {
    all_in(&config(world_size, transports), cases);
}

fn all_in(config: &Config, cases: &[Case]) {
    all_with(config, |config| config, cases);
}

fn all_with(config: &Config, change: impl Fn(Config) -> Config, cases: &[Case]) {
    let (transports, algorithm) = (config.transports, &config.algorithm);
    let failures: Vec<Option<String>> = ranks_with(config, change, |world: World| {
        let outcome = cases.iter().find_map(|case| {
            check(&world, case)
                .err()
                .map(|what| format!("{case:?} on {transports:?} by {algorithm:?}: {what}"))
        });
        if outcome.is_none() {
            world.finalize().unwrap();
        }
        outcome
    });
    if let Some(failure) = failures.into_iter().flatten().next() {
        panic!("{failure}");
    }
}

fn simple(collective: Collective, dtype: DType, op: Op, count: usize) -> Case {
    Case {
        collective,
        dtype,
        op,
        count,
        root: 0,
        is_in_place: false,
        is_shifted: false,
        is_non_blocking: false,
        memory: Memory::Own,
    }
}

/// Every type with every operation at every count around the widths of vectors and cache lines.
fn types_and_operations(transports: Transports) {
    let collectives = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::Reduce,
    ];
    for world_size in 1..=4 {
        let mut cases = Vec::new();
        for (number, (dtype, op)) in reductions().into_iter().enumerate() {
            for count in 0..=65 {
                // All_reduce at every count, the others in turn.
                let collective = collectives[if count % 3 == 0 {
                    (number + count / 3) % 3
                } else {
                    0
                }];
                cases.push(Case {
                    is_in_place: count % 2 == 1,
                    is_shifted: count % 5 == 4,
                    ..simple(collective, dtype, op, count)
                });
            }
        }
        all(transports, world_size, &cases);
    }
}

#[test]
fn types_and_operations_in_shared_memory() {
    types_and_operations(SHM);
}

#[test]
fn types_and_operations_over_tcp() {
    types_and_operations(TCP);
}

const WORLDS: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17];
const COUNTS: [usize; 12] = [0, 1, 2, 3, 7, 63, 64, 65, 4095, 4096, 4097, 33_001];

fn covered(transports: Transports, seed: u64) {
    let cases = covering(&WORLDS, &COUNTS, seed);
    for (world_size, cases) in WORLDS.iter().zip(&cases) {
        all(transports, *world_size, cases);
    }
}

#[test]
fn covering_array_in_shared_memory() {
    covered(SHM, 1);
}

#[test]
fn covering_array_over_tcp() {
    covered(TCP, 2);
}

#[test]
fn covering_array_over_what_is_found() {
    covered(BOTH, 3);
}

/// The same where ranks lie on two hosts, one after the other or in turn, or on hosts of three sizes; and
/// with what users can ask of the numbers, which changes no exact result.
#[test]
fn covering_array_between_hosts() {
    let cases = covering(&WORLDS, &COUNTS, 5);
    let placements: [&dyn Fn(u32, u32) -> u32; 3] = [
        &|rank, world| rank / world.div_ceil(2),
        &|rank, _| rank % 2,
        &|rank, _| (rank + 1).ilog2(),
    ];
    for (number, (world_size, cases)) in WORLDS.iter().zip(&cases).enumerate() {
        let place = placements[number % placements.len()];
        let config = Config {
            numbers: Numbers {
                precise: number % 4 == 1,
                deterministic: number % 4 == 3,
            },
            ..config(*world_size, BOTH)
        };
        let on_host = |config: Config| Config {
            host_id: Some(format!("host {}", place(config.rank, config.world_size))),
            ..config
        };
        all_with(&config, on_host, cases);
    }
}

/// Whatever is chosen by cost, each algorithm by itself is right.
#[test]
fn each_algorithm() {
    const ALGORITHMS: [&str; 11] = [
        "ring",
        "recursive_doubling",
        "halving_doubling",
        "tree",
        "bruck",
        "pairwise",
        "binomial",
        "scatter_all_gather",
        "chain",
        "linear",
        "dissemination",
    ];
    let counts = [0, 1, 5, 64, 1009, 33_001];
    let worlds = [2, 3, 4, 5, 6, 7, 8, 9];
    let cases = covering(&worlds, &counts, 4);
    for (number, algorithm) in ALGORITHMS.iter().enumerate() {
        for (world_size, cases) in worlds.iter().zip(&cases) {
            // Each world meets a sixth of the cases by each algorithm.
            let cases: Vec<Case> = cases.iter().copied().skip(number % 6).step_by(6).collect();
            let config = Config {
                algorithm: Some((*algorithm).into()),
                ..config(*world_size, TCP)
            };
            all_in(&config, &cases);
        }
    }
}

/// No multiple of any segment, and longer than several.
#[test]
fn a_million_and_three() {
    for transports in [SHM, TCP] {
        for world_size in [2, 3, 4] {
            let sums = [DType::F32, DType::BF16]
                .map(|dtype| simple(Collective::AllReduce, dtype, Op::Sum, 1_000_003));
            all(transports, world_size, &sums);
        }
    }
}

/// Buffers from the runtime, long enough for each way that reads them in place, over several blocks.
#[test]
fn long_buffers_from_the_runtime() {
    let collectives = [
        Collective::AllReduce,
        Collective::Reduce,
        Collective::ReduceScatter,
        Collective::AllGather,
        Collective::Broadcast,
        Collective::AllToAll,
        Collective::Gather,
        Collective::Scatter,
        Collective::Scan,
        Collective::Exscan,
    ];
    for world_size in [2, 3, 4] {
        let mut cases = Vec::new();
        for collective in collectives {
            // Each way of an all-reduce begins at another length.
            let counts = match collective {
                Collective::AllReduce => [100_003, 300_001, 300_001],
                _ => [20_003, 80_001, 80_001],
            };
            for (count, is_in_place) in counts.into_iter().zip([false, false, true]) {
                for memory in [Memory::Shared, Memory::Mixed] {
                    cases.push(Case {
                        is_in_place,
                        memory,
                        is_shifted: memory == Memory::Mixed,
                        root: world_size - 1,
                        ..simple(collective, DType::I32, Op::Sum, count)
                    });
                }
            }
        }
        all(SHM, world_size, &cases);
    }
}

/// Counts and offsets past 32 bits. Needs 5 GiB, so it is left out where they aren't there.
#[test]
fn more_bytes_than_31_bits_count() {
    const COUNT: usize = (1 << 31) + 3;
    if available_bytes() < 9 << 30 {
        eprintln!("left out: less than 9 GiB of memory available");
        return;
    }
    ranks(&config(2, SHM), |world: World| {
        let mut buffer = vec![0u8; COUNT];
        let places = [0, 1 << 20, (1 << 31) - 1, 1 << 31, COUNT - 1];
        for place in places {
            buffer[place] = 3 + world.rank() as u8;
        }
        let pointer = buffer.as_mut_ptr();
        let call = Call::all_reduce(pointer, pointer, COUNT, DType::I8, Op::Sum);
        // SAFETY: the buffer has that many bytes.
        unsafe { world.run(&call) }.unwrap();
        for place in places {
            assert_eq!(buffer[place], 7, "at {place}");
        }
        assert_eq!(
            buffer.iter().filter(|byte| **byte != 0).count(),
            places.len()
        );
        world.finalize().unwrap();
    });
}

fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}
