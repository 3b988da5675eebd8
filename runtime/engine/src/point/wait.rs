//! Waiting for point-to-point operations, and for messages that are only looked at.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rlaunch_transport::Progress;
use rlaunch_wire::Descriptor;
use smallvec::{SmallVec, smallvec};

use super::matching::Pattern;
use super::operation::{OperationId, Stage, Started};
use crate::Error;
use crate::core::Core;
use crate::failure::About;
use crate::group::GroupKey;
use crate::request::Status;
use crate::wait::{Awaited, Operation};

/// Waits until all of these have ended, then has their results.
#[derive(Debug)]
pub(crate) struct PointWait {
    call: Descriptor,
    operations: SmallVec<[Started; 1]>,
    statuses: SmallVec<[Status; 1]>,
    /// Those before it have ended, and their results are above.
    first_open: usize,
    idle_polls: u32,
    about: About,
    /// Where more than one status is wanted.
    answer: Option<Arc<Mutex<Vec<Status>>>>,
}

/// Waits until a message is there.
#[derive(Debug)]
pub(crate) struct ProbeWait {
    pub(crate) call: Descriptor,
    pub(crate) pattern: Pattern,
    pub(crate) found: Option<Status>,
}

/// Polls without progress between two looks at peers that are not part of the call.
const IDLE_POLLS_PER_DRAIN: u32 = 32;

impl PointWait {
    pub(super) fn new(call: Descriptor, operations: SmallVec<[Started; 1]>) -> Self {
        Self {
            call,
            operations,
            statuses: SmallVec::new(),
            first_open: 0,
            idle_polls: 0,
            about: About {
                bytes: call.count * call.dtype.size_bytes() as u64,
                ..About::default()
            },
            answer: None,
        }
    }

    /// With whom, for the flight recorder.
    pub(super) fn with(mut self, pattern: Pattern) -> Self {
        (self.about.peer, self.about.tag) = (pattern.source, pattern.tag);
        self
    }

    /// Leaves all statuses there in the end.
    pub(super) fn with_answer(self, answer: Arc<Mutex<Vec<Status>>>) -> Self {
        Self {
            answer: Some(answer),
            ..self
        }
    }

    /// Takes the results of those that have ended.
    fn is_over(&mut self, core: &mut Core) -> Result<bool, Error> {
        while let Some(started) = self.operations.get(self.first_open) {
            let status = match started {
                Started::Done(status) => *status,
                Started::Waits(id) => match core.take_point(*id) {
                    Some(result) => result?,
                    None => return Ok(false),
                },
            };
            self.statuses.push(status);
            self.first_open += 1;
        }
        if let Some(answer) = self.answer.take() {
            let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
            answer.clear();
            answer.extend_from_slice(&self.statuses);
        }
        Ok(true)
    }

    fn open(&self) -> impl Iterator<Item = OperationId> {
        let open = self.operations[self.first_open..].iter();
        open.filter_map(|started| match started {
            Started::Done(_) => None,
            Started::Waits(id) => Some(*id),
        })
    }
}

impl Operation for PointWait {
    fn call(&self) -> Descriptor {
        self.call
    }

    fn about(&self) -> About {
        self.about
    }

    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        if self.is_over(core)? {
            return Ok(Progress::Done);
        }
        self.idle_polls += 1;
        let mut needs_all = self.idle_polls.is_multiple_of(IDLE_POLLS_PER_DRAIN);
        // One peer is looked at once, however many operations wait for it.
        let mut last = None;
        for id in self.open() {
            match core.peer_of(id) {
                Some(peer) if last == Some(peer) => {}
                Some(peer) => {
                    last = Some(peer);
                    core.progress_pair(peer, &self.call)?;
                }
                None => needs_all = true,
            }
        }
        if needs_all {
            core.progress_pairs(&self.call)?;
        }
        Ok(if self.is_over(core)? {
            Progress::Done
        } else {
            Progress::Idle
        })
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        let mut awaited: Vec<Awaited> = Vec::new();
        for id in self.open() {
            core.awaited_by(id, &mut awaited);
        }
        awaited.sort_unstable_by_key(|awaited| (awaited.rank, !awaited.to_send));
        awaited.dedup_by_key(|awaited| awaited.rank);
        awaited
    }

    fn end(&mut self, core: &mut Core) {
        for id in self.open() {
            core.cancel_point(id, &Error::Finalized);
            core.take_point(id);
        }
    }

    fn status(&self) -> Status {
        self.statuses.first().copied().unwrap_or_default()
    }
}

impl Operation for ProbeWait {
    fn call(&self) -> Descriptor {
        self.call
    }

    fn status(&self) -> Status {
        self.found.unwrap_or_default()
    }

    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        match self.pattern.source {
            Some(source) => core.progress_pair(source, &self.call)?,
            None => core.progress_pairs(&self.call)?,
        }
        self.found = core.probe(self.call.communicator, self.pattern);
        Ok(match self.found {
            Some(_) => Progress::Done,
            None => Progress::Idle,
        })
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        core.sources(self.call.communicator, self.pattern)
    }
}

