//! What one rank keeps of each communicator.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rlaunch_schedule::{Hosts, Shape};
use rlaunch_transport::shm::Team;
use rlaunch_wire::{Collective, DType, Descriptor, Op};
use rustc_hash::FxHashMap;

use crate::Error;
use crate::core::Core;
use crate::failure::{Doing, Shared};
use crate::job::Job;

/// Calls remembered to be compared with what others wait in.
pub(crate) const HISTORY_CALLS: u64 = 16;
/// Communicators that failed, remembered after they are gone: peers may still send for them.
const FAILED_REMEMBERED: usize = 256;

/// Names a communicator in this process while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey(u32);

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) shared: Arc<Shared>,
    /// The members' ranks in the world.
    pub(crate) ranks: Arc<[u32]>,
    /// This rank's number among them.
    pub(crate) me: u32,
    /// The members of this host, where they share memory and are at least two.
    pub(crate) team: Option<Team>,
    /// Those members' numbers in the communicator, in order.
    pub(crate) near: Arc<[u32]>,
    /// All members are of this host and in the team.
    pub(crate) is_near: bool,
    pub(crate) hosts: Hosts,
    pub(crate) timeout: Option<Duration>,
    /// The first error; every later call returns it.
    pub(crate) poison: Option<Error>,
    /// The program knows of it: it has been returned here.
    pub(crate) is_told: bool,
    /// Collective calls begun.
    pub(crate) calls: u64,
    pub(crate) history: VecDeque<Descriptor>,
    /// What the driving thread waits in, where that has taken long enough to be worth telling.
    pub(crate) waits_in: Option<Descriptor>,
    /// A collective is under way: those after it wait.
    pub(crate) is_busy: bool,
    pub(crate) queue: VecDeque<Job>,
    /// How often it was shrunk.
    pub(crate) shrinks: u64,
    /// A shrink has made another of it: its failure is dealt with.
    pub(crate) is_replaced: bool,
}

/// Who belongs to a new group.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) ranks: Vec<u32>,
    pub(crate) me: u32,
    pub(crate) team: Option<Team>,
    pub(crate) near: Vec<u32>,
    /// Host of each member, by any numbers.
    pub(crate) hosts: Vec<u32>,
}

impl Group {
    pub(crate) fn new(members: Members, shared: Arc<Shared>) -> Self {
        let is_near = members.team.is_some() && members.near.len() == members.ranks.len();
        let hosts = Hosts::new(members.hosts);
        Self {
            shared,
            is_near,
            ranks: members.ranks.into(),
            me: members.me,
            team: members.team,
            near: members.near.into(),
            hosts,
            timeout: None,
            poison: None,
            is_told: false,
            calls: 0,
            history: VecDeque::new(),
            waits_in: None,
            is_busy: false,
            queue: VecDeque::new(),
            shrinks: 0,
            is_replaced: false,
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.shared.id
    }

    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// How the members lie, as far as the choice of algorithms is concerned.
    pub(crate) fn shape(&self) -> Shape {
        if self.is_near {
            return Shape::of_one_host(self.size());
        }
        match Shape::of(&self.hosts) {
            // Where memory is not shared inside a host either, its ranks are as far as others.
            shape if shape.hosts == 1 => Shape::of_strangers(self.size()),
            shape => shape,
        }
    }

    pub(crate) fn contains(&self, world_rank: u32) -> bool {
        self.ranks.contains(&world_rank)
    }

    /// The program must still hear of it: calls differed, this rank's among them, and none that it
    /// made could tell.
    pub(crate) fn untold_difference(&self, rank: u32) -> Option<&Error> {
        let is_open = !self.is_told && !self.is_replaced;
        let poison = self.poison.as_ref().filter(|_| is_open);
        poison.filter(|error| match error {
            Error::Mismatch {
                left_rank,
                right_rank,
                ..
            } => [left_rank.rank, right_rank.rank].contains(&rank),
            _ => false,
        })
    }

    /// What this rank does in it. A wait that has just begun, and messages between two, are known to
    /// the flight recorder alone.
    pub(crate) fn doing(&self) -> Doing {
        if let Some(call) = self.waits_in {
            return Doing::In(call);
        }
        if !self.is_busy
            && let Some(running) = self.shared.recorder.last_running()
        {
            return Doing::In(running);
        }
        match self.history.back() {
            Some(call) if self.is_busy => Doing::In(*call),
            _ => Doing::Between(self.shared.recorder.last()),
        }
    }

    /// The same for messages: what follows "in".
    pub(crate) fn during(&self) -> String {
        self.doing().during()
    }

    /// Numbers a collective call.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        collective: Collective,
        dtype: DType,
        op: Option<Op>,
        root: u32,
        (count, digest): (u64, u32),
    ) -> Descriptor {
        let descriptor = Descriptor {
            communicator: self.id(),
            sequence: self.calls,
            collective,
            dtype,
            op,
            root,
            digest,
            count,
        };
        self.calls += 1;
        if self.history.len() as u64 == HISTORY_CALLS {
            self.history.pop_front();
        }
        self.history.push_back(descriptor);
        descriptor
    }
}

