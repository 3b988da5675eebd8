//! `rlaunch.World`.

use crate::argument;
use crate::array::{Access, Array};
use crate::error;
use crate::fork::Process;
use crate::signals::Waiting;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlaunch_runtime::{Call, Error};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// All ranks of a job, seen by one of them.
#[pyclass(frozen, module = "rlaunch", name = "World")]
pub(crate) struct World {
    /// None once finalized.
    world: Mutex<Option<Arc<rlaunch_runtime::World>>>,
    rank: u32,
    size: u32,
    local_rank: u32,
    local_size: u32,
    host: String,
    joined_in: Process,
}

#[pymethods]
impl World {
    /// Joins the job that the environment describes.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let joined = py.detach(rlaunch_runtime::init);
        let world = joined.map_err(|failure| error::to_python(py, &failure, None))?;
        Ok(Self {
            rank: world.rank(),
            size: world.size(),
            local_rank: world.local_rank(),
            local_size: world.local_size(),
            host: world.host().to_owned(),
            world: Mutex::new(Some(Arc::new(world))),
            joined_in: Process::current(),
        })
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn local_rank(&self) -> u32 {
        self.local_rank
    }

    fn local_size(&self) -> u32 {
        self.local_size
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn transports(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        Ok(self.handle(py)?.transports())
    }

    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |world| world.barrier())
    }

    #[pyo3(signature = (x, root=0))]
    fn broadcast(&self, x: &Bound<'_, PyAny>, root: i64) -> PyResult<Py<PyAny>> {
        let root = argument::rank(self.size, "root", root)?;
        let array = Array::new(x, "x", Access::Write)?;
        let buffer = array.buffer;
        self.call(x.py(), move |world| {
            let buffer = { buffer };
            // SAFETY: `array` keeps the block alive; Array::new checked type, order, alignment and
            // that it may be written to.
            unsafe {
                world.run(&Call::broadcast(
                    buffer.pointer,
                    buffer.count,
                    buffer.dtype,
                    root,
                ))
            }
        })?;
        Ok(array.into_object())
    }

    #[pyo3(signature = (x, op=Cow::Borrowed("sum")))]
    fn all_reduce(&self, x: &Bound<'_, PyAny>, op: Cow<'_, str>) -> PyResult<Py<PyAny>> {
        let op = argument::op(&op)?;
        let array = Array::new(x, "x", Access::Write)?;
        let buffer = array.buffer;
        self.call(x.py(), move |world| {
            let buffer = { buffer };
            // SAFETY: as in broadcast.
            unsafe {
                world.run(&Call::all_reduce(
                    buffer.pointer,
                    buffer.pointer,
                    buffer.count,
                    buffer.dtype,
                    op,
                ))
            }
        })?;
        Ok(array.into_object())
    }

    #[pyo3(signature = (x, out=None))]
    fn all_gather<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let input = Array::new(x, "x", Access::Read)?;
        let output = match out {
            Some(out) => Array::new(out, "out", Access::Write)?,
            None => {
                let shape = [&[self.size as usize], input.shape()].concat();
                Array::zeros(x.py(), input.buffer.dtype, &shape)?
            }
        };
        argument::check_apart(&input, &output)?;
        let fits = input.buffer.count.checked_mul(self.size as usize) == Some(output.buffer.count);
        if !fits {
            return Err(PyValueError::new_err(format!(
                "out has {} elements, but gathers x's {} from each of {} ranks; hint: leave out away",
                output.buffer.count, input.buffer.count, self.size
            )));
        }
        let buffers = (input.buffer, output.buffer);
        self.call(x.py(), move |world| {
            let (input, output) = { buffers };
            // SAFETY: `input` and `output` keep their blocks alive; Array::new checked type, order,
            // alignment and access, the lines above that they fit and do not overlap.
            unsafe {
                world.run(&Call::all_gather(
                    input.pointer,
                    output.pointer,
                    input.count,
                    input.dtype,
                ))
            }
        })?;
        Ok(output.into_object())
    }

    #[pyo3(signature = (x, out=None, op=Cow::Borrowed("sum")))]
    fn reduce_scatter<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        op: Cow<'_, str>,
    ) -> PyResult<Py<PyAny>> {
        let op = argument::op(&op)?;
        let input = Array::new(x, "x", Access::Read)?;
        let output = match out {
            Some(out) => Array::new(out, "out", Access::Write)?,
            None => {
                let shape = self.scattered_shape(input.shape())?;
                Array::zeros(x.py(), input.buffer.dtype, shape)?
            }
        };
        argument::check_apart(&input, &output)?;
        let fits = output.buffer.count.checked_mul(self.size as usize) == Some(input.buffer.count);
        if !fits {
            return Err(PyValueError::new_err(format!(
                "x has {} elements, but must have out's {} for each of {} ranks",
                input.buffer.count, output.buffer.count, self.size
            )));
        }
        let buffers = (input.buffer, output.buffer);
        self.call(x.py(), move |world| {
            let (input, output) = { buffers };
            // SAFETY: as in all_gather.
            unsafe {
                let count = output.count;
                world.run(&Call::reduce_scatter(
                    input.pointer,
                    output.pointer,
                    count,
                    input.dtype,
                    op,
                ))
            }
        })?;
        Ok(output.into_object())
    }

    #[pyo3(signature = (x, to, tag=0))]
    fn send(&self, x: &Bound<'_, PyAny>, to: i64, tag: i64) -> PyResult<()> {
        let (to, tag) = (argument::rank(self.size, "to", to)?, argument::tag(tag)?);
        let array = Array::new(x, "x", Access::Read)?;
        let buffer = array.buffer;
        self.call(x.py(), move |world| {
            let buffer = { buffer };
            // SAFETY: `array` keeps the block alive; Array::new checked type, order and alignment.
            unsafe { world.send_raw(buffer.pointer, buffer.count, buffer.dtype, to, tag) }
        })
    }

    #[pyo3(signature = (x, source, tag=0))]
    fn recv(&self, x: &Bound<'_, PyAny>, source: i64, tag: i64) -> PyResult<Py<PyAny>> {
        let (source, tag) = (
            argument::rank(self.size, "source", source)?,
            argument::tag(tag)?,
        );
        let array = Array::new(x, "x", Access::Write)?;
        let buffer = array.buffer;
        self.call(x.py(), move |world| {
            let buffer = { buffer };
            // SAFETY: as in broadcast.
            unsafe { world.recv_raw(buffer.pointer, buffer.count, buffer.dtype, source, tag) }
                .map(drop)
        })?;
        Ok(array.into_object())
    }

    /// Leaves the job in good order. Twice is as good as once.
    fn finalize(&self, py: Python<'_>) -> PyResult<()> {
        let mut held = self.lock();
        let Some(world) = held.take() else {
            return Ok(());
        };
        if self.joined_in != Process::current() {
            std::mem::forget(world);
            return Ok(());
        }
        match Arc::try_unwrap(world) {
            Ok(world) => {
                drop(held);
                py.detach(|| world.finalize())
                    .map_err(|failure| error::to_python(py, &failure, Some(self.rank)))
            }
            Err(world) => {
                *held = Some(world);
                let text = "finalize: another thread is still inside a call of this world; \
                            hint: join it first";
                Err(error::plain(py, "Error", text))
            }
        }
    }

    /// Gives the world up without leaving it: peers see this rank's death, not its departure. For a
    /// process that ends by an exception.
    fn abandon(&self) {
        if let Some(world) = self.lock().take() {
            std::mem::forget(world);
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<rlaunch.World rank {} of {} on {}>",
            self.rank, self.size, self.host
        )
    }
}

