//! Waiting for point-to-point operations, and for messages that are only looked at.

use rlaunch_transport::Progress;
use rlaunch_wire::Descriptor;

use super::Kept;
use super::matching::Pattern;
use super::operation::{OperationId, Stage};
use crate::Error;
use crate::core::Core;
use crate::request::Status;
use crate::wait::{Awaited, Operation};

/// Waits until all of these have ended.
#[derive(Debug)]
pub(crate) struct PointWait<'a> {
    pub(crate) call: Descriptor,
    pub(crate) operations: &'a [OperationId],
    /// Those before it have ended.
    first_open: usize,
    idle_polls: u32,
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

impl<'a> PointWait<'a> {
    pub(crate) fn new(call: Descriptor, operations: &'a [OperationId]) -> Self {
        Self {
            call,
            operations,
            first_open: 0,
            idle_polls: 0,
        }
    }

    fn is_over(&mut self, core: &mut Core) -> bool {
        while let Some(id) = self.operations.get(self.first_open) {
            if !core.has_ended(*id) {
                return false;
            }
            self.first_open += 1;
        }
        true
    }
}

impl Operation for PointWait<'_> {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        if self.is_over(core) {
            return Ok(Progress::Done);
        }
        self.idle_polls += 1;
        let mut needs_all = self.idle_polls.is_multiple_of(IDLE_POLLS_PER_DRAIN);
        // One peer is looked at once, however many operations wait for it.
        let mut last = None;
        for id in &self.operations[self.first_open..] {
            match core.peer_of(*id) {
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
        if self.is_over(core) {
            return Ok(Progress::Done);
        }
        Ok(Progress::Idle)
    }

    fn awaited(&self, core: &Core) -> Vec<Awaited> {
        let mut awaited: Vec<Awaited> = Vec::new();
        for id in &self.operations[self.first_open..] {
            core.awaited_by(*id, &mut awaited);
        }
        awaited.sort_unstable_by_key(|awaited| (awaited.rank, !awaited.to_send));
        awaited.dedup_by_key(|awaited| awaited.rank);
        awaited
    }
}

impl Operation for ProbeWait {
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
        let source = envelope.source;
        let header = match message {
            Kept::Eager(header, _)
            | Kept::Request(header)
            | Kept::OwnCopy(header, _)
            | Kept::Own(header, _) => *header,
        };
        Some(self.status(source, &header))
    }

    /// Moves what can be moved between this rank and all others.
    pub(crate) fn progress_pairs(&mut self, call: &Descriptor) -> Result<(), Error> {
        for rank in 0..self.size() {
            if !self.peers[rank as usize].has_left {
                self.progress_pair(rank, call)?;
            }
        }
        Ok(())
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
