//! One rank's process: fork and exec, each failure told with its errno and what it concerns.
//!
//! Most children are not forked but run on this memory until exec ([`quick`]); forked are those that need a
//! terminal, and those that tell why one of the others failed.
//!
//! The child is a session leader (or, where ranks share cores, the leader of a process group in the
//! keeper's session, which has no terminal either) with default signals (but an ignored HUP stays ignored, for
//! nohup), dies with the keeper (PDEATHSIG, which the kernel clears for a setuid program), and
//! has no descriptor above 2. Exec's outcome comes through a close-on-exec pipe, so a program on
//! a hanging file system blocks nobody but itself.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{ForkResult, pipe2};

use super::Inherited;
use super::messages::Plan;
use super::quick::{self, Quick};
use super::unrunnable::{self, Need};
use crate::sys;

/// A child that may still be on its way to exec.
pub(super) struct Child {
    pub(super) pid: i32,
    /// EOF: exec worked. Else [`Failure::from_bytes`].
    pub(super) outcome: OwnedFd,
    /// What it reads, until there is an outcome; none of a forked one.
    pub(super) quick: Option<Quick>,
}

/// Which step of the child failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Directory,
    Program,
    Cores,
    /// The program is there, but not what it needs.
    Needs(Need),
    Setup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) step: Step,
    pub(super) errno: i32,
}

impl Failure {
    /// A step, an errno, and a path as long as the system takes.
    pub(super) const BYTES_MAX: usize = 5 + 4096;

    /// None: exec has worked, or the child died before it could tell.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, path) = bytes.split_at_checked(5)?;
        let step = match head[0] {
            b'd' => Step::Directory,
            b'p' => Step::Program,
            b'c' => Step::Cores,
            b'i' => Step::Needs(Need::Interpreter(path.to_vec())),
            b'l' => Step::Needs(Need::Loader(path.to_vec())),
            b'm' => Step::Needs(Need::Machine),
            _ => Step::Setup,
        };
        let errno = i32::from_le_bytes(head[1..].try_into().ok()?);
        Some(Self { step, errno })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (step, path): (u8, &[u8]) = match &self.step {
            Step::Directory => (b'd', &[]),
            Step::Program => (b'p', &[]),
            Step::Cores => (b'c', &[]),
            Step::Needs(Need::Interpreter(path)) => (b'i', path),
            Step::Needs(Need::Loader(path)) => (b'l', path),
            Step::Needs(Need::Machine) => (b'm', &[]),
            Step::Setup => (b's', &[]),
        };
        let mut bytes = vec![step];
        bytes.extend(self.errno.to_le_bytes());
        bytes.extend(path);
        bytes.truncate(Self::BYTES_MAX);
        bytes
    }
}

/// `standard` becomes the child's 0, 1 and 2.
pub(super) fn spawn(
    plan: &Plan,
    standard: [OwnedFd; 3],
    inherited: &Inherited,
) -> io::Result<Child> {
    let prepared = Prepared::new(plan, standard, inherited)?;
    quick::spawn(prepared).or_else(|prepared| prepared.fork())
}

/// Everything allocated before the fork, in the form that exec takes.
pub(super) struct Prepared {
    /// None of them is 0, 1 or 2, which the keeper keeps open.
    pub(super) standard: [OwnedFd; 3],
    pub(super) terminal: bool,
    pub(super) shares_session: bool,
    pub(super) inherited: Inherited,
    pub(super) keeper: i32,
    /// Bit n of all: CPU n; empty: not bound.
    pub(super) cpus: Vec<libc::c_ulong>,
    pub(super) directory: CString,
    pub(super) candidates: Vec<CString>,
    pub(super) argv: Vec<CString>,
    pub(super) environment: Vec<CString>,
}

impl Prepared {
    fn new(plan: &Plan, standard: [OwnedFd; 3], inherited: &Inherited) -> io::Result<Self> {
        Ok(Self {
            standard,
            terminal: plan.terminal,
            shares_session: plan.shares_session && !plan.terminal,
            inherited: inherited.clone(),
            keeper: nix::unistd::getpid().as_raw(),
            cpus: mask(&plan.cpus),
            directory: c_string(&plan.directory)?,
            candidates: c_strings(&plan.candidates)?,
            argv: c_strings(&plan.argv)?,
            environment: c_strings(&plan.environment)?,
        })
    }

    pub(super) fn fork(&self) -> io::Result<Child> {
        let (outcome, report) = pipe2(OFlag::O_CLOEXEC)?;
        match sys::fork_single_threaded()? {
            ForkResult::Parent { child } => Ok(Child {
                pid: child.as_raw(),
                outcome,
                quick: None,
            }),
            ForkResult::Child => self.run(report.as_raw_fd()),
        }
    }

    /// In the child; never returns.
    fn run(&self, report: RawFd) -> ! {
        let failure = match self.set_up() {
            Ok(()) => self.execute(),
            Err(failure) => failure,
        };
        let bytes = failure.to_bytes();
        // SAFETY: `bytes` lives here; a failing write leaves the exit code to tell.
        unsafe { libc::write(report, bytes.as_ptr().cast(), bytes.len()) };
        // SAFETY: ends this process without running what the keeper registered.
        unsafe { libc::_exit(127) }
    }