impl World {
    /// Runs a call of the runtime without the GIL.
    fn call<F>(&self, py: Python<'_>, run: F) -> PyResult<()>
    where
        F: FnOnce(&rlaunch_runtime::World) -> Result<(), Error> + Send,
    {
        let world = self.handle(py)?;
        let Some(_waiting) = Waiting::begin() else {
            let text = "this thread is inside a call of rlaunch already; \
                        hint: a signal's handler may set a flag or raise, but not communicate";
            return Err(error::plain(py, "Error", text));
        };
        py.detach(|| run(&world))
            .map_err(|failure| error::to_python(py, &failure, Some(self.rank)))
    }

    fn handle(&self, py: Python<'_>) -> PyResult<Arc<rlaunch_runtime::World>> {
        if self.joined_in != Process::current() {
            let text = "this process was forked from a rank; the world belongs to its parent; \
                        hint: call rlaunch before the fork, or from the parent only";
            return Err(error::plain(py, "Error", text));
        }
        let held = self.lock();
        let finalized = || error::to_python(py, &Error::Finalized, Some(self.rank));
        held.as_ref().cloned().ok_or_else(finalized)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<rlaunch_runtime::World>>> {
        // Nothing that runs under the lock can leave it half done.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// x[r] goes to rank r.
    fn scattered_shape<'s>(&self, shape: &'s [usize]) -> PyResult<&'s [usize]> {
        match shape.split_first() {
            Some((parts, shape)) if *parts == self.size as usize => Ok(shape),
            _ => Err(PyValueError::new_err(format!(
                "x has shape {shape:?}, but x[r] is what rank r gets, so its first length must be \
                 {0}; hint: x.reshape({0}, -1), or give out",
                self.size
            ))),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.joined_in != Process::current() {
            self.abandon();
        }
    }
}
