//! Shrinking: the survivors' [`Agreement`] run over connections, and the communicator that comes of
//! it.
//!
//! It does not run on the failed communicator, on which nothing can run, but on one of this rank
//! alone that lives as long as the call. Ballots of ranks that shrink before this one are kept. A
//! rank that does not shrink within [`REVOKE_AFTER`] of the first is told to give the communicator up
//! ([`Error::Revoked`]): it has not seen the failure and would wait for ever.
//!
//! A rank that says nothing is given up (it was stopped, or its host hangs), and told so if it comes
//! back. How long it is waited for has margins ([`Patience`]): a live rank may come out of a wait that
//! lasts the communicator's whole timeout, and one that has spoken may itself wait for another that is
//! silent. Whom one rank gives up, all do, so that no two wait for it one after the other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rlaunch_transport::{Header, Kind, Progress};
use rlaunch_wire::{Collective, DType, Descriptor};

use super::agreement::{Agreement, Ballot, Outcome, RankSet};
use crate::core::{Cause, Core, Queued};
use crate::engine::Engine;
use crate::group::GroupKey;
use crate::wait::{Awaited, Operation};
use crate::{Communicator, Error};

/// Attempts to go on whose members have died meanwhile.
const SHRINKS_MAX: usize = 16;
/// What a ballot of the largest world has.
pub(crate) const BALLOT_BYTES_MAX: u64 = 16 + rlaunch_wire::limits::WORLD_MAX as u64 / 8;
/// Calls that the others have completed end by themselves in this time.
const REVOKE_AFTER: Duration = Duration::from_millis(200);
/// What was said may take this long to leave.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// Why a rank was given up, as its peers tell it.
pub(crate) const NOT_ANSWERED: &str = "it did not answer the others, which shrink the communicator";
/// Ballots kept for calls that have not begun here; each rank sends a few.
const BALLOTS_MAX: usize = 1 << 16;

/// Ballots that have arrived and were not counted yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ballots {
    kept: VecDeque<Arrived>,
    /// Who shrinks what since when, where this rank does not yet.
    revoked: Vec<(u32, u32, Instant)>,
}

#[derive(Debug)]
struct Arrived {
    communicator: u32,
    shrink: u64,
    /// Of the world.
    from: u32,
    bytes: Vec<u8>,
}

/// One rank's part in a shrink.
struct ShrinkOperation {
    call: Descriptor,
    ranks: Arc<[u32]>,
    agreement: Agreement,
    patience: Patience,
    /// When the agreement was reached.
    decided: Option<Instant>,
    /// The outcome, for the caller.
    answer: Arc<Mutex<Option<Outcome>>>,
}

/// How long the others are waited for.
struct Patience {
    longest: Duration,
    /// When each was last heard, if it was.
    heard: Vec<Option<Instant>>,
    round: u32,
    round_begun: Instant,
}

impl Patience {
    fn new(longest: Duration, size: usize) -> Self {
        Self {
            longest,
            heard: vec![None; size],
            round: 0,
            round_begun: Instant::now(),
        }
    }

    fn begin_round(&mut self, round: u32) {
        if round != self.round {
            (self.round, self.round_begun) = (round, Instant::now());
        }
    }

    /// Whether a member that is awaited in this round has been silent for too long.
    fn is_over(&self, member: u32, now: Instant) -> bool {
        let heard = self.heard[member as usize];
        let since = heard.map_or(self.round_begun, |heard| heard.max(self.round_begun));
        let longest = match heard {
            // It may be in a wait that ends by the same timeout.
            None => self.longest + self.longest / 4 + Duration::from_millis(500),
            // It may wait for one that has said nothing, which it began to do later than this rank.
            Some(_) => 2 * self.longest + Duration::from_secs(1),
        };
        now.saturating_duration_since(since) >= longest
    }

    /// What the driver is to allow between two moves: more than any of the above.
    fn bound(longest: Duration) -> Duration {
        3 * longest + Duration::from_secs(5)
    }
}

impl Ballots {
    fn take(&mut self, communicator: u32, shrink: u64) -> Option<Arrived> {
        let is_for =
            |arrived: &Arrived| arrived.communicator == communicator && arrived.shrink == shrink;
        let at = self.kept.iter().position(is_for)?;
        self.kept.remove(at)
    }

    /// The communicator is gone.
    pub(crate) fn forget(&mut self, communicator: u32) {
        self.kept
            .retain(|arrived| arrived.communicator != communicator);
        self.revoked.retain(|(id, ..)| *id != communicator);
    }
}

