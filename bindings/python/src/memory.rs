//! `rlaunch.Memory`: bytes that the ranks of a host read in place, for numpy to make arrays of.

use crate::argument;
use crate::array::numpy;
use crate::communicator::Communicator;
use crate::number::Whole;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rlaunch_runtime::SharedBuffer;

/// Memory that the ranks of a host read in place: numpy.asarray(memory) is its bytes. It lives as
/// long as any array on it.
#[pyclass(frozen, module = "rlaunch")]
pub(crate) struct Memory {
    buffer: SharedBuffer<u8>,
}

#[pymethods]
impl Communicator {
    /// Memory of so many bytes, all zero, which the ranks of this host read in place: calls on arrays
    /// in it are faster. Any rank may ask for some at any time. See also empty() and zeros().
    fn allocate(&self, py: Python<'_>, bytes: Whole) -> PyResult<Memory> {
        let bytes = argument::bytes(&bytes)?;
        let buffer = self.call(py, |handle| handle.allocate(bytes))?;
        Ok(Memory { buffer })
    }
}

#[pymethods]
impl Memory {
    fn __len__(&self) -> usize {
        self.buffer.len()
    }

    /// By which numpy finds the bytes; the arrays that it makes keep this object alive.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("shape", (self.buffer.len(),))?;
        interface.set_item("data", (self.buffer.as_ptr() as usize, false))?;
        Ok(interface)
    }

    /// The bytes as DLPack has them, for torch.from_dlpack and its like.
    #[pyo3(signature = (**options))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        bytes(slf)?.call_method(intern!(slf.py(), "__dlpack__"), (), options)
    }

    fn __dlpack_device__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let device = bytes(slf)?.call_method0(intern!(slf.py(), "__dlpack_device__"))?;
        Ok(device.cast_into::<PyTuple>()?)
    }

    fn __repr__(&self) -> String {
        let kind = if self.buffer.is_shared() {
            "shared"
        } else {
            "plain"
        };
        format!("<rlaunch.Memory: {} bytes, {kind}>", self.buffer.len())
    }
}

fn bytes<'py>(memory: &Bound<'py, Memory>) -> PyResult<Bound<'py, PyAny>> {
    let py = memory.py();
    numpy(py)?.call_method1(intern!(py, "asarray"), (memory,))
}
