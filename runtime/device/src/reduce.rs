//! `dst = a op b`, element by element.
//!
//! One generic loop over blocks of a fixed size. It is compiled three times, under different target
//! features, and the compiler makes vector code of each: a block is loaded whole before any of it is
//! stored, so it needs no test whether the buffers overlap.

use crate::element::{Element, sealed::Arithmetic};
use rlaunch_wire::{DType, Op};

/// `dst[i] = a[i] op b[i]` for slices of one length.
///
/// # Panics
/// If the lengths differ.
pub fn reduce<T: Element>(op: Op, dst: &mut [T], a: &[T], b: &[T]) {
    assert_eq!(
        dst.len(),
        a.len(),
        "the result has as many elements as its operands"
    );
    assert_eq!(dst.len(), b.len(), "both operands have as many elements");
    // SAFETY: the slices are valid for their length; `dst` is exclusive.
    unsafe { reduce_typed(op, dst.as_mut_ptr(), a.as_ptr(), b.as_ptr(), dst.len()) }
}

/// `dst[i] = a[i] op b[i]` for `count` elements of `dtype`. The pointers need no alignment, and `dst`
/// may equal `a` or `b`.
///
/// # Safety
/// `a` and `b` are valid for reads and `dst` for writes of `count` elements, which nobody else writes
/// meanwhile. `dst` either equals an operand or does not overlap it.
pub unsafe fn reduce_raw(
    dtype: DType,
    op: Op,
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    count: usize,
) {
    // SAFETY: the caller's promise, for elements of this type.
    unsafe {
        match dtype {
            DType::I32 => reduce_typed::<i32>(op, dst.cast(), a.cast(), b.cast(), count),
            DType::I64 => reduce_typed::<i64>(op, dst.cast(), a.cast(), b.cast(), count),
            DType::F32 => reduce_typed::<f32>(op, dst.cast(), a.cast(), b.cast(), count),
            DType::F64 => reduce_typed::<f64>(op, dst.cast(), a.cast(), b.cast(), count),
            _ => unimplemented!("reduce {dtype}"),
        }
    }
}

/// # Safety
/// As [`reduce_raw`].
unsafe fn reduce_typed<T: Arithmetic>(op: Op, dst: *mut T, a: *const T, b: *const T, count: usize) {
    // SAFETY: the caller's promise; `detect` names only what the processor has.
    unsafe { reduce_at(Level::detect(), op, dst, a, b, count) }
}

/// # Safety
/// As [`reduce_raw`], on a processor of this level.
unsafe fn reduce_at<T: Arithmetic>(
    level: Level,
    op: Op,
    dst: *mut T,
    a: *const T,
    b: *const T,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => reduce_avx512(op, dst, a, b, count),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => reduce_avx2(op, dst, a, b, count),
            Level::Baseline => by_operation(op, dst, a, b, count),
        }
    }
}

/// What the processor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The standard library looks once and keeps the answer.
    #[cfg(target_arch = "x86_64")]
    fn detect() -> Self {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            Self::Avx512
        } else if is_x86_feature_detected!("avx2") {
            Self::Avx2
        } else {
            Self::Baseline
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Self {
        Self::Baseline
    }
}

/// # Safety
/// As [`reduce_raw`], on a processor with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
unsafe fn reduce_avx512<T: Arithmetic>(
    op: Op,
    dst: *mut T,
    a: *const T,
    b: *const T,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { by_operation(op, dst, a, b, count) }
}

/// # Safety
/// As [`reduce_raw`], on a processor with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn reduce_avx2<T: Arithmetic>(op: Op, dst: *mut T, a: *const T, b: *const T, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { by_operation(op, dst, a, b, count) }
}

/// # Safety
/// As [`reduce_raw`].
#[inline(always)]
unsafe fn by_operation<T: Arithmetic>(op: Op, dst: *mut T, a: *const T, b: *const T, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match op {
            Op::Sum => blocks(
                dst,
                a,
                b,
                count,
                #[inline(always)]
                |x: T, y: T| x.sum(y),
            ),
            Op::Prod => blocks(
                dst,
                a,
                b,
                count,
                #[inline(always)]
                |x: T, y: T| x.prod(y),
            ),
            Op::Min => blocks(
                dst,
                a,
                b,
                count,
                #[inline(always)]
                |x: T, y: T| x.min_nan(y),
            ),
            Op::Max => blocks(
                dst,
                a,
                b,
                count,
                #[inline(always)]
                |x: T, y: T| x.max_nan(y),
            ),
            _ => unimplemented!("{op}"),
        }
    }
}

/// Elements of a block: four vectors of AVX-512 for 4-byte elements, eight for 8-byte ones.
const BLOCK: usize = 64;

/// # Safety
/// As [`reduce_raw`].
#[inline(always)]
unsafe fn blocks<T: Arithmetic>(
    dst: *mut T,
    a: *const T,
    b: *const T,
    count: usize,
    op: impl Fn(T, T) -> T,
) {
    let whole = count - count % BLOCK;
    let mut at = 0;
    while at < whole {
        // SAFETY: `at + BLOCK <= count`, and the caller vouches for `count` elements.
        unsafe {
            let x = a.add(at).cast::<[T; BLOCK]>().read_unaligned();
            let y = b.add(at).cast::<[T; BLOCK]>().read_unaligned();
            let mut result = [T::ZERO; BLOCK];
            for index in 0..BLOCK {
                result[index] = op(x[index], y[index]);
            }
            dst.add(at).cast::<[T; BLOCK]>().write_unaligned(result);
        }
        at += BLOCK;
    }
    for at in whole..count {
        // SAFETY: `at < count`.
        unsafe {
            let (x, y) = (a.add(at).read_unaligned(), b.add(at).read_unaligned());
            dst.add(at).write_unaligned(op(x, y));
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn check_levels<T: Arithmetic>(elements: impl Fn(i64) -> T, bits: impl Fn(T) -> u64) {
        let a: Vec<T> = (0..333)
            .map(|at| elements(at * 7919 % 1013 - 500))
            .collect();
        let b: Vec<T> = (0..333)
            .map(|at| elements(at * 104_729 % 997 - 498))
            .collect();
        let run = |level, op| {
            let mut result = vec![T::ZERO; a.len()];
            // SAFETY: three vectors of one length, on a processor that is at least of `level`.
            unsafe {
                reduce_at(
                    level,
                    op,
                    result.as_mut_ptr(),
                    a.as_ptr(),
                    b.as_ptr(),
                    a.len(),
                );
            }
            result.into_iter().map(&bits).collect::<Vec<_>>()
        };
        for &op in &Op::ALL[..4] {
            let expected = run(Level::Baseline, op);
            if Level::detect() != Level::Baseline {
                assert_eq!(run(Level::Avx2, op), expected, "{op} with AVX2");
            }
            if Level::detect() == Level::Avx512 {
                assert_eq!(run(Level::Avx512, op), expected, "{op} with AVX-512");
            }
        }
    }

    /// A job may span processors of different levels: they must not differ in a bit.
    #[test]
    fn all_levels_give_the_same_bits() {
        check_levels(
            |x| (x as i32).wrapping_mul(5_000_011),
            |x| u64::from(x as u32),
        );
        check_levels(|x| x.wrapping_mul(0x1234_5678_9ABC_DEF1), |x| x as u64);
        check_levels(|x| x as f32 / 7.0, |x| u64::from(x.to_bits()));
        check_levels(|x| x as f64 / 7.0, f64::to_bits);
    }
}
