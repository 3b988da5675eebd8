//! The loops: one source for every type and operation, compiled once for each instruction set.
//!
//! A loop works on blocks of a fixed number of elements, of which the compiler makes vector code
//! without a branch. A block is loaded whole before any of it is stored, so it needs no test whether
//! the buffers overlap. What is left over goes through ever smaller blocks of the same code.

use std::marker::PhantomData;

use crate::isa::Isa;
use crate::level::compiled_for_each_level;
use crate::number::{Number, Operation};
use crate::small_float::SmallFloat;

/// How numbers lie in memory, and as what they are computed.
pub(crate) trait Format: 'static {
    type Memory: Copy;
    type Number: Number;

    /// # Safety
    /// The processor is of this level.
    unsafe fn load<I: Isa, const LANES: usize>(
        from: [Self::Memory; LANES],
    ) -> [Self::Number; LANES];

    /// # Safety
    /// The processor is of this level.
    unsafe fn store<I: Isa, const LANES: usize>(
        numbers: [Self::Number; LANES],
    ) -> [Self::Memory; LANES];
}

/// Numbers that lie in memory as they are.
pub(crate) struct Plain<T>(PhantomData<T>);

impl<T: Number> Format for Plain<T> {
    type Memory = T;
    type Number = T;

    #[inline(always)]
    unsafe fn load<I: Isa, const LANES: usize>(from: [T; LANES]) -> [T; LANES] {
        from
    }

    #[inline(always)]
    unsafe fn store<I: Isa, const LANES: usize>(numbers: [T; LANES]) -> [T; LANES] {
        numbers
    }
}

/// Floats that are computed in binary32 and rounded when they are stored.
pub(crate) struct Small<F>(PhantomData<F>);

impl<F: SmallFloat> Format for Small<F> {
    type Memory = F::Bits;
    type Number = f32;

    #[inline(always)]
    unsafe fn load<I: Isa, const LANES: usize>(from: [F::Bits; LANES]) -> [f32; LANES] {
        // SAFETY: the caller's promise.
        unsafe { F::widen_all::<I, LANES>(from) }
    }

    #[inline(always)]
    unsafe fn store<I: Isa, const LANES: usize>(numbers: [f32; LANES]) -> [F::Bits; LANES] {
        // SAFETY: the caller's promise.
        unsafe { F::narrow_all::<I, LANES>(numbers) }
    }
}

/// Elements of a block, 8 to 64: as many as fill four vectors of the level, two where elements are
/// converted, which takes code enough.
const fn block_lanes<I: Isa, F: Format>() -> usize {
    let is_converted = size_of::<F::Memory>() < size_of::<F::Number>();
    let vectors = if is_converted { 2 } else { 4 };
    let lanes = vectors * I::VECTOR_BYTES / size_of::<F::Number>();
    if lanes >= 64 {
        64
    } else if lanes >= 32 {
        32
    } else if lanes >= 16 {
        16
    } else {
        8
    }
}

/// Evaluates the expression for block after block: the largest first, smaller ones for the rest.
macro_rules! for_each_block {
    ($lanes_max:expr, $count:ident, |$lanes:ident, $at:ident| $block:expr) => {
        let mut $at = 0;
        match const { $lanes_max } {
            64 => for_each_block!(@64, $count, |$lanes, $at| $block),
            32 => for_each_block!(@32, $count, |$lanes, $at| $block),
            16 => for_each_block!(@16, $count, |$lanes, $at| $block),
            _ => {}
        }
        for_each_block!(@8, $count, |$lanes, $at| $block);
        for_each_block!(@1, $count, |$lanes, $at| $block);
    };
    (@$size:literal, $count:ident, |$lanes:ident, $at:ident| $block:expr) => {
        while $count.wrapping_sub($at) >= $size {
            const $lanes: usize = $size;
            $block;
            $at = $at.wrapping_add($size);
            keep_as_loop();
        }
    };
}