    fn set_up(&self) -> Result<(), Failure> {
        let setup = |errno: Errno| Failure {
            step: Step::Setup,
            errno: errno as i32,
        };
        let set = if self.shares_session {
            // SAFETY: takes two integers; fails for no fresh child.
            unsafe { libc::setpgid(0, 0) }
        } else {
            // SAFETY: takes no argument; fails only for a group leader, which a fresh child is not.
            unsafe { libc::setsid() }
        };
        Errno::result(set).map_err(setup)?;
        // SAFETY: PR_SET_PDEATHSIG takes one integer.
        let set = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        Errno::result(set).map_err(setup)?;
        // The keeper may have died before the line above.
        if nix::unistd::getppid().as_raw() != self.keeper {
            return Err(setup(Errno::ESRCH));
        }
        self.reset_signals();
        self.reset_descriptor_limit();
        for (to, from) in (0..).zip(&self.standard) {
            // SAFETY: both are open descriptors of this child; the keeper keeps 0, 1 and 2 open,
            // so `from` is none of them and no earlier turn overwrote it.
            Errno::result(unsafe { libc::dup2(from.as_raw_fd(), to) }).map_err(setup)?;
        }
        if self.terminal {
            // SAFETY: TIOCSCTTY takes an integer: do not steal another session's terminal.
            let set = unsafe { libc::ioctl(1, libc::TIOCSCTTY, 0) };
            Errno::result(set).map_err(setup)?;
        }
        if !self.cpus.is_empty() {
            let len_bytes = size_of_val(self.cpus.as_slice());
            // SAFETY: the mask is `len_bytes` long, and only read.
            let set = unsafe { libc::sched_setaffinity(0, len_bytes, self.cpus.as_ptr().cast()) };
            Errno::result(set).map_err(|errno| Failure {
                step: Step::Cores,
                errno: errno as i32,
            })?;
        }
        // SAFETY: `directory` ends with NUL.
        Errno::result(unsafe { libc::chdir(self.directory.as_ptr()) }).map_err(|errno| {
            Failure {
                step: Step::Directory,
                errno: errno as i32,
            }
        })?;
        close_on_exec_above_2();
        Ok(())
    }

    /// As the agent found it: some programs close every number below it one by one.
    fn reset_descriptor_limit(&self) {
        let (soft, hard) = self.inherited.descriptor_limit;
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).ok();
    }

    fn reset_signals(&self) {
        for &signal in &self.inherited.changed_signals {
            // SAFETY: SIG_DFL runs no code.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: sigemptyset fills the set that it is given.
        unsafe { libc::sigemptyset(none.as_mut_ptr()) };
        // SAFETY: `none` is filled; the old mask is not asked for.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut()) };
    }

    /// As execvp: the next candidate after one that is absent or not allowed; a file without a
    /// known format goes to the shell. Returns why nothing was executed.
    fn execute(&self) -> Failure {
        let argv = pointers(&self.argv);
        let environment = pointers(&self.environment);
        let mut errno = Errno::ENOENT;
        for candidate in &self.candidates {
            // SAFETY: all strings end with NUL and both arrays with a null pointer.
            unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
            let refused = Errno::last();
            if let Some(need) = unrunnable::need(candidate.as_bytes(), refused) {
                return Failure {
                    step: Step::Needs(need),
                    errno: refused as i32,
                };
            }
            match refused {
                Errno::ENOEXEC => {
                    let mut words = vec![c"/bin/sh".as_ptr(), candidate.as_ptr()];
                    words.extend(argv.iter().skip(1));
                    // SAFETY: as above; `argv` brought its null pointer along.
                    unsafe {
                        libc::execve(c"/bin/sh".as_ptr(), words.as_ptr(), environment.as_ptr())
                    };
                    errno = Errno::last();
                    break;
                }
                Errno::EACCES => errno = Errno::EACCES,
                Errno::ENOENT
                | Errno::ENOTDIR
                | Errno::ESTALE
                | Errno::ENODEV
                | Errno::ETIMEDOUT => {}
                other => {
                    errno = other;
                    break;
                }
            }
        }
        Failure {
            step: Step::Program,
            errno: errno as i32,
        }
    }
}

/// Whatever the agent's own parent left open does not reach a rank.
fn close_on_exec_above_2() {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: marks descriptors; closes none.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        )
    };
    if done == 0 {
        return;
    }
    // Linux before 5.11.
    for fd in sys::open_descriptors().into_iter().filter(|fd| *fd > 2) {
        // SAFETY: fcntl on any number is sound.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// As sched_setaffinity takes it, as long as it must be.
fn mask(cpus: &[u32]) -> Vec<libc::c_ulong> {
    let bits = libc::c_ulong::BITS;
    let mut mask = vec![
        0;
        cpus.iter()
            .max()
            .map_or(0, |most| (most / bits) as usize + 1)
    ];
    for cpu in cpus {
        mask[(cpu / bits) as usize] |= 1 << (cpu % bits);
    }
    mask
}

/// With the null pointer that ends them.
pub(super) fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

fn c_strings(strings: &[Vec<u8>]) -> io::Result<Vec<CString>> {
    strings.iter().map(|string| c_string(string)).collect()
}

/// The launcher's own arguments and environment came from exec, so they hold no NUL.
fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a NUL byte in an argument"))
}
