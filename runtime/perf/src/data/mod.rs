//! What ranks contribute to a checked call, and what has to come out: every bit, for every type.

mod format;
mod pattern;
mod reduce;

use format::Format;
pub(crate) use pattern::Pattern;
use reduce::Draw;
pub(crate) use reduce::Who;
use reduce::scalar;
use rlaunch_wire::{DType, Op};

/// Averages of floats may be this many representable numbers away, as in nccl-tests.
const AVERAGE_ULPS: u64 = 2;

/// The data of one checked call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    pub(crate) dtype: DType,
    pub(crate) op: Op,
    pub(crate) world: u32,
    pub(crate) seed: u64,
}

impl Data {
    /// Elements `first…` of a reduction's input or outcome.
    pub(crate) fn reduced(&self, who: Who, first: usize, elements: usize) -> Pattern {
        Pattern::new(
            self.dtype.size_bytes(),
            first,
            elements,
            |element, bytes| {
                let draw = Draw::new(self.seed, element as u64, self.world);
                self.write_reduced(draw, who, bytes);
            },
        )
    }

    /// Elements `first…` of what `source` sends where nothing is reduced: random bytes, except that
    /// truth values stay 0 or 1.
    pub(crate) fn moved(&self, source: u32, first: usize, elements: usize) -> Pattern {
        let mask = if self.dtype == DType::Bool { 1 } else { 0xFF };
        let base = reduce::mix(self.seed ^ (u64::from(source) << 32));
        let size = self.dtype.size_bytes();
        Pattern::new(size, first, elements, |element, bytes| {
            for (word, part) in (0_u64..).zip(bytes.chunks_mut(8)) {
                let random = reduce::mix(base ^ ((element as u64) << 1 | word)).to_le_bytes();
                for (byte, random) in part.iter_mut().zip(random) {
                    *byte = random & mask;
                }
            }
        })
    }

    /// How many elements of a reduction's outcome are wrong.
    pub(crate) fn count_wrong(&self, found: &[u8], expected: &[u8]) -> u64 {
        if found == expected {
            return 0;
        }
        let size = self.dtype.size_bytes();
        let pairs = found.chunks_exact(size).zip(expected.chunks_exact(size));
        pairs.filter(|(a, b)| !self.is_right(a, b)).count() as u64
    }

    fn is_right(&self, found: &[u8], expected: &[u8]) -> bool {
        match (Format::of(self.dtype), self.dtype) {
            (None, DType::Bool) => (found[0] != 0) == (expected[0] != 0),
            (None, _) | (_, DType::F32I32 | DType::F64I64) => found == expected,
            (Some(format), _) => {
                let allowed = if self.op == Op::Avg { AVERAGE_ULPS } else { 0 };
                let parts = found
                    .chunks_exact(format.bytes())
                    .zip(expected.chunks_exact(format.bytes()));
                parts
                    .map(|(a, b)| format.distance(word(a), word(b)))
                    .all(|distance| distance <= allowed)
            }
        }
    }

    fn write_reduced(&self, draw: Draw, who: Who, into: &mut [u8]) {
        let op = self.op;
        let float = |value: f64, format: Format, into: &mut [u8]| {
            write(format.encode(value), into);
        };
        match (self.dtype, Format::of(self.dtype)) {
            (DType::C64 | DType::C128, Some(format)) => {
                let (real, imaginary) = if op == Op::Prod {
                    draw.complex_product(who, format)
                } else {
                    (
                        draw.float(op, who, format),
                        draw.second().float(op, who, format),
                    )
                };
                let (first, second) = into.split_at_mut(format.bytes());
                float(real, format, first);
                float(imaginary, format, second);
            }
            (DType::F32I32 | DType::F64I64, Some(format)) => {
                let (value, index) = into.split_at_mut(format.bytes());
                float(draw.float(op, who, format), format, value);
                write(u64::from(index_of(draw, who)), index);
            }
            (_, Some(format)) => float(draw.float(op, who, format), format, into),
            (DType::I32I32 | DType::I64I64, None) => {
                let half = into.len() / 2;
                let (value, index) = into.split_at_mut(half);
                write(draw.integer(op, who, 8 * half as u32, true), value);
                write(u64::from(index_of(draw, who)), index);
            }
            (DType::Bool, None) => into[0] = draw.integer(bool_op(op), who, 8, false).min(1) as u8,
            (dtype, None) => {
                let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
                write(draw.integer(op, who, 8 * into.len() as u32, signed), into);
            }
        }
    }
}

/// What a rank multiplies with before a sum of products, as it lies in memory.
pub(crate) fn scalar_bytes(dtype: DType, rank: u32) -> Vec<u8> {
    number_bytes(dtype, scalar(rank))
}

/// Elements that stay as they are in however many calls in place: ones in products, else zeros.
pub(crate) fn fill_neutral(dtype: DType, op: Op, into: &mut [u8]) {
    into.fill(0);
    if op == Op::Prod {
        let one = number_bytes(dtype, 1);
        for element in into.chunks_exact_mut(one.len()) {
            element.copy_from_slice(&one);
        }
    }
}

/// A small number, real where the type is complex.
fn number_bytes(dtype: DType, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; dtype.size_bytes()];
    match Format::of(dtype) {
        Some(format) => write(format.encode(number as f64), &mut bytes[..format.bytes()]),
        None => write(number, &mut bytes),
    }
    bytes
}

/// A pair's index is the rank that gave it.
fn index_of(draw: Draw, who: Who) -> u32 {
    match who {
        Who::Rank(rank) => rank,
        Who::All => draw.decider(),
    }
}

/// What an operation means on truth values.
fn bool_op(op: Op) -> Op {
    match op {
        Op::Sum | Op::Max | Op::Bor | Op::Lor => Op::Lor,
        Op::Bxor | Op::Lxor => Op::Lxor,
        _ => Op::Land,
    }
}

fn write(value: u64, into: &mut [u8]) {
    let word = value.to_le_bytes();
    let length = into.len().min(word.len());
    into[..length].copy_from_slice(&word[..length]);
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests;
