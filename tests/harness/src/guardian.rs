//! The process that holds a cluster together.
//!
//! It is forked from the owner, keeps a descriptor of every network namespace, starts hosts on
//! demand, and ends when the owner closes its end of the leash or dies. Hosts die with it
//! (PDEATHSIG), and with the last descriptor so do networks, mounts and processes: there is
//! nothing else to clean up, however the owner ended.
//!
//! On the leash, a pair of SOCK_SEQPACKET sockets:
//! ```text
//! owner → guardian   u32   start host N
//! guardian → owner   i32   process id of its first process, or -errno
//!                          (the first answer comes unasked: 0, the namespaces stand)
//! ```
//! The owner has threads, so the child makes only system calls: [`keep`] and all below it neither
//! allocate nor lock nor panic.

use crate::error::{HarnessError, failed};
use crate::plan::HostPlan;
use crate::step::errno;
use nix::libc::{self, c_int};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex};

/// In the guardian: the leash, and then the network namespaces, head's first, the switch's last.
const LEASH: c_int = 3;
const NETWORK_FIRST: c_int = 4;
/// How many hosts the guardian can have an eye on: options' limit and head.
const HOSTS_MAX: usize = 131;

pub(crate) struct Guardian {
    process: Pid,
    leash: Mutex<Option<OwnedFd>>,
    networks: Vec<Arc<File>>,
}

impl Guardian {
    /// Returns when all namespaces stand; no host runs yet.
    pub(crate) fn start(plans: Vec<HostPlan>) -> Result<Self, HarnessError> {
        let hosts = plans.len();
        assert!(hosts <= HOSTS_MAX, "options were checked");
        let (ours, theirs) = socketpair(
            AddressFamily::Unix,
            SockType::SeqPacket,
            None,
            SockFlag::SOCK_CLOEXEC,
        )
        .map_err(failed("make a socket pair"))?;
        // SAFETY: the child calls `keep`, which makes system calls only and never returns.
        let process = match unsafe { fork() }.map_err(failed("fork the guardian"))? {
            ForkResult::Child => keep(&plans, theirs.as_raw_fd()),
            ForkResult::Parent { child } => child,
        };
        drop(theirs);
        let mut guardian = Self {
            process,
            leash: Mutex::new(Some(ours)),
            networks: Vec::new(),
        };
        guardian.answer("make network namespaces")?;
        for host in 0..=hosts {
            let path = guardian.network_path(host);
            let network = File::open(&path).map_err(failed(format!("open {path}")))?;
            guardian.networks.push(Arc::new(network));
        }
        Ok(guardian)
    }

    /// Clones the first process of a host; its sshd listens some time later, if all goes well.
    pub(crate) fn boot(&self, host: usize) -> Result<Pid, HarnessError> {
        let number = u32::try_from(host)
            .expect("a host's number is small")
            .to_ne_bytes();
        let leash = self
            .leash
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(leash) = leash.as_ref() {
            send(leash.as_raw_fd(), &number, MsgFlags::MSG_NOSIGNAL)
                .map_err(failed("reach the guardian"))?;
        }
        receive(leash.as_ref(), "start a host").map(Pid::from_raw)
    }

    pub(crate) fn network(&self, host: usize) -> &Arc<File> {
        &self.networks[host]
    }

    pub(crate) fn switch(&self) -> &Arc<File> {
        self.networks
            .last()
            .expect("the switch was made with the hosts")
    }

    /// A name for the namespace that other programs can open.
    pub(crate) fn network_path(&self, host: usize) -> String {
        format!(
            "/proc/{}/fd/{}",
            self.process,
            NETWORK_FIRST as usize + host
        )
    }

    /// Ends every host and returns when none of their processes is left. Does nothing twice.
    pub(crate) fn stop(&mut self) {
        self.networks.clear();
        let leash = self
            .leash
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if leash.take().is_some() {
            // An error means that somebody else has reaped it; it is gone then too.
            let _ = waitpid(self.process, None);
        }
    }

    fn answer(&self, what: &str) -> Result<i32, HarnessError> {
        let leash = self
            .leash
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        receive(leash.as_ref(), what)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.stop();
    }
}

fn receive(leash: Option<&OwnedFd>, what: &str) -> Result<i32, HarnessError> {
    let gone = || std::io::Error::from_raw_os_error(libc::EPIPE);
    let Some(leash) = leash else {
        return Err(failed(what)(gone()));
    };
    let mut bytes = [0; 4];
    let length = recv(leash.as_raw_fd(), &mut bytes, MsgFlags::empty()).map_err(failed(what))?;
    match i32::from_ne_bytes(bytes) {
        _ if length != bytes.len() => Err(failed(what)(gone())),
        error if error < 0 => Err(failed(what)(std::io::Error::from_raw_os_error(-error))),
        value => Ok(value),
    }
}

