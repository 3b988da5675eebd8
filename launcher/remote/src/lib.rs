//! Carriers: a byte stream to an agent on a host.
//!
//! [`connect`] reaches one host and has an agent running on it, whatever it takes: a socket pair
//! on this machine, an `ssh2` session, or the system's `ssh` (or another program with rsh's
//! manners). Nothing has to be installed on the host but sshd and a POSIX shell: the launcher's
//! own executable is pushed once per build. [`connect_all`] does so for many hosts, a few at a
//! time.
//!
//! What is returned is a [`Connection`]: the agent's greeting has been read, and the next byte on
//! its `io` is HTTP/2. Dropping the `io` ends the carrier, and with it the agent. No port is
//! opened, nobody calls back, and no host key is ever accepted silently.
//!
//! Everything here needs a tokio runtime with IO and time enabled.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod bootstrap;
mod connect;
mod diagnostics;
mod error;
mod executable;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod garbage;
mod held_file;
mod local;
mod passphrase;
mod pattern;
mod program;
mod retry;
mod settings;
mod ssh;
mod target;
mod words;

pub use connect::{connect, connect_all};
pub use error::{ReachCause, ReachError};
pub use local::{LOCAL_BUILD, LocalAgent, LocalAgents, is_this_machine};
pub use passphrase::Passphrases;
pub use settings::Answers;
pub use ssh::has_public_key;
pub use target::{ByteStream, CarrierChoice, Connection, HostTarget, RemoteOptions};
pub use words::split as split_words;
