//! Every value of the small floats, and every place where rounding turns.

use rlaunch_wire::DType;

use super::reference;
use super::sample::Random;
use crate::isa::{Baseline, Isa};
use crate::level::{Level, compiled_for_each_level};
use crate::small_float::{BF16, E4M3, E5M2, F16, SmallFloat};

/// Numbers converted at a time, as kernels do.
const LANES: usize = 64;

struct Widen<F>(std::marker::PhantomData<F>);
compiled_for_each_level! {
    impl<F: SmallFloat> Widen<F>;
    widen as fn(from: &[F::Bits; LANES], to: &mut [f32; LANES])
}

#[inline(always)]
unsafe fn widen<I: Isa, F: SmallFloat>(from: &[F::Bits; LANES], to: &mut [f32; LANES]) {
    // SAFETY: the caller's promise.
    *to = unsafe { F::widen_all::<I, LANES>(*from) };
}

struct Narrow<F>(std::marker::PhantomData<F>);
compiled_for_each_level! {
    impl<F: SmallFloat> Narrow<F>;
    narrow as fn(from: &[f32; LANES], to: &mut [F::Bits; LANES])
}

#[inline(always)]
unsafe fn narrow<I: Isa, F: SmallFloat>(from: &[f32; LANES], to: &mut [F::Bits; LANES]) {
    // SAFETY: the caller's promise.
    *to = unsafe { F::narrow_all::<I, LANES>(*from) };
}

fn same(a: f32, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || f64::from(a).to_bits() == b.to_bits()
}

fn check<F: SmallFloat>(dtype: DType, of_bits: fn(u32) -> F::Bits, to_bits: fn(F::Bits) -> u32) {
    let patterns = 1_u32 << (8 * dtype.size_bytes());
    for level in Level::all() {
        for first in (0..patterns).step_by(LANES) {
            let bits = std::array::from_fn(|lane| of_bits(first + lane as u32));
            let mut wide = [0.0; LANES];
            // SAFETY: the level is one of this processor's.
            unsafe { Widen::<F>::at(level)(&bits, &mut wide) };
            for (lane, wide) in wide.iter().enumerate() {
                let bits = first + lane as u32;
                let expected = reference::widen(dtype, bits);
                assert!(
                    same(*wide, expected),
                    "{dtype} {bits:#x}: {wide} for {expected}, {level:?}"
                );
                assert!(same(F::widen(of_bits(bits)), expected), "{dtype} {bits:#x}");
            }
        }
    }
    let turns = turns(dtype, patterns);
    for chunk in turns.chunks(LANES) {
        let mut wide = [0.0; LANES];
        wide[..chunk.len()].copy_from_slice(chunk);
        for level in Level::all() {
            let mut bits = [of_bits(0); LANES];
            // SAFETY: the level is one of this processor's.
            unsafe { Narrow::<F>::at(level)(&wide, &mut bits) };
            for (value, bits) in wide.iter().zip(bits) {
                let expected = reference::narrow(dtype, f64::from(*value));
                assert_eq!(to_bits(bits), expected, "{dtype} of {value:e}, {level:?}");
                assert_eq!(to_bits(F::narrow(*value)), expected, "{dtype} of {value:e}");
            }
        }
    }
}

/// All values, the numbers halfway between neighbours, the next ones on both sides of all these, those
/// too large or too small, and others.
fn turns(dtype: DType, patterns: u32) -> Vec<f32> {
    let mut turns = vec![
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
    ];
    turns.extend([f32::MIN_POSITIVE, f32::from_bits(1), -f32::from_bits(1)]);
    for bits in 0..patterns {
        let value = reference::widen(dtype, bits);
        let next = reference::widen(dtype, bits + 1);
        for turn in [
            value as f32,
            ((value + next) / 2.0) as f32,
            (value * 1.03) as f32,
        ] {
            if !turn.is_nan() {
                turns.extend([turn, turn.next_up(), turn.next_down()]);
            }
        }
    }
    let mut random = Random(11);
    let others = (0..100_000).map(|_| f32::from_bits(random.next() as u32));
    turns.extend(others.filter(|number| !number.is_nan()));
    turns
}

#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn float16_converts_exactly() {
    check::<F16>(DType::F16, |bits| bits as u16, u32::from);
}

#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn bfloat16_converts_exactly() {
    check::<BF16>(DType::BF16, |bits| bits as u16, u32::from);
}

#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn float8_e4m3_converts_exactly() {
    check::<E4M3>(DType::F8E4M3, |bits| bits as u8, u32::from);
}

#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn float8_e5m2_converts_exactly() {
    check::<E5M2>(DType::F8E5M2, |bits| bits as u8, u32::from);
}

/// Known bit patterns, so that reference and kernels can't share a mistake.
#[test]
fn conversions_know_the_formats() {
    assert_eq!(F16::narrow(1.0), 0x3C00);
    assert_eq!(F16::narrow(65504.0), 0x7BFF);
    assert_eq!(F16::narrow(65520.0), 0x7C00);
    assert_eq!(F16::narrow(5.960_464_5e-8), 0x0001);
    assert_eq!(BF16::narrow(std::f32::consts::PI), 0x4049);
    assert_eq!(E4M3::narrow(448.0), 0x7E);
    assert_eq!(E4M3::narrow(1e9), 0x7E);
    assert_eq!(E4M3::narrow(f32::NEG_INFINITY), 0xFE);
    assert_eq!(E4M3::narrow(1.0), 0x38);
    assert_eq!(E4M3::narrow(0.001_953_125), 0x01);
    assert_eq!(E5M2::narrow(1.0), 0x3C);
    assert_eq!(E5M2::narrow(57344.0), 0x7B);
    assert_eq!(E5M2::narrow(1e9), 0x7B);
    assert_eq!(E5M2::narrow(f32::INFINITY), 0x7C);
    // SAFETY: the baseline is every processor's.
    let nans = unsafe { F16::narrow_all::<Baseline, 1>([f32::NAN]) };
    assert_eq!(nans, [0x7E00]);
}
