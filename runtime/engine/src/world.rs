//! The handle of a job.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::connect::connect;
use crate::engine::Engine;
use crate::group::Groups;
use crate::waker::Waker;
use crate::{Communicator, Config, Error, FlightRecorder};

/// The process that has joined by [`init`], or 0. A forked child is another one.
static JOINED: AtomicU32 = AtomicU32::new(0);

/// Joins the job that the environment describes; see [`Config::from_environment`]. A process does so
/// once, since it is one rank of the job; what failed may be tried again.
pub fn init() -> Result<World, Error> {
    let own = std::process::id();
    if JOINED.swap(own, Ordering::AcqRel) == own {
        return Err(Error::Init(
            "this process has joined already, and a process joins its job once; hint: init once, \
             at the start, keep the world that it returned, and finalize at the very end"
                .into(),
        ));
    }
    let world = Config::from_environment().and_then(World::new);
    if world.is_err() {
        JOINED.store(0, Ordering::Release);
    }
    world
}

/// All ranks of a job, seen by one of them: the communicator of all, and what holds for the job.
/// Several worlds may live in one process.
#[derive(Debug)]
pub struct World {
    communicator: Communicator,
}

impl World {
    /// Joins as `config` says; returns once every rank has joined.
    pub fn new(config: Config) -> Result<Self, Error> {
        // Before any descriptor is opened.
        rlaunch_transport::keep_stderr();
        let (place, core) = connect(&config)?;
        let waker = Waker::new().map_err(|error| Error::Init(error.to_string()))?;
        let engine = Arc::new(Engine::new(place, core, waker));
        let communicator = engine.clone().with(move |core| {
            Ok(Communicator::new(
                engine,
                Groups::WORLD,
                core.group(Groups::WORLD),
            ))
        })?;
        Ok(Self { communicator })
    }

    /// The last operations of each communicator, with their times. Takes no lock: it may be read
    /// while a call hangs.
    pub fn flight_recorder(&self) -> FlightRecorder {
        self.engine().logbook.read()
    }

    /// Number of this rank among those of its host.
    pub fn local_rank(&self) -> u32 {
        self.engine().place.local_rank
    }

    pub fn local_size(&self) -> u32 {
        self.engine().place.local_size
    }

    /// Name of this rank's host, as the launcher or else the kernel calls it.
    pub fn host(&self) -> &str {
        &self.engine().place.host
    }

    /// Names of the transports in use: `shm`, `tcp`.
    pub fn transports(&self) -> Vec<&'static str> {
        self.engine().place.transports.clone()
    }

    /// Whether peers have proven a secret. Not so where no agent started the ranks and
    /// RLAUNCH_SECRET is unset: then whoever knows MASTER_ADDR and its port can join.
    pub fn is_authenticated(&self) -> bool {
        self.engine().place.is_authenticated
    }

    /// Leaves the job in good order; what peers still wait for from this rank fails there.
    /// Communicators that are left of it can't be used any more.
    ///
    /// Fails if the world had failed, or if ranks differ in the calls that they made last: a call may
    /// end before the others have made theirs, which are then waited for, up to a second. Not for what
    /// a `shrink` has dealt with.
    ///
    /// Dropping a world does the same but can't return an error. One that no call has returned yet is
    /// printed, and the process ends with status 1 if it would with 0.
    pub fn finalize(self) -> Result<(), Error> {
        self.engine().leave().result
    }
}

impl Deref for World {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        &self.communicator
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let departure = self.engine().leave();
        if let Err(error) = departure.result
            && departure.is_news
        {
            crate::exit::fail(&error);
        }
    }
}
