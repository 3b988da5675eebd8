//! `with rl.group():` calls that all start, in their order, before any is waited for.

use crate::request::Request;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    static OPEN: RefCell<Option<Vec<Py<Request>>>> = const { RefCell::new(None) };
}

/// Whether the calls of this thread are collected.
pub(crate) fn is_open() -> bool {
    OPEN.with_borrow(Option::is_some)
}

pub(crate) fn add(py: Python<'_>, request: Request) -> PyResult<()> {
    let request = Py::new(py, request)?;
    OPEN.with_borrow_mut(|open| open.get_or_insert_default().push(request));
    Ok(())
}

#[pyfunction]
pub(crate) fn group_begin() -> PyResult<()> {
    if is_open() {
        return Err(PyRuntimeError::new_err(
            "a group is open in this thread already",
        ));
    }
    OPEN.set(Some(Vec::new()));
    Ok(())
}

/// Ends the group; its requests, to be waited for.
#[pyfunction]
pub(crate) fn group_end() -> Vec<Py<Request>> {
    OPEN.take().unwrap_or_default()
}
