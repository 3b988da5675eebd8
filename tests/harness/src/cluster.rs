//! A cluster's life: up, boot, down.

use crate::enter::{self, Session};
use crate::error::{HarnessError, failed};
use crate::guardian::{Guardian, failed_step};
use crate::network;
use crate::options::Options;
use crate::plan::{self, Keys};
use crate::processes::{self, Process};
use crate::requirements;
use crate::run::{Finished, Running};
use crate::state::StateFolder;
use crate::tools::{Tool, run_all};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a command may take that gives no limit of its own.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// A killed host is gone when its last process is; one that hangs in a device may never be.
const DEATH_LIMIT: Duration = Duration::from_secs(10);

/// `head` and `node1` to `nodeN`, all of it gone when this is dropped.
pub struct Cluster {
    hosts: Vec<String>,
    running: Mutex<Vec<Option<Host>>>,
    /// Why a host's steps failed can be told only from here; the guardian knows numbers.
    steps: Vec<Vec<String>>,
    boot_limit: Duration,
    // Dropped in this order: no host runs when the folder is removed.
    pub(crate) guardian: Guardian,
    state: StateFolder,
}

/// The first process of a host that is up.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) process: Pid,
    pub(crate) descriptor: Arc<OwnedFd>,
}

impl Cluster {
    /// Returns when every host's sshd listens.
    pub fn up(options: &Options) -> Result<Self, HarnessError> {
        requirements::check()?;
        options.check()?;
        let hosts: Vec<String> = (0..=options.hosts as usize)
            .map(network::host_name)
            .collect();
        let state = StateFolder::make(&hosts)?;
        let keys = make_keys(state.path(), hosts.len())?;
        let sshd = requirements::find("sshd").expect("requirements were checked");
        let plans: Vec<_> = (0..hosts.len())
            .map(|host| plan::make(options, &keys, &sshd, state.path(), host))
            .collect();
        let steps = plans
            .iter()
            .map(|plan| plan.steps.iter().map(ToString::to_string).collect());
        let steps = steps.collect();
        let guardian = Guardian::start(plans)?;
        let cluster = Self {
            running: Mutex::new(vec![None; hosts.len()]),
            boot_limit: options.boot_limit,
            hosts,
            steps,
            guardian,
            state,
        };
        // Mounting and cabling go on side by side; sshd listens on addresses still to come.
        for host in 0..cluster.hosts.len() {
            cluster.start(host)?;
        }
        network::lay(&cluster.guardian, options.hosts, options.decoys)?;
        for host in 0..cluster.hosts.len() {
            cluster.await_sshd(host)?;
        }
        Ok(cluster)
    }

    /// Starts a host that is off, with an empty file system; its cables are as they were left,
    /// except those that [`Cluster::power_off`] had cut.
    pub fn boot(&self, host: &str) -> Result<(), HarnessError> {
        let number = self.number(host)?;
        if self.running()[number].is_some() {
            return Err(HarnessError::Options(format!("host {host} is up already")));
        }
        self.plug_all(number)?;
        self.start(number)?;
        self.await_sshd(number)
    }

    /// The same as dropping it.
    pub fn down(self) {}

    /// `head` first.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// A command that will run on a host, in `directory` there, as root logged in with a fresh
    /// environment. Killing it kills the program; its exit status is the program's.
    pub fn command(
        &self,
        host: &str,
        directory: impl AsRef<Path>,
        program: impl AsRef<OsStr>,
    ) -> Result<Command, HarnessError> {
        Ok(enter::command(
            &self.host(host)?,
            directory.as_ref(),
            program.as_ref(),
            Session::Own,
        ))
    }

    /// Runs a program on a host to its end, at most a minute.
    pub fn exec<S: AsRef<OsStr>>(&self, host: &str, argv: &[S]) -> Result<Finished, HarnessError> {
        self.spawn(host, argv)?.wait(COMMAND_LIMIT)
    }

