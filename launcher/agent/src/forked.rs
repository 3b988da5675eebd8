//! The agent of this machine, forked by the launcher: the program is mapped and relocated already.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::{ForkResult, pipe2};

use crate::{start, sys};

/// The launcher's ends.
#[derive(Debug)]
pub struct Forked {
    /// What the agent has as its standard input and output. It ends with this.
    pub stream: UnixStream,
    /// What it says.
    pub stderr: OwnedFd,
    pub pid: i32,
}

/// Forks an agent that gives `build` in its greeting. Only while this process has one thread. The
/// agent outlives the launcher by what it takes to end its ranks; nobody has to wait for it.
pub fn fork(build: &str) -> io::Result<Forked> {
    let (stream, theirs) = UnixStream::pair()?;
    let (stderr, said) = pipe2(OFlag::O_CLOEXEC)?;
    match sys::fork_single_threaded()? {
        ForkResult::Parent { child } => Ok(Forked {
            stream,
            stderr,
            pid: child.as_raw(),
        }),
        ForkResult::Child => {
            drop((stream, stderr));
            let code = run_child(theirs.into(), said, build);
            // SAFETY: ends this forked process without running what the launcher registered at exit.
            unsafe { libc::_exit(code) }
        }
    }
}

fn run_child(stream: OwnedFd, stderr: OwnedFd, build: &str) -> libc::c_int {
    let run = std::panic::AssertUnwindSafe(|| -> io::Result<ExitCode> {
        sys::replace_standard(&stream, 0)?;
        sys::replace_standard(&stream, 1)?;
        sys::replace_standard(&stderr, 2)?;
        drop((stream, stderr));
        Ok(start::main(["--build", build].map(Into::into).into_iter()))
    });
    match std::panic::catch_unwind(run) {
        Ok(Ok(code)) if code == ExitCode::SUCCESS => 0,
        Ok(Ok(_)) => 1,
        Ok(Err(error)) => {
            sys::say(format_args!("rlaunch agent: {error}"));
            1
        }
        Err(_) => 101,
    }
}
