//! Ending every process below one: the keeper's, and, should the keeper be killed, the agent's.
//!
//! Everything a rank ever started hangs below the keeper, for it is their subreaper: a child in
//! a session of its own moves up to the keeper when its parent dies. So the end is certain: when
//! waitpid knows no child any more, nothing is left. The environment is no help here (a program
//! may erase it) and a name never is.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;

use crate::processes::{Process, descendants};
use crate::sys::{Reaped, reap};

/// How long a killed process may take to disappear before it is named and left: it waits for a
/// disk or network file system, or belongs to another user.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// Between rounds of killing.
pub(crate) const ROUND_PERIOD: Duration = Duration::from_millis(10);

/// A process that could not be ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survivor {
    pub(crate) pid: i32,
    pub(crate) command: String,
    pub(crate) state: &'static str,
    pub(crate) why: String,
}

/// Kills all that stands below `root` now. They are stopped first, all of them, for one that
/// forks quickly would otherwise always be a child ahead.
pub(crate) fn kill_round(root: i32) {
    for process in descendants(root) {
        process.signal(libc::SIGSTOP).ok();
    }
    for process in descendants(root) {
        process.signal(libc::SIGKILL).ok();
    }
}

/// Who is still there after [`GIVE_UP_AFTER`], and why.
pub(crate) fn survivors(root: i32) -> Vec<Survivor> {
    descendants(root)
        .into_iter()
        .filter(|process| !process.is_zombie())
        .map(|process| Survivor {
            pid: process.pid,
            command: process.command(),
            state: process.state_name(),
            why: why_alive(&process),
        })
        .collect()
}

/// Kills and reaps all below this process until none is left; says who could not be ended.
/// `reaped` hears of each death.
pub(crate) fn until_none_left(mut reaped: impl FnMut(i32, libc::c_int)) -> Vec<Survivor> {
    let root = nix::unistd::getpid().as_raw();
    let start = Instant::now();
    loop {
        kill_round(root);
        loop {
            match reap() {
                Reaped::Changed { pid, status } => {
                    if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                        reaped(pid, status);
                    }
                }
                Reaped::NothingNow => break,
                Reaped::NoChildren => return Vec::new(),
            }
        }
        if start.elapsed() > GIVE_UP_AFTER {
            return survivors(root);
        }
        std::thread::sleep(ROUND_PERIOD);
    }
}

pub(crate) fn why_alive(process: &Process) -> String {
    if process.state == 'D' {
        return "waits in the kernel, for a disk, a GPU or a network file system".to_owned();
    }
    match process.signal(libc::SIGKILL) {
        Err(Errno::EPERM) => "belongs to another user".to_owned(),
        Err(error) => format!("cannot be killed: {}", error.desc()),
        Ok(()) => "has not died of SIGKILL yet".to_owned(),
    }
}
