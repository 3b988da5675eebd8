//! What is promised of sums that have to be rounded: over TCP and between hosts as in shared memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{BOTH, SHM, TCP, config, ranks_with};
use rlaunch_runtime::{Call, Collective, Config, DType, Numbers, Op, World};

const PLAIN: Numbers = Numbers {
    precise: false,
    deterministic: false,
};
const PRECISE: Numbers = Numbers {
    precise: true,
    ..PLAIN
};
const DETERMINISTIC: Numbers = Numbers {
    deterministic: true,
    ..PLAIN
};
const REDUCING: [Collective; 6] = [
    Collective::AllReduce,
    Collective::Reduce,
    Collective::ReduceScatter,
    Collective::ReduceScatterV,
    Collective::Scan,
    Collective::Exscan,
];

/// How the ranks of a world lie: in one host's memory, on a host each, on two and on three hosts.
const PLACEMENTS: [&[u32]; 4] = [&[0], &[], &[0, 0, 0, 1, 1, 1], &[0, 1, 2, 0]];

/// Runs on a world of `size` in each placement; results by placement and rank.
fn everywhere<R: Send>(
    size: u32,
    numbers: Numbers,
    body: impl Fn(&World) -> R + Sync,
) -> Vec<(String, Vec<R>)> {
    let each = PLACEMENTS.iter().map(|hosts| {
        let transports = match hosts {
            [0] => SHM,
            [] => TCP,
            _ => BOTH,
        };
        let on_host = |config: Config| {
            let host = hosts.iter().cycle().nth(config.rank as usize);
            Config {
                host_id: host.map(|host| format!("host {host}")),
                numbers,
                ..config
            }
        };
        let results = ranks_with(&config(size, transports), on_host, |world: World| {
            let result = body(&world);
            world.finalize().unwrap();
            result
        });
        (
            format!("{size} ranks on {hosts:?} with {numbers:?}"),
            results,
        )
    });
    each.collect()
}

/// What rank `rank` has after a call on `of_rank`'s elements, of which each rank has `count` (in a
/// reduce_scatter for each other); nothing where it has no result.
fn reduce<T: Copy + Default>(
    world: &World,
    collective: Collective,
    (dtype, op): (DType, Op),
    count: usize,
    of_rank: impl Fn(u32, usize) -> T,
) -> Vec<T> {
    let (rank, size) = (world.rank(), world.size());
    let is_in_blocks = matches!(
        collective,
        Collective::ReduceScatter | Collective::ReduceScatterV
    );
    let given = if is_in_blocks {
        count * size as usize
    } else {
        count
    };
    let input: Vec<T> = (0..given).map(|index| of_rank(rank, index)).collect();
    let mut output = vec![T::default(); count];
    let (from, to) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
    let call = match collective {
        Collective::AllReduce => Call::all_reduce(from, to, count, dtype, op),
        Collective::Reduce => Call::reduce(from, to, count, dtype, op, size - 1),
        Collective::ReduceScatter => Call::reduce_scatter(from, to, count, dtype, op),
        Collective::ReduceScatterV => {
            let lengths = vec![count; size as usize];
            let counts = rlaunch_runtime::Counts::contiguous(&[], &lengths);
            Call::reduce_scatter_v(from, to, dtype, counts, op)
        }
        Collective::Scan => Call::scan(from, to, count, dtype, op),
        _ => Call::exscan(from, to, count, dtype, op),
    };
    // SAFETY: the buffers have the lengths that the call says, and outlive it.
    unsafe { world.run(&call) }.unwrap();
    let has_none = match collective {
        Collective::Reduce => rank != size - 1,
        Collective::Exscan => rank == 0,
        _ => false,
    };
    if has_none {
        output.clear();
    }
    output
}

/// The contributions that rank `rank`'s result is made of, and the index of its first element.
fn summands(collective: Collective, rank: u32, size: u32, count: usize) -> (u32, usize) {
    match collective {
        Collective::ReduceScatter | Collective::ReduceScatterV => (size, rank as usize * count),
        Collective::Scan => (rank + 1, 0),
        Collective::Exscan => (rank, 0),
        _ => (size, 0),
    }
}

/// A bfloat16 of a whole number that it can hold.
fn bf16(number: f32) -> u16 {
    (number.to_bits() >> 16) as u16
}

/// 256 and then ones: in bfloat16, whose next number is 258, each one alone is lost.
#[test]
fn a_precise_sum_is_rounded_once() {
    let contribution = |rank: u32, _| bf16(if rank == 0 { 256.0 } else { 1.0 });
    for (count, size) in [(1, 4), (5, 6), (70_000, 6)] {
        for numbers in [PRECISE, DETERMINISTIC] {
            for collective in REDUCING {
                let results = everywhere(size, numbers, |world| {
                    reduce(
                        world,
                        collective,
                        (DType::BF16, Op::Sum),
                        count,
                        contribution,
                    )
                });
                for (at, results) in results {
                    for (rank, result) in (0..).zip(results) {
                        let (ranks, _) = summands(collective, rank, size, count);
                        let exact = 255 + ranks;
                        // To the next even number; of two as near, to a multiple of four.
                        let rounded = match exact % 4 {
                            1 => exact - 1,
                            3 => exact + 1,
                            _ => exact,
                        };
                        let wanted = bf16(rounded as f32);
                        assert!(
                            result.iter().all(|found| *found == wanted),
                            "{collective} of {count}, {at}, rank {rank}: {:?}, not {wanted}",
                            result[0]
                        );
                    }
                }
            }
        }
    }
}

/// A sum of these is too large for a float16, their average is not.
#[test]
fn an_average_divides_before_it_rounds() {
    const LARGE: u16 = 0x7B53; // 60,000 and a bit
    for (count, size) in [(1, 2), (3, 4), (70_000, 5)] {
        for collective in &REDUCING[..4] {
            let results = everywhere(size, PLAIN, |world| {
                reduce(world, *collective, (DType::F16, Op::Avg), count, |_, _| {
                    LARGE
                })
            });
            for (at, results) in results {
                for result in results {
                    assert!(
                        result.iter().all(|found| *found == LARGE),
                        "{collective} of {count}, {at}: {:#x}",
                        result[0]
                    );
                }
            }
        }
    }
}

/// Numbers of which each order of summing makes others.
fn uneven(rank: u32, index: usize) -> f32 {
    let mixed = (index as u32)
        .wrapping_mul(2_654_435_761)
        .wrapping_add(rank.wrapping_mul(40_503))
        .wrapping_mul(2_246_822_519);
    let exponent = 2_f32.powi((mixed >> 27) as i32 - 16);
    (f32::from((mixed >> 8) as u16) - 30_000.0) * exponent
}

#[test]
fn a_deterministic_sum_is_the_one_from_the_first_rank_on() {
    for (count, size) in [(1, 3), (65, 6), (40_003, 6)] {
        for collective in REDUCING {
            let results = everywhere(size, DETERMINISTIC, |world| {
                reduce(world, collective, (DType::F32, Op::Sum), count, uneven)
            });
            for (at, results) in results {
                for (rank, result) in (0..).zip(results) {
                    let (ranks, first) = summands(collective, rank, size, count);
                    for (index, found) in result.iter().enumerate() {
                        let of_all = (0..ranks).map(|rank| uneven(rank, first + index));
                        let wanted = of_all.reduce(|sum, next| sum + next).unwrap();
                        assert_eq!(
                            found.to_bits(),
                            wanted.to_bits(),
                            "{collective} of {count}, {at}, rank {rank}, element {index}: {found}, \
                             not {wanted}"
                        );
                    }
                }
            }
        }
    }
}
