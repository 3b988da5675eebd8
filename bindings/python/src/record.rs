//! The flight recorder as the objects of `rlaunch/_records.py`.

use pyo3::prelude::*;
use rlaunch_runtime::{CommunicatorRecord, FlightRecorder, OperationRecord, OperationState};

pub(crate) fn to_python(py: Python<'_>, recorder: &FlightRecorder) -> PyResult<Py<PyAny>> {
    let module = py.import("rlaunch._records")?;
    let communicators = recorder
        .communicators
        .iter()
        .map(|one| communicator(&module, one))
        .collect::<PyResult<Vec<_>>>()?;
    let arguments = (
        recorder.rank.rank,
        &recorder.rank.host,
        recorder.rank.pid,
        recorder.world_size,
        recorder.age.as_secs_f64(),
        communicators,
        recorder.to_string(),
    );
    Ok(module.getattr("FlightRecorder")?.call1(arguments)?.unbind())
}

fn communicator<'py>(
    module: &Bound<'py, PyModule>,
    record: &CommunicatorRecord,
) -> PyResult<Bound<'py, PyAny>> {
    let operations = record
        .operations
        .iter()
        .map(|one| operation(module, one))
        .collect::<PyResult<Vec<_>>>()?;
    module
        .getattr("CommunicatorRecord")?
        .call1((record.id, record.made_by, operations))
}

fn operation<'py>(
    module: &Bound<'py, PyModule>,
    record: &OperationRecord,
) -> PyResult<Bound<'py, PyAny>> {
    let call = &record.call;
    let state = match record.state {
        OperationState::Running => "running",
        OperationState::Done => "done",
        OperationState::Failed => "failed",
    };
    let what = pyo3::types::PyDict::new(module.py());
    what.set_item("call", call.to_string())?;
    what.set_item("collective", call.collective.name())?;
    what.set_item("sequence", call.sequence)?;
    what.set_item("dtype", call.dtype.name())?;
    what.set_item("op", call.op.map(rlaunch_runtime::Op::name))?;
    what.set_item("root", call.root)?;
    what.set_item("count", call.count)?;
    what.set_item("peer", record.peer)?;
    what.set_item("tag", record.tag)?;
    what.set_item("bytes", record.bytes)?;
    what.set_item("state", state)?;
    what.set_item("begun", record.begun.as_secs_f64())?;
    what.set_item("took", record.took.as_secs_f64())?;
    module.getattr("Operation")?.call((), Some(&what))
}