impl Communicator {
    /// A communicator of the ranks that are alive, after a failure. Called by all of them; it
    /// returns when they have agreed on who that is. This one is of no use afterwards.
    ///
    /// A rank that dies at the end of the call may still be a member; then the new communicator
    /// fails at its first call, and is to be shrunk in turn.
    pub fn shrink(&self) -> Result<Self, Error> {
        // What comes of the first agreement has no shared memory of its own yet. That takes calls of
        // all members, which may die meanwhile: a second agreement tells whether all have it.
        let (mut bare, _) = self.agree(false)?;
        for _ in 0..SHRINKS_MAX {
            let whole = bare.copy_by(Collective::Shrink);
            let (next, has_trouble) = bare.agree(whole.is_err())?;
            match whole {
                Ok(whole) if !has_trouble && next.size() == bare.size() => {
                    self.hand_down_timeout(&whole)?;
                    return Ok(whole);
                }
                _ => bare = next,
            }
        }
        Err(bare.error().unwrap_or(Error::Finalized))
    }

    fn hand_down_timeout(&self, to: &Self) -> Result<(), Error> {
        let (from, to) = (self.key(), to.key());
        self.engine().with(move |core| {
            core.group_mut(to).timeout = core.group(from).timeout;
            Ok(())
        })
    }

    /// Agrees with all that live on who that is, and on whether any of them has trouble.
    fn agree(&self, has_trouble: bool) -> Result<(Self, bool), Error> {
        let (engine, key) = (self.engine().clone(), self.key());
        let answer = Arc::new(Mutex::new(None));
        let to = answer.clone();
        let (alone, longest) =
            engine.with(move |core| Ok((core.begin_alone()?, core.timeout_of(key, None))))?;
        let begin = move |core: &mut Core| Ok(core.begin_shrink(key, has_trouble, to));
        let result = engine.run_operation(alone, Some(Patience::bound(longest)), begin);
        engine.with(move |core| {
            core.free(alone);
            Ok(())
        })?;
        result?;
        let outcome = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let of = engine.clone();
        engine.with(move |core| core.end_shrink(key, outcome, of))
    }
}

impl Core {
    /// A communicator of this rank alone, for an operation that must not fail with another's.
    fn begin_alone(&mut self) -> Result<GroupKey, Error> {
        let id = self.groups.reserve_id(self.rank);
        let group = self.make_group(id, vec![self.rank], None, vec![0], Collective::Shrink)?;
        Ok(self.groups.insert(group))
    }

    fn begin_shrink(
        &mut self,
        key: GroupKey,
        has_trouble: bool,
        answer: Arc<Mutex<Option<Outcome>>>,
    ) -> ShrinkOperation {
        let longest = self.timeout_of(key, None);
        let next_id = self.groups.reserve_id(self.rank);
        let group = self.group_mut(key);
        let call = Descriptor {
            communicator: group.id(),
            sequence: group.shrinks,
            collective: Collective::Shrink,
            dtype: DType::I32,
            op: None,
            root: 0,
            digest: 0,
            count: 0,
        };
        group.shrinks += 1;
        let (ranks, me) = (group.ranks.clone(), group.me);
        let size = ranks.len() as u32;
        let mut failed = RankSet::new(size);
        for (member, rank) in (0u32..).zip(ranks.iter()) {
            if member != me && self.is_out(*rank) {
                failed.insert(member);
            }
        }
        let by = self.identity(self.rank);
        let (communicator, during) = (call.communicator, "shrink".into());
        self.poison(
            key,
            Error::Revoked {
                by,
                communicator,
                during,
            },
        );
        ShrinkOperation {
            call,
            ranks,
            agreement: Agreement::new(me, size, failed, next_id, has_trouble),
            patience: Patience::new(longest, size as usize),
            decided: None,
            answer,
        }
    }

    fn end_shrink(
        &mut self,
        key: GroupKey,
        outcome: Option<Outcome>,
        engine: Arc<Engine>,
    ) -> Result<(Communicator, bool), Error> {
        let ranks = self.group(key).ranks.clone();
        match outcome {
            None => Err(Error::Finalized),
            Some(Outcome::Excluded { by }) => Err(Error::Excluded {
                by: self.identity(ranks[by as usize]),
            }),
            Some(Outcome::Decided {
                survivors,
                next_id,
                has_trouble,
            }) => {
                let survivors = survivors.iter().map(|member| ranks[*member as usize]);
                let survivors: Vec<u32> = survivors.collect();
                let places = vec![0; survivors.len()];
                let mut group =
                    self.make_group(next_id, survivors, None, places, Collective::Shrink)?;
                let replaced = self.group_mut(key);
                replaced.is_replaced = true;
                group.timeout = replaced.timeout;
                let key = self.groups.insert(group);
                let made = Communicator::new(engine, key, self.group(key));
                Ok((made, has_trouble))
            }
        }
    }

    /// Ends what still waits in communicators that others shrink.
    pub(crate) fn end_revoked(&mut self, now: Instant) {
        let revoked = std::mem::take(&mut self.ballots.revoked);
        for (communicator, rank, since) in revoked {
            let Some(key) = self.groups.find(communicator) else {
                continue;
            };
            if now.saturating_duration_since(since) < REVOKE_AFTER {
                self.ballots.revoked.push((communicator, rank, since));
                continue;
            }
            let error = Error::Revoked {
                by: self.identity(rank),
                communicator,
                during: self.group(key).during(),
            };
            self.poison(key, error);
        }
    }

