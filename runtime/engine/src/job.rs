//! What one thread asks of whoever drives the engine.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::completion::Completion;
use crate::core::Core;
use crate::group::GroupKey;
use crate::wait::Operation;
use crate::{Call, Error};

/// Makes an operation once the engine's state is at hand.
pub(crate) type Begin = Box<dyn FnOnce(&mut Core) -> Result<Box<dyn Operation>, Error> + Send>;

/// A call that is to be begun in its turn.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: GroupKey,
    pub(crate) work: Work,
    pub(crate) timeout: Option<Duration>,
    pub(crate) completion: Arc<Completion>,
}

pub(crate) enum Work {
    /// In its turn among the collectives of its communicator.
    Collective(Call),
    /// At once.
    Other(Begin),
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collective(call) => f.debug_tuple("Collective").field(call).finish(),
            Self::Other(_) => f.debug_tuple("Other").finish(),
        }
    }
}

/// What is handed to the engine from outside of its lock.
pub(crate) enum Submission {
    Job(Job),
    Change(Box<dyn FnOnce(&mut Core) + Send>),
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => f.debug_tuple("Job").field(job).finish(),
            Self::Change(_) => f.debug_tuple("Change").finish(),
        }
    }
}
