//! Runs a [`Plan`] over a team's staging slots, as a pipeline: while others still take block `k`
//! this member puts block `k + 1` and fetches the results of block `k - 1`.
//!
//! Each rank combines in the order of members and on the same shares, so all get the same bits.
//! Nothing of the input is read after a result was written over it: block `k` is put, by everyone,
//! before anyone takes it, and results of block `k` lie where its input did.

mod chain;
mod pair;
mod pieces;

use rlaunch_transport::Progress;
use rlaunch_transport::shm::{DONE, SLOTS, Stage, Team};

use super::arrivals::Arrivals;
use super::combine::Combine;
use super::counts::Told;
use super::plan::{Pattern, Plan};
use super::{Failure, Inputs};

/// One such run.
#[derive(Debug)]
pub(crate) struct Exchange {
    plan: Plan,
    /// Of a v-variant: its counts, which all compare.
    told: Option<Told>,
    combine: Option<Combine>,
    input: *const u8,
    output: *mut u8,
    /// Results are too long to be worth room in the cache, and their place is not in it already.
    streams: bool,
    inputs: Inputs,
    put: u64,
    taken: u64,
    fetched: u64,
}

impl Exchange {
    /// # Safety
    /// `input` and `output` are valid as the plan's collective needs them until the run is done.
    pub(crate) unsafe fn new(
        plan: Plan,
        told: Option<Told>,
        combine: Option<Combine>,
        input: *const u8,
        output: *mut u8,
        streams: bool,
    ) -> Self {
        Self {
            plan,
            told,
            combine,
            input,
            output,
            streams,
            inputs: Inputs::default(),
            put: 0,
            taken: 0,
            fetched: 0,
        }
    }

    /// What is posted of the counts: where, and how many bytes.
    pub(crate) fn told(&self) -> (*const u8, usize) {
        let told = self.told.as_ref();
        told.map_or((std::ptr::null(), 0), Told::posted)
    }

    /// Call once, after this member has posted.
    pub(crate) fn begin(&self, team: &mut Team) -> Result<(), Failure> {
        team.begin_exchange()?;
        if self.plan.is_uneven && self.plan.takes == 0 {
            team.publish(Stage::Taken, DONE);
        }
        if self.plan.pattern == Pattern::Shares && self.plan.fetches == 0 {
            team.publish(Stage::Fetched, DONE);
        }
        Ok(())
    }

    /// Goes on as far as can be; `Done` once this member's part is done and all have posted.
    pub(crate) fn poll(
        &mut self,
        team: &mut Team,
        arrivals: &mut Arrivals,
    ) -> Result<Progress, Failure> {
        let mut result = Progress::Idle;
        loop {
            let mut has_moved = self.try_put(team);
            // In place, a result would overwrite what others have yet to get.
            let has_put = self.put > self.taken || self.put == self.plan.puts;
            if self.taken < self.plan.takes && has_put && arrivals.poll(team, self.told.as_ref())? {
                has_moved |= self.try_take(team);
            }
            has_moved |= if self.plan.pattern == Pattern::Chain {
                arrivals.poll(team, None)? && self.try_fetch_of_chain(team)
            } else {
                self.try_fetch(team)
            };
            if self.is_complete() {
                if !arrivals.poll(team, self.told.as_ref())? {
                    return Ok(result);
                }
                if self.plan.pattern == Pattern::Chain {
                    self.end_chain(team);
                }
                team.end_exchange();
                return Ok(Progress::Done);
            }
            if !has_moved {
                return Ok(result);
            }
            result = Progress::Moved;
        }
    }

    fn is_complete(&self) -> bool {
        let Plan {
            puts,
            takes,
            fetches,
            ..
        } = self.plan;
        (self.put, self.taken, self.fetched) == (puts, takes, fetches)
    }

