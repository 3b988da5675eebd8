//! How ranks make a communicator of theirs out of another: they tell each other who goes where, then
//! where the shared memory of each host's part lies.
//!
//! Two small exchanges over the parent. In the first each rank gives color, key, a number that only
//! it may give ([`crate::group::Groups::reserve_id`]) and what its choice of algorithms depends on;
//! the lowest member's number is the new communicator's. In the second the lowest member of each
//! host tells the place of the team that it has made; 0 where there is none.

use rlaunch_transport::shm::Team;
use rlaunch_wire::{Collective, DType};

use super::Communicator;
use crate::core::Core;
use crate::failure::Shared;
use crate::group::{Group, Members};
use crate::{Call, Error, local};

const RECORD_BYTES: usize = 32;

/// What a rank says in the first exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    color: Option<u32>,
    key: i64,
    id: u32,
    /// Of whatever the choice of algorithms depends on.
    choices: u64,
}

impl Record {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..4].copy_from_slice(&u32::from(self.color.is_some()).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.color.unwrap_or(0).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.key.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.choices.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes[at..at + 4].try_into().expect("4 bytes");
        let long = |at: usize| bytes[at..at + 8].try_into().expect("8 bytes");
        Self {
            color: (word(0) != [0; 4]).then(|| u32::from_le_bytes(word(4))),
            key: i64::from_le_bytes(long(8)),
            id: u32::from_le_bytes(word(16)),
            choices: u64::from_le_bytes(long(24)),
        }
    }
}

/// The members of a communicator that is being made, as ranks of the parent, in their order.
fn members_of(records: &[Record], color: u32) -> Vec<u32> {
    let mut members: Vec<u32> = (0..records.len() as u32)
        .filter(|rank| records[*rank as usize].color == Some(color))
        .collect();
    members.sort_by_key(|rank| (records[*rank as usize].key, *rank));
    members
}

impl Communicator {
    /// A communicator of those that give the same color, ordered by key, then by rank here; `None`
    /// for those that give no color. Called by all ranks of this communicator.
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        self.make(Collective::Split, color, key)
    }

    /// `by` is the call that the user made.
    fn make(&self, by: Collective, color: Option<u32>, key: i64) -> Result<Option<Self>, Error> {
        let record = self.engine().with(move |core| {
            Ok(Record {
                color,
                key,
                id: core.groups.reserve_id(core.rank),
                choices: core.choices(),
            })
        })?;
        let records = self.exchange(by, &record.encode())?;
        let records: Vec<Record> = records
            .chunks_exact(RECORD_BYTES)
            .map(Record::decode)
            .collect();
        self.check_choices(&records)?;
        let members = color.map_or_else(Vec::new, |color| members_of(&records, color));
        let ranks: Vec<u32> = members
            .iter()
            .map(|rank| self.ranks()[*rank as usize])
            .collect();
        let plan = ranks.clone();
        let made = self.engine().with(move |core| Ok(core.make_team(&plan)))?;
        let place = made.as_ref().map_or(0, Team::place);
        let places = self.exchange(by, &place.to_le_bytes())?;
        let places: Vec<u64> = places
            .chunks_exact(8)
            .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
            .collect();
        let Some(first) = members.first() else {
            return Ok(None);
        };
        let id = records[*first as usize].id;
        let places = members.iter().map(|rank| places[*rank as usize]).collect();
        let (engine, parent) = (self.engine().clone(), self.key());
        let made = self.engine().with(move |core| {
            let group = core.make_group(id, ranks, made, places, by);
            let group = group.map_err(|error| core.failure_of(parent, error))?;
            let key = core.groups.insert(group);
            Ok(Self::new(engine, key, core.group(key)))
        })?;
        Ok(Some(made))
    }

    /// A communicator of the same ranks whose calls don't meet with this one's. Called by all.
    pub fn duplicate(&self) -> Result<Self, Error> {
        self.copy_by(Collective::Duplicate)
    }

    /// `by` is the call that the user made.
    pub(crate) fn copy_by(&self, by: Collective) -> Result<Self, Error> {
        let made = self.make(by, Some(0), 0)?;
        Ok(made.expect("a rank that gives a color gets a communicator"))
    }

    /// A communicator of these ranks (of this communicator), in this order; `None` for the others.
    /// Called by all ranks of this communicator, with the same list.
    pub fn from_ranks(&self, ranks: &[u32]) -> Result<Option<Self>, Error> {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let is_known = sorted.last().is_none_or(|last| *last < self.size());
        if !is_known || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::Argument(format!(
                "ranks {ranks:?} are not different ranks of a communicator of {}",
                self.size()
            )));
        }
        let place = ranks.iter().position(|rank| *rank == self.rank());
        let key = place.unwrap_or(0) as i64;
        self.make(Collective::FromRanks, place.map(|_| 0), key)
    }

    /// Everybody's bytes, of which all give as many.
    fn exchange(&self, by: Collective, mine: &[u8]) -> Result<Vec<u8>, Error> {
        let mut all = vec![0; mine.len() * self.size() as usize];
        let call = Call {
            collective: by,
            ..Call::all_gather(mine.as_ptr(), all.as_mut_ptr(), mine.len(), DType::U8)
        };
        // SAFETY: both are valid for their lengths, which fit.
        unsafe { self.run(&call)? };
        Ok(all)
    }

    fn check_choices(&self, records: &[Record]) -> Result<(), Error> {
        let mine = records[self.rank() as usize].choices;
        match records.iter().position(|record| record.choices != mine) {
            None => Ok(()),
            Some(other) => Err(Error::Argument(format!(
                "rank {other} of this communicator chooses algorithms by another table than rank \
                 {}; set RLAUNCH_ALGO, RLAUNCH_TUNE_FILE, RLAUNCH_PRECISE \
                 and RLAUNCH_DETERMINISTIC alike on all ranks",
                self.rank()
            ))),
        }
    }
}

