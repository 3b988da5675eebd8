//! Why a host could not be reached, in words that help.
//!
//! A [`ReachError`] prints as one line that names the host, what was tried and what failed, then
//! what the host or ssh said, then a line `hint: …` where there is something to try.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::target::HostTarget;

#[derive(Debug, Clone)]
pub struct ReachError {
    pub host: String,
    /// What was tried, as `10.0.0.7:22 as alice`; empty if it did not come to that.
    pub tried: String,
    pub cause: Box<ReachCause>,
    /// Last lines of the host's, its shell's or ssh's own words.
    pub said: Vec<String>,
    /// What to try, where that is known better than from the cause.
    pub advice: Option<String>,
}

/// What went wrong. The reason texts come from the system or from libssh2.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReachCause {
    #[error("the name does not resolve to an address: {0}")]
    Unresolved(String),
    #[error("connection refused: no sshd listens there")]
    Refused,
    #[error("no connection: {0}")]
    Unconnected(String),
    #[error("no answer within {0} s")]
    TimedOut(u64),
    #[error("sshd closed the connection before it said who it is, {attempts} times")]
    ClosedEarly { attempts: u32 },
    #[error("no ssh handshake: {0}")]
    Handshake(String),
    #[error("the host's key is not known ({key_type} {fingerprint})")]
    HostKeyUnknown {
        key_type: String,
        fingerprint: String,
        learn: String,
    },
    #[error(
        "THE HOST'S KEY HAS CHANGED ({key_type} {fingerprint}; another one stands in {place}): \
         the host was installed anew, or somebody is in between"
    )]
    HostKeyChanged {
        key_type: String,
        fingerprint: String,
        place: String,
        forget: String,
    },
    #[error("the host's key is revoked in {place} ({key_type} {fingerprint})")]
    HostKeyRevoked {
        key_type: String,
        fingerprint: String,
        place: String,
    },
    #[error("{path}: {reason}", path = path.display())]
    File {
        path: PathBuf,
        reason: String,
        /// Which of rlaunch's options names it.
        option: Option<&'static str>,
    },
    #[error("login refused for {user}: {}", refused(keys))]
    LoginRefused {
        user: String,
        keys: Vec<String>,
        /// What the host would have taken instead.
        offered: String,
    },
    #[error("login works, but sshd starts no command: {0}")]
    NoCommand(String),
    #[error("libssh2 cannot reach this host ({reason}), and there is no ssh program to do it")]
    NeedsProgram { reason: String },
    #[error("`{program}` cannot be started: {reason}")]
    ProgramMissing { program: String, reason: String },
    #[error("`{program}` ended with {status}")]
    ProgramEnded { program: String, status: String },
    #[error("the command line `{0}` is not complete: a quote is open, or it is empty")]
    ProgramWords(String),
    #[error("the host's shell ended before the agent spoke{0}")]
    NoGreeting(String),
    #[error("silent for {0} s after the login: a shell start-up file hangs, or the host does")]
    Silent(u64),
    #[error("the host's start-up files print more than {0} KiB before the agent can speak")]
    TooMuchNoise(usize),
    #[error("the host is {host}, and there is no agent for that here (only {have})")]
    Architecture { host: String, have: String },
    #[error("no folder on the host can take the agent: {0}")]
    NoFolder(String),
    #[error("the agent did not arrive whole: {0}")]
    Push(String),
    #[error("the agent does not start there: the host's C library is too old")]
    OldLibrary,
    #[error("the agent does not start there: the host has no glibc")]
    NoLibrary,
    #[error("another build answered: {got:?} instead of {expected:?}")]
    OtherBuild { expected: String, got: String },
    #[error("the stream broke: {0}")]
    Broken(String),
    #[error("the agent cannot be started here: {0}")]
    Local(String),
}

impl ReachError {
    pub(crate) fn new(target: &HostTarget, cause: ReachCause) -> Self {
        Self {
            host: target.to_string(),
            tried: String::new(),
            cause: Box::new(cause),
            said: Vec::new(),
            advice: None,
        }
    }

    pub(crate) fn tried(mut self, tried: impl Into<String>) -> Self {
        self.tried = tried.into();
        self
    }

    /// The error without the host's words and without the hint.
    pub fn summary(&self) -> String {
        let tried = if self.tried.is_empty() {
            String::new()
        } else {
            format!(" (tried {})", self.tried)
        };
        format!("cannot reach {}{tried}: {}", self.host, self.cause)
    }

    /// What to try, where there is something.
    pub fn hint(&self) -> Option<String> {
        let advice = self.advice.clone();
        advice.or_else(|| self.cause.hint(&self.host, &self.said))
    }
}

impl fmt::Display for ReachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        for line in &self.said {
            write!(f, "\n  {}: {line}", self.host)?;
        }
        if let Some(hint) = self.hint() {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.cause.as_ref())
    }
}

