//! What an average ends with, and a scaled sum begins with.

use rlaunch_wire::DType;

use crate::kernel::{Map, Plain, Small, Unary};
use crate::level::Level;
use crate::number::{Canonical, Complex, Number, Ring};
use crate::small_float::{BF16, E4M3, E5M2, F16, SmallFloat};

/// Divides a sum by the number of its terms, in place. Integers truncate toward zero; floats are
/// rounded once.
///
/// # Panics
/// If `avg` does not serve the type, or `ranks` is 0.
///
/// # Safety
/// `buffer` is valid for reads and writes of `count` elements, which nobody else touches meanwhile. It
/// needs no alignment.
pub unsafe fn finish_avg_raw(dtype: DType, buffer: *mut u8, count: usize, ranks: u32) {
    let (level, sum) = (Level::detect(), buffer.cast_const());
    // SAFETY: the caller's promise; this is the processor's level.
    unsafe { divide(level, dtype, buffer, sum, Source::Elements, count, ranks) }
}

/// `dst[i] = src[i] * scalar`, where `scalar` is one element of the same type. Integers wrap; floats
/// of 16 and 8 bits are multiplied in binary32 and rounded once.
///
/// # Panics
/// If `premul_sum` does not serve the type.
///
/// # Safety
/// `src` is valid for reads and `dst` for writes of `count` elements, `scalar` for a read of one.
/// `dst` either equals `src` or does not overlap it. Nothing needs alignment.
pub unsafe fn premultiply_raw(
    dtype: DType,
    dst: *mut u8,
    src: *const u8,
    scalar: *const u8,
    count: usize,
) {
    // SAFETY: the caller's promise; this is the processor's level.
    unsafe { premultiply_at(Level::detect(), dtype, dst, src, scalar, count) }
}

/// `dst[i] = src[i]` as binary32, of floats of 16 and 8 bits: exact.
///
/// # Panics
/// If the type has no binary32 that it is computed in ([`DType::is_small_float`]).
///
/// # Safety
/// `src` is valid for reads of `count` elements and `dst` for writes of as many binary32, which nobody
/// else touches meanwhile. They do not overlap. Nothing needs alignment.
pub unsafe fn widen_raw(dtype: DType, dst: *mut u8, src: *const u8, count: usize) {
    let level = Level::detect();
    // SAFETY: the caller's promise; this is the processor's level.
    unsafe {
        match dtype {
            DType::F16 => widen::<F16>(level, dst, src, count),
            DType::BF16 => widen::<BF16>(level, dst, src, count),
            DType::F8E4M3 => widen::<E4M3>(level, dst, src, count),
            DType::F8E5M2 => widen::<E5M2>(level, dst, src, count),
            other => panic!("{other} is no float of 16 or 8 bits"),
        }
    }
}

/// `dst[i] = src[i] / ranks`, of binary32 to floats of 16 and 8 bits: rounded once. By 1 it only
/// rounds.
///
/// # Panics
/// As [`widen_raw`], and if `ranks` is 0.
///
/// # Safety
/// As [`widen_raw`], with the types changed round.
pub unsafe fn narrow_raw(dtype: DType, dst: *mut u8, src: *const u8, count: usize, ranks: u32) {
    assert!(
        dtype.is_small_float(),
        "{dtype} is no float of 16 or 8 bits"
    );
    let level = Level::detect();
    // SAFETY: the caller's promise; this is the processor's level.
    unsafe { divide(level, dtype, dst, src, Source::Numbers, count, ranks) }
}

/// What lies at a source: elements of the type, or the numbers that stand for them in a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Elements,
    Numbers,
}

/// `dst[i] = src[i] / ranks`
///
/// # Safety
/// `src` is valid for reads and `dst` for writes of `count`; `dst` either equals `src` or does not
/// overlap it. The processor is of this level.
pub(crate) unsafe fn divide(
    level: Level,
    dtype: DType,
    dst: *mut u8,
    src: *const u8,
    source: Source,
    count: usize,
    ranks: u32,
) {
    assert!(ranks > 0, "an average has at least one term");
    let (single, double) = (ranks as f32, f64::from(ranks));
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            DType::I8 => map::<i8, _>(level, dst, src, Over(single), count),
            DType::U8 => map::<u8, _>(level, dst, src, Over(single), count),
            DType::I16 => map::<i16, _>(level, dst, src, Over(single), count),
            DType::U16 => map::<u16, _>(level, dst, src, Over(single), count),
            DType::I32 => map::<i32, _>(level, dst, src, Over(double), count),
            DType::U32 => map::<u32, _>(level, dst, src, Over(double), count),
            DType::I64 => map::<i64, _>(level, dst, src, Over(i64::from(ranks)), count),
            DType::U64 => map::<u64, _>(level, dst, src, Over(u64::from(ranks)), count),
            DType::F16 => small::<F16, _>(level, dst, src, source, Over(single), count),
            DType::BF16 => small::<BF16, _>(level, dst, src, source, Over(single), count),
            DType::F8E4M3 => small::<E4M3, _>(level, dst, src, source, Over(single), count),
            DType::F8E5M2 => small::<E5M2, _>(level, dst, src, source, Over(single), count),
            DType::F32 => map::<f32, _>(level, dst, src, Over(single), count),
            DType::F64 => map::<f64, _>(level, dst, src, Over(double), count),
            // Real and imaginary parts alike.
            DType::C64 => map::<f32, _>(level, dst, src, Over(single), 2 * count),
            DType::C128 => map::<f64, _>(level, dst, src, Over(double), 2 * count),
            DType::Bool | DType::F32I32 | DType::F64I64 | DType::I32I32 | DType::I64I64 => {
                panic!("avg does not serve {dtype}")
            }
        }
    }
}

