//! What is to be reached, how, and what comes of it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use rlaunch_wire::limits::CONNECTS_MAX;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::local::{LocalAgents, is_this_machine};
use crate::passphrase::Passphrases;
use crate::settings::Answers;

/// A host as the hostfile or the command line names it. Two targets are the same host only if
/// name, user and port are equal: two containers on one machine differ by their port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostTarget {
    pub name: String,
    pub user: Option<String>,
    pub port: Option<u16>,
}

impl HostTarget {
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            user: None,
            port: None,
        }
    }
}

impl fmt::Display for HostTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.port {
            Some(port) if self.name.contains(':') => write!(f, "[{}]:{port}", self.name),
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Which carrier to use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CarrierChoice {
    /// A socket pair if the target is this machine (no user and no port given), else `ssh2`, else
    /// the system's `ssh` where libssh2 can't serve.
    #[default]
    Auto,
    Local,
    Ssh2,
    /// A command line, split into words as a shell would: `ssh -J gate`, `rsh`, a wrapper.
    Program(String),
}

#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// `-i`: tried before the agent's and the default keys.
    pub identity_files: Vec<PathBuf>,
    /// `--ssh-accept-new`: an unknown host's key is added to known_hosts. A changed one never is.
    pub accept_new: bool,
    /// Read instead of `~/.ssh/config`, as with `ssh -F`.
    pub ssh_config: Option<PathBuf>,
    /// `--ssh-program`: used for every host that is not this machine when the choice is `Auto`.
    pub ssh_program: Option<String>,
    /// For each host: from the first packet to the end of the ssh handshake, retries included.
    pub connect_timeout: Duration,
    /// Without a byte from the host for this long, its shell or agent counts as hung.
    pub greeting_timeout: Duration,
    /// Hosts being connected to at a time.
    pub connects_max: usize,
    /// `--agent`: an executable to push instead of this one, to hosts of its architecture.
    pub agent_path: Option<PathBuf>,
    /// For this machine, before another agent is started there.
    pub local_agents: LocalAgents,
    /// This machine is reached as any other host, by ssh.
    pub never_local: bool,
    pub passphrases: Passphrases,
    /// What ssh has said of the hosts so far; for one reading of its configuration.
    pub answers: Answers,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            identity_files: Vec::new(),
            accept_new: false,
            ssh_config: None,
            ssh_program: None,
            connect_timeout: Duration::from_secs(20),
            greeting_timeout: Duration::from_secs(60),
            connects_max: CONNECTS_MAX,
            agent_path: None,
            local_agents: LocalAgents::default(),
            never_local: false,
            passphrases: Passphrases::default(),
            answers: Answers::default(),
        }
    }
}

impl RemoteOptions {
    /// Whether it is this machine, to be reached without ssh. Two containers on one machine have
    /// its name, and differ by their ports.
    pub fn is_local(&self, target: &HostTarget) -> bool {
        let plain = target.user.is_none() && target.port.is_none();
        plain && !self.never_local && is_this_machine(&target.name)
    }
}

/// A stream to an agent.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// A host with an agent on it, greeted. Its parts may be taken apart: `io` alone keeps the carrier
/// alive.
pub struct Connection {
    /// The next byte read or written is HTTP/2, the agent being the server.
    pub io: Box<dyn ByteStream>,
    /// The host's address as this machine sees it; none on this machine or behind a program.
    pub peer_address: Option<IpAddr>,
    /// This machine's address towards the host.
    pub local_address: Option<IpAddr>,
    /// `local`, `ssh2`, or the program's name.
    pub carrier: &'static str,
    /// On this machine: the agent is a child of this process.
    pub agent_pid: Option<i32>,
    /// The agent's build: `local`, or a hash of the executable.
    pub build: String,
    /// What the agent, its shell or ssh write to stderr from now on, line by line. Closed when the
    /// carrier has ended. Lines are lost, not waited for, when nobody reads.
    pub diagnostics: mpsc::Receiver<String>,
    /// What the user must know: a key was added to known_hosts.
    pub notes: Vec<String>,
    /// What the user may like to know: how the host was reached, why by the ssh program, that an
    /// agent was pushed.
    pub details: Vec<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("carrier", &self.carrier)
            .field("peer_address", &self.peer_address)
            .field("build", &self.build)
            .field("notes", &self.notes)
            .field("details", &self.details)
            .finish_non_exhaustive()
    }
}
