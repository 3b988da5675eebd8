//! `rlaunch.Request`: a call under way. `rlaunch.Persistent`: one prepared to be started often.

use crate::error;
use crate::fork::Process;
use crate::in_use::{self, Use};
use crate::number::Seconds;
use crate::plan::Plan;
use crate::reduction::{self, Raised};
use crate::signals::Waiting;
use nix::sys::eventfd::{EfdFlags, EventFd};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use rlaunch_runtime::{Error, Status};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A call under way. It goes on by itself; wait() for its result, or `await` it, or leave a `with`
/// block of it. Until then the arrays belong to the runtime: don't touch them.
#[pyclass(frozen, module = "rlaunch")]
pub(crate) struct Request {
    /// Taken by the wait that ends it.
    under_way: Mutex<Option<rlaunch_runtime::Request>>,
    ended: OnceLock<Result<Status, Error>>,
    ready: OnceLock<Arc<EventFd>>,
    result: Gives,
    raised: Option<Raised>,
    rank: u32,
    /// Arrays that the runtime reads and writes.
    _kept: Vec<Py<PyAny>>,
    process: Process,
}

/// What wait() returns.
pub(crate) enum Gives {
    Object(Py<PyAny>),
    Status,
}

impl Request {
    pub(crate) fn new(
        request: rlaunch_runtime::Request,
        result: Gives,
        kept: Vec<Py<PyAny>>,
        raised: Option<Raised>,
    ) -> Self {
        Self {
            rank: request.communicator().rank(),
            under_way: Mutex::new(Some(request)),
            ended: OnceLock::new(),
            ready: OnceLock::new(),
            result,
            raised,
            _kept: kept,
            process: Process::current(),
        }
    }

    /// Of a collective: the result is what the blocking call returns.
    pub(crate) fn of_plan(
        py: Python<'_>,
        plan: Plan<'_>,
        request: rlaunch_runtime::Request,
    ) -> Self {
        let (kept, raised) = (plan.keepers(), plan.raised.clone());
        Self::new(request, Gives::Object(plan.into_result(py)), kept, raised)
    }

    /// What wait() will return, where that is known before.
    pub(crate) fn result(&self, py: Python<'_>) -> Py<PyAny> {
        match &self.result {
            Gives::Object(object) => object.clone_ref(py),
            Gives::Status => py.None(),
        }
    }
}

#[pymethods]
impl Request {
    /// Whether it is complete. Raises what it failed with.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        if self.ended.get().is_some() {
            return self.outcome(py).map(|_| true);
        }
        let tested = py.detach(|| match self.under_way.try_lock() {
            Ok(held) => held
                .as_ref()
                .map_or(Ok(true), rlaunch_runtime::Request::test),
            // Another thread waits for it.
            Err(_) => Ok(false),
        });
        match tested {
            Ok(false) => Ok(false),
            Ok(true) => self.wait(py).map(|_| true),
            Err(failure) => {
                let _ = self.ended.set(Err(failure));
                self.outcome(py).map(|_| true)
            }
        }
    }

    /// Waits until it is complete; returns what the blocking call returns. Twice is as good as
    /// once.
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.ended.get().is_none() {
            self.own(py)?;
            let _waiting = Waiting::begin(py)?;
            py.detach(|| {
                let mut held = self.lock();
                if let Some(request) = held.take() {
                    let _ = self.ended.set(request.wait());
                }
            });
            in_use::sweep();
        }
        self.outcome(py)
    }

    /// Waits at most so many seconds; returns whether it is complete.
    fn wait_timeout(&self, py: Python<'_>, seconds: Seconds) -> PyResult<bool> {
        let longest = seconds.longest()?;
        if self.ended.get().is_none() {
            self.own(py)?;
            let waiting = Waiting::begin(py)?;
            let complete = py.detach(|| {
                let held = self.lock();
                let wait = |request: &rlaunch_runtime::Request| request.wait_timeout(longest);
                held.as_ref().map_or(Ok(true), wait)
            });
            drop(waiting);
            if let Ok(false) = complete {
                return Ok(false);
            }
        }
        self.wait(py).map(|_| true)
    }

    /// Ends a receive that no array has met: its array is free, what comes goes to another receive, and
    /// waiting for it raises CancelledError. Returns whether it did; False where it is too late, or the
    /// call is no receive: it goes on, and is to be waited for.
    fn cancel(&self, py: Python<'_>) -> PyResult<bool> {
        if self.ended.get().is_some() {
            return Ok(false);
        }
        self.own(py)?;
        let cancelled = py.detach(|| match self.under_way.try_lock() {
            Ok(held) => held
                .as_ref()
                .map_or(Ok(false), rlaunch_runtime::Request::cancel),
            // Another thread waits for it.
            Err(_) => Ok(false),
        });
        cancelled.map_err(|failure| error::to_python(py, &failure, Some(self.rank)))
    }

    /// A file descriptor that becomes readable when the request is complete, for select and its
    /// like. It belongs to the request.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready.as_raw_fd());
        }
        let made = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|error| PyRuntimeError::new_err(format!("eventfd: {error}")))?;
        let ready = self.ready.get_or_init(|| Arc::new(made)).clone();
        let number = ready.as_raw_fd();
        let notify = move || {
            // It can't be full: written once.
            let _ = ready.write(1);
        };
        py.detach(|| match self.lock().as_ref() {
            Some(request) => request.on_complete(notify),
            None => notify(),
        });
        Ok(number)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Waits. An exception of the block is not replaced by one of the call.
    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        match self.wait(py) {
            Err(_) if !kind.is_none() => Ok(()),
            waited => waited.map(|_| ()),
        }
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let helper = py.import(intern!(py, "rlaunch._awaiting"))?;
        helper
            .call_method1(intern!(py, "until_complete"), (slf,))?
            .call_method0(intern!(py, "__await__"))
    }

    /// Request[int], for annotations.
    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> Py<PyAny> {
        let _ = item;
        cls.clone().into_any().unbind()
    }

    fn __repr__(&self) -> &'static str {
        match self.ended.get() {
            None => "<rlaunch.Request under way>",
            Some(Ok(_)) => "<rlaunch.Request complete>",
            Some(Err(_)) => "<rlaunch.Request failed>",
        }
    }
}