    /// Starts a program on a host; its output is collected.
    pub fn spawn<S: AsRef<OsStr>>(&self, host: &str, argv: &[S]) -> Result<Running, HarnessError> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(HarnessError::Options("no program was given".to_owned()));
        };
        let mut command = self.command(host, plan::HOME, program)?;
        command.args(arguments);
        Running::start(command)
    }

    /// A line of shell on a host, for set-up in tests.
    pub fn shell(&self, host: &str, line: &str) -> Result<Finished, HarnessError> {
        self.exec(host, &["/bin/sh", "-c", line])
    }

    /// What runs on a host, its first process included; nothing if it is off.
    pub fn processes(&self, host: &str) -> Result<Vec<Process>, HarnessError> {
        let number = self.number(host)?;
        let running = self.running()[number].clone();
        Ok(running
            .map(|host| processes::of(host.process))
            .unwrap_or_default())
    }

    /// What a login or a launcher has left: everything but the sshd that the host began with.
    pub fn leftovers(&self) -> Result<Vec<(String, Process)>, HarnessError> {
        let mut found = Vec::new();
        for host in &self.hosts {
            let processes = self
                .processes(host)?
                .into_iter()
                .filter(|process| process.pid != 1);
            found.extend(processes.map(|process| (host.clone(), process)));
        }
        Ok(found)
    }

    /// Waits until no host runs anything of its own; else says what it is.
    pub fn await_idle(&self, limit: Duration) -> Result<Duration, HarnessError> {
        let start = Instant::now();
        loop {
            let left = self.leftovers()?;
            if left.is_empty() {
                return Ok(start.elapsed());
            }
            if start.elapsed() > limit {
                let list = left
                    .iter()
                    .map(|(host, process)| format!("\n  {host}: {process}"));
                return Err(HarnessError::TooLong {
                    what: "ending everything on the hosts".to_owned(),
                    limit,
                    detail: format!("; left: {}", list.collect::<String>()),
                });
            }
            std::thread::sleep(Duration::from_millis(5)); // /proc has no event for this
        }
    }

    /// A path of a host as this machine can open it, while the host is up.
    pub fn path_on(
        &self,
        host: &str,
        path: impl AsRef<Path>,
    ) -> Result<std::path::PathBuf, HarnessError> {
        let root = format!("/proc/{}/root", self.host(host)?.process);
        let path = path.as_ref();
        Ok(Path::new(&root).join(path.strip_prefix("/").unwrap_or(path)))
    }

    /// The first process of a host, as this machine numbers it.
    pub fn machine_pid(&self, host: &str) -> Result<i32, HarnessError> {
        Ok(self.host(host)?.process.as_raw())
    }

    pub(crate) fn number(&self, host: &str) -> Result<usize, HarnessError> {
        self.hosts
            .iter()
            .position(|name| name == host)
            .ok_or_else(|| HarnessError::UnknownHost {
                host: host.to_owned(),
                hosts: self.hosts.join(" "),
            })
    }

    pub(crate) fn host(&self, name: &str) -> Result<Host, HarnessError> {
        let number = self.number(name)?;
        let host = self.running()[number].clone();
        host.ok_or_else(|| HarnessError::PoweredOff {
            host: name.to_owned(),
        })
    }

    /// Kills the first process, and so all; returns when they are gone.
    pub(crate) fn end(&self, name: &str) -> Result<(), HarnessError> {
        let host = self.host(name)?;
        let nothing = std::ptr::null::<libc::siginfo_t>();
        let descriptor = host.descriptor.as_raw_fd();
        // SAFETY: a pidfd that lives on; the signal's details are left to the kernel.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                descriptor,
                libc::SIGKILL,
                nothing,
                0,
            )
        };
        let mut wait = [PollFd::new(host.descriptor.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(DEATH_LIMIT).unwrap_or(PollTimeout::MAX);
        let ended = poll(&mut wait, limit).map_err(failed(format!("wait for {name} to end")))?;
        let number = self.number(name)?;
        self.running()[number] = None;
        if ended == 1 {
            return Ok(());
        }
        let what = format!("killing host {name}");
        Err(HarnessError::TooLong {
            what,
            limit: DEATH_LIMIT,
            detail: String::new(),
        })
    }

    fn running(&self) -> MutexGuard<'_, Vec<Option<Host>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, number: usize) -> Result<(), HarnessError> {
        let _ = fs::remove_file(plan::log_path(self.state.path(), number)); // of its last life
        let process = self.guardian.boot(number)?;
        let descriptor = Arc::new(pidfd(process)?);
        self.running()[number] = Some(Host {
            process,
            descriptor,
        });
        Ok(())
    }

    fn await_sshd(&self, number: usize) -> Result<(), HarnessError> {
        let host = self.host(&self.hosts[number])?;
        let path = plan::log_path(self.state.path(), number);
        let start = Instant::now();
        loop {
            let log = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&log);
            if text.contains("Server listening") {
                return Ok(());
            }
            let mut wait = [PollFd::new(host.descriptor.as_fd(), PollFlags::POLLIN)];
            // sshd tells of readiness only in its log, so that is looked at again and again.
            let ended = poll(&mut wait, PollTimeout::from(2_u8)).unwrap_or(0) == 1;
            if ended || start.elapsed() > self.boot_limit {
                let log = match failed_step(&fs::read(&path).unwrap_or_default()) {
                    Some((step, error)) => match self.steps[number].get(step) {
                        Some(step) => format!("cannot {step}: {error}"),
                        None => format!("cannot start sshd: {error}"),
                    },
                    None => format!("sshd says: {}", text.trim()),
                };
                return Err(HarnessError::Boot {
                    host: self.hosts[number].clone(),
                    log,
                });
            }
        }
    }
}

