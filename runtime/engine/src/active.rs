//! Operations under way besides the one that the driving thread runs for itself, and those that wait
//! for their turn.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_transport::Progress;

use crate::Error;
use crate::collective::CollectiveOperation;
use crate::completion::Completion;
use crate::core::Core;
use crate::error::Bound;
use crate::failure::Slot;
use crate::group::GroupKey;
use crate::job::{Job, Work};
use crate::wait::{Awaited, Operation};

pub(crate) struct Active {
    pub(crate) key: GroupKey,
    /// Absent while it is polled.
    operation: Option<Box<dyn Operation>>,
    completion: Arc<Completion>,
    /// When it last moved.
    moved: Instant,
    timeout: Option<Duration>,
    is_collective: bool,
    slot: Option<Slot>,
}

impl fmt::Debug for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Active")
            .field("key", &self.key)
            .field("moved", &self.moved)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// Begins what was asked for, or puts it in line behind the collectives of its communicator.
    pub(crate) fn begin_job(&mut self, job: Job) {
        let Job {
            key,
            work,
            timeout,
            completion,
        } = job;
        match work {
            Work::Collective(call) => {
                let Some(group) = self.groups.get_mut(key) else {
                    completion.complete(Err(Error::Finalized));
                    return;
                };
                let work = Work::Collective(call);
                group.queue.push_back(Job {
                    key,
                    work,
                    timeout,
                    completion,
                });
                self.begin_next(key);
            }
            Work::Other(begin) => {
                let begun = self.check(key).and_then(|()| begin(self));
                self.activate(key, begun, timeout, completion, false);
            }
        }
    }

    /// Begins the collective that is next in line, unless one is under way.
    pub(crate) fn begin_next(&mut self, key: GroupKey) {
        while let Some(group) = self.groups.get_mut(key)
            && !group.is_busy
            && let Some(job) = group.queue.pop_front()
        {
            let Work::Collective(call) = job.work else {
                continue;
            };
            // SAFETY: whoever started the call vouched for its buffers until the request is
            // complete, which is when the operation has ended.
            let begun = unsafe { CollectiveOperation::begin(self, key, &call) };
            let begun = begun.map(|operation| Box::new(operation) as Box<dyn Operation>);
            self.activate(key, begun, job.timeout, job.completion, true);
        }
    }

    fn activate(
        &mut self,
        key: GroupKey,
        begun: Result<Box<dyn Operation>, Error>,
        timeout: Option<Duration>,
        completion: Arc<Completion>,
        is_collective: bool,
    ) {
        let operation = match begun {
            Ok(operation) => operation,
            Err(error) => {
                let error = self.failure_of(key, error);
                completion.complete(Err(error));
                return;
            }
        };
        let slot = self.record_begin(key, operation.as_ref());
        self.record_wait(key, slot);
        self.active.push(Active {
            slot,
            key,
            operation: Some(operation),
            completion,
            moved: Instant::now(),
            timeout,
            is_collective,
        });
    }

    /// Polls every operation once; whether any moved.
    pub(crate) fn drive(&mut self) -> bool {
        let mut has_moved = false;
        let mut at = 0;
        while at < self.active.len() {
            let key = self.active[at].key;
            self.note_abort(key);
            let poison = self.groups.get(key).map(|group| group.poison.clone());
            let Some(mut operation) = self.active[at].operation.take() else {
                at += 1;
                continue;
            };
            let result = match poison {
                None => Err(Error::Finalized),
                Some(Some(error)) => Err(error),
                Some(None) => operation.poll(self),
            };
            match result {
                Ok(Progress::Done) => self.end(at, operation, None),
                Ok(progress) => {
                    if progress == Progress::Moved {
                        has_moved = true;
                        self.active[at].moved = Instant::now();
                    }
                    self.active[at].operation = Some(operation);
                    at += 1;
                    continue;
                }
                Err(error) => self.end(at, operation, Some(error)),
            }
            has_moved = true;
        }
        has_moved
    }

    fn end(&mut self, at: usize, mut operation: Box<dyn Operation>, error: Option<Error>) {
        operation.end(self);
        let active = self.active.swap_remove(at);
        self.record_end(active.key, active.slot, error.is_none(), true);
        let result = match error {
            None => Ok(operation.status()),
            Some(error) => Err(self.failure_of(active.key, error)),
        };
        drop(operation);
        if active.is_collective {
            if let Some(group) = self.groups.get_mut(active.key) {
                group.is_busy = false;
            }
            self.begin_next(active.key);
        }
        active.completion.complete(result);
    }

    /// An error that a call meets fails its communicator, unless it is the caller's alone.
    pub(crate) fn failure_of(&mut self, key: GroupKey, error: Error) -> Error {
        match error {
            Error::Argument(_) | Error::Finalized | Error::Cancelled => error,
            error => {
                self.ending.has_told = true;
                let error = self.fail(key, error);
                self.note_told(key);
                error
            }
        }
    }

    /// The communicator's error, if it has one, is returned to the program.
    pub(crate) fn note_told(&mut self, key: GroupKey) {
        if let Some(group) = self.groups.get_mut(key) {
            group.is_told |= group.poison.is_some();
        }
    }

    /// Nothing is under way that somebody would have to drive.
    pub(crate) fn is_quiet(&self) -> bool {
        self.active.is_empty() && !self.has_started_points()
    }

    /// Fails the communicators whose operations have waited too long.
    pub(crate) fn end_overdue(&mut self, now: Instant) {
        for at in 0..self.active.len() {
            let active = &self.active[at];
            let (key, waited, timeout) = (active.key, now - active.moved, active.timeout);
            let longest = self.timeout_of(key, timeout);
            if waited < longest {
                continue;
            }
            if let Some(operation) = &active.operation {
                let error = self.timed_out(key, operation.as_ref(), timeout, waited);
                self.fail(key, error);
            }
        }
    }

    /// When the one that has not moved for longest did.
    pub(crate) fn oldest_move(&self) -> Option<Instant> {
        self.active.iter().map(|active| active.moved).min()
    }

    /// The ranks for which all these operations wait.
    pub(crate) fn awaited_by_active(&self, awaited: &mut Vec<Awaited>) {
        for active in &self.active {
            if let Some(operation) = &active.operation {
                awaited.extend(operation.awaited(self));
            }
        }
    }

    /// Per communicator, the ranks for which its operations wait.
    pub(crate) fn active_waits(&self) -> Vec<(GroupKey, Vec<Awaited>)> {
        let open = self.active.iter();
        open.filter_map(|active| Some((active.key, active.operation.as_ref()?.awaited(self))))
            .collect()
    }

    pub(crate) fn timeout_of(&self, key: GroupKey, of_call: Option<Duration>) -> Duration {
        self.bound_of(key, of_call).0
    }

    /// How long a call may wait, and what says so.
    fn bound_of(&self, key: GroupKey, of_call: Option<Duration>) -> (Duration, Bound) {
        let of_group = self.groups.get(key).and_then(|group| group.timeout);
        match (of_call, of_group) {
            (Some(longest), _) => (longest, Bound::Call),
            (None, Some(longest)) => (longest, Bound::Communicator),
            (None, None) => (self.timeout, Bound::Job),
        }
    }

    pub(crate) fn timed_out(
        &self,
        key: GroupKey,
        operation: &dyn Operation,
        of_call: Option<Duration>,
        waited: Duration,
    ) -> Error {
        let awaited = operation.awaited(self);
        let awaited = awaited.iter().map(|awaited| awaited.rank).collect();
        let call = operation.call();
        let missing = self.missing(&call, awaited, waited);
        let obstacle = |rank: &u32| self.peers[*rank as usize].stream.obstacle(*rank);
        let obstacles: String = missing.iter().map(obstacle).collect();
        let during = format!("{call}{obstacles}");
        let others = self.others(key, &missing);
        let missing = missing.into_iter().map(|rank| self.identity(rank));
        Error::Timeout {
            by: self.identity(self.rank),
            during,
            waited,
            missing: missing.collect(),
            others,
            bound: self.bound_of(key, of_call).1,
        }
    }

    /// The communicator's last handle is gone; nothing of it is under way.
    pub(crate) fn free(&mut self, key: GroupKey) {
        if self.groups.get(key).is_some() {
            self.settle(key);
        }
        let Some(group) = self.groups.remove(key) else {
            return;
        };
        let untold = group.untold_difference(self.rank).cloned();
        self.ending.late = self.ending.late.take().or(untold);
        self.forget_aside(group.id());
        self.ballots.forget(group.id());
        self.close_points(group.id(), &Error::Finalized);
        for job in group.queue {
            job.completion.complete(Err(Error::Finalized));
        }
        for at in (0..self.active.len()).rev() {
            if self.active[at].key == key
                && let Some(operation) = self.active[at].operation.take()
            {
                self.end(at, operation, Some(Error::Finalized));
            }
        }
    }

    /// This rank leaves: nothing goes on.
    pub(crate) fn end_all(&mut self, error: &Error) {
        for at in (0..self.active.len()).rev() {
            if let Some(mut operation) = self.active[at].operation.take() {
                operation.end(self);
            }
            let active = self.active.swap_remove(at);
            self.record_end(active.key, active.slot, false, true);
            active.completion.complete(Err(error.clone()));
        }
        for key in self.groups.keys() {
            let queue = std::mem::take(&mut self.group_mut(key).queue);
            for job in queue {
                job.completion.complete(Err(error.clone()));
            }
        }
    }
}