/// A block is vectors already: of a loop over blocks the compiler would make vectors again, with tests
/// for overlap, at three times the code for nothing. It leaves alone what it can't see through.
#[inline(always)]
fn keep_as_loop() {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    // SAFETY: no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// `dst[i] = a[i] op b[i]`, each buffer in a format of its own.
pub(crate) struct Binary<D, A, B, O>(PhantomData<(D, A, B, O)>);

pub(crate) type BinaryKernel = unsafe fn(*mut u8, *const u8, *const u8, usize);

compiled_for_each_level! {
    impl<D: Format, A: Format<Number = D::Number>, B: Format<Number = D::Number>,
        O: Operation<D::Number>> Binary<D, A, B, O>;
    binary as fn(dst: *mut u8, a: *const u8, b: *const u8, count: usize)
}

/// # Safety
/// `a` and `b` are valid for reads and `dst` for writes of `count` elements, which nobody else writes
/// meanwhile. `dst` either equals an operand or does not overlap it. The processor is of this level.
#[inline(always)]
unsafe fn binary<I, D, A, B, O>(dst: *mut u8, a: *const u8, b: *const u8, count: usize)
where
    I: Isa,
    D: Format,
    A: Format<Number = D::Number>,
    B: Format<Number = D::Number>,
    O: Operation<D::Number>,
{
    let (dst, a, b) = (
        dst.cast::<D::Memory>(),
        a.cast::<A::Memory>(),
        b.cast::<B::Memory>(),
    );
    for_each_block!(block_lanes::<I, B>(), count, |LANES, at| {
        // SAFETY: `at + LANES <= count`, and the caller vouches for `count` elements.
        unsafe {
            let x = a.add(at).cast::<[A::Memory; LANES]>().read_unaligned();
            let y = b.add(at).cast::<[B::Memory; LANES]>().read_unaligned();
            let (x, y) = (A::load::<I, LANES>(x), B::load::<I, LANES>(y));
            let mut result = [D::Number::default(); LANES];
            for lane in 0..LANES {
                result[lane] = O::apply(x[lane], y[lane]);
            }
            let stored = D::store::<I, LANES>(result);
            dst.add(at)
                .cast::<[D::Memory; LANES]>()
                .write_unaligned(stored);
        }
    });
}

/// A function of one number.
pub(crate) trait Map<T>: Copy + 'static {
    fn apply(self, number: T) -> T;
}

/// `dst[i] = map(src[i])`
pub(crate) struct Unary<D, S, M>(PhantomData<(D, S, M)>);

compiled_for_each_level! {
    impl<D: Format, S: Format<Number = D::Number>, M: Map<D::Number>> Unary<D, S, M>;
    unary as fn(dst: *mut u8, src: *const u8, map: M, count: usize)
}

/// # Safety
/// `src` is valid for reads and `dst` for writes of `count` elements, which nobody else writes
/// meanwhile. `dst` either equals `src` or does not overlap it. The processor is of this level.
#[inline(always)]
unsafe fn unary<I, D, S, M>(dst: *mut u8, src: *const u8, map: M, count: usize)
where
    I: Isa,
    D: Format,
    S: Format<Number = D::Number>,
    M: Map<D::Number>,
{
    let (dst, src) = (dst.cast::<D::Memory>(), src.cast::<S::Memory>());
    for_each_block!(block_lanes::<I, D>(), count, |LANES, at| {
        // SAFETY: `at + LANES <= count`, and the caller vouches for `count` elements.
        unsafe {
            let x = src.add(at).cast::<[S::Memory; LANES]>().read_unaligned();
            let x = S::load::<I, LANES>(x);
            let mut result = [D::Number::default(); LANES];
            for lane in 0..LANES {
                result[lane] = map.apply(x[lane]);
            }
            let stored = D::store::<I, LANES>(result);
            dst.add(at)
                .cast::<[D::Memory; LANES]>()
                .write_unaligned(stored);
        }
    });
}
