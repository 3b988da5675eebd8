//! [`LocalOperation`] as the core drives it, on a communicator's team.

use rlaunch_transport::shm::Team;
use rlaunch_transport::{ConnectionError, Progress};
use rlaunch_wire::Descriptor;

use super::{CountsDiffer, Failure, LocalOperation};
use crate::core::Core;
use crate::error::counts_differ;
use crate::group::{Group, GroupKey};
use crate::wait::{Awaited, Operation};
use crate::{Call, Error};

/// A collective of a communicator whose members share memory.
#[derive(Debug)]
pub(crate) struct TeamOperation {
    key: GroupKey,
    descriptor: Descriptor,
    local: LocalOperation,
}

impl TeamOperation {
    /// # Safety
    /// As [`LocalOperation::new`].
    #[inline]
    pub(crate) unsafe fn new(
        group: &Group,
        key: GroupKey,
        call: &Call,
        descriptor: Descriptor,
    ) -> Self {
        let team = group.team.as_ref().expect(HAS_TEAM);
        // SAFETY: as the caller vouches.
        let local = unsafe { LocalOperation::new(team, call, &descriptor) };
        Self {
            key,
            descriptor,
            local,
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let team: &mut Team = core.group_mut(self.key).team.as_mut().expect(HAS_TEAM);
        self.local
            .poll(team)
            .map_err(|failure| self.explain(core, failure))
    }

    #[cold]
    fn explain(&self, core: &Core, failure: Failure) -> Error {
        let (difference, counts) = match failure {
            Failure::Differs(difference) => (difference, None),
            Failure::Counts(difference, counts) => (difference, Some(counts)),
            Failure::Memory(error) => return Error::Memory(error.to_string()),
            Failure::Reach { member, error } => {
                let peer = self.world_rank(core, member);
                let cause = ConnectionError::reach(error).to_string();
                return core.garbled(peer, cause, &self.descriptor);
            }
        };
        let peer = self.world_rank(core, difference.member);
        let decode = |bytes| Descriptor::decode(bytes);
        let (Some(mine), Some(theirs)) = (decode(&difference.mine), decode(&difference.theirs))
        else {
            let cause = "malformed descriptor in shared memory".into();
            return core.garbled(peer, cause, &self.descriptor);
        };
        let detail = counts.map_or_else(String::new, |counts| self.tell(core, peer, counts));
        core.mismatch(mine, peer, theirs).detailed(detail)
    }

    fn tell(&self, core: &Core, peer: u32, counts: CountsDiffer) -> String {
        match counts {
            CountsDiffer::Lists { of, mine, theirs } => {
                let (me, of) = (core.rank, self.world_rank(core, of));
                let mut told = [(me, mine), (peer, theirs)];
                told.sort_unstable();
                let [(low, first), (high, second)] = told;
                format!("counts for rank {of}: {first} by rank {low}, {second} by rank {high}")
            }
            CountsDiffer::Pair {
                from,
                to,
                sent,
                expected,
            } => {
                let (from, to) = (self.world_rank(core, from), self.world_rank(core, to));
                counts_differ(from, sent, to, expected)
            }
        }
    }

    /// The world's rank of a member of the team.
    fn world_rank(&self, core: &Core, member: u32) -> u32 {
        let near = &core.group(self.key).near;
        core.world_rank(self.key, near[member as usize])
    }

    pub(crate) fn awaited(&self, core: &Core) -> Vec<Awaited> {
        let group = core.group(self.key);
        let Some(team) = &group.team else {
            return Vec::new();
        };
        let awaited = self.local.awaited(team).into_iter();
        awaited
            .map(|member| Awaited {
                rank: group.ranks[group.near[member as usize] as usize],
                to_send: false,
            })
            .collect()
    }

    pub(crate) fn end(&self, core: &Core) {
        let group = core.groups.get(self.key);
        if let Some(team) = group.and_then(|group| group.team.as_ref()) {
            self.local.end(team);
        }
    }
}

impl Operation for TeamOperation {
    fn call(&self) -> Descriptor {
        self.descriptor
    }

    #[inline]
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        Self::poll(self, core)
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        Self::awaited(self, core)
    }

    fn awaits_all(&self, _core: &Core) -> bool {
        self.local.awaits_all()
    }

    #[inline]
    fn end(&mut self, core: &mut Core) {
        Self::end(self, core);
    }
}

const HAS_TEAM: &str = "a communicator of ranks that share memory has a team";
