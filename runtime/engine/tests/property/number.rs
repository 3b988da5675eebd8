//! Elements as small numbers, and their bytes in every type. Written apart from the arithmetic it
//! judges: floats are found by searching a table of all bit patterns.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use rlaunch_runtime::DType;

/// A number; of complex ones and of pairs both parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number(pub(crate) f64, pub(crate) f64);

impl Number {
    pub(crate) fn of(value: f64) -> Self {
        Self(value, 0.0)
    }
}

/// The element's bytes.
pub(crate) fn encode(dtype: DType, number: Number, into: &mut Vec<u8>) {
    let Number(value, second) = number;
    match dtype {
        DType::I8 => into.extend((value as i64 as i8).to_le_bytes()),
        DType::U8 | DType::Bool => into.extend((value as i64 as u8).to_le_bytes()),
        DType::I16 => into.extend((value as i64 as i16).to_le_bytes()),
        DType::U16 => into.extend((value as i64 as u16).to_le_bytes()),
        DType::I32 => into.extend((value as i64 as i32).to_le_bytes()),
        DType::U32 => into.extend((value as i64 as u32).to_le_bytes()),
        DType::I64 => into.extend((value as i64).to_le_bytes()),
        DType::U64 => into.extend((value as i64 as u64).to_le_bytes()),
        DType::F32 => into.extend((value as f32).to_le_bytes()),
        DType::F64 => into.extend(value.to_le_bytes()),
        DType::F16 => into.extend(nearest(Format::F16, value).to_le_bytes()),
        DType::BF16 => into.extend(nearest(Format::BF16, value).to_le_bytes()),
        DType::F8E4M3 => into.push(nearest(Format::E4M3, value) as u8),
        DType::F8E5M2 => into.push(nearest(Format::E5M2, value) as u8),
        DType::C64 => [value, second]
            .iter()
            .for_each(|part| into.extend((*part as f32).to_le_bytes())),
        DType::C128 => [value, second]
            .iter()
            .for_each(|part| into.extend(part.to_le_bytes())),
        DType::F32I32 => {
            into.extend((value as f32).to_le_bytes());
            into.extend((second as i32).to_le_bytes());
        }
        DType::F64I64 => {
            into.extend(value.to_le_bytes());
            into.extend((second as i64).to_le_bytes());
        }
        DType::I32I32 => [value, second]
            .iter()
            .for_each(|part| into.extend((*part as i32).to_le_bytes())),
        DType::I64I64 => [value, second]
            .iter()
            .for_each(|part| into.extend((*part as i64).to_le_bytes())),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Format {
    F16,
    BF16,
    E4M3,
    E5M2,
}

/// The value of a bit pattern without sign; `None` for infinities and NaN.
fn value(format: Format, bits: u16) -> Option<f64> {
    let (mantissa_bits, bias, exponent_max) = match format {
        Format::F16 => (10, 15, 31),
        Format::BF16 => (7, 127, 255),
        // Without infinities: the highest exponent holds numbers, all mantissa bits set is NaN.
        Format::E4M3 => (3, 7, 16),
        Format::E5M2 => (2, 15, 31),
    };
    let (exponent, mantissa) = (
        i32::from(bits >> mantissa_bits),
        f64::from(bits & ((1 << mantissa_bits) - 1)),
    );
    if exponent >= exponent_max || (format == Format::E4M3 && bits == 0x7f) {
        return None;
    }
    let one = f64::from(1 << mantissa_bits);
    Some(if exponent == 0 {
        mantissa / one * 2f64.powi(1 - bias)
    } else {
        (1.0 + mantissa / one) * 2f64.powi(exponent - bias)
    })
}

/// Bits of the nearest number, ties to the even one.
fn nearest(format: Format, number: f64) -> u16 {
    static KNOWN: LazyLock<Mutex<HashMap<(Format, u64), u16>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap();
    *known
        .entry((format, number.to_bits()))
        .or_insert_with(|| search(format, number))
}

fn search(format: Format, number: f64) -> u16 {
    let sign_bit: u16 = match format {
        Format::F16 | Format::BF16 => 0x8000,
        Format::E4M3 | Format::E5M2 => 0x80,
    };
    let distance = |bits: u16| value(format, bits).map(|value| (value - number.abs()).abs());
    let best = (0..sign_bit)
        .filter_map(|bits| Some((distance(bits)?, bits & 1, bits)))
        .min_by(|left, right| left.partial_cmp(right).unwrap());
    let (_, _, bits) = best.unwrap();
    if number < 0.0 { bits | sign_bit } else { bits }
}

#[test]
fn formats_have_their_published_values() {
    assert_eq!(nearest(Format::F16, 1.0), 0x3c00);
    assert_eq!(nearest(Format::F16, 65504.0), 0x7bff);
    assert_eq!(nearest(Format::BF16, -2.0), 0xc000);
    assert_eq!(nearest(Format::E4M3, 448.0), 0x7e);
    assert_eq!(nearest(Format::E5M2, 57344.0), 0x7b);
    // Between 1 and 1 + 2^-10, of which the former is even.
    assert_eq!(nearest(Format::F16, 1.0 + 2f64.powi(-11)), 0x3c00);
}