/// The guardian's life. System calls only.
fn keep(plans: &[HostPlan], leash: c_int) -> ! {
    settle(leash);
    let made = make_networks(plans.len() + 1);
    tell(-made);
    let mut hosts = [-1; HOSTS_MAX];
    if made != 0 {
        end(&hosts);
    }
    loop {
        let mut bytes = [0_u8; 4];
        // SAFETY: the buffer is as long as said.
        let length = unsafe { libc::recv(LEASH, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if length == -1 && errno() == libc::EINTR {
            continue;
        }
        let number = u32::from_ne_bytes(bytes) as usize;
        match (length, plans.get(number), hosts.get_mut(number)) {
            (4, Some(plan), Some(process)) => tell(start(plan, number, process)),
            _ => break, // the owner is gone, or lets go
        }
    }
    end(&hosts)
}

/// Lets go of everything that came with the fork: a descriptor kept here could be the one whose
/// closing another guardian, or a reader of the owner's output, waits for.
fn settle(leash: c_int) {
    // SAFETY: plain system calls on numbers; no descriptor of this process is used by Rust code
    // after this line. The leash is one above the three that are replaced.
    unsafe {
        libc::setsid();
        libc::umask(0o022);
        libc::prctl(libc::PR_SET_NAME, c"rl-guardian".as_ptr());
        libc::signal(libc::SIGCHLD, libc::SIG_IGN); // children leave no zombies
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGUSR1,
            libc::SIGUSR2,
        ] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::dup2(leash, LEASH);
        libc::fcntl(LEASH, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::syscall(libc::SYS_close_range, LEASH + 1, u32::MAX, 0);
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..LEASH {
            libc::dup2(nothing, standard);
        }
        libc::close(nothing);
        libc::chdir(c"/".as_ptr());
    }
}

/// 0, or the error number. Descriptors come out in order as nothing else is open.
fn make_networks(count: usize) -> c_int {
    for expected in (NETWORK_FIRST..).take(count) {
        // SAFETY: no memory is shared; the process has one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } == -1 {
            return errno();
        }
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: a terminated string.
        let network = unsafe { libc::open(c"/proc/self/ns/net".as_ptr(), flags) };
        if network != expected {
            return if network == -1 { errno() } else { libc::EBADF };
        }
    }
    0
}

/// The process id, or -errno. `process` gets a descriptor for it and gives up an older one.
fn start(plan: &HostPlan, number: usize, process: &mut c_int) -> c_int {
    let network = NETWORK_FIRST + c_int::try_from(number).unwrap_or(0);
    // SAFETY: a descriptor that `make_networks` opened.
    if unsafe { libc::setns(network, libc::CLONE_NEWNET) } == -1 {
        return -errno();
    }
    let flags = libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_PIDFD
        | libc::SIGCHLD;
    let mut descriptor: c_int = -1;
    // SAFETY: without CLONE_VM this is a fork; the child calls `become_host`, which only makes
    // system calls. The third argument takes the pidfd.
    let child = unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut descriptor, 0, 0) };
    match child {
        -1 => -errno(),
        0 => become_host(plan),
        _ => {
            if *process != -1 {
                // SAFETY: the descriptor of the host's last life, used no more.
                unsafe { libc::close(*process) };
            }
            *process = descriptor;
            c_int::try_from(child).unwrap_or(-libc::EOVERFLOW)
        }
    }
}

fn become_host(plan: &HostPlan) -> ! {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
    // SAFETY: system calls on numbers and on a terminated string that lives on.
    let log = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setsid();
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::open(plan.log.as_ptr(), flags, 0o644)
    };
    for (number, step) in plan.steps.iter().enumerate() {
        let error = step.perform();
        if error != 0 {
            complain(log, number, error);
        }
    }
    // SAFETY: the vectors end in null and live on.
    unsafe {
        libc::dup2(log, 2);
        libc::execve(
            plan.program.path.as_ptr(),
            plan.program.arguments(),
            plan.program.environment(),
        );
    }
    complain(log, plan.steps.len(), errno())
}

/// `!` and two numbers, which [`failed_step`] finds in the log, then the end.
fn complain(log: c_int, step: usize, error: c_int) -> ! {
    let step = u32::try_from(step).unwrap_or(u32::MAX).to_ne_bytes();
    let error = error.to_ne_bytes();
    let message = [
        b'!', step[0], step[1], step[2], step[3], error[0], error[1], error[2], error[3],
    ];
    // SAFETY: the buffer is as long as said.
    unsafe {
        libc::write(log, message.as_ptr().cast(), message.len());
        libc::_exit(127)
    }
}

/// The step that a host's log complains of, and why.
pub(crate) fn failed_step(log: &[u8]) -> Option<(usize, std::io::Error)> {
    let (mark, rest) = log.split_first()?;
    let step = rest
        .first_chunk::<4>()
        .filter(|_| *mark == b'!' && rest.len() == 8)?;
    let error = rest.last_chunk::<4>()?;
    let error = std::io::Error::from_raw_os_error(i32::from_ne_bytes(*error));
    Some((u32::from_ne_bytes(*step) as usize, error))
}

fn tell(answer: c_int) {
    let bytes = answer.to_ne_bytes();
    // SAFETY: the buffer is as long as said. A lost owner is seen at the next receive.
    unsafe {
        libc::send(
            LEASH,
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
}

fn end(hosts: &[c_int]) -> ! {
    for process in hosts.iter().filter(|process| **process != -1) {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a pidfd of a child, so that no other process can be meant.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                *process,
                libc::SIGKILL,
                nothing,
                0,
            )
        };
    }
    // SAFETY: as SIGCHLD is ignored, this returns when the last child is gone.
    unsafe {
        while libc::waitpid(-1, std::ptr::null_mut(), 0) != -1 || errno() == libc::EINTR {}
        libc::_exit(0)
    }
}
