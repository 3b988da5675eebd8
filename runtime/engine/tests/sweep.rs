//! Every collective over every transport, world size, awkward length, type and reduction, against
//! a plain computation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{BOTH, SHM, TCP, config, ranks, ranks_with};
use rlaunch_runtime::config::Transports;
use rlaunch_runtime::{Config, Element, Op, World};

const LENGTHS: &[usize] = &[0, 1, 2, 3, 7, 64, 255, 513, 1009, 4096, 70_001];
const OPS: &[Op] = &[Op::Sum, Op::Prod, Op::Min, Op::Max];

/// Small whole numbers: every reduction of them is exact in every type.
trait Value: Element + PartialEq + std::fmt::Debug + Sync {
    fn of(number: i64) -> Self;
}
impl Value for i32 {
    fn of(number: i64) -> Self {
        number as Self
    }
}
impl Value for i64 {
    fn of(number: i64) -> Self {
        number
    }
}
impl Value for f32 {
    fn of(number: i64) -> Self {
        number as Self
    }
}
impl Value for f64 {
    fn of(number: i64) -> Self {
        number as Self
    }
}

fn number(rank: u32, index: usize) -> i64 {
    ((rank as usize * 7 + index * 3) % 4) as i64 + i64::from(index.is_multiple_of(5))
}

fn reduced(op: Op, world: u32, index: usize) -> i64 {
    let numbers = (0..world).map(|rank| number(rank, index));
    match op {
        Op::Sum => numbers.sum(),
        Op::Prod => numbers.product(),
        Op::Min => numbers.min().unwrap(),
        _ => numbers.max().unwrap(),
    }
}

fn vector<T: Value>(length: usize, value: impl Fn(usize) -> i64) -> Vec<T> {
    (0..length).map(|index| T::of(value(index))).collect()
}

fn check_all<T: Value>(world: &World, length: usize, op: Op) {
    let (rank, size) = (world.rank(), world.size());
    let at = format!("rank {rank} of {size}, {length} {}, {op}", T::DTYPE);

    let mut buffer: Vec<T> = vector(length, |index| number(rank, index));
    world.all_reduce(&mut buffer, op).unwrap();
    assert_eq!(
        buffer,
        vector(length, |index| reduced(op, size, index)),
        "all_reduce, {at}"
    );

    let root = length as u32 % size;
    let mut buffer: Vec<T> = vector(length, |index| number(rank, index));
    world.broadcast(&mut buffer, root).unwrap();
    assert_eq!(
        buffer,
        vector(length, |index| number(root, index)),
        "broadcast, {at}"
    );

    let input: Vec<T> = vector(length, |index| number(rank, index));
    let mut output = vec![T::of(-1); length * size as usize];
    world.all_gather(&input, &mut output).unwrap();
    let gathered = |index: usize| number((index / length.max(1)) as u32, index % length.max(1));
    assert_eq!(
        output,
        vector(length * size as usize, gathered),
        "all_gather, {at}"
    );

    let input: Vec<T> = vector(length * size as usize, |index| number(rank, index));
    let mut output = vec![T::of(-1); length];
    world.reduce_scatter(&input, &mut output, op).unwrap();
    let offset = rank as usize * length;
    let expected = vector(length, |index| reduced(op, size, offset + index));
    assert_eq!(output, expected, "reduce_scatter, {at}");

    world.barrier().unwrap();
}

fn sweep(transports: Transports, sizes: std::ops::RangeInclusive<u32>) {
    for size in sizes {
        ranks(&config(size, transports), |world| {
            for (index, length) in LENGTHS.iter().enumerate() {
                // All reductions where cheap; in turn where long.
                for op in OPS.iter().skip(if *length > 1000 { index % 4 } else { 0 }) {
                    match index % 4 {
                        0 => check_all::<i64>(&world, *length, *op),
                        1 => check_all::<f32>(&world, *length, *op),
                        2 => check_all::<f64>(&world, *length, *op),
                        _ => check_all::<i32>(&world, *length, *op),
                    }
                    if *length > 1000 {
                        break;
                    }
                    check_all::<f64>(&world, *length, *op);
                }
            }
            world.finalize().unwrap();
        });
    }
}

#[test]
fn shared_memory() {
    sweep(SHM, 1..=9);
}

#[test]
fn tcp() {
    sweep(TCP, 2..=9);
}

/// As on two hosts: some pairs share memory, the others don't.
#[test]
fn both_transports_in_one_world() {
    for size in [3, 5] {
        ranks_with(
            &config(size, BOTH),
            |config| Config {
                transports: if config.rank < 2 { BOTH } else { TCP },
                ..config
            },
            |world| {
                assert_eq!(world.transports().contains(&"shm"), world.rank() < 2);
                for length in [0, 1, 1009, 70_001] {
                    check_all::<f64>(&world, length, Op::Sum);
                    check_all::<i32>(&world, length, Op::Max);
                }
                world.finalize().unwrap();
            },
        );
    }
}

#[test]
fn long_vectors_are_cut_in_segments() {
    for transports in [SHM, TCP] {
        for size in [2, 3] {
            ranks(&config(size, transports), |world| {
                check_all::<f32>(&world, 1_000_003, Op::Sum);
                world.finalize().unwrap();
            });
        }
    }
}
