//! What can be an element, and the four operations on a pair.

use rlaunch_wire::DType;

/// A type that the runtime moves and reduces. Any bit pattern is a value.
pub trait Element: sealed::Arithmetic {
    const DTYPE: DType;
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
impl Element for i64 {
    const DTYPE: DType = DType::I64;
}
impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for f64 {
    const DTYPE: DType = DType::F64;
}

pub(crate) mod sealed {
    pub trait Arithmetic: Copy + PartialEq + Send + Sync + std::fmt::Debug + 'static {
        const ZERO: Self;
        fn sum(self, other: Self) -> Self;
        fn prod(self, other: Self) -> Self;
        fn min_nan(self, other: Self) -> Self;
        fn max_nan(self, other: Self) -> Self;
    }

    macro_rules! integer {
        ($type:ty) => {
            impl Arithmetic for $type {
                const ZERO: Self = 0;
                #[inline(always)]
                fn sum(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
                #[inline(always)]
                fn prod(self, other: Self) -> Self {
                    self.wrapping_mul(other)
                }
                #[inline(always)]
                fn min_nan(self, other: Self) -> Self {
                    self.min(other)
                }
                #[inline(always)]
                fn max_nan(self, other: Self) -> Self {
                    self.max(other)
                }
            }
        };
    }

    // Equal numbers differ in bits only when they are zeros of two signs: or-ing them gives −0,
    // and-ing +0. Everything is a selection, so that loops become vector code.
    macro_rules! float {
        ($type:ty) => {
            impl Arithmetic for $type {
                const ZERO: Self = 0.0;
                #[inline(always)]
                fn sum(self, other: Self) -> Self {
                    self + other
                }
                #[inline(always)]
                fn prod(self, other: Self) -> Self {
                    self * other
                }
                #[inline(always)]
                fn min_nan(self, other: Self) -> Self {
                    let less = if self < other { self } else { other };
                    let equal = Self::from_bits(self.to_bits() | other.to_bits());
                    let number = if self == other { equal } else { less };
                    if self.is_nan() | other.is_nan() {
                        Self::NAN
                    } else {
                        number
                    }
                }
                #[inline(always)]
                fn max_nan(self, other: Self) -> Self {
                    let more = if self > other { self } else { other };
                    let equal = Self::from_bits(self.to_bits() & other.to_bits());
                    let number = if self == other { equal } else { more };
                    if self.is_nan() | other.is_nan() {
                        Self::NAN
                    } else {
                        number
                    }
                }
            }
        };
    }

    integer!(i32);
    integer!(i64);
    float!(f32);
    float!(f64);
}
