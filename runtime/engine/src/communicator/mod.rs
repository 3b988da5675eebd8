//! [`Communicator`]: the handle through which everything is called.

mod create;
mod owned;
mod typed;

pub use owned::Buffer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rlaunch_schedule::Shape;

use crate::completion::Completion;
use crate::engine::Engine;
use crate::failure::Shared;
use crate::group::{Group, GroupKey};
use crate::job::{Job, Work};
use crate::request::{Persistent, Request};
use crate::{Call, Error};

/// A group of ranks that call together, seen by one of them. Cheap to clone; all clones are the
/// same communicator, which is freed when the last is dropped.
///
/// Calls on one communicator are executed in the order in which they were made; communicators
/// don't wait for each other. Ranks are counted within the communicator.
#[derive(Clone)]
pub struct Communicator {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Engine>,
    key: GroupKey,
    shared: Arc<Shared>,
    rank: u32,
    ranks: Arc<[u32]>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.free(self.key);
    }
}

impl Communicator {
    /// The handle of a group that the engine has.
    pub(crate) fn new(engine: Arc<Engine>, key: GroupKey, group: &Group) -> Self {
        Self {
            inner: Arc::new(Inner {
                engine,
                key,
                shared: group.shared.clone(),
                rank: group.me,
                ranks: group.ranks.clone(),
            }),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.inner.engine
    }

    pub(crate) fn key(&self) -> GroupKey {
        self.inner.key
    }

    /// This rank's number in the communicator.
    pub fn rank(&self) -> u32 {
        self.inner.rank
    }

    pub fn size(&self) -> u32 {
        self.inner.ranks.len() as u32
    }

    /// Number that messages and errors show; the world's is 0. Equal on all its ranks.
    pub fn id(&self) -> u32 {
        self.inner.shared.id
    }

    /// The members' ranks in the world, in the order of this communicator.
    pub fn ranks(&self) -> &[u32] {
        &self.inner.ranks
    }

    /// How its ranks lie, as far as algorithms are selected by it: one host means that they share
    /// memory, where no algorithm is needed.
    pub fn shape(&self) -> Result<Shape, Error> {
        let key = self.inner.key;
        self.inner
            .engine
            .with(move |core| Ok(core.group(key).shape()))
    }

    /// Ends all calls on this communicator, here at once and on its other ranks as soon as they
    /// hear of it, with an error that carries the reason. From any thread.
    pub fn abort(&self, reason: &str) {
        self.inner.shared.abort(reason);
        self.inner.engine.note_abort(self.key());
    }

    /// What this communicator failed with, if it has.
    pub fn error(&self) -> Option<Error> {
        let key = self.key();
        let checked = self.engine().with(move |core| {
            let checked = core.check(key);
            core.note_told(key);
            checked
        });
        checked.err()
    }

    /// What a call on this communicator may wait for its peers; `None` for the world's setting.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> Result<(), Error> {
        let key = self.key();
        self.engine().with(move |core| {
            core.group_mut(key).timeout = timeout;
            Ok(())
        })
    }

    /// Executes a call and waits for its result.
    ///
    /// # Safety
    /// The call's input and output are valid as its collective and counts say, aligned for its
    /// type, and don't overlap except in place.
    pub unsafe fn run(&self, call: &Call) -> Result<(), Error> {
        // SAFETY: as the caller vouches.
        unsafe { self.engine().run(self.key(), call) }
    }

    /// Starts a call. The calls after it on this communicator are executed after it.
    ///
    /// # Safety
    /// As [`Communicator::run`], until the request is complete; until then the input is not
    /// changed and the output not used. Don't forget the request (`mem::forget`) before that.
    pub unsafe fn start(&self, call: Call) -> Result<Request, Error> {
        let completion = Arc::<Completion>::default();
        let timeout = call.timeout;
        self.engine().start(Job {
            key: self.key(),
            work: Work::Collective(call),
            timeout,
            completion: completion.clone(),
        })?;
        Ok(Request::new(self.clone(), completion))
    }

    /// Prepares a call to be started many times.
    ///
    /// # Safety
    /// As [`Communicator::start`], for every start.
    pub unsafe fn prepare(&self, call: Call) -> Result<Persistent, Error> {
        Ok(Persistent::new(self.clone(), call))
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("id", &self.inner.shared.id)
            .field("rank", &self.inner.rank)
            .field("ranks", &self.inner.ranks)
            .finish_non_exhaustive()
    }
}
