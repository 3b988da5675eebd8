//! Elements to compute with: all bit patterns, and often the awkward ones.

use rlaunch_wire::{DType, Kind};

use super::reference::{Value, encode};

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn real(&mut self) -> f64 {
        match self.below(16) {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            3 => f64::NEG_INFINITY,
            4 => f64::NAN,
            5 => 1e-40,
            6 => -3e-8,
            7 => 60_000.0,
            8 => -300.0,
            9..=11 => self.below(20) as f64 - 10.0,
            _ => (self.below(2_000_001) as f64 - 1_000_000.0) / 777.0,
        }
    }

    fn index(&mut self) -> i128 {
        i128::from(self.below(7)) - 3
    }

    /// One element's bytes.
    pub(super) fn element(&mut self, dtype: DType) -> Vec<u8> {
        let patterns = [self.next().to_le_bytes(), self.next().to_le_bytes()].concat();
        let value = match dtype.kind() {
            // A byte of any value, false half the time.
            Kind::Bool => return vec![if self.below(2) == 0 { 0 } else { patterns[0] }],
            _ if self.below(2) == 0 && dtype.kind() != Kind::Pair => {
                return patterns[..dtype.size_bytes()].to_vec();
            }
            Kind::Integer => Value::Whole(i128::from(self.below(256)) - 128),
            Kind::Float => Value::Real(self.real()),
            Kind::Complex => Value::Complex(self.real(), self.real()),
            Kind::Pair if matches!(dtype, DType::F32I32 | DType::F64I64) => {
                Value::RealAt(self.real(), self.index())
            }
            Kind::Pair => Value::WholeAt(i128::from(self.below(5)) - 2, self.index()),
        };
        encode(dtype, value)
    }

    pub(super) fn elements(&mut self, dtype: DType, count: usize) -> Vec<u8> {
        (0..count).flat_map(|_| self.element(dtype)).collect()
    }
}
