//! `rlaunch.World`: the communicator of all ranks, and what holds for the job.

use crate::communicator::Communicator;
use crate::error;
use crate::fork::Process;
use crate::record;
use pyo3::prelude::*;
use rlaunch_runtime::Error;
use std::sync::{Mutex, PoisonError};

/// All ranks of a job, seen by one of them: their communicator, and what holds for the job.
#[pyclass(frozen, module = "rlaunch", extends = Communicator)]
pub(crate) struct World {
    /// None before it is joined, and once finalized.
    world: Mutex<Option<rlaunch_runtime::World>>,
}

/// For the functions of the module `rlaunch`, which are there before init().
#[pyfunction]
pub(crate) fn unjoined_world(py: Python<'_>) -> PyResult<Py<World>> {
    Py::new(py, World::unjoined())
}

#[pymethods]
impl World {
    /// Joins the job that the environment describes; returns once every rank has.
    #[new]
    fn new(py: Python<'_>) -> PyResult<PyClassInitializer<Self>> {
        let world = join(py)?;
        let communicator = Communicator::new((*world).clone());
        let world = Self {
            world: Mutex::new(Some(world)),
        };
        Ok(PyClassInitializer::from(communicator).add_subclass(world))
    }

    /// Joins a world made by unjoined_world(). Twice is as good as once.
    fn join(slf: &Bound<'_, Self>) -> PyResult<()> {
        let communicator = slf.as_super().get();
        if communicator.is_joined() {
            if slf.get().is_joined() {
                return Ok(());
            }
            let text = "rlaunch was finalized in this process, and a job is joined once; hint: \
                        call rl.finalize() at the very end only, or leave it to the exit";
            return Err(error::plain(slf.py(), "FinalizedError", text));
        }
        let world = join(slf.py())?;
        let handle = (*world).clone();
        *slf.get().lock() = Some(world);
        communicator.join(handle);
        Ok(())
    }

    /// Whether the world is joined and not finalized.
    fn is_joined(&self) -> bool {
        self.lock().is_some()
    }

    /// This rank's number among those of its host, from 0.
    fn local_rank(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Self::with(slf, rlaunch_runtime::World::local_rank)
    }

    /// How many ranks of the job run on this host.
    fn local_size(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Self::with(slf, rlaunch_runtime::World::local_size)
    }

    /// The name of this rank's host, as in the hostfile.
    fn host(slf: &Bound<'_, Self>) -> PyResult<String> {
        Self::with(slf, |world| world.host().to_owned())
    }

    /// Names of the transports in use: shm, tcp.
    fn transports(slf: &Bound<'_, Self>) -> PyResult<Vec<&'static str>> {
        Self::with(slf, rlaunch_runtime::World::transports)
    }

    /// Whether the ranks have proven a secret to each other.
    fn is_authenticated(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Self::with(slf, rlaunch_runtime::World::is_authenticated)
    }

    /// The last calls of this rank on each communicator, with their times, as a FlightRecorder;
    /// print() shows it.
    fn flight_recorder(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        record::to_python(
            slf.py(),
            &Self::with(slf, rlaunch_runtime::World::flight_recorder)?,
        )
    }

    /// Leaves the job in good order. Twice is as good as once.
    fn finalize(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let taken = slf.get().lock().take();
        let Some(world) = taken else { return Ok(()) };
        if !Self::is_own(slf) {
            std::mem::forget(world);
            return Ok(());
        }
        let rank = world.rank();
        py.detach(|| world.finalize())
            .map_err(|failure| error::to_python(py, &failure, Some(rank)))
    }

    /// As finalize, at the program's end, where nothing can be raised: an error that no call has
    /// raised yet is printed, and makes an exit status of 0 one of 1.
    fn leave(slf: &Bound<'_, Self>) {
        let taken = slf.get().lock().take();
        let Some(world) = taken else { return };
        if Self::is_own(slf) {
            slf.py().detach(|| drop(world));
        } else {
            std::mem::forget(world);
        }
    }

    /// Gives the world up without leaving it: peers see this rank's death, not its departure. For a
    /// process that ends by an exception.
    fn abandon(&self) {
        if let Some(world) = self.lock().take() {
            std::mem::forget(world);
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let describe = |world: &rlaunch_runtime::World| {
            let (rank, size, host) = (world.rank(), world.size(), world.host());
            format!("<rlaunch.World rank {rank} of {size} on {host}>")
        };
        let lock = slf.get().lock();
        lock.as_ref()
            .map_or_else(|| "<rlaunch.World not joined>".to_owned(), describe)
    }
}

impl World {
    fn unjoined() -> PyClassInitializer<Self> {
        let world = Self {
            world: Mutex::new(None),
        };
        PyClassInitializer::from(Communicator::unjoined()).add_subclass(world)
    }

    fn is_own(slf: &Bound<'_, Self>) -> bool {
        slf.as_super().get().process() == Some(Process::current())
    }

    /// Asks what the runtime knows without waiting.
    fn with<R>(
        slf: &Bound<'_, Self>,
        ask: impl FnOnce(&rlaunch_runtime::World) -> R,
    ) -> PyResult<R> {
        let communicator = slf.as_super().get();
        let rank = communicator.rank(slf.py())?;
        match slf.get().lock().as_ref() {
            Some(world) => Ok(ask(world)),
            None => Err(error::to_python(slf.py(), &Error::Finalized, Some(rank))),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<rlaunch_runtime::World>> {
        // Nothing that runs under the lock can leave it half done.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(py: Python<'_>) -> PyResult<rlaunch_runtime::World> {
    py.detach(rlaunch_runtime::init)
        .map_err(|failure| error::to_python(py, &failure, None))
}

impl Drop for World {
    fn drop(&mut self) {
        let world = self.world.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(world) = world.take() else { return };
        crate::detached(|| drop(world));
    }
}
