//! Floats of 16 and 8 bits: to binary32 and back, without branches, so that loops become vector code.
//!
//! Widening is exact. Narrowing rounds to the nearest, ties to even, subnormal results included; every
//! NaN becomes the format's one canonical NaN. What is too large for `F16`, `BF16` becomes infinite,
//! as IEEE 754 says. In the 8-bit formats a *finite* number that is too large becomes the largest
//! number (448, 57344), as the conversions of CUDA and so NCCL do; an infinity stays one in `E5M2`,
//! and becomes 448 in `E4M3`, which has none.
//!
//! No arithmetic here takes or makes a subnormal binary32, so a process that flushes those to zero
//! (many set it for speed) converts to the same bits.

use crate::isa::Isa;

/// A float format narrower than binary32. `Bits` holds it in memory.
pub(crate) trait SmallFloat: 'static {
    type Bits: Copy + Default + Send + Sync + 'static;
    fn widen(bits: Self::Bits) -> f32;
    fn narrow(wide: f32) -> Self::Bits;

    /// # Safety
    /// The processor is of this level.
    #[inline(always)]
    unsafe fn widen_all<I: Isa, const LANES: usize>(bits: [Self::Bits; LANES]) -> [f32; LANES] {
        let mut wide = [0.0; LANES];
        for lane in 0..LANES {
            wide[lane] = Self::widen(bits[lane]);
        }
        wide
    }

    /// Of NaNs only the canonical one may be among the numbers.
    ///
    /// # Safety
    /// The processor is of this level.
    #[inline(always)]
    unsafe fn narrow_all<I: Isa, const LANES: usize>(wide: [f32; LANES]) -> [Self::Bits; LANES] {
        let mut bits = [Self::Bits::default(); LANES];
        for lane in 0..LANES {
            bits[lane] = Self::narrow(wide[lane]);
        }
        bits
    }
}

/// IEEE 754 binary16.
pub(crate) struct F16;
/// The upper half of a binary32.
pub(crate) struct BF16;
/// OCP `E4M3`: no infinities, one NaN a sign, largest number 448. (CUDA's and PyTorch's `e4m3fn`.)
pub(crate) struct E4M3;
/// OCP `E5M2`: a binary16 with eight bits less.
pub(crate) struct E5M2;

impl SmallFloat for F16 {
    type Bits = u16;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        widen::<5, 10, true>(u32::from(bits))
    }
    #[inline(always)]
    fn narrow(wide: f32) -> u16 {
        let (sign, magnitude) = parts(wide);
        let rounded = round::<5, 10>(magnitude);
        // Rounding carries into infinity by itself up to 2^16; from there on it must be said.
        let number = if magnitude >= 0x4780_0000 {
            0x7C00
        } else {
            rounded
        };
        let nan = magnitude > INFINITY;
        (if nan { 0x7E00 } else { sign >> 16 | number }) as u16
    }
    #[inline(always)]
    unsafe fn widen_all<I: Isa, const LANES: usize>(bits: [u16; LANES]) -> [f32; LANES] {
        // SAFETY: the caller's promise.
        unsafe { I::widen_f16(&bits) }
    }
    #[inline(always)]
    unsafe fn narrow_all<I: Isa, const LANES: usize>(wide: [f32; LANES]) -> [u16; LANES] {
        // SAFETY: the caller's promise.
        unsafe { I::narrow_f16(&wide) }
    }
}

impl SmallFloat for BF16 {
    type Bits = u16;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> u16 {
        let bits = wide.to_bits();
        // Carries into infinity by itself.
        let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
        (if wide.is_nan() { 0x7FC0 } else { rounded }) as u16
    }
}

impl SmallFloat for E4M3 {
    type Bits = u8;
    #[inline(always)]
    fn widen(bits: u8) -> f32 {
        let number = widen::<4, 3, false>(u32::from(bits));
        if bits & 0x7F == 0x7F {
            f32::NAN
        } else {
            number
        }
    }
    #[inline(always)]
    fn narrow(wide: f32) -> u8 {
        let (sign, magnitude) = parts(wide);
        let rounded = round::<4, 3>(magnitude);
        let number = if magnitude >= 0x43E0_0000 {
            0x7E
        } else {
            rounded
        };
        let nan = magnitude > INFINITY;
        (if nan { 0x7F } else { sign >> 24 | number }) as u8
    }
    /// As a binary16 with the same bits is 2^8 times smaller.
    #[inline(always)]
    unsafe fn widen_all<I: Isa, const LANES: usize>(bits: [u8; LANES]) -> [f32; LANES] {
        let mut halves = [0_u16; LANES];
        for lane in 0..LANES {
            let bits = u16::from(bits[lane]);
            let nan = if bits & 0x7F == 0x7F { 0x7E00 } else { 0 };
            halves[lane] = (bits & 0x80) << 8 | (bits & 0x7F) << 7 | nan;
        }
        // SAFETY: the caller's promise.
        let mut wide = unsafe { I::widen_f16(&halves) };
        for number in &mut wide {
            *number *= 256.0;
        }
        wide
    }
}