    /// Whether `member` is one that this one waits for.
    pub(crate) fn awaits(&self, team: &Team, member: u32) -> bool {
        if self.plan.pattern == Pattern::Chain {
            return self.awaits_in_chain(team, member);
        }
        let (taken, fetched) = (self.taken, self.fetched);
        let lacks_block = taken < self.plan.takes
            && self.plan.takes_from(member, taken)
            && !team.has_come(member, Stage::Put, taken + 1);
        let lacks_result =
            fetched < self.plan.fetches && !team.has_come(member, Stage::Taken, fetched + 1);
        let blocks_slot = self.put < self.plan.puts
            && self.put >= SLOTS as u64
            && !team.has_come(member, Stage::Taken, self.put + 1 - SLOTS as u64);
        lacks_block || lacks_result || blocks_slot
    }

    fn try_put(&mut self, team: &mut Team) -> bool {
        if self.plan.pattern == Pattern::Chain {
            return self.try_begin_block(team);
        }
        // What comes back into a slot is fetched before the next block goes there.
        let is_full = self.plan.pattern == Pattern::Pair && self.put == self.fetched + SLOTS as u64;
        if self.put == self.plan.puts || is_full {
            return false;
        }
        let Some(slot) = team.in_slot(self.put) else {
            return false;
        };
        // SAFETY: `new`'s caller vouches for the input; the slot is ours, and a block fits it.
        unsafe { self.put(slot.as_ptr()) };
        self.put += 1;
        team.publish(Stage::Put, self.put);
        true
    }

    fn try_take(&mut self, team: &mut Team) -> bool {
        if self.plan.pattern == Pattern::Chain {
            return self.try_add(team);
        }
        let block = self.taken;
        let is_there = |member: u32| {
            !self.plan.takes_from(member, block) || team.has_come(member, Stage::Put, block + 1)
        };
        if !team.others().all(is_there) {
            return false;
        }
        let result = if self.plan.pattern == Pattern::Shares {
            let Some(slot) = team.out_slot(block) else {
                return false;
            };
            slot.as_ptr()
        } else {
            std::ptr::null_mut()
        };
        // SAFETY: the members concerned have put the block, and it stays until we publish; `new`'s
        // caller vouches for the output.
        unsafe { self.take(team, result) };
        self.taken += 1;
        let is_last = self.taken == self.plan.takes && self.plan.is_uneven;
        team.publish(Stage::Taken, if is_last { DONE } else { self.taken });
        true
    }

    fn try_fetch(&mut self, team: &mut Team) -> bool {
        let block = self.fetched;
        if block == self.plan.fetches || block == self.taken {
            return false;
        }
        let is_there = |member: u32| team.has_come(member, Stage::Taken, block + 1);
        if !team.others().all(is_there) {
            return false;
        }
        let whole = self.plan.sent(0, block);
        for owner in team.others() {
            let share = self.plan.share(owner, block);
            if self.plan.pattern == Pattern::Pair {
                // SAFETY: the owner has left its share in our slot; the output holds the vector.
                unsafe { self.fetch_back(share, team.put_by(self.plan.me, block)) };
                continue;
            }
            // SAFETY: the owner has left its share of the block in its out-slot, at its place in
            // the block, and keeps it until we publish; the output holds the vector.
            unsafe {
                let from = team.result_of(owner, block).add(share.start - whole.start);
                self.copy_out(share.start, from, share.len());
            }
        }
        self.fetched += 1;
        if self.plan.pattern == Pattern::Shares {
            team.publish(Stage::Fetched, self.fetched);
        }
        true
    }

    /// # Safety
    /// The input is valid; `slot` is valid for a block and nobody reads it.
    unsafe fn put(&self, slot: *mut u8) {
        let block = self.put;
        match self.plan.pattern {
            Pattern::Shares => {
                let whole = self.plan.sent(0, block);
                for owner in (0..self.plan.members).filter(|owner| *owner != self.plan.me) {
                    let share = self.plan.share(owner, block);
                    // SAFETY: a share lies at the same place in the slot as in the block.
                    unsafe { self.copy_in(slot.add(share.start - whole.start), share) };
                }
            }
            Pattern::Pair => {
                let share = self.plan.share(1 - self.plan.me, block);
                // SAFETY: a share fits the slot.
                unsafe { self.copy_in(slot, share) };
            }
            Pattern::ReduceScatter | Pattern::Scatter => {
                for member in (0..self.plan.members).filter(|member| *member != self.plan.me) {
                    let piece = self.plan.sent(member, block);
                    // SAFETY: the slot has a place for each member's piece.
                    unsafe { self.copy_in(slot.add(self.plan.place_for(member)), piece) };
                }
            }
            // SAFETY: a block fits the slot.
            _ => unsafe { self.copy_in(slot, self.plan.sent(self.plan.me, block)) },
        }
    }