impl Core {
    /// The members (as ranks of the world) that share memory with this rank, as numbers in the new
    /// communicator.
    fn near_of(&self, ranks: &[u32]) -> Vec<u32> {
        let mine = self.host_of[self.rank as usize];
        (0..ranks.len() as u32)
            .filter(|member| self.host_of[ranks[*member as usize] as usize] == mine)
            .collect()
    }

    fn locals_of(&self, ranks: &[u32], near: &[u32]) -> Option<Vec<u32>> {
        near.iter()
            .map(|member| self.peers[ranks[*member as usize] as usize].local)
            .collect()
    }

    /// Makes the team of the members, if all are of this host and this rank is the lowest of at least
    /// two. Without memory for it messages serve.
    fn make_team(&self, ranks: &[u32]) -> Option<Team> {
        let near = self.near_of(ranks);
        let (first, others) = near.split_first()?;
        let are_all_near = near.len() == ranks.len();
        if !are_all_near || ranks[*first as usize] != self.rank || others.is_empty() {
            return None;
        }
        let locals = self.locals_of(ranks, &near)?;
        let arena = self.neighbours.as_ref()?.arena.clone();
        let slot_bytes = local::slot_bytes(self.pace.has_core());
        Team::create(arena, locals, 0, slot_bytes).ok()
    }

    /// The new communicator's state; `places` by member; what made it.
    pub(crate) fn make_group(
        &mut self,
        id: u32,
        ranks: Vec<u32>,
        made: Option<Team>,
        places: Vec<u64>,
        by: Collective,
    ) -> Result<Group, Error> {
        let near = self.near_of(&ranks);
        let me = near
            .iter()
            .position(|member| ranks[*member as usize] == self.rank)
            .expect("a member is on its own host");
        let place = places[near[0] as usize];
        let team = match (made, &self.neighbours) {
            (Some(team), _) => Some(team),
            (None, Some(neighbours)) if place != 0 && near.len() > 1 => {
                let locals = self.locals_of(&ranks, &near).unwrap_or_default();
                let opened = Team::open(neighbours.arena.clone(), place, locals, me as u32);
                Some(opened.map_err(|error| Error::Memory(error.to_string()))?)
            }
            _ => None,
        };
        let hosts = ranks
            .iter()
            .map(|rank| self.host_of[*rank as usize])
            .collect();
        let members = Members {
            me: near[me],
            team,
            near,
            hosts,
            ranks,
        };
        let shared = std::sync::Arc::new(Shared::new(id, by.name(), self.epoch));
        self.logbook.add(&shared);
        let mut group = Group::new(members, shared);
        group.poison = self.known_failure(&group.ranks);
        Ok(group)
    }

    /// A number for what this rank's choice of algorithms depends on.
    fn choices(&self) -> u64 {
        self.selector.fingerprint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(color: Option<u32>, key: i64) -> Record {
        Record {
            color,
            key,
            id: 0x0001_0002,
            choices: u64::MAX,
        }
    }

    #[test]
    fn records_survive_the_way() {
        for one in [record(Some(0), -1), record(None, i64::MAX)] {
            assert_eq!(Record::decode(&one.encode()), one);
        }
    }

    #[test]
    fn members_are_ordered_by_key_then_rank() {
        let records = [
            record(Some(1), 5),
            record(Some(1), -5),
            record(None, 0),
            record(Some(1), 5),
            record(Some(2), 0),
        ];
        assert_eq!(members_of(&records, 1), [1, 0, 3]);
        assert_eq!(members_of(&records, 2), [4]);
    }
}
