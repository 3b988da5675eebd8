//! The one thing that compilers do not find themselves: the instructions that convert binary16.
//!
//! All levels give the same bits: hardware and software round to the nearest, ties to even.

use crate::small_float::{F16, SmallFloat};

/// A level that code is being compiled for.
///
/// # Safety
/// Functions of a level may be called only on a processor of that level, from code that is compiled
/// with its features.
pub(crate) trait Isa: 'static {
    const VECTOR_BYTES: usize;

    /// # Safety
    /// The processor is of this level.
    #[inline(always)]
    unsafe fn widen_f16<const LANES: usize>(halves: &[u16; LANES]) -> [f32; LANES] {
        let mut wide = [0.0; LANES];
        for lane in 0..LANES {
            wide[lane] = F16::widen(halves[lane]);
        }
        wide
    }

    /// Of NaNs only the canonical one may be among the numbers.
    ///
    /// # Safety
    /// The processor is of this level.
    #[inline(always)]
    unsafe fn narrow_f16<const LANES: usize>(wide: &[f32; LANES]) -> [u16; LANES] {
        let mut halves = [0; LANES];
        for lane in 0..LANES {
            halves[lane] = F16::narrow(wide[lane]);
        }
        halves
    }
}

pub(crate) struct Baseline;
impl Isa for Baseline {
    const VECTOR_BYTES: usize = 16;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256, __m256i, __m512, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128,
        _mm_storeu_si128, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_loadu_si256,
        _mm256_storeu_ps, _mm256_storeu_si256, _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_loadu_ps,
        _mm512_storeu_ps,
    };

    use super::Isa;
    use crate::small_float::{F16, SmallFloat};

    macro_rules! converts {
        (
            $level:ident, $vector_lanes:literal, $half:ty, $wide:ty,
            $load_half:ident, $store_half:ident, $load_wide:ident, $store_wide:ident,
            $widen:ident, $narrow:ident
        ) => {
            pub(crate) struct $level;
            impl Isa for $level {
                const VECTOR_BYTES: usize = size_of::<$wide>();

                #[inline(always)]
                unsafe fn widen_f16<const LANES: usize>(halves: &[u16; LANES]) -> [f32; LANES] {
                    let mut wide = [0.0_f32; LANES];
                    let whole = LANES - LANES % $vector_lanes;
                    let mut lane = 0;
                    while lane < whole {
                        // SAFETY: the vector lies in both arrays; the processor has the instruction,
                        // as the caller vouches.
                        unsafe {
                            let vector: $half = $load_half(halves.as_ptr().add(lane).cast());
                            $store_wide(wide.as_mut_ptr().add(lane), $widen(vector));
                        }
                        lane += $vector_lanes;
                    }
                    for lane in whole..LANES {
                        wide[lane] = F16::widen(halves[lane]);
                    }
                    wide
                }

                #[inline(always)]
                unsafe fn narrow_f16<const LANES: usize>(wide: &[f32; LANES]) -> [u16; LANES] {
                    let mut halves = [0_u16; LANES];
                    let whole = LANES - LANES % $vector_lanes;
                    let mut lane = 0;
                    while lane < whole {
                        // SAFETY: as above.
                        unsafe {
                            let vector: $wide = $load_wide(wide.as_ptr().add(lane));
                            let half = $narrow::<_MM_FROUND_TO_NEAREST_INT>(vector);
                            $store_half(halves.as_mut_ptr().add(lane).cast(), half);
                        }
                        lane += $vector_lanes;
                    }
                    for lane in whole..LANES {
                        halves[lane] = F16::narrow(wide[lane]);
                    }
                    halves
                }
            }
        };
    }

    converts!(
        Avx2,
        8,
        __m128i,
        __m256,
        _mm_loadu_si128,
        _mm_storeu_si128,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_cvtph_ps,
        _mm256_cvtps_ph
    );
    converts!(
        Avx512,
        16,
        __m256i,
        __m512,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_cvtph_ps,
        _mm512_cvtps_ph
    );
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};
