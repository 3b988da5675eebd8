//! Ranks that live and that the others have gone on without: stopped (SIGSTOP, a debugger) when a
//! `shrink` waited for them. When only such are left, nobody will wake them, and the job would wait for
//! ever: they are ended after `--kill-after`.

use std::time::Duration;

use super::event::Action;
use super::limits::SHUT_OUT_KILL;
use super::machine::{Phase, Supervisor};
use super::state::{HostState, RankState};
use crate::text::{ranges, seconds};

impl Supervisor {
    /// Starts the clock once none but such ranks is left, and stops it where that is not so.
    pub(super) fn watch_shut_out(&mut self, now: Duration) {
        let open: Vec<u32> = self.open_ranks();
        let is_shut_out = |rank: &u32| self.ranks[*rank as usize].is_shut_out;
        let is_alone = self.phase == Phase::Running
            && !open.is_empty()
            && open.len() < self.ranks.len()
            && open.iter().all(is_shut_out);
        if !is_alone {
            self.shut_out_end_at = None;
            return;
        }
        if self.shut_out_end_at.is_some() || self.has_ended_shut_out {
            return;
        }
        let patience = self.settings.kill_after;
        self.shut_out_end_at = Some(now.saturating_add(patience));
        let (ranks, patience) = (ranges(&open), seconds(patience));
        let number = if open.len() == 1 { "rank" } else { "ranks" };
        self.warn(format!(
            "{number} {ranks} did not answer the others, which went on without and have all ended; \
             KILL follows in {patience}"
        ));
    }

    pub(super) fn end_shut_out(&mut self) {
        self.has_ended_shut_out = true;
        let open = self.open_ranks();
        for rank in &open {
            self.ranks[*rank as usize].is_ended_shut_out = true;
        }
        let has_open = |host: &HostState| {
            let mut ranks = open.iter().map(|rank| *rank as usize);
            host.connected() && ranks.any(|rank| host.rank_indices().contains(&rank))
        };
        let hosts = self.hosts.iter().enumerate();
        let hosts: Vec<usize> = hosts
            .filter(|(_, host)| has_open(host))
            .map(|(index, _)| index)
            .collect();
        self.actions.push_back(Action::Terminate {
            hosts,
            kill_after: SHUT_OUT_KILL,
        });
    }

    fn open_ranks(&self) -> Vec<u32> {
        let ranks = (0_u32..).zip(&self.ranks);
        ranks
            .filter(|(_, state): &(u32, &RankState)| !state.over())
            .map(|(rank, _)| rank)
            .collect()
    }
}
