//! The lock around a world's state, and who drives it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::completion::Completion;
use crate::connect::Place;
use crate::core::Core;
use crate::request::Status;
use crate::{Call, Error};

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

    pub(crate) fn test(&self, _completion: &Completion) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn wait(
        &self,
        _completion: &Completion,
        _longest: Option<Duration>,
    ) -> Result<(), Error> {
        Ok(())
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
