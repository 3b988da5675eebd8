//! When a rank is out, those who are left tell each other what they were doing, so that the error of
//! each says it. Who hears of a rank that is out tells at once and waits a moment for the others, who
//! do the same: a millisecond or two, [`ASK_MAX`] where somebody computes or is stopped.

use std::time::{Duration, Instant};

use rlaunch_wire::notice::{Activity, Notice, NoticeKind, Waiting};
use rlaunch_wire::{Collective, Descriptor};

use super::others::{Doing, LastSeen, Others};
use crate::control::ControlLink;
use crate::core::{Cause, Core};
use crate::framed::poll_descriptors;
use crate::group::{Group, GroupKey};

/// Of the two seconds in which every rank is told.
const ASK_MAX: Duration = Duration::from_millis(100);
/// What was told within this time need not be told again.
const FRESH: Duration = Duration::from_millis(500);
/// All tell all: in larger worlds that would take longer than it is worth, and errors tell what was
/// known before.
const ASKED_MAX: usize = 64;
/// Communicators of which is told what a rank does there.
const ACTIVITIES_MAX: usize = 64;

/// A rank is out, and its communicators are to be told.
#[derive(Debug)]
pub(crate) struct Departure {
    pub(crate) rank: u32,
    pub(crate) cause: Cause,
    /// The one that fails for it; `None`: all that it is in.
    pub(crate) communicator: Option<u32>,
}

impl Departure {
    fn concerns(&self, group: &Group) -> bool {
        let is_named = self.communicator.is_none_or(|id| id == group.id());
        is_named && group.contains(self.rank) && group.poison.is_none()
    }
}

impl Core {
    /// Fails the communicators of those that are out, and asks around before. What is found
    /// meanwhile is told with it.
    pub(crate) fn report_departed(&mut self) {
        if self.watch.departed.is_empty() || self.watch.is_asking {
            return;
        }
        let is_concerned =
            |group: &Group| self.watch.departed.iter().any(|out| out.concerns(group));
        let concerned: Vec<GroupKey> = self.groups.keys_where(is_concerned);
        self.ask_around(&concerned);
        for Departure {
            rank,
            cause,
            communicator,
        } in std::mem::take(&mut self.watch.departed)
        {
            let keys = match communicator {
                Some(id) => self.groups.find(id).into_iter().collect(),
                None => self.groups.keys_where(|group| group.contains(rank)),
            };
            for key in keys {
                let error = self.departure(key, rank, &cause);
                self.poison(key, error);
            }
        }
    }

    /// Tells the members of these communicators what this rank does in them, and waits a moment for
    /// the same from them.
    pub(crate) fn ask_around(&mut self, concerned: &[GroupKey]) {
        let mut asked: Vec<u32> = Vec::new();
        for key in concerned {
            asked.extend(self.group(*key).ranks.iter());
        }
        asked.sort_unstable();
        asked.dedup();
        if asked.len() > ASKED_MAX || concerned.is_empty() {
            return;
        }
        self.watch.is_asking = true;
        self.announce(concerned);
        let begin = Instant::now();
        loop {
            asked.retain(|rank| self.may_answer(*rank, begin));
            let left = ASK_MAX.saturating_sub(begin.elapsed());
            if asked.is_empty() || left.is_zero() || matches!(self.control, ControlLink::None) {
                break;
            }
            let links = self.control.descriptors().into_iter();
            let links: Vec<_> = links.map(|link| (link, libc::POLLIN)).collect();
            poll_descriptors(&links, left);
            self.poll_control();
        }
        self.watch.is_asking = false;
    }

    fn may_answer(&self, rank: u32, begin: Instant) -> bool {
        let peer = &self.peers[rank as usize];
        let is_out = peer.failure.is_some() || peer.has_left || peer.is_leaving;
        let has_told = peer.told_at.is_some_and(|told| told + FRESH > begin);
        rank != self.rank && !is_out && !has_told
    }

