//! Moves to and from single cache lines.

use std::ptr::NonNull;

use super::arena::LINE_BYTES;

/// Asks for a line as its only owner. Only a hint: without effect where nothing is mapped.
#[inline]
pub(super) fn prefetch_to_write(line: NonNull<u8>) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor knows the instruction, or takes it for none; it changes no
    // memory and never faults.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) line.as_ptr(),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = line;
}

/// Asks for a line to be read. Only a hint: without effect where nothing is mapped.
#[inline]
pub(super) fn prefetch(line: NonNull<u8>) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: part of every x86-64 processor; it changes no memory and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = line;
}

/// Moves a line that was written to where other cores find it soonest. Only a hint.
#[inline]
pub(super) fn hand_on(line: NonNull<u8>) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: processors that don't know the instruction take it for none; it changes no memory and
    // never faults.
    unsafe {
        std::arch::asm!(
            "cldemote [{}]",
            in(reg) line.as_ptr(),
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = line;
}

/// Copies to lines that another core reads next, from the start of one on, and hands on each.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(super) unsafe fn copy_to_hand_on(from: *const u8, to: NonNull<u8>, bytes: usize) {
    for at in (0..bytes).step_by(LINE_BYTES) {
        // SAFETY: inside of the caller's range. Whole lines become single moves, not calls.
        unsafe {
            let (from, to) = (from.add(at), to.add(at));
            if bytes - at >= LINE_BYTES {
                std::ptr::copy_nonoverlapping(from, to.as_ptr(), LINE_BYTES);
            } else {
                std::ptr::copy_nonoverlapping(from, to.as_ptr(), bytes - at);
            }
            hand_on(to);
        }
    }
}

/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(super) unsafe fn copy_short(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: as the caller vouches. The common lengths become single moves, not calls.
    unsafe {
        match bytes {
            0 => {}
            4 => std::ptr::copy_nonoverlapping(from, to, 4),
            8 => std::ptr::copy_nonoverlapping(from, to, 8),
            _ => std::ptr::copy_nonoverlapping(from, to, bytes),
        }
    }
}
