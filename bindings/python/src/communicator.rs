//! `rlaunch.Communicator`: what all its calls share. The calls themselves are in calls.rs and
//! point.rs.

use crate::argument::{self, Group};
use crate::error;
use crate::fork::Process;
use crate::group;
use crate::in_use;
use crate::number::{Seconds, Whole};
use crate::plan::Plan;
use crate::reduction;
use crate::request::{Persistent, Request};
use crate::signals::Waiting;
use pyo3::prelude::*;
use rlaunch_runtime::Error;
use std::sync::OnceLock;

/// A group of ranks that call together, seen by one of them. Ranks count within it.
#[pyclass(frozen, subclass, module = "rlaunch")]
pub(crate) struct Communicator {
    /// Empty in the world that nobody has joined yet.
    joined: OnceLock<Joined>,
}

struct Joined {
    handle: rlaunch_runtime::Communicator,
    group: Group,
    process: Process,
}

impl Communicator {
    pub(crate) fn unjoined() -> Self {
        Self {
            joined: OnceLock::new(),
        }
    }

    pub(crate) fn new(handle: rlaunch_runtime::Communicator) -> Self {
        let communicator = Self::unjoined();
        communicator.join(handle);
        communicator
    }

    pub(crate) fn join(&self, handle: rlaunch_runtime::Communicator) {
        let group = Group {
            rank: handle.rank(),
            size: handle.size(),
        };
        self.joined.get_or_init(|| Joined {
            handle,
            group,
            process: Process::current(),
        });
    }

    pub(crate) fn is_joined(&self) -> bool {
        self.joined.get().is_some()
    }

    pub(crate) fn process(&self) -> Option<Process> {
        self.joined.get().map(|joined| joined.process)
    }

    fn joined(&self, py: Python<'_>) -> PyResult<&Joined> {
        self.joined.get().ok_or_else(|| {
            let text = "rlaunch is not started; hint: call rl.init() first";
            error::plain(py, "InitError", text)
        })
    }

    pub(crate) fn place(&self, py: Python<'_>) -> PyResult<Group> {
        Ok(self.joined(py)?.group)
    }

    /// The runtime's handle, for this process.
    pub(crate) fn handle(&self, py: Python<'_>) -> PyResult<&rlaunch_runtime::Communicator> {
        let joined = self.joined(py)?;
        joined.process.check(py)?;
        Ok(&joined.handle)
    }

    /// Runs a call of the runtime without the GIL.
    pub(crate) fn call<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&rlaunch_runtime::Communicator) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let handle = self.handle(py)?;
        let _waiting = Waiting::begin(py)?;
        py.detach(|| run(handle))
            .map_err(|failure| error::to_python(py, &failure, Some(handle.rank())))
    }

    /// Executes a collective: at once, or at the end of the group that this thread is in.
    pub(crate) fn run<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce(Group) -> PyResult<Plan<'py>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Py<PyAny>> {
        let mut plan = make(self.place(py)?)?;
        plan.call.timeout = argument::seconds("timeout", timeout)?;
        if group::is_open() {
            let request = self.begin(py, plan)?;
            let result = request.result(py);
            group::add(py, request)?;
            return Ok(result);
        }
        plan.check_free()?;
        let call = &plan.call;
        // SAFETY: the plan keeps the arrays alive; it was made from arrays whose type, order,
        // alignment, access and sizes were checked.
        self.call(py, |handle| unsafe { handle.run(call) })?;
        reduction::check(plan.raised.as_ref())?;
        Ok(plan.into_result(py))
    }

    /// Starts a collective.
    pub(crate) fn start<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce(Group) -> PyResult<Plan<'py>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Request> {
        let mut plan = make(self.place(py)?)?;
        plan.call.timeout = argument::seconds("timeout", timeout)?;
        self.begin(py, plan)
    }

    fn begin(&self, py: Python<'_>, plan: Plan<'_>) -> PyResult<Request> {
        plan.check_free()?;
        let call = plan.call.clone();
        // SAFETY: the request keeps the arrays alive until the call is complete; the rest as above.
        let request = self.call(py, |handle| unsafe { handle.start(call) })?;
        in_use::note(plan.name(), plan.in_use(), &request.watch());
        Ok(Request::of_plan(py, plan, request))
    }

    pub(crate) fn prepare<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce(Group) -> PyResult<Plan<'py>>,
        timeout: Option<Seconds>,
    ) -> PyResult<Persistent> {
        let mut plan = make(self.place(py)?)?;
        plan.call.timeout = argument::seconds("timeout", timeout)?;
        let call = plan.call.clone();
        // SAFETY: what is returned keeps the arrays alive, and so does each of its requests.
        let prepared = self.call(py, |handle| unsafe { handle.prepare(call) })?;
        Ok(Persistent::of_plan(py, plan, prepared))
    }
}

