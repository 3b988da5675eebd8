//! Random programs: every rank draws the same calls from a seed and checks each result. A failure
//! prints the seed; `TEST_SEED=N cargo test -p rlaunch-runtime --test random` repeats it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{BOTH, SHM, TCP, config, ranks_with};
use rlaunch_runtime::{Config, Op, World};

/// xorshift64*
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    /// Mostly short, sometimes past every border between the ways a call can go.
    fn length(&mut self) -> usize {
        let most = [4, 300, 3000, 40_000, 150_000][self.below(5) as usize];
        self.below(most) as usize
    }
}

fn call(world: &World, random: &mut Random) {
    let (rank, size) = (i64::from(world.rank()), i64::from(world.size()));
    let length = random.length();
    let seed = random.below(1000) as i64;
    let kind = random.below(6);
    let root = random.below(size as u64) as u32;
    match kind {
        0 => world.barrier().unwrap(),
        1 => {
            let mut buffer = vec![rank + seed; length];
            world.broadcast(&mut buffer, root).unwrap();
            assert!(buffer.iter().all(|value| *value == i64::from(root) + seed));
        }
        2 => {
            let mut buffer = vec![rank + seed; length];
            world.all_reduce(&mut buffer, Op::Sum).unwrap();
            let sum = size * (size - 1) / 2 + size * seed;
            assert!(buffer.iter().all(|value| *value == sum));
        }
        3 => {
            let mut output = vec![-1; length * size as usize];
            world
                .all_gather(&vec![rank + seed; length], &mut output)
                .unwrap();
            let from = |index: usize| (index / length) as i64;
            assert!(
                output
                    .iter()
                    .enumerate()
                    .all(|(index, value)| *value == from(index) + seed)
            );
        }
        4 => {
            let mut output = vec![-1; length];
            let input = vec![rank * seed; length * size as usize];
            world.reduce_scatter(&input, &mut output, Op::Max).unwrap();
            assert!(output.iter().all(|value| *value == (size - 1) * seed));
        }
        _ => exchange(world, random, length.min(100_000), seed),
    }
}

/// Pairs in turn, some messages each way, taken in reverse order of their tags.
fn exchange(world: &World, random: &mut Random, length: usize, seed: i64) {
    let (rank, size) = (world.rank(), world.size());
    let shift = 1 + random.below(u64::from(size) - 1) as u32;
    let (to, from) = ((rank + shift) % size, (rank + size - shift) % size);
    let tags = if length <= 1000 { 3 } else { 1 };
    let send = || {
        for tag in 0..tags {
            world
                .send(&vec![seed + i64::from(tag); length], to, tag)
                .unwrap();
        }
    };
    let receive = || {
        for tag in (0..tags).rev() {
            let mut buffer = vec![-1; length];
            world.recv(&mut buffer, from, tag).unwrap();
            assert!(buffer.iter().all(|value| *value == seed + i64::from(tag)));
        }
    };
    // Long messages block until taken; the lowest rank of each cycle breaks it.
    if is_lowest_of_its_cycle(rank, shift, size) {
        receive();
        send();
    } else {
        send();
        receive();
    }
}

fn is_lowest_of_its_cycle(rank: u32, shift: u32, size: u32) -> bool {
    let mut next = (rank + shift) % size;
    while next != rank {
        if next < rank {
            return false;
        }
        next = (next + shift) % size;
    }
    true
}

#[test]
fn random_programs_give_what_they_should() {
    const CALLS: usize = 60;
    let seeds = match std::env::var("TEST_SEED") {
        Ok(text) => vec![text.parse().unwrap()],
        Err(_) => (1..=12).collect::<Vec<u64>>(),
    };
    for seed in seeds {
        println!("TEST_SEED={seed}");
        let size = 2 + (seed % 4) as u32;
        let change = |config: Config| {
            let transports = match seed % 3 {
                0 => SHM,
                1 => TCP,
                _ if config.rank.is_multiple_of(2) => BOTH,
                _ => TCP,
            };
            Config {
                transports,
                ..config
            }
        };
        ranks_with(&config(size, BOTH), change, |world| {
            let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            for _ in 0..CALLS {
                call(&world, &mut random);
            }
            world.finalize().unwrap();
        });
    }
}