/// # Safety
/// As [`premultiply_raw`], on a processor of this level.
pub(crate) unsafe fn premultiply_at(
    level: Level,
    dtype: DType,
    dst: *mut u8,
    src: *const u8,
    scalar: *const u8,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            DType::I8 | DType::U8 => multiply::<u8>(level, dst, src, scalar, count),
            DType::I16 | DType::U16 => multiply::<u16>(level, dst, src, scalar, count),
            DType::I32 | DType::U32 => multiply::<u32>(level, dst, src, scalar, count),
            DType::I64 | DType::U64 => multiply::<u64>(level, dst, src, scalar, count),
            DType::F16 => multiply_small::<F16>(level, dst, src, scalar, count),
            DType::BF16 => multiply_small::<BF16>(level, dst, src, scalar, count),
            DType::F8E4M3 => multiply_small::<E4M3>(level, dst, src, scalar, count),
            DType::F8E5M2 => multiply_small::<E5M2>(level, dst, src, scalar, count),
            DType::F32 => multiply::<f32>(level, dst, src, scalar, count),
            DType::F64 => multiply::<f64>(level, dst, src, scalar, count),
            DType::C64 => multiply::<Complex<f32>>(level, dst, src, scalar, count),
            DType::C128 => multiply::<Complex<f64>>(level, dst, src, scalar, count),
            DType::Bool | DType::F32I32 | DType::F64I64 | DType::I32I32 | DType::I64I64 => {
                panic!("premul_sum does not serve {dtype}")
            }
        }
    }
}

/// # Safety
/// As [`premultiply_raw`], on a processor of this level.
unsafe fn multiply<T: Ring>(
    level: Level,
    dst: *mut u8,
    src: *const u8,
    scalar: *const u8,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let factor = Times(scalar.cast::<T>().read_unaligned());
        map::<T, _>(level, dst, src, factor, count);
    }
}

/// # Safety
/// As [`premultiply_raw`], on a processor of this level.
unsafe fn multiply_small<F: SmallFloat>(
    level: Level,
    dst: *mut u8,
    src: *const u8,
    scalar: *const u8,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let factor = Times(F::widen(scalar.cast::<F::Bits>().read_unaligned()));
        small::<F, _>(level, dst, src, Source::Elements, factor, count);
    }
}

/// # Safety
/// As [`widen_raw`], on a processor of this level.
unsafe fn widen<F: SmallFloat>(level: Level, dst: *mut u8, src: *const u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { Unary::<Plain<f32>, Small<F>, Canonically>::at(level)(dst, src, Canonically, count) }
}

/// # Safety
/// As [`divide`].
unsafe fn map<T: Number, M: Map<T>>(
    level: Level,
    dst: *mut u8,
    src: *const u8,
    map: M,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { Unary::<Plain<T>, Plain<T>, M>::at(level)(dst, src, map, count) }
}

/// # Safety
/// As [`divide`].
unsafe fn small<F: SmallFloat, M: Map<f32>>(
    level: Level,
    dst: *mut u8,
    src: *const u8,
    source: Source,
    map: M,
    count: usize,
) {
    let kernel = match source {
        Source::Elements => Unary::<Small<F>, Small<F>, M>::at(level),
        Source::Numbers => Unary::<Small<F>, Plain<f32>, M>::at(level),
    };
    // SAFETY: the caller's promise.
    unsafe { kernel(dst, src, map, count) }
}

#[derive(Clone, Copy)]
struct Times<T>(T);

impl<T: Ring> Map<T> for Times<T> {
    #[inline(always)]
    fn apply(self, number: T) -> T {
        number.prod(self.0)
    }
}

/// The number itself.
#[derive(Clone, Copy)]
struct Canonically;

impl Map<f32> for Canonically {
    #[inline(always)]
    fn apply(self, number: f32) -> f32 {
        number.canonical()
    }
}

/// A quotient, in the type of the divisor.
#[derive(Clone, Copy)]
struct Over<D>(D);

macro_rules! quotient {
    ($number:ty, $divisor:ty, |$x:ident, $n:ident| $quotient:expr) => {
        impl Map<$number> for Over<$divisor> {
            #[inline(always)]
            fn apply(self, $x: $number) -> $number {
                let $n = self.0;
                $quotient
            }
        }
    };
}

quotient!(f32, f32, |x, n| (x / n).canonical());
quotient!(f64, f64, |x, n| (x / n).canonical());
// Vectors divide floats only. A quotient of integers that is not whole is farther from the next whole
// number than a float with as many digits rounds: truncation finds the right one.
macro_rules! quotient_by_float {
    ($($number:ty as $float:ty as $via:ty),+) => {$(
        quotient!($number, $float, |x, n| {
            // SAFETY: a quotient by one or more lies between the number and 0: it fits.
            unsafe { (<$float>::from(x) / n).to_int_unchecked::<$via>() as $number }
        });
    )+};
}
quotient_by_float!(
    i8 as f32 as i32,
    u8 as f32 as i32,
    i16 as f32 as i32,
    u16 as f32 as i32
);
quotient_by_float!(i32 as f64 as i32, u32 as f64 as u32);
quotient!(i64, i64, |x, n| x / n);
quotient!(u64, u64, |x, n| x / n);