#[pymethods]
impl Communicator {
    /// This process's number in the communicator, from 0.
    pub(crate) fn rank(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.place(py)?.rank)
    }

    /// How many ranks the communicator has.
    fn size(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.place(py)?.size)
    }

    /// The communicator's number in messages, the same on all its ranks; the world's is 0.
    fn id(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.joined(py)?.handle.id())
    }

    /// The members' ranks in the world, in this communicator's order.
    fn ranks(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.joined(py)?.handle.ranks().to_vec())
    }

    /// A communicator of those that give the same color, ordered by key, then by rank here. None
    /// for those that give color None. All ranks call it.
    #[pyo3(signature = (color, key=Whole::Is(0)), text_signature = "($self, color, key=0)")]
    fn split(&self, py: Python<'_>, color: Option<Whole>, key: Whole) -> PyResult<Option<Self>> {
        let color = color.as_ref().map(argument::color).transpose()?;
        let key = argument::key(&key)?;
        let made = self.call(py, |handle| handle.split(color, key))?;
        Ok(made.map(Self::new))
    }

    /// A communicator of the same ranks, whose calls never meet with this one's. All ranks call it.
    fn duplicate(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::new(
            self.call(py, rlaunch_runtime::Communicator::duplicate)?,
        ))
    }

    /// A communicator of these ranks, in this order; None for the others. All ranks of this one
    /// call it, with the same list.
    #[allow(clippy::wrong_self_convention, reason = "the runtime's name for it")]
    fn from_ranks(&self, py: Python<'_>, ranks: Vec<Whole>) -> PyResult<Option<Self>> {
        let group = self.place(py)?;
        let parse = |rank: &Whole| argument::rank(group, "rank", rank);
        let ranks = ranks.iter().map(parse).collect::<PyResult<Vec<u32>>>()?;
        let made = self.call(py, |handle| handle.from_ranks(&ranks))?;
        Ok(made.map(Self::new))
    }

    /// After a failure: a communicator of the ranks that are alive, in this one's order. All of
    /// them call it.
    fn shrink(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::new(
            self.call(py, rlaunch_runtime::Communicator::shrink)?,
        ))
    }

    /// Ends all calls on this communicator, with an error that carries the reason: here at once, on
    /// its other ranks as soon as they hear of it. From any thread.
    #[pyo3(signature = (reason="aborted by the program"))]
    fn abort(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        let handle = self.handle(py)?;
        py.detach(|| handle.abort(reason));
        Ok(())
    }

    /// What this communicator failed with, as an exception object; None while it is well.
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let handle = self.handle(py)?;
        let failure = py.detach(|| handle.error());
        Ok(failure.map(|failure| {
            let exception = error::to_python(py, &failure, Some(handle.rank()));
            exception.into_value(py).into_any()
        }))
    }

    /// How many seconds a call may wait for its peers; None for RLAUNCH_TIMEOUT's.
    fn set_timeout(&self, py: Python<'_>, seconds: Option<Seconds>) -> PyResult<()> {
        let timeout = argument::seconds("seconds", seconds)?;
        self.call(py, |handle| handle.set_timeout(timeout))
    }

    fn __repr__(&self) -> String {
        match self.joined.get() {
            None => "<rlaunch.Communicator not joined>".to_owned(),
            Some(joined) => format!(
                "<rlaunch.Communicator {}: rank {} of {}>",
                joined.handle.id(),
                joined.group.rank,
                joined.group.size
            ),
        }
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let Some(joined) = self.joined.take() else {
            return;
        };
        if joined.process == Process::current() {
            crate::detached(|| drop(joined));
        } else {
            std::mem::forget(joined);
        }
    }
}
