//! Contributions whose reduction is exact in any order, so that every bit can be checked.
//!
//! Sums add small whole numbers; products multiply ±1 and ±2, with at most [`DOUBLES_MAX`] ranks
//! that double; minima and maxima have nothing to round.

use rlaunch_runtime::Element;
use rlaunch_wire::Op;

/// A float of 4 bytes still holds 2 to this power.
const DOUBLES_MAX: u32 = 20;

pub(crate) trait Sample: Element + PartialEq {
    /// Exact for small numbers.
    fn from_small(value: i32) -> Self;
    fn reduce(op: Op, a: Self, b: Self) -> Self;

    /// What keeps its size in however many calls in place.
    fn neutral(op: Op) -> Self {
        Self::from_small(if op == Op::Prod { 1 } else { 0 })
    }

    /// The contribution of `rank` at `element`.
    fn sample(op: Op, rank: u32, element: usize, seed: u64) -> Self {
        let mixed = mix(seed ^ (u64::from(rank) << 40) ^ element as u64);
        let value = match op {
            Op::Sum => (mixed % 31) as i32 - 15,
            Op::Prod => {
                let sign = if mixed & 2 == 0 { 1 } else { -1 };
                let doubles = mixed & 1 == 1 && rank < DOUBLES_MAX;
                if doubles { sign * 2 } else { sign }
            }
            _ => (mixed % 20_001) as i32 - 10_000,
        };
        Self::from_small(value)
    }

    /// The reduction over `world` ranks.
    fn expected(op: Op, world: u32, element: usize, seed: u64) -> Self {
        let samples = (1..world).map(|rank| Self::sample(op, rank, element, seed));
        samples.fold(Self::sample(op, 0, element, seed), |a, b| {
            Self::reduce(op, a, b)
        })
    }
}

/// SplitMix64's last steps.
fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

macro_rules! sample {
    ($type:ty, $add:expr, $multiply:expr) => {
        impl Sample for $type {
            fn from_small(value: i32) -> Self {
                value as $type
            }
            fn reduce(op: Op, a: Self, b: Self) -> Self {
                match op {
                    Op::Sum => $add(a, b),
                    Op::Prod => $multiply(a, b),
                    Op::Min => a.min(b),
                    _ => a.max(b),
                }
            }
        }
    };
}

sample!(i32, i32::wrapping_add, i32::wrapping_mul);
sample!(i64, i64::wrapping_add, i64::wrapping_mul);
sample!(f32, |a: f32, b: f32| a + b, |a: f32, b: f32| a * b);
sample!(f64, |a: f64, b: f64| a + b, |a: f64, b: f64| a * b);

#[cfg(test)]
mod tests {
    use super::*;

    /// Forwards and backwards, over many ranks: the same bits, never infinite.
    #[test]
    fn reductions_are_exact_in_any_order() {
        for &op in &Op::ALL[..4] {
            for element in 0..50 {
                let backwards = (0..999).rev().map(|rank| f32::sample(op, rank, element, 7));
                let last = f32::sample(op, 999, element, 7);
                let reduced = backwards.fold(last, |a, b| f32::reduce(op, a, b));
                let expected = f32::expected(op, 1000, element, 7);
                assert!(expected.is_finite());
                assert_eq!(reduced.to_bits(), expected.to_bits(), "{op}");
            }
        }
    }

    #[test]
    fn ranks_elements_and_seeds_differ() {
        let of = |rank, seed| {
            (0..64)
                .map(|at| i64::sample(Op::Max, rank, at, seed))
                .collect::<Vec<_>>()
        };
        assert_ne!(of(0, 1), of(1, 1));
        assert_ne!(of(0, 1), of(0, 2));
        assert!(of(0, 1).windows(2).any(|pair| pair[0] != pair[1]));
    }
}