/// A command on a host known by its first process, in the caller's session, so that a terminal's
/// keys reach it: for programs that don't own the [`Cluster`].
pub fn command_here(machine_pid: i32, program: impl AsRef<OsStr>) -> Result<Command, HarnessError> {
    let process = Pid::from_raw(machine_pid);
    let host = Host {
        process,
        descriptor: Arc::new(pidfd(process)?),
    };
    Ok(enter::command(
        &host,
        Path::new(plan::HOME),
        program.as_ref(),
        Session::Callers,
    ))
}

fn pidfd(process: Pid) -> Result<OwnedFd, HarnessError> {
    // SAFETY: plain numbers.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, process.as_raw(), 0) };
    let descriptor = i32::try_from(result).unwrap_or(-1);
    if descriptor == -1 {
        return Err(failed("watch a host's first process")(
            std::io::Error::last_os_error(),
        ));
    }
    // SAFETY: the kernel has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// One key for the user and one for each host.
fn make_keys(state: &Path, hosts: usize) -> Result<Keys, HarnessError> {
    let folder = state.join("keys");
    fs::create_dir(&folder).map_err(failed("make the folder for keys"))?;
    let file = |name: &str| folder.join(name);
    let names: Vec<String> = std::iter::once("user".to_owned())
        .chain((0..hosts).map(network::host_name))
        .collect();
    let makers = names.iter().map(|name| {
        Tool::new("ssh-keygen")
            .words(["-q", "-t", "ed25519", "-N", "", "-C", name.as_str(), "-f"])
            .words([file(name)])
    });
    run_all(makers.collect())?;
    let read = |name: &str| fs::read(file(name)).map_err(failed(format!("read the key {name}")));
    let mut known_hosts = String::new();
    let mut host_private = Vec::new();
    for (host, name) in names[1..].iter().enumerate() {
        let public = read(&format!("{name}.pub"))?;
        let public = String::from_utf8_lossy(&public);
        known_hosts += &format!("{} {public}", network::known_names(host));
        host_private.push(read(name)?);
    }
    let (user_private, user_public) = (read("user")?, read("user.pub")?);
    Ok(Keys {
        user_private,
        user_public,
        host_private,
        known_hosts,
    })
}
