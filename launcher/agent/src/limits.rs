//! What the system allows our own processes, and what they don't die of.
//!
//! A limit that is far too small is told before anything is begun, for later it would be a crash or an
//! error that names something else. A write past the largest file (`ulimit -f`) would kill by SIGXFSZ;
//! ignored, it is an error of that write, as of a full disk. Ranks have the default again.

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::sys;

/// Twice what the deepest calls take.
const STACK_MIN_BYTES: u64 = 256 << 10;
/// What a job of one rank on this machine takes.
const OPEN_FILES_MIN: u64 = 32;
/// For thousands of hosts. Some programs close every number below the limit one by one.
const OPEN_FILES_ENOUGH: u64 = 1 << 16;

/// For the launcher and for an agent, first of all. The error is for people; it names the limit.
pub fn begin() -> Result<(), String> {
    sys::ignore(libc::SIGXFSZ);
    let (stack, _) = limit(Resource::RLIMIT_STACK);
    if stack < STACK_MIN_BYTES {
        return Err(format!(
            "a stack of {} KiB is too small, {} KiB are needed\nhint: `ulimit -s 8192`",
            stack >> 10,
            STACK_MIN_BYTES >> 10
        ));
    }
    // An agent raises its soft limit, but can't be started below this.
    let (open_files, _) = limit(Resource::RLIMIT_NOFILE);
    if open_files < OPEN_FILES_MIN {
        return Err(format!(
            "{open_files} open files are too few, {OPEN_FILES_MIN} are needed for a job of one rank\n\
             hint: `ulimit -n 1024`"
        ));
    }
    Ok(())
}

/// The launcher's, for its connections to many hosts: as far as it is allowed, within reason. Gives what it
/// was, which ranks of this machine are to have; none: it is as it was.
pub fn raise_open_files() -> Option<u64> {
    let (soft, hard) = limit(Resource::RLIMIT_NOFILE);
    let wanted = hard.min(OPEN_FILES_ENOUGH);
    let raises = soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok();
    raises.then_some(soft)
}

/// Soft and hard; unlimited where that is unknown.
fn limit(resource: Resource) -> (u64, u64) {
    getrlimit(resource).unwrap_or((u64::MAX, u64::MAX))
}

/// What to try, where an error of the system comes of a limit.
pub fn hint(errno: Option<i32>) -> Option<&'static str> {
    Some(match errno? {
        libc::EAGAIN => "the limit of this user's processes and threads is reached: `ulimit -u`",
        libc::EMFILE => "the limit of open files is reached: `ulimit -n`",
        libc::ENFILE => "the system's limit of open files is reached: `sysctl fs.file-max`",
        libc::ENOMEM => "there is no memory, or a limit of it is reached: `free`, `ulimit -v`",
        libc::EFBIG => "the limit of a file's size is reached: `ulimit -f`",
        _ => return None,
    })
}
