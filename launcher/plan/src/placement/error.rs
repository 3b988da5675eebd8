//! Why ranks can't be placed.

use rlaunch_wire::limits::WORLD_MAX;
use thiserror::Error;

use crate::Host;

/// Each is one line and a `hint:`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// Of a job of several programs: which one it is about.
    #[error("{program}: {error}")]
    InProgram { program: String, error: Box<Self> },
    #[error(
        "-np 0 asks for no ranks\nhint: give the number of ranks, or leave -np out for all slots"
    )]
    NoRanks,
    #[error("--nproc-per-node 0 asks for no ranks\nhint: give the number of ranks on each host")]
    NoRanksPerHost,
    #[error("-np {ranks} is more ranks than one job may have ({WORLD_MAX})")]
    TooManyRanks { ranks: u64 },
    #[error("no slots on any host: {slots}\nhint: give a host slots=N with N > 0")]
    NoSlots { slots: String },
    #[error(
        "no slots are left: {slots}\n\
         hint: give each program its -np, add hosts or slots, or pass --oversubscribe with -np"
    )]
    NoSlotsLeft { slots: String },
    #[error(
        "-np {ranks} asks for more ranks than there are slots ({slots_total}): {slots}\n\
         hint: ask for at most {slots_total}, add hosts or slots, or pass --oversubscribe"
    )]
    NotEnoughSlots {
        ranks: u32,
        slots_total: u64,
        slots: String,
    },
    #[error(
        "--nproc-per-node {per_host} is more than the {slots} of {host}\n\
         hint: lower --nproc-per-node, raise slots=, or pass --oversubscribe"
    )]
    NotEnoughSlotsOnHost {
        per_host: u32,
        host: Host,
        slots: String,
    },
    #[error(
        "-np {ranks} does not fit: --nproc-per-node {per_host} on {hosts} gives {room}\n\
         hint: lower -np, raise --nproc-per-node, or add hosts"
    )]
    NotEnoughHosts {
        ranks: u32,
        per_host: u32,
        hosts: String,
        room: u64,
    },
    #[error(
        "-np {ranks} exceeds max_slots ({room} in all): {slots}\n\
         hint: ask for at most {room}; --oversubscribe does not pass max_slots="
    )]
    OverMaxSlots {
        ranks: u64,
        room: u64,
        slots: String,
    },
    #[error("{host} has no number of slots yet; the survey gives it")]
    SlotsUnknown { host: Host },
}

impl PlacementError {
    /// The options by whose values it came to this, the one to change most likely first.
    pub fn options(&self) -> &'static [&'static str] {
        match self {
            Self::InProgram { error, .. } => error.options(),
            Self::NoRanks | Self::TooManyRanks { .. } => &["np"],
            Self::NoRanksPerHost => &["nproc-per-node", "map-by"],
            Self::NoSlots { .. } | Self::SlotsUnknown { .. } => &["hostfile", "host"],
            Self::NoSlotsLeft { .. } | Self::NotEnoughSlots { .. } | Self::OverMaxSlots { .. } => {
                &["np", "hostfile", "host"]
            }
            Self::NotEnoughSlotsOnHost { .. } => &["nproc-per-node", "map-by", "hostfile", "host"],
            Self::NotEnoughHosts { .. } => &["np", "nproc-per-node", "map-by", "hostfile", "host"],
        }
    }

    /// Which of several programs it is about, as messages call it.
    pub fn program(&self) -> Option<&str> {
        match self {
            Self::InProgram { program, .. } => Some(program),
            _ => None,
        }
    }
}
