//! Parts that their giver helps to copy.
//!
//! In a broadcast or scatter the root has nothing to read, in a gather all others have not: while they
//! wait they write pieces into the memory of those who read from them, from the back of each part,
//! as the reader takes them from its front. With two members that halves the time.
//!
//! This is the one case of a member's memory being written by another; the rules are with
//! [`rlaunch_transport::shm::Claims`].

use std::ops::Range;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{End, Pieces, Team};

use super::super::Failure;
use super::super::plan::Plan;
use super::offer::is_helped;
use super::{Sources, blame, reads};
use crate::Call;

/// A part in pieces, as its reader and its giver see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joint {
    /// The member that keeps the words of the part's claims.
    pub(super) words: u32,
    pub(super) pieces: Pieces,
}

impl Joint {
    /// Equal on reader and giver; `None` where the giver does not help.
    pub(super) fn new(plan: &Plan, sources: &Sources, reader: u32, giver: u32) -> Option<Self> {
        sources.helped.as_ref()?;
        if !is_helped(plan, reader) || !reads(plan, reader, giver) {
            return None;
        }
        let pieces = Pieces::of(plan.part_from(giver).len());
        let words = words_of(plan, reader, giver);
        (pieces.count > 1).then_some(Self { words, pieces })
    }

    /// The next piece for this member.
    pub(super) fn claim(&self, team: &Team, end: End) -> Option<Range<usize>> {
        let claims = team.claims(self.words, true);
        let piece = claims.claim(&self.pieces, end)?;
        Some(self.pieces.range(piece))
    }

    pub(super) fn is_all_written(&self, team: &Team) -> bool {
        team.claims(self.words, true).is_all_written()
    }
}

/// The one of the two that is not the root.
fn words_of(plan: &Plan, reader: u32, giver: u32) -> u32 {
    if plan.root == Some(reader) {
        giver
    } else {
        reader
    }
}

/// What this member writes for others.
#[derive(Debug)]
pub(super) struct Help {
    lent: Vec<Lent>,
    next: usize,
}

#[derive(Debug)]
struct Lent {
    reader: u32,
    joint: Joint,
    from: *const u8,
    to: u64,
}

impl Help {
    pub(super) fn new(plan: &Plan, call: &Call, sources: &Sources) -> Self {
        let me = plan.me;
        let lend = |reader: u32| {
            let joint = Joint::new(plan, sources, reader, me)?;
            let output = sources.helped.as_ref()?[reader as usize];
            Some(Lent {
                reader,
                joint,
                from: call.input.wrapping_add(plan.part_for(reader).start),
                to: output + plan.part_from(me).start as u64,
            })
        };
        let readers = (1..plan.members).map(|distance| (me + distance) % plan.members);
        Self {
            lent: readers.filter_map(lend).collect(),
            next: 0,
        }
    }

    /// Writes a piece; `Done` once nothing is left to write.
    pub(super) fn poll(&mut self, team: &Team) -> Result<Progress, Failure> {
        while !self.lent.is_empty() {
            let index = self.next % self.lent.len();
            let lent = &self.lent[index];
            let words = lent.joint.words;
            let is_withdrawn = || team.claims(words, true).is_withdrawn();
            // Looked at once more, as late as can be.
            let claimed = lent.joint.claim(team, End::Back);
            let Some(piece) = claimed.filter(|_| !is_withdrawn()) else {
                self.lent.swap_remove(index);
                continue;
            };
            if let Err(error) = lent.write(team, &piece) {
                return blame(team, lent.reader, error, is_withdrawn());
            }
            team.tell_written(words);
            self.next = index + 1;
            return Ok(Progress::Moved);
        }
        Ok(Progress::Done)
    }
}

impl Lent {
    fn write(&self, team: &Team, range: &Range<usize>) -> std::io::Result<()> {
        let reach = team
            .arena()
            .reach()
            .ok_or(std::io::ErrorKind::Unsupported)?;
        let reader = team.members()[self.reader as usize];
        let to = self.to + range.start as u64;
        // SAFETY: the piece lies in this member's input, which is valid until its call ends; the
        // reader ends its call only when what was claimed is written.
        unsafe { reach.write(reader, self.from.wrapping_add(range.start), to, range.len()) }
    }
}

/// This member's call has failed: from now on nobody writes to its memory. `has_begun`: the exchange
/// has begun here.
pub(super) fn withdraw(team: &Team, plan: &Plan, has_begun: bool) {
    let me = plan.me;
    for giver in (0..plan.members).filter(|giver| reads(plan, me, *giver)) {
        let is_there = || {
            let reach = team.arena().reach();
            reach.is_some_and(|reach| reach.is_there(team.members()[giver as usize]))
        };
        let claims = team.claims(words_of(plan, me, giver), has_begun);
        claims.withdraw(is_there);
    }
}