impl Request {
    fn outcome(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.ended.get() {
            Some(Ok(status)) => {
                reduction::check(self.raised.as_ref())?;
                match &self.result {
                    Gives::Object(object) => Ok(object.clone_ref(py)),
                    Gives::Status => crate::point::status(py, status),
                }
            }
            Some(Err(failure)) => Err(error::to_python(py, failure, Some(self.rank))),
            None => Err(PyRuntimeError::new_err(
                "another thread waits for this request",
            )),
        }
    }

    /// A forked child has no part in what its parent started.
    fn own(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check(py)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<rlaunch_runtime::Request>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let under_way = self.under_way.get_mut();
        let Some(request) = under_way.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        if self.process != Process::current() {
            std::mem::forget(request);
            return;
        }
        // It waits for its call, which another thread of Python may have to help.
        crate::detached(|| drop(request));
    }
}

/// A call prepared once and started many times, one at a time, on the same arrays.
#[pyclass(frozen, module = "rlaunch")]
pub(crate) struct Persistent {
    prepared: Option<rlaunch_runtime::Persistent>,
    result: Py<PyAny>,
    raised: Option<Raised>,
    kept: Vec<Py<PyAny>>,
    name: &'static str,
    uses: Vec<Use>,
    process: Process,
}

impl Persistent {
    pub(crate) fn of_plan(
        py: Python<'_>,
        plan: Plan<'_>,
        prepared: rlaunch_runtime::Persistent,
    ) -> Self {
        Self {
            prepared: Some(prepared),
            kept: plan.keepers(),
            name: plan.name(),
            uses: plan.in_use(),
            raised: plan.raised.clone(),
            result: plan.into_result(py),
            process: Process::current(),
        }
    }
}

#[pymethods]
impl Persistent {
    /// Starts it once more, after the request of the start before is complete.
    fn start(&self, py: Python<'_>) -> PyResult<Request> {
        self.process.check(py)?;
        let Some(prepared) = &self.prepared else {
            return Err(PyRuntimeError::new_err("nothing is prepared"));
        };
        in_use::check(self.name, &self.uses)?;
        let rank = prepared.communicator().rank();
        let request = py
            .detach(|| prepared.start())
            .map_err(|failure| error::to_python(py, &failure, Some(rank)))?;
        in_use::note(self.name, self.uses.clone(), &request.watch());
        let result = Gives::Object(self.result.clone_ref(py));
        let kept = self.kept.iter().map(|kept| kept.clone_ref(py)).collect();
        Ok(Request::new(request, result, kept, self.raised.clone()))
    }

    /// Persistent[int], for annotations.
    #[classmethod]
    fn __class_getitem__(cls: &Bound<'_, PyType>, item: &Bound<'_, PyAny>) -> Py<PyAny> {
        let _ = item;
        cls.clone().into_any().unbind()
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        let Some(prepared) = self.prepared.take() else {
            return;
        };
        if self.process == Process::current() {
            crate::detached(|| drop(prepared));
        } else {
            std::mem::forget(prepared);
        }
    }
}
