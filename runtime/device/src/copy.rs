//! Copies between buffers that do not overlap.

/// From about this length of a whole transfer, streaming stores win over plain ones. It depends on the
/// processor: on some they won from 1 MiB on (between two processes), on some with larger caches they
/// cost a tenth at 8 MiB and still a third at 512 KiB. Callers compare the length of what they move in
/// all, not of one piece.
pub const NONTEMPORAL_WORTH_BYTES: usize = 16 << 20;

const LINE_BYTES: usize = 64;

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
    // SAFETY: the caller's promise.
    unsafe { copy_asking(dst, src, bytes, dst) }
}

/// Copies from lines that another core wrote and that this one writes next: it asks for them as their
/// only owner, so that they travel once, not once to be read and once to be written.
///
/// # Safety
/// As [`copy`].
pub unsafe fn copy_taking_over(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_asking(dst, src, bytes, src) }
}

/// Asks for lines that another core has, as their only owner: to be read and then written. Only a
/// hint.
#[inline]
pub fn take_over(lines: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LINE_BYTES) {
        ask(lines.wrapping_add(at));
    }
}

/// Asks for one line as its only owner. Never faults; processors that lack it do nothing.
#[inline(always)]
fn ask(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint that changes no memory and never faults.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) line,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = line;
}

/// Copies, and asks for the lines from `asked` on ahead.
///
/// # Safety
/// As [`copy`]; `asked` is one of both.
unsafe fn copy_asking(dst: *mut u8, src: *const u8, bytes: usize, asked: *const u8) {
    #[cfg(target_arch = "x86_64")]
    if bytes >= BETWEEN_BYTES_MIN {
        // SAFETY: the caller's promise, and each kernel runs only where its features were found.
        return unsafe {
            if is_x86_feature_detected!("avx512f") {
                between::avx512(dst, src, bytes, asked)
            } else if is_x86_feature_detected!("avx") {
                between::avx(dst, src, bytes, asked)
            } else {
                between::sse2(dst, src, bytes, asked)
            }
        };
    }
    let _ = asked;
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
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256,
        _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
    };

    use super::LINE_BYTES;

    /// How far ahead of its use a line is asked for; 1 KiB was best from 64 KiB to 16 MiB.
    const AHEAD_BYTES: usize = 1024;

    macro_rules! kernel {
        ($name:ident, $feature:literal, $vector:ty, $load:ident, $store:ident) => {
            /// # Safety
            /// As [`super::copy`], on a processor with this feature.
            #[target_feature(enable = $feature)]
            pub(super) unsafe fn $name(
                dst: *mut u8,
                src: *const u8,
                bytes: usize,
                asked: *const u8,
            ) {
                const VECTOR_BYTES: usize = size_of::<$vector>();
                let body = bytes / LINE_BYTES * LINE_BYTES;
                let last_asked = bytes.saturating_sub(AHEAD_BYTES);
                super::take_over(asked, bytes.min(AHEAD_BYTES));
                let mut at = 0;
                while at < body {
                    if at < last_asked {
                        super::ask(asked.wrapping_add(at + AHEAD_BYTES));
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

    use super::LINE_BYTES;

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
