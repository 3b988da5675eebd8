//! Ranks that live and that the others have gone on without: stopped (SIGSTOP, a debugger) when a
//! `shrink` waited for them, or stopped still when all others have ended. When only such are left,
//! nobody will wake them, and the job would wait for ever: they are ended after `--kill-after`.
//! What a debugger holds is not stopped in this sense: its agent does not hear of that.

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
        let is_stopped = |rank: &u32| self.ranks[*rank as usize].stopped_at.is_some();
        let is_shut_out = |rank: &u32| self.ranks[*rank as usize].is_shut_out || is_stopped(rank);
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
        let patience = seconds(patience);
        let (who, verb) = match open[..] {
            [rank] => (self.rank_label(rank as usize), "is"),
            _ => (format!("ranks {}", ranges(&open)), "are"),
        };
        let why = if open.iter().all(is_stopped) {
            format!("{verb} stopped, and the others have all ended")
        } else {
            "did not answer the others, which went on without and have all ended".to_owned()
        };
        self.warn(format!("{who} {why}; KILL follows in {patience}"));
    }

    pub(super) fn end_shut_out(&mut self) {
        self.has_ended_shut_out = true;
        let open = self.open_ranks();
        for rank in &open {
            self.ranks[*rank as usize].is_ended_shut_out = true;
        }
        let has_open = |host: &HostState| {
            host.connected() && open.iter().any(|rank| host.ranks.contains(rank))
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
