//! How a rank leaves the job.
//!
//! A call that needs nothing of the others can end before they have made theirs, so the last ones
//! before the end may differ unseen. Whoever leaves says which calls were its last; who hears it
//! compares, also later. Who has such calls waits for the others', up to [`CLOSE_MAX`].

use std::time::{Duration, Instant};

use rlaunch_transport::{Header, Kind, Progress};
use rlaunch_wire::notice::{Left, Notice, NoticeKind};
use rlaunch_wire::{Collective, DType, Descriptor};

use crate::Error;
use crate::control::ControlLink;
use crate::core::{Cause, Core};
use crate::group::{Group, GroupKey, Groups};

/// What may be needed for what was sent to arrive.
const CLOSE_MAX: Duration = Duration::from_secs(1);
const GOODBYE_MAX: Duration = Duration::from_millis(200);
const CLOSE_PERIOD: Duration = Duration::from_millis(1);

/// Calls named in the farewell.
const CALLS_TOLD_MAX: usize = 1024;
/// Between two looks at what others have called last.
const SETTLE_PERIOD: Duration = Duration::from_micros(200);

/// How a rank has left.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) result: Result<(), Error>,
    /// No call has returned an error before.
    pub(crate) is_news: bool,
}

impl Default for Departure {
    fn default() -> Self {
        Self {
            result: Ok(()),
            is_news: false,
        }
    }
}

impl Core {
    /// Tells all that this rank is out, and lets what it sent arrive.
    pub(crate) fn leave(mut self) -> Departure {
        let end = Descriptor {
            communicator: 0,
            sequence: self.group(Groups::WORLD).calls,
            collective: Collective::Barrier,
            dtype: DType::I32,
            op: None,
            root: 0,
            digest: 0,
            count: 0,
        };
        let is_news = !self.ending.has_told;
        self.settle_last_calls();
        let found = self.ending.late.take();
        let found = found.or_else(|| self.untold_difference());
        self.ending.late = found.or_else(|| self.missed_call());
        let result = self.last_failure().map_or(Ok(()), Err);
        if result.is_ok() {
            self.tell_unreceived();
        }
        self.end_all(&Error::Finalized);
        if let Some(neighbours) = &self.neighbours {
            neighbours.arena.set_state(
                self.peers[self.rank as usize].local.unwrap_or(0),
                rlaunch_transport::shm::State::Left,
            );
        }
        for rank in 0..self.size() {
            let connection = self.peers[rank as usize].connection.as_ref();
            // Where nothing was ever sent, the notice is enough.
            if connection.is_some_and(|connection| connection.is_connected()) {
                let header = Header {
                    descriptor: end,
                    length_bytes: 0,
                    tag: 0,
                    kind: Kind::Leave,
                };
                self.post(rank, header);
            }
        }
        self.close(&end, Instant::now() + CLOSE_MAX);
        self.control.leave(GOODBYE_MAX);
        Departure { result, is_news }
    }

    /// What this job ends with: the failure of its world that no shrink has dealt with, or what was
    /// found of a communicator that is gone.
    fn last_failure(&mut self) -> Option<Error> {
        let world = self.group(Groups::WORLD);
        let of_world = world.poison.clone().filter(|_| !world.is_replaced);
        of_world.or_else(|| self.ending.late.take())
    }

    /// A difference that no call has been able to tell. Of other failures those told whom they concern.
    fn untold_difference(&self) -> Option<Error> {
        let untold = |group: &Group| group.untold_difference(self.rank).cloned();
        self.groups.iter().find_map(untold)
    }

    /// The first of this rank's last calls that another rank has left without.
    fn missed_call(&self) -> Option<Error> {
        let live = self.groups.iter().filter(|group| group.poison.is_none());
        live.filter(|group| open_calls(group) > 0)
            .find_map(|group| {
                let last = group.history.back()?;
                let has_missed = |rank: &u32| {
                    let peer = &self.peers[*rank as usize];
                    let calls = peer.waits_in.iter();
                    let of_group = calls.filter(|call| call.communicator == group.id());
                    let told = of_group.map(|call| call.sequence).max();
                    // A communicator that it has freed it says nothing of; the world is never freed.
                    let is_before = told.map_or(group.id() == 0, |told| told < last.sequence);
                    *rank != self.rank && peer.is_leaving && peer.failure.is_none() && is_before
                };
                let rank = group.ranks.iter().find(|rank| has_missed(rank))?;
                let key = self.groups.find(group.id())?;
                let (peer, during) = (self.identity(*rank), last.to_string());
                Some(Cause::Left.error(peer, during, self.others(key, &[*rank])))
            })
    }

