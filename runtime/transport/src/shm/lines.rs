//! Moves to and from single cache lines.

use std::ptr::NonNull;

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
