//! Copies between buffers that do not overlap.

/// From about this length of a whole transfer, streaming stores win over plain ones (measured between
/// two processes: a loss at 256 KiB, twice as fast at 1 MiB). Callers compare the length of what they
/// move in all, not of one piece.
pub const NONTEMPORAL_WORTH_BYTES: usize = 512 * 1024;

/// Pieces shorter than this are copied plainly: their fence would cost more than the stores save.
#[cfg(target_arch = "x86_64")]
const STREAM_BYTES_MIN: usize = 1024;

/// # Safety
/// `src` is valid for reads and `dst` for writes of `bytes` bytes, and they do not overlap.
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) }
}

/// Copies to lines that another core has read since they were last written: it asks for each well
/// ahead of the store, which would otherwise wait until that core gives the line up.
///
/// # Safety
/// As [`copy`].
pub unsafe fn copy_between_cores(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= BETWEEN_BYTES_MIN {
        // SAFETY: the caller's promise, and each kernel runs only where its features were found.
        return unsafe {
            if is_x86_feature_detected!("avx512f") {
                between::avx512(dst, src, bytes)
            } else if is_x86_feature_detected!("avx") {
                between::avx(dst, src, bytes)
            } else {
                between::sse2(dst, src, bytes)
            }
        };
    }
    // SAFETY: the caller's promise.
    unsafe { copy(dst, src, bytes) }
}

/// Copies past the caches of the writer, for a result that will not be read soon by this core.
/// Complete, and ordered before every later store, when it returns.
///
/// # Safety
/// As [`copy`].
pub unsafe fn copy_nontemporal(dst: *mut u8, src: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= STREAM_BYTES_MIN {
        // SAFETY: the caller's promise, and each kernel runs only where its features were found.
        return unsafe {
            if is_x86_feature_detected!("avx512f") {
                stream::avx512(dst, src, bytes)
            } else if is_x86_feature_detected!("avx") {
                stream::avx(dst, src, bytes)
            } else {
                stream::sse2(dst, src, bytes)
            }
        };
    }
    // SAFETY: the caller's promise.
    unsafe { copy(dst, src, bytes) }
}

/// Shorter copies are over before asking ahead helps.
#[cfg(target_arch = "x86_64")]
const BETWEEN_BYTES_MIN: usize = 256;

#[cfg(target_arch = "x86_64")]
mod between {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256,
        _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
    };

    const LINE_BYTES: usize = 64;
    /// How far ahead of the store a line is asked for; 1 KiB was best from 64 KiB to 16 MiB.
    const AHEAD_BYTES: usize = 1024;

    macro_rules! kernel {
        ($name:ident, $feature:literal, $vector:ty, $load:ident, $store:ident) => {
            /// # Safety
            /// As [`super::copy`], on a processor with this feature.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(dst: *mut u8, src: *const u8, bytes: usize) {
                const VECTOR_BYTES: usize = size_of::<$vector>();
                let body = bytes / LINE_BYTES * LINE_BYTES;
                let asked = bytes.saturating_sub(AHEAD_BYTES);
                let mut at = 0;
                while at < body {
                    if at < asked {
                        // SAFETY: a hint that never faults; processors that lack it do nothing.
                        unsafe {
                            asm!(
                                "prefetchw [{}]", in(reg) dst.add(at + AHEAD_BYTES),
                                options(nostack, preserves_flags, readonly)
                            );
                        }
                    }
                    for lane in 0..LINE_BYTES / VECTOR_BYTES {
                        let offset = at + lane * VECTOR_BYTES;
                        // SAFETY: inside of the caller's range.
                        unsafe { $store(dst.add(offset).cast(), $load(src.add(offset).cast())) };
                    }
                    at += LINE_BYTES;
                }
                // SAFETY: the rest of the caller's range.
                unsafe { super::copy(dst.add(body), src.add(body), bytes - body) };
            }
        };
    }

    kernel!(sse2, "sse2", __m128i, _mm_loadu_si128, _mm_storeu_si128);
    kernel!(avx, "avx", __m256i, _mm256_loadu_si256, _mm256_storeu_si256);
    kernel!(
        avx512,
        "avx512f",
        __m512i,
        _mm512_loadu_si512,
        _mm512_storeu_si512
    );
}

#[cfg(target_arch = "x86_64")]
mod stream {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128,
        _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512, _mm512_stream_si512,
    };

    const LINE_BYTES: usize = 64;

    macro_rules! kernel {
        ($name:ident, $feature:literal, $vector:ty, $load:ident, $store:ident) => {
            /// # Safety
            /// As [`super::copy`], with at least a line, on a processor with this feature.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(dst: *mut u8, src: *const u8, bytes: usize) {
                const VECTOR_BYTES: usize = size_of::<$vector>();
                // Stores must fill whole lines: a head up to the first line's start, a tail.
                let head = dst.align_offset(LINE_BYTES).min(bytes);
                let body = (bytes - head) / LINE_BYTES * LINE_BYTES;
                // SAFETY: head, body and tail are consecutive parts of the caller's range; `dst`
                // is aligned to a line in the body; streaming stores end with a fence.
                unsafe {
                    super::copy(dst, src, head);
                    let (to, from) = (dst.add(head), src.add(head));
                    let mut at = 0;
                    while at < body {
                        for lane in 0..LINE_BYTES / VECTOR_BYTES {
                            let offset = at + lane * VECTOR_BYTES;
                            let vector = $load(from.add(offset).cast());
                            $store(to.add(offset).cast(), vector);
                        }
                        at += LINE_BYTES;
                    }
                    let done = head + body;
                    super::copy(dst.add(done), src.add(done), bytes - done);
                    _mm_sfence();
                }
            }
        };
    }

    kernel!(sse2, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128);
    kernel!(avx, "avx", __m256i, _mm256_loadu_si256, _mm256_stream_si256);
    kernel!(
        avx512,
        "avx512f",
        __m512i,
        _mm512_loadu_si512,
        _mm512_stream_si512
    );
}
