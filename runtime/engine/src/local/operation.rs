//! [`LocalOperation`] as the core drives it, on a communicator's team.

use rlaunch_transport::Progress;
use rlaunch_transport::shm::Team;
use rlaunch_wire::Descriptor;

use super::{Failure, LocalOperation};
use crate::core::Core;
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
        match failure {
            Failure::Differs(difference) => {
                let peer = self.world_rank(core, difference.member);
                let decode = |bytes| Descriptor::decode(bytes);
                match (decode(&difference.mine), decode(&difference.theirs)) {
                    (Some(mine), Some(theirs)) => core.mismatch(mine, peer, theirs),
                    _ => Error::Connection {
                        peer: core.identity(peer),
                        cause: "malformed descriptor in shared memory".into(),
                    },
                }
            }
            Failure::Memory(error) => Error::Memory(error.to_string()),
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
}

const HAS_TEAM: &str = "a communicator of ranks that share memory has a team";
