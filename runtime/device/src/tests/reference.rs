//! The same arithmetic, one element at a time, in f64 and i128, and by other means: formats are read
//! by their definition and rounded by a search among all their values.

use std::sync::OnceLock;

use rlaunch_wire::{DType, Kind, Op};

/// An element, exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Whole(i128),
    Real(f64),
    Complex(f64, f64),
    /// A real and its index.
    RealAt(f64, i128),
    /// A whole number and its index.
    WholeAt(i128, i128),
}

/// Exponent bits, mantissa bits, and whether the largest exponent means infinity and NaN.
fn layout(dtype: DType) -> (u32, u32, bool) {
    match dtype {
        DType::F16 => (5, 10, true),
        DType::BF16 => (8, 7, true),
        DType::F8E4M3 => (4, 3, false),
        DType::F8E5M2 => (5, 2, true),
        _ => unreachable!("{dtype} is no small float"),
    }
}

/// The value of a small float.
pub(super) fn widen(dtype: DType, bits: u32) -> f64 {
    if cfg!(miri) {
        return by_definition(dtype, bits);
    }
    static TABLES: [OnceLock<Vec<f64>>; 4] = [const { OnceLock::new() }; 4];
    let table = match dtype {
        DType::F16 => &TABLES[0],
        DType::BF16 => &TABLES[1],
        DType::F8E4M3 => &TABLES[2],
        _ => &TABLES[3],
    };
    let patterns = 1_u32 << (8 * dtype.size_bytes());
    let all = || {
        (0..patterns)
            .map(|bits| by_definition(dtype, bits))
            .collect()
    };
    // One past the last pattern is the first again.
    table.get_or_init(all)[(bits % patterns) as usize]
}

fn by_definition(dtype: DType, bits: u32) -> f64 {
    let (exponent_bits, mantissa_bits, special) = layout(dtype);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    let sign = if bits >> (exponent_bits + mantissa_bits) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    if special && exponent == (1 << exponent_bits) - 1 {
        return if mantissa == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if !special && bits & 0x7F == 0x7F {
        return f64::NAN;
    }
    match exponent {
        0 => sign * fraction * power_of_two(1 - bias),
        _ => sign * (1.0 + fraction) * power_of_two(exponent as i32 - bias),
    }
}

/// Exactly; `powi` promises less.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

/// The bits of the nearest value of a small float, by a search.
pub(super) fn narrow(dtype: DType, value: f64) -> u32 {
    let (exponent_bits, mantissa_bits, special) = layout(dtype);
    let infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    let (largest, nan) = match dtype {
        DType::F8E4M3 => (0x7E, 0x7F),
        _ => (infinity - 1, infinity | 1 << (mantissa_bits - 1)),
    };
    let sign = u32::from(value.is_sign_negative()) << (exponent_bits + mantissa_bits);
    let magnitude = value.abs();
    if value.is_nan() {
        return nan;
    }
    if magnitude > widen(dtype, largest) {
        let saturates = matches!(dtype, DType::F8E4M3 | DType::F8E5M2);
        // One step past the largest, did it exist.
        let beyond = 2.0 * widen(dtype, infinity - (1 << mantissa_bits));
        let halfway = (widen(dtype, largest) + beyond) / 2.0;
        return sign
            | match (special && magnitude.is_infinite(), saturates) {
                (true, _) => infinity,
                (false, true) => largest,
                (false, false) if magnitude >= halfway => infinity,
                (false, false) => largest,
            };
    }
    let (mut low, mut high) = (0, largest);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if widen(dtype, middle) <= magnitude {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (below, above) = (
        magnitude - widen(dtype, low),
        widen(dtype, high) - magnitude,
    );
    let nearest = if below < above || (below == above && low % 2 == 0) {
        low
    } else {
        high
    };
    sign | nearest
}

/// The element that lies at the start of `bytes`.
pub(super) fn decode(dtype: DType, bytes: &[u8]) -> Value {
    let f32_at = |at: usize| f64::from(f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    let f64_at = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let unsigned = |at: usize, length: usize| {
        bytes[at..at + length]
            .iter()
            .rev()
            .fold(0, |all, byte| all << 8 | i128::from(*byte))
    };
    let signed = |at: usize, length: usize| {
        let unused = 128 - 8 * length;
        unsigned(at, length) << unused >> unused
    };
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            Value::Whole(signed(0, dtype.size_bytes()))
        }
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
            Value::Whole(unsigned(0, dtype.size_bytes()))
        }
        DType::Bool => Value::Whole(i128::from(bytes[0] != 0)),
        DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
            Value::Real(widen(dtype, unsigned(0, dtype.size_bytes()) as u32))
        }
        DType::F32 => Value::Real(f32_at(0)),
        DType::F64 => Value::Real(f64_at(0)),
        DType::C64 => Value::Complex(f32_at(0), f32_at(4)),
        DType::C128 => Value::Complex(f64_at(0), f64_at(8)),
        DType::F32I32 => Value::RealAt(f32_at(0), signed(4, 4)),
        DType::F64I64 => Value::RealAt(f64_at(0), signed(8, 8)),
        DType::I32I32 => Value::WholeAt(signed(0, 4), signed(4, 4)),
        DType::I64I64 => Value::WholeAt(signed(0, 8), signed(8, 8)),
    }
}