/// All communicators of a world.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    slots: Vec<Option<Group>>,
    by_id: FxHashMap<u32, GroupKey>,
    failed: VecDeque<u32>,
    reserved: u16,
}

impl Groups {
    /// The communicator of all, which is made first.
    pub(crate) const WORLD: GroupKey = GroupKey(0);

    pub(crate) fn insert(&mut self, group: Group) -> GroupKey {
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let key = GroupKey(index as u32);
        self.failed.retain(|failed| *failed != group.id());
        self.by_id.insert(group.id(), key);
        self.slots[index] = Some(group);
        key
    }

    pub(crate) fn remove(&mut self, key: GroupKey) -> Option<Group> {
        let group = self.slots.get_mut(key.0 as usize)?.take()?;
        self.by_id.remove(&group.id());
        if group.poison.is_some() {
            if self.failed.len() == FAILED_REMEMBERED {
                self.failed.pop_front();
            }
            self.failed.push_back(group.id());
        }
        Some(group)
    }

    pub(crate) fn find(&self, id: u32) -> Option<GroupKey> {
        self.by_id.get(&id).copied()
    }

    /// Nobody here will ask for this communicator's messages.
    pub(crate) fn is_over(&self, id: u32) -> bool {
        match self.find(id) {
            Some(key) => self.get(key).is_none_or(|group| group.poison.is_some()),
            None => self.failed.contains(&id),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: GroupKey) -> Option<&Group> {
        self.slots.get(key.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: GroupKey) -> Option<&mut Group> {
        self.slots.get_mut(key.0 as usize)?.as_mut()
    }

    pub(crate) fn keys(&self) -> Vec<GroupKey> {
        let live = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.is_some());
        live.map(|(index, _)| GroupKey(index as u32)).collect()
    }

    pub(crate) fn keys_where(&self, is_wanted: impl Fn(&Group) -> bool) -> Vec<GroupKey> {
        let is_wanted = |key: &GroupKey| self.get(*key).is_some_and(&is_wanted);
        self.keys().into_iter().filter(is_wanted).collect()
    }

    /// How many have failed.
    pub(crate) fn poisoned(&self) -> usize {
        self.iter().filter(|group| group.poison.is_some()).count()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.slots.iter().flatten()
    }

    /// A number for a communicator that no other rank gives: the proposer's rank and a count.
    /// After 65,535 of them it comes round to numbers long free; those in use here are passed over.
    pub(crate) fn reserve_id(&mut self, world_rank: u32) -> u32 {
        loop {
            self.reserved = self.reserved.wrapping_add(1);
            let id = (world_rank << 16) | u32::from(self.reserved);
            if self.reserved != 0 && !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }
}

impl Core {
    #[inline]
    pub(crate) fn group(&self, key: GroupKey) -> &Group {
        self.groups
            .get(key)
            .expect("a key's handles keep its group")
    }

    #[inline]
    pub(crate) fn group_mut(&mut self, key: GroupKey) -> &mut Group {
        self.groups
            .get_mut(key)
            .expect("a key's handles keep its group")
    }

    /// The world's rank of a member.
    pub(crate) fn world_rank(&self, key: GroupKey, member: u32) -> u32 {
        self.group(key).ranks[member as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn group(id: u32) -> Group {
        let members = Members {
            ranks: vec![0],
            me: 0,
            team: None,
            near: vec![0],
            hosts: vec![0],
        };
        Group::new(members, Arc::new(Shared::new(id, "init", Instant::now())))
    }

    #[test]
    fn places_are_used_again_and_numbers_are_not() {
        let mut groups = Groups::default();
        groups.insert(group(0));
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let id = groups.reserve_id(7);
            assert!(seen.insert(id));
            let key = groups.insert(group(id));
            assert_eq!(groups.find(id), Some(key));
            groups.remove(key);
            assert_eq!((groups.find(id), groups.slots.len()), (None, 2));
        }
        assert_eq!(groups.failed.len(), 0);
    }

    #[test]
    fn a_number_in_use_is_passed_over_when_the_count_comes_round() {
        let mut groups = Groups::default();
        let kept = groups.reserve_id(1);
        groups.insert(group(kept));
        for _ in 0..70_000 {
            assert_ne!(groups.reserve_id(1), kept);
        }
    }

    #[test]
    fn what_failed_is_over_also_when_it_is_gone() {
        let mut groups = Groups::default();
        let key = groups.insert(group(5));
        assert!(!groups.is_over(5) && !groups.is_over(6));
        groups.get_mut(key).unwrap().poison = Some(Error::Finalized);
        assert!(groups.is_over(5));
        groups.remove(key);
        assert!(groups.is_over(5));
    }
}