    /// Tells the others in which calls this rank waits, and what it does in these communicators and
    /// in those where it is in a call.
    pub(crate) fn announce(&mut self, concerned: &[GroupKey]) {
        let waiting = self.groups.iter().filter(|group| group.is_busy);
        let calls = waiting.flat_map(|group| &group.history);
        let calls = calls.map(|call| call.encode().to_vec()).collect();
        let mut doing: Vec<Activity> = Vec::new();
        for key in self.groups.keys() {
            let group = self.group(key);
            let does = group.doing();
            if doing.len() < ACTIVITIES_MAX
                && (matches!(does, Doing::In(_)) || concerned.contains(&key))
            {
                doing.push(does.encode(self.rank, group.id()));
            }
        }
        if doing.is_empty() {
            return;
        }
        let notice = Notice::encoded(NoticeKind::Waiting(Waiting { calls, doing }));
        self.control.broadcast(self.rank, notice);
    }

    /// What a communicator fails with when this member is out.
    pub(crate) fn departure(&self, key: GroupKey, rank: u32, cause: &Cause) -> crate::Error {
        let during = self.group(key).during();
        cause.error(self.identity(rank), during, self.others(key, &[rank]))
    }

    /// The other members of a communicator, those that the error is about first.
    pub(crate) fn others(&self, key: GroupKey, about: &[u32]) -> Others {
        let Some(group) = self.groups.get(key) else {
            return Others::none();
        };
        let is_rest = |rank: &u32| *rank != self.rank && !about.contains(rank);
        let rest = group.ranks.iter().copied().filter(is_rest);
        let first = about.iter().copied().filter(|rank| *rank != self.rank);
        let all: Vec<u32> = first.chain(rest).collect();
        let seen = all.iter().take(Others::MAX).map(|rank| LastSeen {
            rank: self.identity(*rank),
            doing: self.last_known(group, *rank),
        });
        Others {
            seen: seen.collect(),
            left_out: all.len().saturating_sub(Others::MAX) as u32,
        }
    }

    /// The newest of what a rank has said, has posted in shared memory, and has sent. Messages between
    /// two have numbers of their own: they are taken to be newer where this rank, too, is at such.
    fn last_known(&self, group: &Group, rank: u32) -> Doing {
        let peer = &self.peers[rank as usize];
        let told = peer.doing.iter().find(|(id, _)| *id == group.id());
        let told = told.map(|(_, doing)| *doing);
        let posted = self.last_post(group, rank);
        let is_here = |call: &Descriptor| call.communicator == group.id();
        let sent_here = peer.last_heard.filter(is_here);
        let heard = match (posted, sent_here) {
            (Some(posted), Some(sent)) if is_collective(&sent) => {
                Some(if sent.sequence > posted.sequence {
                    sent
                } else {
                    posted
                })
            }
            (Some(posted), Some(sent)) => {
                let is_at_collectives = group.doing().call().is_some_and(is_collective);
                Some(if is_at_collectives { posted } else { sent })
            }
            (posted, sent_here) => posted.or(sent_here).or(peer.last_heard),
        };
        match (told, heard) {
            (Some(told), Some(heard)) if is_after(&heard, told.call()) => Doing::HeardOf(heard),
            (Some(told), _) => told,
            (None, Some(heard)) => Doing::HeardOf(heard),
            (None, None) => Doing::Unknown,
        }
    }

    fn last_post(&self, group: &Group, rank: u32) -> Option<Descriptor> {
        let team = group.team.as_ref()?;
        let is_it = |member: &u32| group.ranks[*member as usize] == rank;
        let place = group.near.iter().position(is_it)?;
        Descriptor::decode(&team.last_post(place as u32)?)
    }
}

fn is_collective(call: &Descriptor) -> bool {
    !matches!(call.collective, Collective::Send | Collective::Recv)
}

/// Whether both are collectives, and this one has a higher number.
fn is_after(heard: &Descriptor, told: Option<&Descriptor>) -> bool {
    told.is_none_or(|told| {
        let same = told.communicator == heard.communicator;
        same && is_collective(told) && is_collective(heard) && heard.sequence > told.sequence
    })
}