impl ReachCause {
    fn hint(&self, host: &str, said: &[String]) -> Option<String> {
        let hint = match self {
            Self::Unresolved(_) => format!(
                "is the name right? A name that only ssh knows belongs into ~/.ssh/config as \
                 `Host {}` with a HostName line",
                bare_name(host)
            ),
            Self::Refused => {
                "is sshd running there, on that port? In the hostfile: `port=N`".into()
            }
            Self::Unconnected(_) | Self::TimedOut(_) => {
                format!("does `ssh {} true` work?", by_hand(host))
            }
            Self::ClosedEarly { .. } => {
                "sshd's MaxStartups may be reached: start fewer connections at a time, or raise it"
                    .into()
            }
            Self::HostKeyUnknown { learn, .. } => format!(
                "compare the fingerprint, then run: {learn}\n      or let rlaunch add unknown \
                 hosts: --ssh-accept-new"
            ),
            Self::HostKeyChanged { forget, .. } => {
                format!("only if you know why it changed, run: {forget}")
            }
            Self::LoginRefused { user, offered, .. } => login_hint(host, user, offered),
            Self::NeedsProgram { .. } | Self::ProgramMissing { .. } => {
                "install the OpenSSH client, or name another program: --ssh-program".into()
            }
            Self::ProgramEnded { .. } => program_hint(host, said),
            Self::NoGreeting(_) => {
                format!(
                    "does `ssh {} /bin/sh -c date` print a date and nothing else?",
                    by_hand(host)
                )
            }
            Self::Silent(_) | Self::TooMuchNoise(_) => format!(
                "let ~/.bashrc (or the like) on {host} return at once in shells that are not \
                 interactive"
            ),
            Self::Architecture { host, .. } => {
                format!("give an rlaunch that was built for {host}: --agent PATH")
            }
            Self::NoFolder(_) => format!(
                "one of these folders on {host} must be yours alone, have room for some MB, and \
                 allow programs to run (no noexec)"
            ),
            Self::OldLibrary | Self::NoLibrary => {
                "give an rlaunch that was built for an older glibc: --agent PATH".into()
            }
            Self::Local(_) => {
                "limits of processes, memory or open files may be in the way: `ulimit -u -v -n`"
                    .into()
            }
            _ => return None,
        };
        Some(hint)
    }
}

/// The host of `user@host:port`.
fn bare_name(host: &str) -> &str {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    if let Some((name, _)) = host.strip_prefix('[').and_then(|it| it.split_once(']')) {
        return name;
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

fn refused(keys: &[String]) -> String {
    if keys.is_empty() {
        return "there was no key to show".into();
    }
    format!("none of the keys was taken ({})", keys.join(", "))
}

fn login_hint(host: &str, user: &str, offered: &str) -> String {
    if !offered.split(',').any(|method| method == "publickey") {
        return format!(
            "that host takes no keys, only: {offered}; `PubkeyAuthentication yes` in its \
             sshd_config lets it, or --ssh-program names a program that can log in there"
        );
    }
    format!(
        "is {user} the right user, and is your public key in its ~/.ssh/authorized_keys there? \
         `ssh-copy-id {}` puts it; `-i FILE` names another key. Passwords are not asked for",
        by_hand(host)
    )
}

/// ssh says best what went wrong; only what it leaves open is added.
fn program_hint(host: &str, said: &[String]) -> String {
    let spoke = |words: &str| said.iter().any(|line| line.contains(words));
    let ssh = format!("ssh {}", by_hand(host));
    // Of many lines only the last are kept.
    if spoke("REMOTE HOST IDENTIFICATION HAS CHANGED")
        || spoke("has changed and you have requested")
    {
        "only if you know why it changed, run the `ssh-keygen -R` that ssh shows above".into()
    } else if spoke("Host key verification failed") {
        format!(
            "log in once by hand (`{ssh}`) and compare the fingerprints, of jump hosts too; or let \
             rlaunch add unknown hosts: --ssh-accept-new"
        )
    } else if spoke("Permission denied") {
        format!("does `{ssh} -o BatchMode=yes true` work? Passwords are not asked for")
    } else if spoke("stdio forwarding failed") {
        format!(
            "the jump host is there, but does not reach {host}: is its name right seen from it?"
        )
    } else {
        format!("does `{ssh} true` work?")
    }
}

/// `user@host:port` in ssh's words.
fn by_hand(host: &str) -> String {
    let name = bare_name(host);
    let (user, place) = host
        .rsplit_once('@')
        .map_or(("", host), |(user, place)| (user, place));
    let at = if user.is_empty() { "" } else { "@" };
    let port = place.rsplit_once(':').map(|(_, port)| port);
    match port.filter(|_| place.trim_matches(['[', ']']) != name) {
        Some(port) => format!("-p {port} {user}{at}{name}"),
        None => format!("{user}{at}{name}"),
    }
}

impl From<io::Error> for ReachCause {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_names_the_host_alone() {
        for (host, name, by_hand) in [
            ("node1", "node1", "node1"),
            ("alice@node2", "node2", "alice@node2"),
            ("node3:2222", "node3", "-p 2222 node3"),
            ("a@[fe80::1]:22", "fe80::1", "-p 22 a@fe80::1"),
            ("fe80::1", "fe80::1", "fe80::1"),
        ] {
            assert_eq!(super::by_hand(host), by_hand);
            let hint = ReachCause::Unresolved(String::new()).hint(host, &[]);
            assert!(
                hint.is_some_and(|hint| hint.contains(&format!("`Host {name}`"))),
                "{host}"
            );
        }
    }
}
