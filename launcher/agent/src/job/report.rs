//! What a job shows of itself to a client of `WorkerService`.

use std::collections::BTreeMap;

use rlaunch_control::v1::{RankStatus, StatusReply};

use crate::clock::now_us;

#[derive(Default)]
pub(crate) struct JobReport {
    pub(crate) job_id: Vec<u8>,
    pub(crate) world_size: u32,
    ranks: BTreeMap<u32, RankStatus>,
}

impl JobReport {
    /// A rank's new state; its pid stays unless a new one is known.
    pub(crate) fn set(&mut self, rank: u32, state: &str, pid: Option<u32>) {
        let status = self.ranks.entry(rank).or_default();
        status.rank = rank;
        status.pid = pid.unwrap_or(status.pid);
        state.clone_into(&mut status.state);
        status.last_heard_us = now_us();
    }

    pub(crate) fn reply(&self) -> StatusReply {
        StatusReply {
            job_id: self.job_id.clone().into(),
            world_size: self.world_size,
            ranks: self.ranks.values().cloned().collect(),
        }
    }
}
