//! The overlay: which of the launcher's variables go to the hosts.

use std::collections::BTreeMap;

use rlaunch_wire::environment::TORCH_NCCL_ASYNC_ERROR_HANDLING;

use super::{Export, Variable, names, pattern};

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
    /// The names that `-x` chose: they come before what a hostfile says of one host.
    pub exported: Vec<Vec<u8>>,
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
    /// Looks like one of ours and is none: RLAUNCH_TRANSPROT.
    Misspelt,
}

/// Set unless the user has them, empty or not.
const DEFAULTS: [(&[u8], &[u8]); 2] = [
    // Python holds output back when it goes to a pipe; a rank's last words would be lost.
    (b"PYTHONUNBUFFERED", b"1"),
    // As torchrun: a rank whose NCCL call fails ends instead of waiting for ever.
    (TORCH_NCCL_ASYNC_ERROR_HANDLING.as_bytes(), b"1"),
];

/// What the hosts get of `launcher`, the launcher's own environment.
///
/// `-x` wins over everything here, the last of several `-x` of a name over the others. A pattern
/// chooses among the variables that would go anyway, were it not for `--env none`. Beside
/// what the user has, `PYTHONUNBUFFERED=1` and `TORCH_NCCL_ASYNC_ERROR_HANDLING=1` are set,
/// unless the user set them to anything.
pub fn overlay(launcher: &[Variable], policy: EnvironmentPolicy, exports: &[Export]) -> Overlay {
    let mut overlay = Overlay {
        clear: policy == EnvironmentPolicy::None,
        ..Overlay::default()
    };
    let exports = &expand(launcher, exports, &mut overlay.missing);
    let mut chosen = BTreeMap::new();
    for (name, value) in launcher {
        let exported = exports.iter().any(|export| export.name == *name);
        if !is_name(name) || exported || policy == EnvironmentPolicy::None {
            continue;
        }
        match names::drop_reason(name) {
            Some(DropReason::Local) if policy == EnvironmentPolicy::All => {}
            Some(reason) => {
                if reason != DropReason::Local || name.ends_with(b"_VISIBLE_DEVICES") {
                    let name = String::from_utf8_lossy(name).into_owned();
                    overlay.dropped.push(Dropped { name, reason });
                }
                continue;
            }
            None => {}
        }
        put(&mut overlay.variables, &mut chosen, name, value);
    }
    for export in exports {
        let own = || {
            launcher
                .iter()
                .find(|(name, _)| *name == export.name)
                .map(|(_, value)| value)
        };
        match export.value.as_ref().or_else(own) {
            Some(value) => put(&mut overlay.variables, &mut chosen, &export.name, value),
            None => overlay
                .missing
                .push(String::from_utf8_lossy(&export.name).into_owned()),
        }
    }
    overlay.exported = exports.iter().map(|export| export.name.clone()).collect();
    for (name, value) in DEFAULTS {
        if !chosen.contains_key(name) {
            put(&mut overlay.variables, &mut chosen, name, value);
        }
    }
    overlay
}

/// In place of each pattern the names that fit it.
fn expand(launcher: &[Variable], exports: &[Export], missing: &mut Vec<String>) -> Vec<Export> {
    let mut expanded = Vec::with_capacity(exports.len());
    for export in exports {
        if !export.is_pattern() {
            expanded.push(export.clone());
            continue;
        }
        let names = launcher.iter().map(|(name, _)| name).filter(|name| {
            is_name(name) && pattern::fits(&export.name, name) && names::drop_reason(name).is_none()
        });
        let before = expanded.len();
        expanded.extend(names.map(|name| Export {
            name: name.clone(),
            value: None,
        }));
        if expanded.len() == before {
            missing.push(String::from_utf8_lossy(&export.name).into_owned());
        }
    }
    expanded
}

/// What an environment can carry: `execve` ends a string at NUL, and a name at `=`.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.contains(&b'=') && !name.contains(&0)
}

fn put(
    variables: &mut Vec<Variable>,
    chosen: &mut BTreeMap<Vec<u8>, usize>,
    name: &[u8],
    value: &[u8],
) {
    match chosen.get(name) {
        Some(&at) => variables[at].1 = value.to_vec(),
        None => {
            chosen.insert(name.to_vec(), variables.len());
            variables.push((name.to_vec(), value.to_vec()));
        }
    }
}
