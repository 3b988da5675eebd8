//! How fast the kernels are: `cargo run -p rlaunch-device --example speed [BYTES [TYPE]]`.
//!
//! For every type, or one, and every operation: GB/s of operands read and results written, in buffers
//! of BYTES (64 KiB unless given: first-level and second-level cache), the best of some rounds.

use std::time::{Duration, Instant};

use rlaunch_device::{average_many_raw, reduce_many_raw, reduce_raw};
use rlaunch_wire::{DType, Op};

const ROUNDS: usize = 7;
const ROUND_MIN: Duration = Duration::from_millis(2);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let bytes = arguments
        .next()
        .map_or(64 << 10, |text| text.parse().expect("BYTES is a number"));
    let only = arguments.next();
    // Not zeros, which would all be one page.
    let buffers: Vec<Vec<u8>> = (0..9).map(|_| vec![1; bytes]).collect();
    let inputs: Vec<*const u8> = buffers[1..].iter().map(|buffer| buffer.as_ptr()).collect();
    let dst = buffers[0].as_ptr().cast_mut();
    println!("GB/s, {bytes} bytes a buffer");
    println!("{:16}{:>12}{:>9}{:>9}{:>9}", "", "", "2 inputs", "4", "8");
    let is_wanted = |dtype: &&DType| only.as_ref().is_none_or(|name| dtype.name() == name);
    for &dtype in DType::ALL.iter().filter(is_wanted) {
        for &op in Op::ALL {
            if !op.serves(dtype) || matches!(op, Op::User | Op::PremulSum) {
                continue;
            }
            let count = bytes / dtype.size_bytes();
            let rates = [2, 4, 8].map(|many| {
                let inputs = &inputs[..many];
                let seconds = best(|| {
                    // SAFETY: all buffers hold `count` elements; they stay alive and nobody else
                    // touches them.
                    unsafe {
                        match (op, many) {
                            (Op::Avg, _) => average_many_raw(dtype, dst, inputs, count, 3),
                            (_, 2) => reduce_raw(dtype, op, dst, inputs[0], inputs[1], count),
                            _ => reduce_many_raw(dtype, op, dst, inputs, count),
                        }
                    }
                });
                ((many + 1) * bytes) as f64 / seconds / 1e9
            });
            let [two, four, eight] = rates;
            println!(
                "{:16}{:>12}{two:9.1}{four:9.1}{eight:9.1}",
                dtype.name(),
                op.name()
            );
        }
    }
}

/// Seconds of one call.
fn best(mut call: impl FnMut()) -> f64 {
    let mut calls = 1_u32;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        loop {
            let begin = Instant::now();
            for _ in 0..calls {
                call();
            }
            let spent = begin.elapsed();
            if spent >= ROUND_MIN {
                best = best.min(spent.as_secs_f64() / f64::from(calls));
                break;
            }
            calls *= 2;
        }
    }
    best
}
