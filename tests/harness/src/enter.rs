//! Running a program inside a host.
//!
//! A process can't move itself into another process namespace, only its children: so the program
//! is the child of a small helper, which waits for it and ends as it ended. The helper is what
//! the caller sees as its child; when the helper dies, the program is killed.

use crate::cluster::Host;
use crate::plan;
use crate::step::{errno, text};
use nix::libc::{self, c_int};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const NAMESPACES: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// As a login gives.
    Own,
    Callers,
}

pub(crate) fn command(host: &Host, directory: &Path, program: &OsStr, session: Session) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs([
        ("HOME", plan::HOME),
        ("PATH", plan::PATH),
        ("USER", "root"),
        ("LOGNAME", "root"),
        ("SHELL", "/bin/bash"),
        ("LANG", "C.UTF-8"),
    ]);
    command.envs(std::env::var_os("TERM").map(|value| ("TERM", value)));
    let descriptor = Arc::clone(&host.descriptor);
    let directory = text(directory);
    let enter = move || enter(descriptor.as_raw_fd(), &directory, session);
    // SAFETY: `enter` makes system calls only.
    unsafe { command.pre_exec(enter) };
    command
}

/// Returns in the program's process only.
fn enter(host: c_int, directory: &CString, session: Session) -> io::Result<()> {
    // SAFETY: a pidfd that lives on.
    check(unsafe { libc::setns(host, NAMESPACES) })?;
    // SAFETY: a terminated string that lives on.
    check(unsafe { libc::chdir(directory.as_ptr()) })?;
    // SAFETY: without CLONE_VM this is a fork; both sides make system calls only.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match c_int::try_from(child).unwrap_or(-1) {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: plain system calls on numbers.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if session == Session::Own {
                    libc::setsid();
                }
                // Who runs this in the background ignores some, and programs would heed that.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
            Ok(())
        }
        program => end_as(program),
    }
}

/// The helper: holds nothing, waits, and ends in the same way.
fn end_as(program: c_int) -> ! {
    let mut status: c_int = 0;
    // SAFETY: plain system calls on numbers; none of this process's descriptors is used again.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        while libc::waitpid(program, &raw mut status, 0) == -1 && errno() == libc::EINTR {}
    }
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        let no_core = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: a valid structure, and plain numbers.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
            libc::signal(signal, libc::SIG_DFL);
            libc::syscall(libc::SYS_kill, libc::getpid(), signal);
        }
    }
    // SAFETY: ends this process.
    unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
}

fn check(result: c_int) -> io::Result<()> {
    if result == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
