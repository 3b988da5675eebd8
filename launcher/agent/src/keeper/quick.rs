//! A rank's process without a copy of the keeper: until exec it runs on the keeper's own memory.
//!
//! A fork copies page tables, and each side then copies what it writes; that took as long as the rank's
//! exec. A child that shares the memory (`CLONE_VM`) has none of that, and unlike after `vfork` the keeper
//! goes on at once: a program on a hanging file system still blocks nobody but itself.
//!
//! What that asks for:
//! - The child has a stack of its own, and reads only what was made for it. All of it stays where it is
//!   until the child has executed its program or is dead, which its pipe tells.
//! - It writes nothing but its stack. The C library's calls write `errno`, which is the keeper's too, so it
//!   makes system calls by itself. It allocates nothing and cannot panic.
//! - It knows one way: everything works. Whatever fails, a forked child does all of it again and tells why.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, RawFd};

use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::pipe2;

use super::raw::{Errno, call};
use super::spawn::{Child, Prepared, pointers};

/// Of the child, whose calls go three deep.
const STACK_WORDS: usize = 2048;

/// What a child reads that may still be on its way to exec. It is never freed by being dropped: a keeper
/// that gives up does not know where the child is.
pub(super) struct Quick {
    inside: ManuallyDrop<Box<Inside>>,
    stack: ManuallyDrop<Box<[MaybeUninit<u128>]>>,
}

/// All that the child reads.
struct Inside {
    prepared: Prepared,
    argv: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    report: RawFd,
}

/// Starts the child; gives back what it would have read where the system does not do that.
pub(super) fn spawn(prepared: Prepared) -> Result<Child, Prepared> {
    if prepared.terminal {
        return Err(prepared);
    }
    let Ok((outcome, report)) = pipe2(OFlag::O_CLOEXEC) else {
        return Err(prepared);
    };
    let (argv, environment) = (pointers(&prepared.argv), pointers(&prepared.environment));
    let inside = Box::new(Inside {
        prepared,
        argv,
        environment,
        report: report.as_raw_fd(),
    });
    let mut stack = Box::new_uninit_slice(STACK_WORDS);
    let top = stack.as_mut_ptr_range().end;
    let inside = Box::into_raw(inside);
    let flags = libc::CLONE_VM | libc::SIGCHLD;
    // SAFETY: `top` ends a stack that is aligned as the machine wants it and that nobody else uses; `enter`
    // reads `inside` alone. Both stay until the child has left this memory, see `Quick`.
    let pid = unsafe { libc::clone(enter, top.cast(), flags, inside.cast()) };
    // SAFETY: made from a box above; the child only reads it, and so does its owner from now on.
    let inside = unsafe { Box::from_raw(inside) };
    drop(report);
    if pid < 0 {
        return Err(inside.prepared);
    }
    Ok(Child {
        pid,
        outcome,
        quick: Some(Quick {
            inside: ManuallyDrop::new(inside),
            stack: ManuallyDrop::new(stack),
        }),
    })
}

impl Quick {
    /// Once the child's pipe has ended: the system takes the memory from a process that executes or ends
    /// before it closes descriptors, so nobody else is here any more. What is given back starts another.
    pub(super) fn left(self) -> Prepared {
        drop(ManuallyDrop::into_inner(self.stack));
        ManuallyDrop::into_inner(self.inside).prepared
    }
}

/// In the child.
extern "C" fn enter(inside: *mut libc::c_void) -> libc::c_int {
    // SAFETY: what `spawn` gave to clone, which nobody changes as long as the child is here.
    let inside = unsafe { &*inside.cast::<Inside>() };
    let Err(Errno(errno)) = inside.run();
    // A forked child tells more.
    let [a, b, c, d] = errno.to_le_bytes();
    let bytes = [b's', a, b, c, d];
    let report = inside.report.unsigned_abs() as usize;
    // SAFETY: `bytes` lives here.
    unsafe {
        call(
            libc::SYS_write,
            [report, bytes.as_ptr() as usize, bytes.len(), 0, 0],
        )
    }
    .ok();
    // SAFETY: ends this process alone, and runs nothing that the keeper registered.
    unsafe { call(libc::SYS_exit_group, [127, 0, 0, 0, 0]) }.ok();
    127
}