impl SmallFloat for E5M2 {
    type Bits = u8;
    #[inline(always)]
    fn widen(bits: u8) -> f32 {
        F16::widen(u16::from(bits) << 8)
    }
    #[inline(always)]
    fn narrow(wide: f32) -> u8 {
        let (sign, magnitude) = parts(wide);
        let rounded = round::<5, 2>(magnitude);
        let finite = if magnitude >= 0x4760_0000 {
            0x7B
        } else {
            rounded
        };
        let number = if magnitude == INFINITY { 0x7C } else { finite };
        let nan = magnitude > INFINITY;
        (if nan { 0x7E } else { sign >> 24 | number }) as u8
    }
    #[inline(always)]
    unsafe fn widen_all<I: Isa, const LANES: usize>(bits: [u8; LANES]) -> [f32; LANES] {
        let mut halves = [0_u16; LANES];
        for lane in 0..LANES {
            halves[lane] = u16::from(bits[lane]) << 8;
        }
        // SAFETY: the caller's promise.
        unsafe { I::widen_f16(&halves) }
    }
}

/// A binary32's infinity; the bits of NaNs are larger.
const INFINITY: u32 = 0x7F80_0000;

/// Sign bit in its place, and the rest.
#[inline(always)]
fn parts(wide: f32) -> (u32, u32) {
    (wide.to_bits() & 0x8000_0000, wide.to_bits() & 0x7FFF_FFFF)
}

const fn bias(exponent_bits: u32) -> u32 {
    (1 << (exponent_bits - 1)) - 1
}

/// The number of a format laid out as sign, exponent, mantissa. `SPECIAL`: the largest exponent means
/// infinity and NaN.
#[inline(always)]
fn widen<const EXPONENT: u32, const MANTISSA: u32, const SPECIAL: bool>(bits: u32) -> f32 {
    let sign = bits >> (EXPONENT + MANTISSA) << 31;
    let magnitude = (bits & ((1 << (EXPONENT + MANTISSA)) - 1)) << (23 - MANTISSA);
    let rebias = (127 - bias(EXPONENT)) << 23;
    let normal = magnitude.wrapping_add(rebias);
    let special = magnitude | INFINITY;
    let is_special = SPECIAL && magnitude >= ((1 << EXPONENT) - 1) << 23;
    // Exponent field 0: as if it were 1 with its hidden bit, less what the hidden bit adds.
    let smallest_normal = rebias + (1 << 23);
    let with_hidden = f32::from_bits(magnitude.wrapping_add(smallest_normal));
    let subnormal = with_hidden - f32::from_bits(smallest_normal);
    let number = if magnitude < 1 << 23 {
        subnormal.to_bits()
    } else {
        normal
    };
    f32::from_bits(sign | if is_special { special } else { number })
}

/// The format's bits of a number without sign, as if exponents had no end.
#[inline(always)]
fn round<const EXPONENT: u32, const MANTISSA: u32>(magnitude: u32) -> u32 {
    let shift = 23 - MANTISSA;
    let rebias = (127 - bias(EXPONENT)) << 23;
    let tie_to_even = (magnitude >> shift) & 1;
    let normal = magnitude
        .wrapping_sub(rebias)
        .wrapping_add((1 << (shift - 1)) - 1 + tie_to_even)
        >> shift;
    // A sum with a number whose last place is the format's smallest subnormal: the addition rounds.
    let anchor = (127 + 1 - bias(EXPONENT) + 23 - MANTISSA) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(anchor)).to_bits();
    let smallest_normal = rebias + (1 << 23);
    if magnitude < smallest_normal {
        subnormal.wrapping_sub(anchor)
    } else {
        normal
    }
}
