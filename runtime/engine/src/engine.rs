//! The lock around a world's state, and who drives it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::completion::Completion;
use crate::connect::Place;
use crate::core::Core;
use crate::request::Status;
use crate::wait::{Awaited, Operation};
use crate::{Call, Collective, DType, Descriptor, Error};
use rlaunch_transport::Progress;

#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) place: Place,
    /// `None` once finalized.
    core: Mutex<Option<Core>>,
}

impl Engine {
    pub(crate) fn new(place: Place, core: Core) -> Self {
        Self {
            place,
            core: Mutex::new(Some(core)),
        }
    }

    /// # Safety
    /// As [`crate::Communicator::run`].
    pub(crate) unsafe fn run(&self, call: &Call) -> Result<Status, Error> {
        // SAFETY: as the caller vouches.
        self.with(|core| unsafe { core.call(call) })
            .map(|()| Status::default())
    }

    pub(crate) fn test(&self, completion: &Completion) -> Result<(), Error> {
        if completion.is_done() {
            return Ok(());
        }
        self.with(|core| core.progress_pairs(&waiting_call()))
    }

    pub(crate) fn wait(
        &self,
        completion: &Completion,
        longest: Option<Duration>,
    ) -> Result<(), Error> {
        let deadline = longest.map(|longest| Instant::now() + longest);
        let mut wait = CompletionWait {
            completion,
            deadline,
        };
        self.with(|core| core.run(&waiting_call(), &mut wait))
    }

    pub(crate) fn leave(&self) -> Result<(), Error> {
        let core = self.lock().take();
        core.map_or(Ok(()), Core::leave)
    }

    pub(crate) fn with<R>(
        &self,
        call: impl FnOnce(&mut Core) -> Result<R, Error>,
    ) -> Result<R, Error> {
        call(self.lock().as_mut().ok_or(Error::Finalized)?)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Core>> {
        // A panic inside a call is a bug; the state it leaves is still sound, at worst unusable.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves all messages until an operation is complete.
struct CompletionWait<'a> {
    completion: &'a Completion,
    deadline: Option<Instant>,
}

fn waiting_call() -> Descriptor {
    Descriptor {
        communicator: 0,
        sequence: 0,
        collective: Collective::Recv,
        dtype: DType::U8,
        op: None,
        root: 0,
        count: 0,
    }
}

impl Operation for CompletionWait<'_> {
    fn poll(&mut self, core: &mut Core) -> Result<Progress, Error> {
        if self.completion.is_done() || self.deadline.is_some_and(|at| at <= Instant::now()) {
            return Ok(Progress::Done);
        }
        core.progress_pairs(&waiting_call())?;
        Ok(Progress::Idle)
    }

    fn awaited(&self, _core: &Core) -> Vec<Awaited> {
        Vec::new()
    }
}