impl Inside {
    fn run(&self) -> Result<std::convert::Infallible, Errno> {
        let prepared = &self.prepared;
        // SAFETY: integers.
        unsafe {
            if prepared.shares_session {
                call(libc::SYS_setpgid, [0; 5])?;
            } else {
                call(libc::SYS_setsid, [0; 5])?;
            }
            let signal = libc::SIGKILL.unsigned_abs() as usize;
            call(
                libc::SYS_prctl,
                [
                    libc::PR_SET_PDEATHSIG.unsigned_abs() as usize,
                    signal,
                    0,
                    0,
                    0,
                ],
            )?;
        }
        // SAFETY: no argument. The keeper may have died before the line above.
        if unsafe { call(libc::SYS_getppid, [0; 5]) }? != prepared.keeper.unsigned_abs() as usize {
            return Err(Errno(libc::ESRCH));
        }
        self.reset()?;
        for (to, from) in prepared.standard.iter().enumerate() {
            // SAFETY: both are open descriptors of this child, see `Prepared`.
            unsafe {
                call(
                    libc::SYS_dup3,
                    [from.as_raw_fd().unsigned_abs() as usize, to, 0, 0, 0],
                )
            }?;
        }
        let cpus = prepared.cpus.as_slice();
        if !cpus.is_empty() {
            let len_bytes = size_of_val(cpus);
            // SAFETY: the mask is `len_bytes` long, and only read.
            unsafe {
                call(
                    libc::SYS_sched_setaffinity,
                    [0, len_bytes, cpus.as_ptr() as usize, 0, 0],
                )
            }?;
        }
        // SAFETY: ends with NUL.
        unsafe {
            call(
                libc::SYS_chdir,
                [prepared.directory.as_ptr() as usize, 0, 0, 0, 0],
            )
        }?;
        let most = libc::c_uint::MAX as usize;
        // SAFETY: marks descriptors; closes none.
        unsafe {
            call(
                libc::SYS_close_range,
                [3, most, libc::CLOSE_RANGE_CLOEXEC as usize, 0, 0],
            )
        }?;
        self.execute()
    }

    /// Signals and the limit of descriptors, as the agent found them. No handler of ours may run once
    /// the mask is off: it would do so on the keeper's memory.
    fn reset(&self) -> Result<(), Errno> {
        let prepared = &self.prepared;
        // In the kernel's form: SIG_DFL, no flag, no mask; and an empty mask.
        let (default, mask_bytes) = ([0_u64; 4], size_of::<u64>());
        for signal in &prepared.inherited.changed_signals {
            // SAFETY: `default` is as long as any machine's sigaction.
            unsafe {
                call(
                    libc::SYS_rt_sigaction,
                    [
                        *signal as usize,
                        default.as_ptr() as usize,
                        0,
                        mask_bytes,
                        0,
                    ],
                )
            }?;
        }
        let set = libc::SIG_SETMASK.unsigned_abs() as usize;
        // SAFETY: an empty mask of the kernel's size.
        unsafe {
            call(
                libc::SYS_rt_sigprocmask,
                [set, default.as_ptr() as usize, 0, mask_bytes, 0],
            )
        }?;
        let (soft, hard) = prepared.inherited.descriptor_limit;
        let limit = [soft, hard];
        // SAFETY: two numbers of 64 bits, only read. A refusal changes nothing.
        unsafe {
            call(
                libc::SYS_prlimit64,
                [
                    0,
                    libc::RLIMIT_NOFILE as usize,
                    limit.as_ptr() as usize,
                    0,
                    0,
                ],
            )
        }
        .ok();
        Ok(())
    }

    /// The first candidate that is there.
    fn execute(&self) -> Result<std::convert::Infallible, Errno> {
        let (argv, environment) = (
            self.argv.as_ptr() as usize,
            self.environment.as_ptr() as usize,
        );
        let here = libc::AT_FDCWD as isize as usize;
        for candidate in &self.prepared.candidates {
            let path = candidate.as_ptr() as usize;
            // SAFETY: ends with NUL.
            match unsafe { call(libc::SYS_faccessat, [here, path, libc::F_OK as usize, 0, 0]) } {
                Err(Errno(libc::ENOENT)) => continue,
                // SAFETY: all strings end with NUL and both arrays with a null pointer.
                _ => unsafe { call(libc::SYS_execve, [path, argv, environment, 0, 0]) }?,
            };
        }
        Err(Errno(libc::ENOENT))
    }
}
