//! Real hosts on one machine, made of namespaces.
//!
//! A [`Cluster`] is `head` and `node1` to `nodeN`. Each is a network, host name, mount, IPC and
//! process namespace of its own with a real sshd as its first process: its own addresses on two
//! networks, its own root file system (a copy-on-write view of this machine's), its own `/dev`,
//! `/proc`, `/tmp` and boot id. What one host writes no other sees.
//!
//! ```text
//! this process ─leash─ guardian ─┬─ head   eth0 10.77.0.254  ib0 10.78.0.254   (pid 1: sshd)
//!                                ├─ node1  eth0 10.77.0.1    ib0 10.78.0.1
//!                                └─ node2  …                docker0 172.17.0.1 on every one
//! ```
//!
//! Nothing has a name outside: namespaces are held by descriptors, so clusters with the same
//! addresses stand side by side, and all of it ends with the guardian, which ends with its owner,
//! also by SIGKILL. Only a folder under `/run/rlaunch-hosts` stays then; the next
//! [`Cluster::up`] removes it.
//!
//! Needs root and a few Debian packages; [`Cluster::up`] says which are missing.

mod cluster;
mod enter;
mod error;
mod faults;
mod guardian;
mod network;
mod options;
mod plan;
mod processes;
mod requirements;
mod run;
mod shape;
mod slurm;
mod state;
mod step;
mod tools;

pub use cluster::{Cluster, command_here};
pub use error::HarnessError;
pub use faults::Nic;
pub use options::{Options, Share, Where};
pub use plan::HOME;
pub use processes::Process;
pub use requirements::unavailable;
pub use run::{Finished, Running};
pub use slurm::{SLURM_CORES, Slurm, slurm_unavailable};
pub use state::base as state_folder;