/// Its bytes. Whole numbers wrap, floats are rounded, every NaN is the canonical one.
pub(super) fn encode(dtype: DType, value: Value) -> Vec<u8> {
    let real = |number: f64| match dtype {
        DType::F32 | DType::C64 | DType::F32I32 if number.is_nan() => {
            0x7FC0_0000_u32.to_le_bytes().to_vec()
        }
        DType::F32 | DType::C64 | DType::F32I32 => (number as f32).to_le_bytes().to_vec(),
        DType::F64 | DType::C128 | DType::F64I64 if number.is_nan() => {
            0x7FF8_0000_0000_0000_u64.to_le_bytes().to_vec()
        }
        DType::F64 | DType::C128 | DType::F64I64 => number.to_le_bytes().to_vec(),
        _ => narrow(dtype, number).to_le_bytes()[..dtype.size_bytes()].to_vec(),
    };
    let whole = |number: i128, length: usize| number.to_le_bytes()[..length].to_vec();
    let half = dtype.size_bytes() / 2;
    match value {
        Value::Whole(number) => whole(number, dtype.size_bytes()),
        Value::Real(number) => real(number),
        Value::Complex(a, b) => [real(a), real(b)].concat(),
        Value::RealAt(number, index) => [real(number), whole(index, half)].concat(),
        Value::WholeAt(number, index) => [whole(number, half), whole(index, half)].concat(),
    }
}

/// What a partial result is kept as: single precision for all floats but the double ones.
fn kept(dtype: DType, number: f64) -> f64 {
    match dtype {
        DType::F64 | DType::C128 => number,
        _ => f64::from(number as f32),
    }
}

fn wrapped(dtype: DType, number: i128) -> Value {
    let bytes = number.to_le_bytes();
    decode(dtype, &bytes[..dtype.size_bytes()])
}

/// `a op b`, kept as partial results are.
pub(super) fn combine(dtype: DType, op: Op, a: Value, b: Value) -> Value {
    let kept = |number| kept(dtype, number);
    match (a, b) {
        (Value::Whole(a), Value::Whole(b)) if dtype.kind() == Kind::Bool => {
            let (a, b) = (a != 0, b != 0);
            Value::Whole(i128::from(match op {
                Op::Sum | Op::Max | Op::Bor | Op::Lor => a || b,
                Op::Prod | Op::Min | Op::Band | Op::Land => a && b,
                _ => a != b,
            }))
        }
        (Value::Whole(a), Value::Whole(b)) => wrapped(dtype, combine_whole(op, a, b)),
        (Value::Real(a), Value::Real(b)) => Value::Real(kept(combine_real(op, a, b))),
        (Value::Complex(a, b), Value::Complex(c, d)) => match op {
            Op::Prod => Value::Complex(
                kept(kept(a * c) - kept(b * d)),
                kept(kept(a * d) + kept(b * c)),
            ),
            _ => Value::Complex(kept(a + c), kept(b + d)),
        },
        (Value::RealAt(a, i), Value::RealAt(b, j)) => {
            let extreme = if op == Op::MinLoc { Op::Min } else { Op::Max };
            let value = combine_real(extreme, a, b);
            let has = |number: f64| number == value || (number.is_nan() && value.is_nan());
            Value::RealAt(value, lower_index(has(a), i, has(b), j))
        }
        (Value::WholeAt(a, i), Value::WholeAt(b, j)) => {
            let value = if op == Op::MinLoc { a.min(b) } else { a.max(b) };
            Value::WholeAt(value, lower_index(a == value, i, b == value, j))
        }
        _ => unreachable!("two elements of {dtype}"),
    }
}

fn lower_index(a_has: bool, i: i128, b_has: bool, j: i128) -> i128 {
    match (a_has, b_has) {
        (true, false) => i,
        (false, true) => j,
        _ => i.min(j),
    }
}

fn combine_whole(op: Op, a: i128, b: i128) -> i128 {
    match op {
        Op::Sum | Op::Avg | Op::PremulSum => a + b,
        Op::Prod => a.wrapping_mul(b),
        Op::Min => a.min(b),
        Op::Max => a.max(b),
        Op::Band => a & b,
        Op::Bor => a | b,
        Op::Bxor => a ^ b,
        Op::Land => i128::from(a != 0 && b != 0),
        Op::Lor => i128::from(a != 0 || b != 0),
        Op::Lxor => i128::from((a != 0) != (b != 0)),
        _ => unreachable!("{op} of whole numbers"),
    }
}

fn combine_real(op: Op, a: f64, b: f64) -> f64 {
    let either_nan = a.is_nan() || b.is_nan();
    let negative = |negative: bool| if negative { -0.0 } else { 0.0 };
    match op {
        Op::Sum | Op::Avg | Op::PremulSum => a + b,
        Op::Prod => a * b,
        Op::Min | Op::Max if either_nan => f64::NAN,
        Op::Min if a == 0.0 && b == 0.0 => negative(a.is_sign_negative() || b.is_sign_negative()),
        Op::Max if a == 0.0 && b == 0.0 => negative(a.is_sign_negative() && b.is_sign_negative()),
        Op::Min => a.min(b),
        Op::Max => a.max(b),
        _ => unreachable!("{op} of floats"),
    }
}

/// A sum divided by the number of its terms.
pub(super) fn over(dtype: DType, sum: Value, ranks: u32) -> Value {
    let ratio = |number: f64| kept(dtype, number / f64::from(ranks));
    match sum {
        Value::Whole(number) => Value::Whole(number / i128::from(ranks)),
        Value::Real(number) => Value::Real(ratio(number)),
        Value::Complex(a, b) => Value::Complex(ratio(a), ratio(b)),
        other => other,
    }
}
