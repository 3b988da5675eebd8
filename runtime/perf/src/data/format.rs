//! Floats of any width as numbers: encoded with one rounding, decoded exactly, and compared.
//!
//! Written apart from the runtime's own conversions, which it helps to judge.

use rlaunch_wire::DType;

/// An IEEE-like layout: sign, exponent, mantissa without its leading 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
}

impl Format {
    /// Of a float type, or of a complex type's parts.
    pub(crate) const fn of(dtype: DType) -> Option<Self> {
        let (exponent_bits, mantissa_bits) = match dtype {
            DType::F8E4M3 => (4, 3),
            DType::F8E5M2 => (5, 2),
            DType::F16 => (5, 10),
            DType::BF16 => (8, 7),
            DType::F32 | DType::C64 | DType::F32I32 => (8, 23),
            DType::F64 | DType::C128 | DType::F64I64 => (11, 52),
            _ => return None,
        };
        Some(Self {
            exponent_bits,
            mantissa_bits,
        })
    }

    pub(crate) const fn bytes(self) -> usize {
        ((1 + self.exponent_bits + self.mantissa_bits) / 8) as usize
    }

    /// Whole numbers up to 2 to this power are exact.
    pub(crate) const fn precision_bits(self) -> u32 {
        self.mantissa_bits + 1
    }

    const fn exponent_min(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// The nearest, ties to even. Values beyond the largest are not for this function.
    pub(crate) fn encode(self, value: f64) -> u64 {
        let sign = u64::from(value.is_sign_negative()) << (self.exponent_bits + self.mantissa_bits);
        let magnitude = value.abs();
        if magnitude == 0.0 {
            return sign;
        }
        const EXPONENT_BIAS: i32 = 1023;
        let exponent = (magnitude.to_bits() >> 52) as i32 - EXPONENT_BIAS;
        let exponent = exponent.max(self.exponent_min());
        let steps = magnitude * two_to(self.mantissa_bits as i32 - exponent);
        let steps = steps.round_ties_even() as u64;
        // The leading 1 of `steps` raises the exponent by itself; without it the number is
        // subnormal and the field stays 0.
        let field = (exponent - self.exponent_min()) as u64;
        sign | ((field << self.mantissa_bits) + steps)
    }

    /// What the bits stand for, except that infinities and NaN are read as large numbers.
    #[cfg(test)]
    pub(crate) fn decode(self, bits: u64) -> f64 {
        let mantissa = bits & ((1 << self.mantissa_bits) - 1);
        let field = (bits >> self.mantissa_bits) & ((1 << self.exponent_bits) - 1);
        let leading = u64::from(field > 0) << self.mantissa_bits;
        let exponent = (field.max(1) - 1) as i32 + self.exponent_min();
        let magnitude = (leading | mantissa) as f64 * two_to(exponent - self.mantissa_bits as i32);
        let is_negative = bits >> (self.exponent_bits + self.mantissa_bits) & 1 == 1;
        if is_negative { -magnitude } else { magnitude }
    }

    /// How many representable numbers lie between; 0 and −0 are one.
    pub(crate) fn distance(self, a: u64, b: u64) -> u64 {
        let ordered = |bits: u64| {
            let magnitude = (bits & ((1 << (self.exponent_bits + self.mantissa_bits)) - 1)) as i64;
            if bits >> (self.exponent_bits + self.mantissa_bits) & 1 == 1 {
                -magnitude
            } else {
                magnitude
            }
        };
        ordered(a).abs_diff(ordered(b))
    }
}

/// Exact for every power that a binary64 has as a normal number, and 0 or infinity beyond.
fn two_to(power: i32) -> f64 {
    2.0_f64.powi(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(dtype: DType) -> Format {
        Format::of(dtype).unwrap()
    }

    #[test]
    fn agrees_with_the_processor_on_wide_floats() {
        for value in [
            0.0,
            -0.0,
            1.0,
            -1.5,
            1e-40,
            3.0e38,
            0.1,
            -7.25,
            16_777_217.0,
        ] {
            let bits = u64::from((value as f32).to_bits());
            assert_eq!(format(DType::F32).encode(value), bits, "{value}");
            assert_eq!(format(DType::F32).decode(bits), f64::from(value as f32));
            assert_eq!(format(DType::F64).encode(value), value.to_bits(), "{value}");
        }
    }

    #[test]
    fn knows_the_narrow_formats() {
        let cases = [
            (DType::F16, 1.0, 0x3C00),
            (DType::F16, 65_504.0, 0x7BFF),
            (DType::F16, 5.960_464_477_539_063e-8, 1),
            (DType::BF16, -2.0, 0xC000),
            (DType::F8E4M3, 448.0, 0x7E),
            (DType::F8E4M3, 1.0, 0x38),
            (DType::F8E5M2, 57_344.0, 0x7B),
        ];
        for (dtype, value, bits) in cases {
            assert_eq!(format(dtype).encode(value), bits, "{value} as {dtype}");
            assert_eq!(format(dtype).decode(bits), value, "{bits:#x} as {dtype}");
        }
    }

    #[test]
    fn counts_steps_over_zero() {
        let f32 = format(DType::F32);
        assert_eq!(f32.distance(f32.encode(0.0), f32.encode(-0.0)), 0);
        assert_eq!(f32.distance(1, 1 << 31 | 1), 2);
        assert_eq!(f32.distance(f32.encode(1.0), f32.encode(1.0) + 2), 2);
    }
}