    /// # Safety
    /// All that the plan takes from has put the block; the output is valid; `result` is this
    /// member's out-slot where the pattern has one.
    unsafe fn take(&mut self, team: &Team, result: *mut u8) {
        let (block, me) = (self.taken, self.plan.me);
        match self.plan.pattern {
            Pattern::Nothing | Pattern::Chain => {}
            Pattern::Shares => {
                let whole = self.plan.sent(0, block);
                let share = self.plan.share(me, block);
                let place = share.start - whole.start;
                let wants_output = self.plan.root.is_none_or(|root| root == me);
                // SAFETY: the share has the same place in slots as in the block.
                unsafe { self.take_share(team, share, place, result.add(place), wants_output) };
            }
            Pattern::Pair => {
                let slot = team.put_to_return(1 - me, block);
                // SAFETY: the slot holds the other's part of the share.
                unsafe { self.take_and_return(self.plan.share(me, block), slot.as_ptr()) };
            }
            Pattern::Whole | Pattern::Scan => {
                let piece = self.plan.sent(me, block);
                let members = match self.plan.collective {
                    _ if self.plan.pattern == Pattern::Whole => 0..self.plan.members,
                    rlaunch_wire::Collective::Exscan => 0..me,
                    _ => 0..me + 1,
                };
                // SAFETY: as the caller vouches.
                unsafe { self.reduce(team, members, piece.clone(), piece, 0) };
            }
            Pattern::ReduceScatter => {
                let (from, to) = (self.plan.sent(me, block), self.plan.received(me, block));
                let place = self.plan.place_for(me);
                // SAFETY: as the caller vouches.
                unsafe { self.reduce(team, 0..self.plan.members, from, to, place) };
            }
            Pattern::Broadcast => {
                let root = self.plan.root.unwrap_or_default();
                let piece = self.plan.received(me, block);
                // SAFETY: the root has put the block; in place its own is there already.
                unsafe {
                    if me != root {
                        self.copy_out(piece.start, team.put_by(root, block), piece.len());
                    } else if self.input != self.output.cast_const() {
                        self.copy_out(piece.start, self.input.add(piece.start), piece.len());
                    }
                }
            }
            Pattern::Gather | Pattern::Scatter => {
                let place = self.plan.place_for(me);
                for member in 0..self.plan.members {
                    // SAFETY: as the caller vouches.
                    unsafe { self.take_piece(team, member, place) };
                }
            }
        }
    }

    /// # Safety
    /// As [`Exchange::take`].
    unsafe fn take_piece(&self, team: &Team, member: u32, place: usize) {
        let (block, me) = (self.taken, self.plan.me);
        let is_scattered = self.plan.root.is_some() && self.plan.pattern == Pattern::Scatter;
        let to = self
            .plan
            .received(if is_scattered { me } else { member }, block);
        if self.plan.takes_from(member, block) {
            // SAFETY: that member has put the piece; the output has its place.
            unsafe { self.copy_out(to.start, team.put_by(member, block).add(place), to.len()) };
        } else if member == me && self.plan.root.is_none_or(|root| root == me) {
            let from = self.plan.sent(me, block);
            // SAFETY: both lie in the user's buffers; in place they are the same.
            unsafe {
                let (from, length) = (self.input.add(from.start), from.len().min(to.len()));
                if from != self.output.add(to.start) {
                    self.copy_out(to.start, from, length);
                }
            }
        }
    }
}
