//! The system calls that have no safe wrapper, each behind a function that cannot be misused
//! inside this crate. All `unsafe` of the agent stands here, except the forked child of
//! `keeper::spawn`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::unistd::ForkResult;
use tokio::io::unix::AsyncFd;

/// Forks; sound only while the process has one thread, which the caller answers for.
pub(crate) fn fork_single_threaded() -> io::Result<ForkResult> {
    // SAFETY: launcher, agent and keeper call this while they have a single thread, so the child holds no
    // lock that another thread took.
    unsafe { nix::unistd::fork() }.map_err(io::Error::from)
}

/// Takes a descriptor that this process inherited, such as 0 or 1, as a close-on-exec one of its
/// own, numbered 10 or more, and leaves the original.
pub(crate) fn duplicate_high(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl on any number is sound; a closed one gives EBADF.
    let new = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 10) };
    let new = Errno::result(new)?;
    // SAFETY: the call above just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

/// Makes `to` name what `from` names (dup2): for 0, 1 and 2, which stay open for good.
pub(crate) fn replace_standard(from: &OwnedFd, to: RawFd) -> io::Result<()> {
    assert!(
        (0..=2).contains(&to),
        "only the standard streams are replaced by number"
    );
    // SAFETY: no OwnedFd of this process owns 0, 1 or 2.
    Errno::result(unsafe { libc::dup2(from.as_raw_fd(), to) })?;
    Ok(())
}

/// Takes ownership of a descriptor that recvmsg just made.
pub(crate) fn own_received(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel made this descriptor for the message that carried it, once.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Closes every descriptor above `last`. Only for a process that owns none of them any more.
pub(crate) fn close_above(last: RawFd) {
    let first = last.unsigned_abs() + 1;
    // SAFETY: the caller, a fresh child, has no object that owns a descriptor above `last`.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if done == 0 {
        return;
    }
    // Linux before 5.9.
    for fd in open_descriptors().into_iter().filter(|fd| *fd > last) {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

/// The numbers of this process's open descriptors.
pub(crate) fn open_descriptors() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return (0..1024).collect();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Is this signal ignored? Asked at the start, of what nohup or the shell left.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    disposition(signal) == Some(libc::SIG_IGN)
}

/// Is it ignored or handled in this process?
pub(crate) fn is_changed(signal: libc::c_int) -> bool {
    disposition(signal).is_some_and(|found| found != libc::SIG_DFL)
}

/// None: no such signal, or one that the C library keeps for itself.
fn disposition(signal: libc::c_int) -> Option<libc::sighandler_t> {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only reads; `action` is large enough for the answer.
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed is a valid value of this plain struct, and the call filled it if it worked.
    let action = unsafe { action.assume_init() };
    (done == 0).then_some(action.sa_sigaction)
}

/// Ignores a signal in this process.
pub(crate) fn ignore(signal: libc::c_int) {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// A reference to a process that its number alone cannot give: numbers are used again.
pub(crate) fn pidfd_open(pid: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: takes two integers.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let fd = RawFd::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the call above just made this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(crate) fn pidfd_send_signal(pidfd: &OwnedFd, signal: libc::c_int) -> Result<(), Errno> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed: the kernel fills it as kill does.
    let done = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            no_info,
            0,
        )
    };
    Errno::result(done)?;
    Ok(())
}

/// Sends a signal by number; only for a child of ours that is not reaped, or where the kernel has
/// no pidfd.
pub(crate) fn kill(pid: i32, signal: libc::c_int) -> Result<(), Errno> {
    assert!(
        pid > 1,
        "kill of {pid} would reach a group, everything or init"
    );
    // SAFETY: takes two integers.
    Errno::result(unsafe { libc::kill(pid, signal) })?;
    Ok(())
}

/// What waitpid found, raw: nix's own type refuses real-time signals.
pub(crate) enum Reaped {
    Changed { pid: i32, status: libc::c_int },
    NothingNow,
    NoChildren,
}

/// One change of any child, without waiting.
pub(crate) fn reap() -> Reaped {
    let mut status = 0;
    let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    loop {
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(-1, &raw mut status, options) } {
            0 => return Reaped::NothingNow,
            pid if pid > 0 => return Reaped::Changed { pid, status },
            _ if Errno::last() == Errno::EINTR => {}
            _ => return Reaped::NoChildren,
        }
    }
}

/// The size of a terminal, for programs that draw by it.
pub(crate) fn set_window_size(terminal: &OwnedFd, rows: u16, columns: u16) {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCSWINSZ reads one winsize. Failing leaves 0×0, which programs know.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
}

/// What waits in a socket, without waiting and without asking the runtime whether it is readable.
pub(crate) fn receive_now(socket: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: `buffer` is writable for its length.
    let count = unsafe {
        libc::recv(
            socket,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    Ok(Errno::result(count)?.unsigned_abs())
}

/// Closes every descriptor above 2 but one, which becomes 3.
pub(crate) fn keep_only(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::IntoRawFd;
    const KEPT: RawFd = 3;
    let number = descriptor.into_raw_fd();
    if number != KEPT {
        // SAFETY: the caller, a fresh child, has no object that owns 3.
        Errno::result(unsafe { libc::dup3(number, KEPT, libc::O_CLOEXEC) })?;
    }
    close_above(KEPT);
    // SAFETY: 3 is open, by the call above or because it was this descriptor, and owned by nobody.
    Ok(unsafe { OwnedFd::from_raw_fd(KEPT) })
}

/// Fills the start of `buffer` from the kernel's generator; gives how much.
pub(crate) fn random(buffer: &mut [u8]) -> usize {
    // SAFETY: `buffer` is writable for its length.
    let count = unsafe { libc::getrandom(buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    match Errno::result(count) {
        Ok(count) => count.unsigned_abs(),
        Err(Errno::EINTR) => 0,
        Err(error) => panic!("getrandom: {error}"),
    }
}

/// Puts a descriptor under the runtime's watch; inside the runtime.
pub(crate) fn async_fd(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open for as long as it lives, and always names the same descriptor.
    let registered = unsafe { AsyncFd::register(fd) };
    registered.map_err(io::Error::from)
}

/// A line on stderr. That nobody reads it any more (the launcher is gone) must not end who has ranks to
/// end.
pub(crate) fn say(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}
