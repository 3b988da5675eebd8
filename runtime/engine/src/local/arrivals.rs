//! Who has posted its call of a round, and whether it is the same as ours.

use rlaunch_transport::shm::{Difference, Team};
use rlaunch_wire::Descriptor;

use super::Failure;

/// Compares each member's descriptor once.
#[derive(Debug)]
pub(crate) struct Arrivals {
    own: [u8; Descriptor::BYTES],
    /// Members below this have posted an equal descriptor.
    arrived: u32,
}

impl Arrivals {
    #[inline]
    pub(crate) fn new(descriptor: &Descriptor) -> Self {
        Self {
            own: descriptor.encode(),
            arrived: 0,
        }
    }

    #[inline]
    pub(crate) fn own(&self) -> &[u8; Descriptor::BYTES] {
        &self.own
    }

    pub(crate) fn are_complete(&self, team: &Team) -> bool {
        self.arrived == team.size()
    }

    /// True once all have posted the same call.
    #[inline]
    pub(crate) fn poll(&mut self, team: &mut Team) -> Result<bool, Failure> {
        if self.arrived == team.size() {
            return Ok(true);
        }
        while self.arrived < team.size() {
            if !self.has_posted(team, self.arrived)? {
                return Ok(false);
            }
            self.arrived += 1;
        }
        team.note_all_equal();
        Ok(true)
    }

    /// Whether one member has posted the same call.
    #[inline]
    pub(crate) fn has_posted(&self, team: &Team, member: u32) -> Result<bool, Failure> {
        if member == team.me() {
            return Ok(true);
        }
        if !team.has_posted(member) {
            return Ok(false);
        }
        let theirs = team.posted_descriptor(member);
        if theirs == self.own {
            Ok(true)
        } else {
            Err(Failure::Differs(Difference {
                member,
                mine: self.own,
                theirs,
            }))
        }
    }
}
