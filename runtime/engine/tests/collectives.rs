//! Every collective, against a plain computation: over shared memory, TCP and both; in worlds of 1
//! to 9; in place and not; equal parts and parts of any length.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::{BOTH, SHM, TCP, config, ranks, ranks_with};
use rlaunch_runtime::config::Transports;
use rlaunch_runtime::{Call, Communicator, Config, Counts, DType, Op, Reduction, UserOp};

fn value(rank: u32, index: usize) -> i64 {
    (rank as i64 + 1) * 1000 + (index as i64 * 7) % 911
}

fn values(rank: u32, count: usize) -> Vec<i64> {
    (0..count).map(|index| value(rank, index)).collect()
}

fn sum(ranks: std::ops::Range<u32>, index: usize) -> i64 {
    ranks.map(|rank| value(rank, index)).sum()
}

/// Elements that rank `rank` has in a v-variant.
fn length(rank: u32, count: usize) -> usize {
    if rank.is_multiple_of(3) {
        0
    } else {
        count + rank as usize
    }
}

/// The vector collectives and the blocks, through the typed calls.
fn check_equal(world: &Communicator, count: usize, root: u32) {
    let (me, size) = (world.rank(), world.size());
    let at = format!("rank {me} of {size}, count {count}, root {root}");
    let all = size as usize * count;
    let mine = values(me, count);
    let reduced: Vec<i64> = (0..count).map(|index| sum(0..size, index)).collect();

    let mut output = vec![-1; count];
    world.all_reduce_into(&mine, &mut output, Op::Sum).unwrap();
    assert_eq!(output, reduced, "all_reduce, {at}");
    let mut buffer = mine.clone();
    world.all_reduce(&mut buffer, Op::Sum).unwrap();
    assert_eq!(buffer, reduced, "all_reduce in place, {at}");

    let mut output = vec![-1; if me == root { count } else { 0 }];
    world.reduce(&mine, &mut output, Op::Sum, root).unwrap();
    assert!(me != root || output == reduced, "reduce, {at}");

    let mut buffer = mine.clone();
    world.broadcast(&mut buffer, root).unwrap();
    assert_eq!(buffer, values(root, count), "broadcast, {at}");

    let gathered: Vec<i64> = (0..size).flat_map(|rank| values(rank, count)).collect();
    let mut output = vec![-1; all];
    world.all_gather(&mine, &mut output).unwrap();
    assert_eq!(output, gathered, "all_gather, {at}");

    let mut output = vec![-1; if me == root { all } else { 0 }];
    world.gather(&mine, &mut output, root).unwrap();
    assert!(me != root || output == gathered, "gather, {at}");

    let input = if me == root {
        values(root, all)
    } else {
        Vec::new()
    };
    let mut output = vec![-1; count];
    world.scatter(&input, &mut output, root).unwrap();
    let part: Vec<i64> = (0..count)
        .map(|index| value(root, me as usize * count + index))
        .collect();
    assert_eq!(output, part, "scatter, {at}");

    let whole = values(me, all);
    let mut output = vec![-1; count];
    world.reduce_scatter(&whole, &mut output, Op::Sum).unwrap();
    let part: Vec<i64> = (0..count)
        .map(|index| sum(0..size, me as usize * count + index))
        .collect();
    assert_eq!(output, part, "reduce_scatter, {at}");

    let exchanged: Vec<i64> = (0..size)
        .flat_map(|rank| (0..count).map(move |index| value(rank, me as usize * count + index)))
        .collect();
    let mut output = vec![-1; all];
    world.all_to_all(&whole, &mut output).unwrap();
    assert_eq!(output, exchanged, "all_to_all, {at}");

    let mut buffer = mine.clone();
    world.scan(&mut buffer, Op::Sum).unwrap();
    let part: Vec<i64> = (0..count).map(|index| sum(0..me + 1, index)).collect();
    assert_eq!(buffer, part, "scan, {at}");
    let mut buffer = mine.clone();
    world.exscan(&mut buffer, Op::Sum).unwrap();
    let part: Vec<i64> = (0..count).map(|index| sum(0..me, index)).collect();
    assert_eq!(buffer, if me == 0 { mine } else { part }, "exscan, {at}");
    world.barrier().unwrap();
}

