//! Collectives small enough for one round of posts: each member posts what others need, and reads
//! what it needs from those that have it. No member waits for one that it needs nothing from.

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{FLAT_BYTES_MAX, Team};
use rlaunch_wire::Collective;

use super::arrivals::Arrivals;
use super::combine::Combine;
use super::{Failure, Inputs};
use crate::call::Call;

/// What all members together may have to combine for one result this way.
const REDUCED_BYTES_MAX: usize = 32 * 1024;

/// One such round.
#[derive(Debug)]
pub(crate) struct Flat {
    collective: Collective,
    root: u32,
    input: *const u8,
    output: *mut u8,
    /// What a member with something to post posts.
    posted: usize,
    /// A part, or the vector.
    part: usize,
    combine: Option<Combine>,
}

/// How many bytes each member posts; `None` where they don't fit, or members may differ.
#[inline]
pub(crate) fn posted_bytes(call: &Call, members: u32) -> Option<usize> {
    let part = call.count.checked_mul(call.dtype.size_bytes())?;
    let posted = match call.collective {
        Collective::Barrier => 0,
        Collective::Broadcast
        | Collective::AllReduce
        | Collective::Reduce
        | Collective::AllGather
        | Collective::Split
        | Collective::Duplicate
        | Collective::FromRanks
        | Collective::Shrink
        | Collective::Gather
        | Collective::Scan
        | Collective::Exscan => part,
        Collective::ReduceScatter | Collective::Scatter | Collective::AllToAll => {
            part.checked_mul(members as usize)?
        }
        _ => return None,
    };
    let work = if call.collective.reduces() {
        posted.checked_mul(members as usize - 1)?
    } else {
        posted
    };
    (posted <= FLAT_BYTES_MAX && work <= REDUCED_BYTES_MAX).then_some(posted)
}

impl Flat {
    /// # Safety
    /// The call's buffers are valid as its collective needs them until the round is done.
    #[inline]
    pub(crate) unsafe fn new(call: &Call, posted: usize, combine: Option<Combine>) -> Self {
        Self {
            collective: call.collective,
            root: call.root,
            input: call.input,
            output: call.output,
            posted,
            part: call.count * call.dtype.size_bytes(),
            combine,
        }
    }

    /// Posts this member's share; once, in the round begun for it.
    #[inline]
    pub(crate) fn post(&self, team: &mut Team, arrivals: &Arrivals) -> Result<(), Failure> {
        let is_root = self.root == team.me();
        let length = match self.collective {
            Collective::Broadcast | Collective::Scatter if !is_root => 0,
            Collective::Reduce | Collective::Gather if is_root => 0,
            _ => self.posted,
        };
        let prepared = self.prepared(length);
        let data = prepared.as_ref().map_or(self.input, |bytes| bytes.as_ptr());
        // SAFETY: `new`'s caller vouches for the input; what was prepared has that length.
        unsafe { team.post(arrivals.own(), data, length)? };
        Ok(())
    }

    #[cold]
    fn prepare(&self, combine: &Combine, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        // SAFETY: `new`'s caller vouches for the input.
        unsafe { combine.prepare(bytes.as_mut_ptr(), self.input, length) };
        bytes
    }

    #[inline]
    fn prepared(&self, length: usize) -> Option<Vec<u8>> {
        let combine = self.combine.as_ref().filter(|combine| combine.prepares())?;
        (length > 0).then(|| self.prepare(combine, length))
    }

    /// `Done` once the result is written.
    #[inline]
    pub(crate) fn poll(
        &self,
        team: &mut Team,
        arrivals: &mut Arrivals,
    ) -> Result<Progress, Failure> {
        let (me, root) = (team.me(), self.root);
        let is_there = match self.collective {
            // Of two, who reads has seen all.
            Collective::Broadcast | Collective::Scatter if me != root && team.size() == 2 => {
                arrivals.poll(team, None)?
            }
            Collective::Broadcast | Collective::Scatter => arrivals.has_posted(team, root, None)?,
            Collective::Reduce | Collective::Gather if me != root => true,
            Collective::Scan | Collective::Exscan => {
                let mut is_there = true;
                for member in 0..me {
                    is_there = is_there && arrivals.has_posted(team, member, None)?;
                }
                is_there
            }
            _ => arrivals.poll(team, None)?,
        };
        if !is_there {
            return Ok(Progress::Idle);
        }
        // SAFETY: those whose data it reads have posted; `new`'s caller vouches for the output.
        unsafe { self.conclude(team) };
        Ok(Progress::Done)
    }

