//! The overlay: which of the launcher's variables go to the hosts.

use super::{Export, Variable};

/// `--env`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvironmentPolicy {
    /// The launcher's variables, except those that belong to this machine, this login or another
    /// launcher's task.
    #[default]
    Portable,
    /// `--env all`: those of this machine and login too. Another launcher's task variables are
    /// still dropped: with them every rank would believe to be that task.
    All,
    /// `--env none`: only `-x`, on an environment that the agent starts from nothing.
    None,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// In the launcher's order, then `-x`; each name once.
    pub variables: Vec<Variable>,
    /// What was left out and deserves a word; not the everyday names such as HOME.
    pub dropped: Vec<Dropped>,
    /// Whether the agent starts from nothing instead of the login environment.
    pub clear: bool,
    /// `-x NAME` of variables that the launcher does not have.
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    pub name: String,
    pub reason: DropReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// Belongs to this machine or login: HOME, DISPLAY, CUDA_VISIBLE_DEVICES.
    Local,
    /// A scheduler's variable about one task: SLURM_PROCID.
    Task,
    /// Set for each rank: RANK, MASTER_ADDR.
    Rank,
}

/// What the hosts get of `launcher`, the launcher's own environment.
pub fn overlay(launcher: &[Variable], policy: EnvironmentPolicy, exports: &[Export]) -> Overlay {
    let _ = (launcher, policy, exports);
    Overlay::default()
}
