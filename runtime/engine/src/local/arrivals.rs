//! Who has posted its call of a round, and whether it is the same as ours.

use rlaunch_transport::shm::{Difference, Team};
use rlaunch_wire::Descriptor;

use super::Failure;
use super::counts::Told;

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

    /// True once all have posted the same call. `told`: of a v-variant, whose counts are compared
    /// too.
    #[inline]
    pub(crate) fn poll(&mut self, team: &mut Team, told: Option<&Told>) -> Result<bool, Failure> {
        if self.arrived == team.size() {
            return Ok(true);
        }
        while self.arrived < team.size() {
            if !self.has_posted(team, self.arrived, told)? {
                return Ok(false);
            }
            self.arrived += 1;
        }
        team.note_all_equal();
        Ok(true)
    }

    /// Whether one member has posted the same call.
    #[inline]
    pub(crate) fn has_posted(
        &self,
        team: &Team,
        member: u32,
        told: Option<&Told>,
    ) -> Result<bool, Failure> {
        if member == team.me() {
            return Ok(true);
        }
        if !team.has_posted(member) {
            return Ok(false);
        }
        let theirs = team.posted_descriptor(member);
        if theirs == self.own && told.is_none() {
            return Ok(true);
        }
        self.compare(team, member, theirs, told)
    }

    #[cold]
    fn compare(
        &self,
        team: &Team,
        member: u32,
        theirs: [u8; Descriptor::BYTES],
        told: Option<&Told>,
    ) -> Result<bool, Failure> {
        let difference = Difference {
            member,
            mine: self.own,
            theirs,
        };
        let calls = Descriptor::decode(&self.own).zip(Descriptor::decode(&theirs));
        if let Some(told) = told
            && calls.is_some_and(|(mine, theirs)| mine.differs_in_counts_only(&theirs))
            && let Err(counts) = told.compare(team, member)
        {
            return Err(Failure::Counts(difference, counts));
        }
        if theirs == self.own {
            Ok(true)
        } else {
            Err(Failure::Differs(difference))
        }
    }
}