/// In place, by pointer, where the typed calls can't say it.
fn check_in_place(world: &Communicator, count: usize, root: u32) {
    let (me, size) = (world.rank(), world.size());
    let at = format!("in place, rank {me} of {size}, count {count}, root {root}");
    let all = size as usize * count;
    let own = me as usize * count;
    let run = |call: Call| {
        // SAFETY: each call's buffers below have room for all ranks' parts.
        unsafe { world.run(&call) }.unwrap();
    };
    let gathered: Vec<i64> = (0..size).flat_map(|rank| values(rank, count)).collect();

    let mut buffer = vec![-1i64; all];
    buffer[own..own + count].copy_from_slice(&values(me, count));
    let output: *mut u8 = buffer.as_mut_ptr().cast();
    let input = output.wrapping_add(own * 8);
    run(Call::all_gather(input, output, count, DType::I64));
    assert_eq!(buffer, gathered, "all_gather {at}");

    let mut buffer = vec![-1i64; all];
    buffer[own..own + count].copy_from_slice(&values(me, count));
    let output: *mut u8 = buffer.as_mut_ptr().cast();
    let input = output.wrapping_add(own * 8);
    run(Call::gather(input, output, count, DType::I64, root));
    assert!(me != root || buffer == gathered, "gather {at}");

    let mut buffer = values(me, all);
    let input: *mut u8 = buffer.as_mut_ptr().cast();
    let output = input.wrapping_add(own * 8);
    run(Call::reduce_scatter(
        input,
        output,
        count,
        DType::I64,
        Op::Sum,
    ));
    let part: Vec<i64> = (0..count).map(|index| sum(0..size, own + index)).collect();
    assert_eq!(buffer[own..own + count], part, "reduce_scatter {at}");

    let mut buffer = values(me, all);
    let input: *mut u8 = buffer.as_mut_ptr().cast();
    let output = input.wrapping_add(own * 8);
    run(Call::scatter(input, output, count, DType::I64, root));
    let part: Vec<i64> = (0..count).map(|index| value(root, own + index)).collect();
    assert_eq!(buffer[own..own + count], part, "scatter {at}");

    let mut buffer = values(me, all);
    let place: *mut u8 = buffer.as_mut_ptr().cast();
    run(Call::all_to_all(place, place, count, DType::I64));
    let exchanged: Vec<i64> = (0..size)
        .flat_map(|rank| (0..count).map(move |index| value(rank, own + index)))
        .collect();
    assert_eq!(buffer, exchanged, "all_to_all {at}");

    let mut buffer = values(me, count);
    let place: *mut u8 = buffer.as_mut_ptr().cast();
    run(Call::reduce(place, place, count, DType::I64, Op::Sum, root));
    let reduced: Vec<i64> = (0..count).map(|index| sum(0..size, index)).collect();
    assert!(me != root || buffer == reduced, "reduce {at}");
}

/// Parts of any length, some of them empty.
fn check_counts(world: &Communicator, count: usize, root: u32) {
    let (me, size) = (world.rank(), world.size());
    let at = format!("rank {me} of {size}, count {count}, root {root}");
    let counts: Vec<usize> = (0..size).map(|rank| length(rank, count)).collect();
    let own = counts[me as usize];
    let before: usize = counts[..me as usize].iter().sum();
    let total: usize = counts.iter().sum();
    let gathered: Vec<i64> = (0..size)
        .flat_map(|rank| values(rank, length(rank, count)))
        .collect();
    let mine = values(me, own);

    let mut output = vec![-1; total];
    world.all_gather_v(&mine, &mut output, &counts).unwrap();
    assert_eq!(output, gathered, "all_gather_v, {at}");

    let mut output = vec![-1; if me == root { total } else { 0 }];
    let known = if me == root { &counts[..] } else { &[] };
    world.gather_v(&mine, &mut output, known, root).unwrap();
    assert!(me != root || output == gathered, "gather_v, {at}");

    let input = if me == root {
        values(root, total)
    } else {
        Vec::new()
    };
    let mut output = vec![-1; own];
    world.scatter_v(&input, known, &mut output, root).unwrap();
    let part: Vec<i64> = (0..own).map(|index| value(root, before + index)).collect();
    assert_eq!(output, part, "scatter_v, {at}");

    let input = values(me, total);
    let mut output = vec![-1; own];
    world
        .reduce_scatter_v(&input, &counts, &mut output, Op::Sum)
        .unwrap();
    let part: Vec<i64> = (0..own).map(|index| sum(0..size, before + index)).collect();
    assert_eq!(output, part, "reduce_scatter_v, {at}");

    // Rank a sends (a + 2b) % 5 + count elements to rank b.
    let pair = |from: u32, to: u32| (from as usize + 2 * to as usize) % 5 + count;
    let send: Vec<usize> = (0..size).map(|to| pair(me, to)).collect();
    let recv: Vec<usize> = (0..size).map(|from| pair(from, me)).collect();
    let input = values(me, send.iter().sum());
    let mut output = vec![-1; recv.iter().sum()];
    world
        .all_to_all_v(&input, &send, &mut output, &recv)
        .unwrap();
    let exchanged: Vec<i64> = (0..size)
        .flat_map(|from| {
            let before: usize = (0..me).map(|to| pair(from, to)).sum();
            (0..pair(from, me)).map(move |index| value(from, before + index))
        })
        .collect();
    assert_eq!(output, exchanged, "all_to_all_v, {at}");
}

fn check_all(world: &Communicator, counts: &[usize]) {
    for count in counts {
        let root = (*count as u32 + 1) % world.size();
        check_equal(world, *count, root);
        check_in_place(world, *count, root);
        check_counts(world, *count, root);
    }
}

const COUNTS: &[usize] = &[0, 1, 3, 65, 1000, 20_011];

