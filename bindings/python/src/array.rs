//! What of a Python object the runtime may read and write: numpy arrays, whatever speaks DLPack
//! (torch's CPU tensors, JAX), and whatever has the buffer protocol (bytearray, array.array, mmap).

use crate::dlpack;
use crate::dtype;
use crate::in_use::Use;
use crate::refusal;
use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NPY_ARRAY_WRITEABLE};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyTuple};
use rlaunch_runtime::DType;

/// The memory of an array. Whoever uses it holds the array.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) pointer: *mut u8,
    pub(crate) count: usize,
    pub(crate) dtype: DType,
}

// SAFETY: memory of an array, bound to no thread. That no other thread writes to it during a call
// is what every numpy function without the GIL expects of its caller, too.
unsafe impl Send for Buffer {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An object whose memory can be handed to the runtime: known type, one block in C order, aligned,
/// and writable where asked for.
pub(crate) struct Array<'py> {
    /// As the caller gave it.
    object: Bound<'py, PyAny>,
    view: View<'py>,
    pub(crate) buffer: Buffer,
    writes: bool,
}

enum View<'py> {
    /// The object itself, or a numpy array over its memory.
    Numpy(Bound<'py, PyUntypedArray>),
    Shown {
        capsule: Bound<'py, PyAny>,
        shape: Vec<usize>,
    },
}

impl<'py> Array<'py> {
    /// `name` is the argument's, for the refusal.
    pub(crate) fn new(object: &Bound<'py, PyAny>, name: &str, access: Access) -> PyResult<Self> {
        numpy(object.py())?;
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            return Self::of_numpy(object, array, name, access);
        }
        if let Some(shown) = dlpack::show(object, name)? {
            if access == Access::Write && shown.is_read_only {
                return Err(refusal::read_only(name));
            }
            check_aligned(&shown.buffer, name)?;
            let view = View::Shown {
                capsule: shown.capsule,
                shape: shown.shape,
            };
            return Ok(Self {
                object: object.clone(),
                view,
                buffer: shown.buffer,
                writes: access == Access::Write,
            });
        }
        let Ok(view) = PyMemoryView::from(object) else {
            return Err(refusal::not_an_array(object, name));
        };
        let asarray = numpy(object.py())?.getattr(intern!(object.py(), "asarray"))?;
        let array = asarray.call1((view,))?;
        let array = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
        Self::of_numpy(object, array, name, access)
    }

    fn of_numpy(
        object: &Bound<'py, PyAny>,
        array: &Bound<'py, PyUntypedArray>,
        name: &str,
        access: Access,
    ) -> PyResult<Self> {
        let dtype =
            dtype::of_numpy(&array.dtype()).ok_or_else(|| refusal::wrong_dtype(array, name))?;
        if !array.is_c_contiguous() {
            return Err(refusal::not_contiguous(array, name, access));
        }
        let raw = array.as_array_ptr();
        // SAFETY: `array` is alive, so its header is.
        let fields = unsafe { &*_PyArray_GET_ITEM_DATA(raw) };
        if access == Access::Write && fields.flags & NPY_ARRAY_WRITEABLE == 0 {
            return Err(refusal::read_only(name));
        }
        let buffer = Buffer {
            pointer: fields.data.cast(),
            count: array.len(),
            dtype,
        };
        check_aligned(&buffer, name)?;
        Ok(Self {
            object: object.clone(),
            view: View::Numpy(array.clone()),
            buffer,
            writes: access == Access::Write,
        })
    }

    /// A new array of the same type as this one, of its kind: numpy's, or what its `new_empty`
    /// makes (torch).
    pub(crate) fn new_like(&self, shape: &[usize]) -> PyResult<Self> {
        let py = self.object.py();
        let shape = PyTuple::new(py, shape)?;
        let object = match &self.view {
            View::Numpy(array) => numpy_empty(py)?.call1((shape, array.dtype()))?,
            View::Shown { .. } => {
                let make = self.object.getattr(intern!(py, "new_empty"));
                make.map_err(|_| refusal::needs_out(&self.object))?
                    .call1((shape,))?
            }
        };
        Self::new(&object, "out", Access::Write)
    }

    /// The element type, as numpy knows it.
    pub(crate) fn numpy_dtype(&self) -> PyResult<Bound<'py, PyAny>> {
        match &self.view {
            View::Numpy(array) => Ok(array.dtype().into_any()),
            View::Shown { .. } => dtype::to_numpy(self.object.py(), self.buffer.dtype),
        }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match &self.view {
            View::Numpy(array) => array.shape(),
            View::Shown { shape, .. } => shape,
        }
    }

    /// What the caller gave.
    pub(crate) fn into_object(self) -> Py<PyAny> {
        self.object.unbind()
    }

    /// What keeps the memory alive for as long as a request needs it: the object, and the view of
    /// its memory, which the object might give up (a bytearray that is resized).
    pub(crate) fn keepers(&self) -> [Py<PyAny>; 2] {
        let view = match &self.view {
            View::Numpy(array) => array.as_any(),
            View::Shown { capsule, .. } => capsule,
        };
        [self.object.clone().unbind(), view.clone().unbind()]
    }

    /// What a call has of it, which calls the array `argument`.
    pub(crate) fn in_use(&self, argument: &'static str) -> Use {
        Use {
            argument,
            addresses: self.buffer.addresses(),
            writes: self.writes,
        }
    }

    /// Do any bytes belong to both?
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.buffer.addresses(), other.buffer.addresses());
        a.start < b.end && b.start < a.end
    }
}

impl Buffer {
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.pointer as usize;
        start..start + self.count * self.dtype.size_bytes()
    }

    /// The address of an element; one past the last is no fault.
    pub(crate) fn at(&self, element: usize) -> *mut u8 {
        self.pointer.wrapping_add(element * self.dtype.size_bytes())
    }
}

fn check_aligned(buffer: &Buffer, name: &str) -> PyResult<()> {
    let alignment = dtype::alignment_bytes(buffer.dtype);
    if buffer.count == 0 || (buffer.pointer as usize).is_multiple_of(alignment) {
        return Ok(());
    }
    Err(refusal::unaligned(name))
}

/// numpy itself. rust-numpy panics without it; a rank gets an exception.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let import = || match py.import("numpy") {
        Ok(module) => Ok(module.into_any().unbind()),
        Err(cause) => {
            let text = "rlaunch moves numpy arrays, and numpy can't be imported; \
                        hint: pip install numpy for the Python that runs this rank";
            let error = PyImportError::new_err(text);
            error.set_cause(py, Some(cause));
            Err(error)
        }
    };
    Ok(NUMPY.get_or_try_init(py, import)?.bind(py))
}

fn numpy_empty(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let find = || Ok::<_, PyErr>(numpy(py)?.getattr("empty")?.unbind());
    Ok(EMPTY.get_or_try_init(py, find)?.bind(py))
}