    /// Says which calls were the last, and compares those that could end without hearing of all others
    /// with theirs. Waits a little for who is late with them.
    fn settle_last_calls(&mut self) {
        self.look();
        self.poll_control();
        let calls = self.last_calls();
        let notice = Notice::encoded(NoticeKind::Left(Left { calls }));
        self.control.broadcast(self.rank, notice);
        let deadline = Instant::now() + CLOSE_MAX;
        loop {
            for key in self.groups.keys() {
                self.settle(key);
            }
            if self.groups.iter().all(|group| self.is_settled(group))
                || matches!(self.control, ControlLink::None)
                || Instant::now() >= deadline
            {
                return;
            }
            std::thread::sleep(SETTLE_PERIOD);
            self.poll_control();
            if self.watch.is_due(Instant::now()) {
                self.look();
            }
        }
    }

    fn last_calls(&self) -> Vec<Vec<u8>> {
        let live = self.groups.iter().filter(|group| group.poison.is_none());
        let told = live.flat_map(|group| {
            let open = open_calls(group).max(1);
            let before = group.history.len().saturating_sub(open);
            group.history.iter().skip(before)
        });
        let told = told.take(CALLS_TOLD_MAX);
        told.map(|call| call.encode().to_vec()).collect()
    }

    /// Compares with what the others have posted in memory that all share.
    pub(crate) fn settle(&mut self, key: GroupKey) {
        let group = self.group_mut(key);
        if group.poison.is_some() || !group.is_near {
            return;
        }
        let Some(Err(difference)) = group.team.as_mut().map(|team| team.settle(0)) else {
            return;
        };
        let peer = group.ranks[group.near[difference.member as usize] as usize];
        let decode = |bytes| Descriptor::decode(bytes);
        if let (Some(mine), Some(theirs)) = (decode(&difference.mine), decode(&difference.theirs)) {
            let error = self.mismatch(mine, peer, theirs);
            self.fail(key, error);
        }
    }

    /// Whether nothing more is to be heard of the others' calls.
    fn is_settled(&self, group: &Group) -> bool {
        if group.poison.is_some() || group.size() == 1 || open_calls(group) == 0 {
            return true;
        }
        let team = group.team.as_ref().filter(|_| group.is_near);
        if team.is_some_and(|team| team.unsettled() == 0) {
            return true;
        }
        let last = group.history.back().map_or(0, |call| call.sequence);
        group.ranks.iter().all(|rank| {
            let peer = &self.peers[*rank as usize];
            let names =
                |call: &Descriptor| call.communicator == group.id() && call.sequence >= last;
            *rank == self.rank
                || peer.failure.is_some()
                || peer.is_leaving
                || peer.waits_in.iter().any(names)
        })
    }

    fn close(&mut self, end: &Descriptor, deadline: Instant) {
        let is_open = |core: &Self, rank: &u32| {
            let peer = &core.peers[*rank as usize];
            *rank != core.rank && peer.failure.is_none()
        };
        let mut open: Vec<u32> = (0..self.size())
            .filter(|rank| is_open(self, rank))
            .collect();
        while !open.is_empty() && Instant::now() < deadline {
            open.retain(|rank| match self.flush_outbox(*rank, end) {
                Ok(false) => true,
                Ok(true) => {
                    let connection = self.peers[*rank as usize].connection.as_mut();
                    connection.is_some_and(|connection| {
                        !matches!(connection.poll_close(), Ok(Progress::Done) | Err(_))
                    })
                }
                Err(_) => false,
            });
            if !open.is_empty() {
                std::thread::sleep(CLOSE_PERIOD);
            }
        }
    }
}

/// How many of the last calls could end without hearing of all others: of the root of a broadcast,
/// say. Any other shows by its end that all have made it, and the same calls before. One that was
/// started and has not ended shows nothing.
fn open_calls(group: &Group) -> usize {
    let under_way = usize::from(group.is_busy);
    let hears_all = |call: &&Descriptor| {
        matches!(
            call.collective,
            Collective::Barrier
                | Collective::AllReduce
                | Collective::AllGather
                | Collective::AllGatherV
                | Collective::ReduceScatter
                | Collective::ReduceScatterV
                | Collective::AllToAll
                | Collective::AllToAllV
        ) || call.collective.makes_communicator()
    };
    let ended = group.history.iter().rev().skip(under_way);
    under_way + ended.take_while(|call| !hears_all(call)).count()
}
