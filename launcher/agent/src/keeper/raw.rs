//! System calls without the C library, which would write `errno`: for a child on the keeper's memory.

use std::arch::asm;

use nix::libc::c_long;

/// A call's refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Errno(pub(super) i32);

/// The most that the kernel gives as an error.
const ERRNO_MAX: usize = 4095;

/// # Safety
/// As the call itself asks.
pub(super) unsafe fn call(number: c_long, arguments: [usize; 5]) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    let returned = unsafe { enter(number as usize, arguments) };
    let error = returned.wrapping_neg();
    if error.wrapping_sub(1) < ERRNO_MAX {
        return Err(Errno(error as i32));
    }
    Ok(returned)
}

#[cfg(target_arch = "x86_64")]
unsafe fn enter(number: usize, [a, b, c, d, e]: [usize; 5]) -> usize {
    let returned;
    // SAFETY: the registers that the kernel reads and those that it changes, as its interface has them.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => returned,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    returned
}

#[cfg(target_arch = "aarch64")]
unsafe fn enter(number: usize, [a, b, c, d, e]: [usize; 5]) -> usize {
    let returned;
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc 0",
            inlateout("x0") a => returned,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x8") number,
            options(nostack),
        );
    }
    returned
}

#[cfg(target_arch = "riscv64")]
unsafe fn enter(number: usize, [a, b, c, d, e]: [usize; 5]) -> usize {
    let returned;
    // SAFETY: as above.
    unsafe {
        asm!(
            "ecall",
            inlateout("a0") a => returned,
            in("a1") b, in("a2") c, in("a3") d, in("a4") e, in("a7") number,
            options(nostack),
        );
    }
    returned
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    #[test]
    fn a_call_gives_what_the_kernel_said() {
        // SAFETY: no argument.
        let own = unsafe { call(libc::SYS_getpid, [0; 5]) };
        assert_eq!(own, Ok(std::process::id() as usize));
        // SAFETY: closes nothing: there is no such descriptor.
        let closed = unsafe { call(libc::SYS_close, [usize::MAX, 0, 0, 0, 0]) };
        assert_eq!(closed, Err(Errno(libc::EBADF)));
    }
}