    fn is_out(&self, rank: u32) -> bool {
        let peer = &self.peers[rank as usize];
        peer.failure.is_some() || peer.has_left || peer.is_leaving
    }

    /// A ballot is here, perhaps before this rank shrinks.
    pub(crate) fn take_ballot(&mut self, rank: u32, header: &Header, bytes: Vec<u8>) {
        let communicator = header.descriptor.communicator;
        let is_gone = self.groups.find(communicator).is_none();
        if is_gone && self.groups.is_over(communicator) {
            return;
        }
        if let Some(key) = self.groups.find(communicator)
            && self.group(key).poison.is_none()
        {
            let revoked = &mut self.ballots.revoked;
            if !revoked.iter().any(|(id, ..)| *id == communicator) {
                revoked.push((communicator, rank, Instant::now()));
            }
        }
        if self.ballots.kept.len() == BALLOTS_MAX {
            self.ballots.kept.pop_front();
        }
        self.ballots.kept.push_back(Arrived {
            communicator,
            shrink: header.descriptor.sequence,
            from: rank,
            bytes,
        });
    }
}

impl ShrinkOperation {
    fn member(&self, rank: u32) -> Option<u32> {
        let at = self.ranks.iter().position(|other| *other == rank)?;
        Some(at as u32)
    }

    fn others(&self, core: &Core) -> Vec<u32> {
        let others = self.ranks.iter().copied();
        others.filter(|rank| *rank != core.rank).collect()
    }

    /// Takes what has come; who is out by then said nothing more. Whether anything has.
    fn listen(&mut self, core: &mut Core) -> bool {
        let mut has_come = false;
        for rank in self.others(core) {
            let was_out = core.is_out(rank);
            // What fails is noted with the peer.
            let _ = core.progress_pair(rank, &self.call);
            while let Some(arrived) = core
                .ballots
                .take(self.call.communicator, self.call.sequence)
            {
                let ballot = Ballot::decode(&arrived.bytes, self.ranks.len() as u32);
                if let (Some(member), Some(ballot)) = (self.member(arrived.from), ballot) {
                    self.patience.heard[member as usize] = Some(Instant::now());
                    self.agreement.handle_message(member, ballot);
                    has_come = true;
                }
            }
            if was_out && let Some(member) = self.member(rank) {
                self.agreement.handle_failed(member);
            }
        }
        has_come
    }

    fn give_up_silent(&mut self, core: &mut Core) {
        let now = Instant::now();
        self.patience.begin_round(self.agreement.round());
        for member in self.agreement.awaited() {
            if self.patience.is_over(member, now) {
                let rank = self.ranks[member as usize];
                core.fail_peer(rank, &Cause::Failed(NOT_ANSWERED.into()));
                self.agreement.handle_failed(member);
            }
        }
    }

    fn tell(&self, outcome: Outcome) -> Progress {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        *answer = Some(outcome);
        Progress::Done
    }

    fn speak(&mut self, core: &mut Core) {
        while let Some((member, ballot)) = self.agreement.poll_send() {
            let rank = self.ranks[member as usize];
            let header = Header {
                descriptor: self.call,
                length_bytes: 0,
                tag: 0,
                kind: Kind::Ballot,
            };
            let queued = Queued::with_body(header, ballot.encode().into());
            core.peers[rank as usize].outbox.push_back(queued);
        }
        for rank in self.others(core) {
            if core.peers[rank as usize].failure.is_none() {
                // What fails is noted with the peer.
                let _ = core.flush_outbox(rank, &self.call);
            }
        }
    }

    /// All that this rank had to say has left for those that live.
    fn is_said(&self, core: &Core) -> bool {
        let mut others = self.others(core).into_iter();
        others.all(|rank| core.is_out(rank) || core.peers[rank as usize].outbox.is_empty())
    }
}

impl Operation for ShrinkOperation {
    fn call(&self) -> Descriptor {
        self.call
    }

    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        let has_come = self.listen(core);
        let by = core.ending.excluded_by.and_then(|rank| self.member(rank));
        if let Some(by) = by {
            return Ok(self.tell(Outcome::Excluded { by }));
        }
        self.give_up_silent(core);
        self.speak(core);
        let Some(outcome) = self.agreement.outcome().cloned() else {
            return Ok(if has_come {
                Progress::Moved
            } else {
                Progress::Idle
            });
        };
        let decided = *self.decided.get_or_insert_with(Instant::now);
        if decided.elapsed() < FLUSH_MAX && !self.is_said(core) {
            return Ok(Progress::Idle);
        }
        Ok(self.tell(outcome))
    }

    fn awaited(&self, _core: &Core) -> Vec<Awaited> {
        let awaited = self.agreement.awaited().into_iter();
        let awaited = awaited.map(|member| Awaited {
            rank: self.ranks[member as usize],
            to_send: false,
        });
        awaited.collect()
    }
}