fn sweep(transports: Transports, sizes: std::ops::RangeInclusive<u32>) {
    for size in sizes {
        ranks(&config(size, transports), |world| {
            check_all(&world, if size > 5 { &COUNTS[..5] } else { COUNTS });
            world.finalize().unwrap();
        });
    }
}

#[test]
fn over_shared_memory() {
    sweep(SHM, 1..=9);
}

#[test]
fn over_tcp() {
    sweep(TCP, 2..=9);
}

/// As on two hosts: ranks 0 and 1 share memory, the others nothing.
#[test]
fn over_both() {
    for size in [3, 5, 8] {
        let change = |config: Config| Config {
            transports: if config.rank < 2 { BOTH } else { TCP },
            ..config
        };
        ranks_with(&config(size, BOTH), change, |world| {
            check_all(&world, &COUNTS[1..]);
            world.finalize().unwrap();
        });
    }
}

/// Several hosts with several ranks: even and uneven, one after another and in turns.
#[test]
fn over_hosts_with_several_ranks() {
    let hosts: [&[u32]; 4] = [
        &[0, 0, 1, 1],
        &[0, 1, 0, 1, 0],
        &[0, 1, 1, 1],
        &[2, 0, 1, 1, 0, 2, 2],
    ];
    for hosts in hosts {
        let change = |config: Config| Config {
            host_id: Some(hosts[config.rank as usize].to_string()),
            ..config
        };
        ranks_with(&config(hosts.len() as u32, BOTH), change, |world| {
            check_all(&world, &COUNTS[..5]);
            let mut buffer = vec![world.rank() as i32 - 3; 5000];
            world.all_reduce(&mut buffer, Op::Avg).unwrap();
            let sum: i32 = (0..world.size() as i32).map(|rank| rank - 3).sum();
            assert_eq!(buffer, vec![sum / world.size() as i32; 5000]);
            let mut buffer = vec![1.0f32; 300_000];
            world
                .all_reduce(&mut buffer, Reduction::premul_sum(2.0f32))
                .unwrap();
            assert_eq!(buffer, vec![2.0 * world.size() as f32; 300_000]);
            world.finalize().unwrap();
        });
    }
}

#[test]
fn averages_products_with_scalars_and_users_operations() {
    for transports in [SHM, TCP] {
        ranks(&config(4, transports), |world| {
            let me = world.rank();
            for count in [3usize, 5000] {
                let mut buffer = vec![me as i32 - 3; count];
                world.all_reduce(&mut buffer, Op::Avg).unwrap();
                // (-3 -2 -1 0) / 4, truncated.
                assert_eq!(buffer, vec![-1; count]);

                let mut buffer = vec![me as f32; count];
                let scaled = Reduction::premul_sum(0.5f32 * (me + 1) as f32);
                world.all_reduce(&mut buffer, scaled).unwrap();
                assert_eq!(buffer, vec![10.0; count]);

                // Neither commutes nor cares where it is cut: the last one wins.
                let function = |inout: *mut u8, input: *const u8, count: usize| {
                    // SAFETY: both are `count` elements of the call's type.
                    unsafe { std::ptr::copy_nonoverlapping(input, inout, count * 8) };
                };
                let last = Reduction::user(UserOp {
                    function: Arc::new(function),
                    is_commutative: false,
                });
                let mut buffer = vec![i64::from(me); count];
                world.all_reduce(&mut buffer, last.clone()).unwrap();
                assert_eq!(buffer, vec![3; count]);
                let mut buffer = vec![i64::from(me); count];
                world.scan(&mut buffer, last).unwrap();
                assert_eq!(buffer, vec![i64::from(me); count]);
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn what_can_not_be_is_refused_and_harms_nothing() {
    ranks(&config(2, SHM), |world| {
        let mut floats = [0.0f32; 4];
        let place: *mut u8 = floats.as_mut_ptr().cast();
        let wrong = [
            Call::all_reduce(place, place, 4, DType::F32, Op::Band),
            Call::all_reduce(place, place, 4, DType::F32, Op::PremulSum),
            Call::scan(place, place, 4, DType::F32, Op::Avg),
            Call::broadcast(place, 4, DType::F32, 2),
            Call::all_gather(place, place, usize::MAX / 2, DType::F32),
            Call::all_gather_v(place, place, DType::F32, Counts::contiguous(&[], &[1])),
        ];
        for call in wrong {
            // SAFETY: refused before any buffer is used.
            let error = unsafe { world.run(&call) }.unwrap_err();
            assert!(
                matches!(error, rlaunch_runtime::Error::Argument(_)),
                "{error}"
            );
        }
        world.barrier().unwrap();
        world.finalize().unwrap();
    });
}

/// Its bytes would mean something else.
#[test]
fn a_scalar_of_another_type_than_the_elements_is_refused() {
    ranks(&config(2, SHM), |world| {
        let error = world.all_reduce(&mut [1i32; 3], Reduction::premul_sum(2.5f64));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("float64") && text.contains("int32"), "{text}");
        world.barrier().unwrap();
        world.finalize().unwrap();
    });
}
