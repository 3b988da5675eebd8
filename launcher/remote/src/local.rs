//! This machine: an agent at the other end of a socket pair.
//!
//! The agent is this very executable. The launcher forks the first one while it has one thread
//! ([`LocalAgents`]): exec and relocation are a sixth of what a small job takes. One that is needed
//! later is started by `/proc/self/exe`, which works also when the file was replaced or removed. Its stdin and stdout are one socket; there is no ssh, no
//! shell and no hash on this path, for a launch here has to be quick. Dropping the stream is all it
//! takes to end the agent: it sees the end of its stdin. It is never killed from here, for its
//! keeper has ranks to end first. It leaves the terminal's session by itself (and could not, were it
//! made the leader of a process group here), so that ^C reaches the launcher alone.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use crate::bootstrap::{self, Raw};
use crate::diagnostics;
use crate::error::{ReachCause, ReachError};
use crate::target::{ByteStream, Connection, HostTarget, RemoteOptions};

/// The build that local agents give: there is but one executable.
pub const LOCAL_BUILD: &str = "local";

/// Whether `name` means this machine: its host name, `localhost`, or an address that it has.
pub fn is_this_machine(name: &str) -> bool {
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        return is_own_address(address);
    }
    nix::unistd::gethostname().is_ok_and(|own| {
        own.to_str()
            .is_some_and(|own| own.eq_ignore_ascii_case(name))
    })
}

pub(crate) async fn connect(
    target: &HostTarget,
    options: &RemoteOptions,
) -> Result<Connection, ReachError> {
    let failed = |error: io::Error| ReachError::new(target, ReachCause::Local(error.to_string()));
    let raw = match options.local_agents.take() {
        Some(forked) => adopt(forked),
        None => start(&options.local_agents),
    };
    let (raw, pid) = raw.map_err(failed)?;
    let greeted = bootstrap::greet(target, raw, LOCAL_BUILD, options.greeting_timeout).await;
    let greeted = greeted.map(|connection| Connection {
        agent_pid: pid,
        ..connection
    });
    greeted.map_err(|mut error| {
        // There is no shell and no ssh to look at.
        if matches!(*error.cause, ReachCause::NoGreeting(_)) {
            *error.cause = ReachCause::Local("it ended before it spoke".to_owned());
        }
        error
    })
}

/// Agents of this machine that are there already.
#[derive(Debug, Clone, Default)]
pub struct LocalAgents {
    ready: Arc<Mutex<Vec<LocalAgent>>>,
    open_files: Arc<OnceLock<u64>>,
}

/// One that was forked: its end of the stream gives it the build [`LOCAL_BUILD`].
#[derive(Debug)]
pub struct LocalAgent {
    pub stream: StdUnixStream,
    pub stderr: OwnedFd,
    pub pid: i32,
}

impl LocalAgents {
    pub fn add(&self, agent: LocalAgent) {
        self.lock().push(agent);
    }

    /// The soft limit of open files for those that are started later: this process has raised its own.
    pub fn have_open_files(&self, soft: u64) {
        self.open_files.set(soft).ok();
    }

    fn take(&self) -> Option<LocalAgent> {
        self.lock().pop()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LocalAgent>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn adopt(agent: LocalAgent) -> io::Result<(Raw, Option<i32>)> {
    agent.stream.set_nonblocking(true)?;
    let stderr = pipe::Receiver::from_owned_fd(agent.stderr)?;
    let raw = raw(UnixStream::from_std(agent.stream)?, stderr);
    Ok((raw, Some(agent.pid)))
}

fn start(agents: &LocalAgents) -> io::Result<(Raw, Option<i32>)> {
    let (here, there) = StdUnixStream::pair()?;
    here.set_nonblocking(true)?;
    let there_too = there.try_clone()?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["agent", "--build", LOCAL_BUILD]);
    if let Some(soft) = agents.open_files.get() {
        command.args(["--open-files", &soft.to_string()]);
    }
    let mut child = command
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::from(OwnedFd::from(there_too)))
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().expect("stderr was asked to be piped");
    let pid = child.id().map(u32::cast_signed);
    let stream = LocalStream {
        stream: UnixStream::from_std(here)?,
        _child: child,
    };
    Ok((raw(stream, stderr), pid))
}

fn raw(io: impl ByteStream + 'static, stderr: impl AsyncRead + Send + Unpin + 'static) -> Raw {
    Raw {
        io: Box::new(io),
        peer_address: None,
        local_address: None,
        carrier: "local",
        diagnostics: diagnostics::spawn_reader(stderr),
        ending: None,
        notes: Vec::new(),
        details: Vec::new(),
    }
}

/// The launcher's end, with the child that tokio reaps once it is dropped and dead.
struct LocalStream {
    stream: UnixStream,
    _child: Child,
}

impl AsyncRead for LocalStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

fn is_own_address(address: IpAddr) -> bool {
    if address.is_loopback() {
        return true;
    }
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else {
        return false;
    };
    interfaces
        .filter_map(|interface| interface.address)
        .any(|own| {
            let v4 = own.as_sockaddr_in().map(|own| IpAddr::from(own.ip()));
            let v6 = own.as_sockaddr_in6().map(|own| IpAddr::from(own.ip()));
            v4.or(v6) == Some(address)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_name_and_address() {
        let own = nix::unistd::gethostname().unwrap();
        for name in ["localhost", "LOCALHOST", "127.0.0.1", own.to_str().unwrap()] {
            assert!(is_this_machine(name), "{name}");
        }
        for name in ["192.0.2.1", "0.0.0.0", "localhost2", ""] {
            assert!(!is_this_machine(name), "{name}");
        }
    }
}