    pub(crate) fn awaits(&self, team: &Team, member: u32) -> bool {
        let needs = match self.collective {
            Collective::Broadcast | Collective::Scatter => member == self.root,
            Collective::Reduce | Collective::Gather => team.me() == self.root,
            Collective::Scan | Collective::Exscan => member < team.me(),
            _ => true,
        };
        needs && !team.has_posted(member)
    }

    /// # Safety
    /// All whose data this member needs have posted; the output is valid.
    #[inline]
    unsafe fn conclude(&self, team: &Team) {
        let (me, members, part) = (team.me(), team.size(), self.part);
        // SAFETY: as the caller vouches; each has posted `self.posted` bytes.
        unsafe {
            match self.collective {
                Collective::AllReduce => self.reduce(team, members, 0),
                Collective::Reduce if me == self.root => self.reduce(team, members, 0),
                Collective::ReduceScatter => self.reduce(team, members, me as usize * part),
                Collective::Scan => self.reduce(team, me + 1, 0),
                Collective::Exscan if me > 0 => self.reduce(team, me, 0),
                Collective::Broadcast if me == self.root => self.copy(self.input, 0),
                Collective::Broadcast => self.copy(team.posted_data(self.root, self.posted), 0),
                Collective::Scatter if me == self.root => {
                    self.copy(self.input.add(me as usize * part), 0);
                }
                Collective::Scatter => {
                    let data = team.posted_data(self.root, self.posted);
                    self.copy(data.add(me as usize * part), 0);
                }
                Collective::AllGather
                | Collective::Split
                | Collective::Duplicate
                | Collective::FromRanks
                | Collective::Shrink => self.collect(team, 0),
                Collective::Gather if me == self.root => self.collect(team, 0),
                Collective::AllToAll => self.collect(team, me as usize * part),
                _ => {}
            }
        }
    }

    /// One part of each member's data, from `offset` on, one behind the other.
    ///
    /// # Safety
    /// As [`Flat::conclude`].
    unsafe fn collect(&self, team: &Team, offset: usize) {
        for member in 0..team.size() {
            // SAFETY: each has posted that part, but for the root of a gather, which this one is.
            unsafe {
                let from = if member == team.me() {
                    self.input.add(offset)
                } else {
                    team.posted_data(member, self.posted).add(offset)
                };
                self.copy(from, member as usize * self.part);
            }
        }
    }

    /// # Safety
    /// `from` is valid for a part, the output for one from `to` on.
    #[inline]
    unsafe fn copy(&self, from: *const u8, to: usize) {
        // SAFETY: as the caller vouches; equal in place, else apart.
        unsafe {
            let to = self.output.add(to);
            if to.cast_const() != from {
                std::ptr::copy_nonoverlapping(from, to, self.part);
            }
        }
    }

    /// # Safety
    /// As [`Flat::conclude`], for the members below `end`.
    #[inline]
    unsafe fn reduce(&self, team: &Team, end: u32, offset: usize) {
        let mut inputs = Inputs::default();
        // SAFETY: all of them have posted, but for the root of a reduce, which this one is.
        let inputs = inputs.gather(end, |member| unsafe {
            if member == team.me() {
                self.own(team, offset)
            } else {
                team.posted_data(member, self.posted).add(offset)
            }
        });
        if let Some(combine) = &self.combine {
            // SAFETY: as the caller vouches.
            unsafe { combine.many(self.output, inputs, self.part) };
        }
    }

    /// This member's own elements, as they are combined: its input; or what it prepared of it, where
    /// it was posted. The root of a reduce posts nothing, and prepares in the result's place.
    ///
    /// # Safety
    /// As [`Flat::reduce`].
    unsafe fn own(&self, team: &Team, offset: usize) -> *const u8 {
        // SAFETY: as the caller vouches.
        unsafe {
            match &self.combine {
                Some(combine) if combine.prepares() => {
                    if self.collective != Collective::Reduce {
                        return team.posted_data(team.me(), self.posted).add(offset);
                    }
                    combine.prepare(self.output, self.input, self.part);
                    self.output.cast_const()
                }
                _ => self.input.add(offset),
            }
        }
    }
}
