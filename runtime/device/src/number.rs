//! What kernels compute with, and every operation on a pair of numbers.
//!
//! Everything is a selection, never a branch, so that loops become vector code. Every operation is
//! commutative to the bit: a NaN that comes out is the one canonical NaN, of zeros `min` takes −0 and
//! `max` takes +0.

/// A binary operation.
pub(crate) trait Operation<T>: 'static {
    fn apply(a: T, b: T) -> T;
}

macro_rules! operations {
    ($($operation:ident: $trait:ident :: $method:ident),+ $(,)?) => {$(
        pub(crate) struct $operation;
        impl<T: $trait> Operation<T> for $operation {
            #[inline(always)]
            fn apply(a: T, b: T) -> T {
                a.$method(b)
            }
        }
    )+};
}

operations! {
    Sum: Ring::sum, Prod: Ring::prod,
    Min: Ordered::min_nan, Max: Ordered::max_nan,
    And: Bits::and, Or: Bits::or, Xor: Bits::xor,
    LogicalAnd: Logical::logical_and, LogicalOr: Logical::logical_or, LogicalXor: Logical::logical_xor,
    MinLoc: Located::min_loc, MaxLoc: Located::max_loc,
}

/// What a kernel may read, compute with and write. Any bit pattern is a value.
pub(crate) trait Number: Copy + Default + Send + Sync + 'static {}

pub(crate) trait Ring: Number {
    fn sum(self, other: Self) -> Self;
    fn prod(self, other: Self) -> Self;
}

pub(crate) trait Ordered: Number {
    fn min_nan(self, other: Self) -> Self;
    fn max_nan(self, other: Self) -> Self;
}

pub(crate) trait Bits: Number {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

/// Any value but 0 is true; results are 0 and 1.
pub(crate) trait Logical: Number {
    fn logical_and(self, other: Self) -> Self;
    fn logical_or(self, other: Self) -> Self;
    fn logical_xor(self, other: Self) -> Self;
}

pub(crate) trait Located: Number {
    fn min_loc(self, other: Self) -> Self;
    fn max_loc(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($type:ty),+) => {$(
        impl Number for $type {}
        impl Ordered for $type {
            #[inline(always)]
            fn min_nan(self, other: Self) -> Self {
                self.min(other)
            }
            #[inline(always)]
            fn max_nan(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )+};
}
integer!(i8, u8, i16, u16, i32, u32, i64, u64);

/// Sums, products and bits of signed integers are those of unsigned ones: kernels are shared.
macro_rules! unsigned {
    ($($type:ty),+) => {$(
        impl Ring for $type {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
        impl Bits for $type {
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
        }
        impl Logical for $type {
            #[inline(always)]
            fn logical_and(self, other: Self) -> Self {
                Self::from((self != 0) & (other != 0))
            }
            #[inline(always)]
            fn logical_or(self, other: Self) -> Self {
                Self::from((self | other) != 0)
            }
            #[inline(always)]
            fn logical_xor(self, other: Self) -> Self {
                Self::from((self != 0) ^ (other != 0))
            }
        }
    )+};
}
unsigned!(u8, u16, u32, u64);

// Equal numbers differ in bits only when they are zeros of two signs: or-ing them gives −0, and-ing +0.
macro_rules! float {
    ($($type:ty),+) => {$(
        impl Number for $type {}
        impl Ring for $type {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                (self + other).canonical()
            }
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                (self * other).canonical()
            }
        }
        impl Ordered for $type {
            #[inline(always)]
            fn min_nan(self, other: Self) -> Self {
                let less = if self < other { self } else { other };
                let equal = Self::from_bits(self.to_bits() | other.to_bits());
                let number = if self == other { equal } else { less };
                if self.is_nan() | other.is_nan() { Self::NAN } else { number }
            }
            #[inline(always)]
            fn max_nan(self, other: Self) -> Self {
                let more = if self > other { self } else { other };
                let equal = Self::from_bits(self.to_bits() & other.to_bits());
                let number = if self == other { equal } else { more };
                if self.is_nan() | other.is_nan() { Self::NAN } else { number }
            }
        }
        impl Canonical for $type {
            #[inline(always)]
            fn canonical(self) -> Self {
                if self.is_nan() { Self::NAN } else { self }
            }
        }
    )+};
}
float!(f32, f64);

/// Which payload a NaN has depends on the order of operands that a compiler picks; none survives.
pub(crate) trait Canonical {
    fn canonical(self) -> Self;
}

/// Real and imaginary part, as C, Fortran and numpy lay them out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Complex<T> {
    pub(crate) real: T,
    pub(crate) imaginary: T,
}

impl<T: Number> Number for Complex<T> {}

macro_rules! complex {
    ($($type:ty),+) => {$(
        impl Ring for Complex<$type> {
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                Self {
                    real: self.real.sum(other.real),
                    imaginary: self.imaginary.sum(other.imaginary),
                }
            }
            /// By the schoolbook formula, as numpy does.
            #[inline(always)]
            fn prod(self, other: Self) -> Self {
                let real = self.real * other.real - self.imaginary * other.imaginary;
                let imaginary = self.real * other.imaginary + self.imaginary * other.real;
                Self {
                    real: real.canonical(),
                    imaginary: imaginary.canonical(),
                }
            }
        }
    )+};
}
complex!(f32, f64);

/// A value and where it was found, as MPI lays out its pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Pair<V, I> {
    pub(crate) value: V,
    pub(crate) index: I,
}

impl<V: Number, I: Number> Number for Pair<V, I> {}

macro_rules! pair_index {
    ($a:ident, $b:ident, $better:tt) => {{
        #[allow(clippy::eq_op, reason = "a NaN differs from itself")]
        let (a_nan, b_nan) = ($a.value != $a.value, $b.value != $b.value);
        let a_wins = ($a.value $better $b.value) | (a_nan & !b_nan);
        let b_wins = ($b.value $better $a.value) | (b_nan & !a_nan);
        let lower = $a.index.min($b.index);
        let loser = if b_wins { $b.index } else { lower };
        if a_wins { $a.index } else { loser }
    }};
}

// Of equal values the lower index wins. A NaN counts as the smallest and as the largest value, so that
// it is found, as numpy's argmin and argmax find it. Where value and index are equal, so must bits be.
macro_rules! pair {
    ($($value:ty, $index:ty);+) => {$(
        impl Located for Pair<$value, $index> {
            #[inline(always)]
            fn min_loc(self, other: Self) -> Self {
                let value = self.value.min_nan(other.value);
                Self { value, index: pair_index!(self, other, <) }
            }
            #[inline(always)]
            fn max_loc(self, other: Self) -> Self {
                let value = self.value.max_nan(other.value);
                Self { value, index: pair_index!(self, other, >) }
            }
        }
    )+};
}

pair!(f32, i32; f64, i64; i32, i32; i64, i64);
