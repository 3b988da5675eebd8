//! The keeper: the process that forks, waits for and kills the ranks, and outlives the agent if
//! it has to.
//!
//! It is forked by the agent while that has one thread, and has one itself for good: PDEATHSIG
//! fires when the *thread* that forked ends. It is the subreaper of all that ranks start, so that
//! whatever they leave behind hangs below it. It speaks with the agent over one socket, whose end
//! means that the agent is gone: then everything below is killed at once.
//!
//! ```text
//! agent ──Spawn, Sealed, Signal, Suspend, Terminate──► keeper ──fork──► rank ──► …
//!       ◄─Started, Failed, Exited, Stopped, Suspended, Leftover, Gone─
//! ```

mod ending;
mod forward;
pub(crate) mod messages;
mod quick;
mod ranks;
mod raw;
mod run;
mod spawn;
mod suspend;
mod unrunnable;

use std::io;
use std::os::fd::OwnedFd;

use nix::libc;
use nix::sys::prctl;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, setsid};

use crate::{sweep, sys};

/// The agent's end.
pub(crate) struct KeeperEnd {
    pub(crate) socket: OwnedFd,
    pub(crate) pid: i32,
}

/// What the agent found at its own start and changed for itself, for the ranks to have again.
#[derive(Debug, Clone)]
pub(crate) struct Inherited {
    /// Signals that are ignored or handled here and not to be in ranks: all, but HUP where it was ignored
    /// before (nohup).
    pub(crate) changed_signals: Vec<libc::c_int>,
    /// Soft and hard limit of open descriptors.
    pub(crate) descriptor_limit: (u64, u64),
}

/// Forks the keeper. Only while this process has one thread.
pub(crate) fn fork(inherited: Inherited) -> io::Result<KeeperEnd> {
    let (ours, theirs) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    match sys::fork_single_threaded()? {
        ForkResult::Parent { child } => Ok(KeeperEnd {
            socket: ours,
            pid: child.as_raw(),
        }),
        ForkResult::Child => {
            // All that the agent has open is given up without running its destructors: the
            // numbers are closed below, and may be used again by then.
            std::mem::forget(ours);
            run_child(theirs, inherited)
        }
    }
}

fn run_child(socket: OwnedFd, inherited: Inherited) -> ! {
    let run = std::panic::AssertUnwindSafe(|| {
        let socket = settle(socket)?;
        run::run(socket, inherited)
    });
    let code = match std::panic::catch_unwind(run) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            sys::say(format_args!(
                "rlaunch keeper: {error}; ending every rank of this host"
            ));
            sweep::until_none_left(|_, _| {});
            1
        }
        Err(_) => {
            sweep::until_none_left(|_, _| {});
            101
        }
    };
    // SAFETY: ends this forked process without running what the agent registered at exit.
    unsafe { libc::_exit(code) }
}

/// Its own session, no descriptor of the agent's but stderr, subreaper.
fn settle(socket: OwnedFd) -> io::Result<OwnedFd> {
    setsid()?;
    prctl::set_child_subreaper(true)?;
    prctl::set_name(c"rlaunch-keeper")?;
    let null: OwnedFd = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?
        .into();
    for standard in [0, 1] {
        sys::replace_standard(&null, standard)?;
    }
    sys::keep_only(socket)
}