impl Core {
    /// The oldest message that matches, if it has arrived.
    pub(crate) fn probe(&mut self, communicator: u32, pattern: Pattern) -> Option<Status> {
        let (envelope, message) = self.points.context(communicator).look(pattern)?;
        let (source, header) = (envelope.source, *message.header());
        Some(self.status(source, &header))
    }

    /// Moves what can be moved between this rank and all others.
    pub(crate) fn progress_pairs(&mut self, call: &Descriptor) -> Result<(), Error> {
        for rank in 0..self.size() {
            // Also of who has left: what it sent before is still to be taken.
            self.progress_pair(rank, call)?;
        }
        Ok(())
    }

    /// Moves what was started, if anything was; whether anything has ended.
    pub(crate) fn drive_points(&mut self) -> bool {
        if !self.failed_now.is_empty() {
            for key in std::mem::take(&mut self.failed_now) {
                let failed = self
                    .groups
                    .get(key)
                    .map(|group| (group.id(), group.poison.clone()));
                if let Some((id, Some(error))) = failed {
                    self.close_points(id, &error);
                }
            }
        }
        let before = self.points.operations.started();
        if before == 0 {
            return false;
        }
        // What fails is noted with the peer, for all its communicators.
        let _ = self.progress_pairs(&Descriptor::NONE);
        self.points.operations.started() < before
    }

    pub(crate) fn has_started_points(&self) -> bool {
        self.points.operations.started() > 0
    }

    /// Started operations that wait, for the sleep of whoever drives.
    pub(crate) fn awaited_by_points(&self, awaited: &mut Vec<Awaited>) {
        for id in self.points.operations.all_started() {
            self.awaited_by(id, awaited);
        }
    }

    /// Per started operation its communicator and the ranks that it waits for.
    pub(crate) fn started_waits(&self) -> Vec<(GroupKey, Vec<Awaited>)> {
        let started = self.points.operations.all_started().into_iter();
        started
            .filter_map(|id| {
                let call = self.points.operations.look(id)?.call;
                let mut awaited = Vec::new();
                self.awaited_by(id, &mut awaited);
                Some((self.groups.find(call.communicator)?, awaited))
            })
            .collect()
    }

    /// Fails the communicators whose started operations have waited too long.
    pub(crate) fn end_overdue_points(&mut self, now: Instant) {
        for id in self.points.operations.all_started() {
            let Some(operation) = self.points.operations.look(id) else {
                continue;
            };
            let (call, begun, timeout) = (operation.call, operation.begun, operation.timeout);
            let (Some(key), Some(begun)) = (self.groups.find(call.communicator), begun) else {
                continue;
            };
            if now - begun < self.timeout_of(key, timeout) {
                continue;
            }
            let wait = PointWait::new(call, smallvec![Started::Waits(id)]);
            let error = self.timed_out(key, &wait, timeout, now - begun);
            self.fail(key, error);
        }
    }

    /// The one peer that the operation waits for.
    fn peer_of(&mut self, id: OperationId) -> Option<u32> {
        let operation = self.points.operations.find(id)?;
        match operation.stage {
            Stage::Posted => operation.pattern.source,
            Stage::Receiving(peer) | Stage::Queued(peer) | Stage::Asking(peer) => Some(peer),
            Stage::Own | Stage::Ended(_) => Some(self.rank),
        }
    }

    fn awaited_by(&self, id: OperationId, awaited: &mut Vec<Awaited>) {
        let Some(operation) = self.points.operations.look(id) else {
            return;
        };
        let one = |rank, to_send| vec![Awaited { rank, to_send }];
        awaited.extend(match operation.stage {
            Stage::Posted => self.sources(operation.call.communicator, operation.pattern),
            Stage::Receiving(peer) | Stage::Asking(peer) => one(peer, false),
            Stage::Queued(peer) => one(peer, true),
            Stage::Own | Stage::Ended(_) => Vec::new(),
        });
    }

    /// Who may send what the pattern takes. Where any rank may, those that have left don't count,
    /// unless all have.
    fn sources(&self, communicator: u32, pattern: Pattern) -> Vec<Awaited> {
        let awaits = |rank| Awaited {
            rank,
            to_send: false,
        };
        if let Some(source) = pattern.source {
            return if source == self.rank {
                Vec::new()
            } else {
                vec![awaits(source)]
            };
        }
        let others = self.members(communicator).into_iter();
        let others: Vec<u32> = others.filter(|rank| *rank != self.rank).collect();
        let is_here = |rank: &&u32| !self.peers[**rank as usize].has_left;
        if others.iter().any(|rank| is_here(&rank)) {
            return others.iter().filter(is_here).copied().map(awaits).collect();
        }
        others.into_iter().map(awaits).collect()
    }
}
