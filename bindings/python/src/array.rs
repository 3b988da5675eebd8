//! What of a Python object the runtime may read and write, and a refusal that tells the way out for
//! everything else.

use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NPY_ARRAY_WRITEABLE};
use numpy::{
    Element, PyArrayDescr, PyArrayDescrMethods, PyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use rlaunch_runtime::DType;

/// The memory of an array. Whoever uses it holds the array.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) pointer: *mut u8,
    pub(crate) count: usize,
    pub(crate) dtype: DType,
}

// SAFETY: memory of numpy, bound to no thread. That no other thread writes to it during a call is
// what every numpy function without the GIL expects of its caller, too.
unsafe impl Send for Buffer {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A numpy array that can be handed to the runtime: known type, one block in C order, aligned, and
/// writable where asked for.
pub(crate) struct Array<'py> {
    object: Bound<'py, PyUntypedArray>,
    pub(crate) buffer: Buffer,
}

impl<'py> Array<'py> {
    /// `name` is the argument's, for the refusal.
    pub(crate) fn new(object: &Bound<'py, PyAny>, name: &str, access: Access) -> PyResult<Self> {
        import_numpy(object.py())?;
        let Ok(array) = object.cast::<PyUntypedArray>() else {
            return Err(not_an_array(object, name));
        };
        let dtype = dtype_of(&array.dtype()).ok_or_else(|| wrong_dtype(array, name))?;
        if !array.is_c_contiguous() {
            return Err(not_contiguous(array, name, access));
        }
        if !array.is_aligned() {
            return Err(value_error(format!(
                "{name} does not start at a multiple of its element's size; \
                 hint: pass a copy, {name}.copy()"
            )));
        }
        let raw = array.as_array_ptr();
        // SAFETY: `array` is alive, so its header is.
        let (data, flags) = unsafe {
            let fields = _PyArray_GET_ITEM_DATA(raw);
            ((*fields).data, (*fields).flags)
        };
        if access == Access::Write && flags & NPY_ARRAY_WRITEABLE == 0 {
            return Err(value_error(format!(
                "{name} is read-only, and its contents would change; \
                 hint: pass a copy, {name}.copy()"
            )));
        }
        let buffer = Buffer {
            pointer: data.cast(),
            count: array.len(),
            dtype,
        };
        Ok(Self {
            object: array.clone(),
            buffer,
        })
    }

    /// A new array.
    pub(crate) fn zeros(py: Python<'py>, dtype: DType, shape: &[usize]) -> PyResult<Self> {
        fn make<'py, T: Element>(py: Python<'py>, shape: &[usize]) -> Bound<'py, PyAny> {
            PyArrayDyn::<T>::zeros(py, shape, false).into_any()
        }
        import_numpy(py)?;
        let object = match dtype {
            DType::I32 => make::<i32>(py, shape),
            DType::I64 => make::<i64>(py, shape),
            DType::F32 => make::<f32>(py, shape),
            DType::F64 => make::<f64>(py, shape),
            _ => return Err(value_error(format!("no array of {dtype} can be made yet"))),
        };
        Self::new(&object, "out", Access::Write)
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.object.shape()
    }

    pub(crate) fn into_object(self) -> Py<PyAny> {
        self.object.into_any().unbind()
    }

    /// Do any bytes belong to both?
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.buffer.addresses(), other.buffer.addresses());
        a.start < b.end && b.start < a.end
    }
}

impl Buffer {
    fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.pointer as usize;
        start..start + self.count * self.dtype.size_bytes()
    }
}

/// rust-numpy panics without numpy; a rank gets an exception.
fn import_numpy(py: Python<'_>) -> PyResult<()> {
    static NUMPY: PyOnceLock<()> = PyOnceLock::new();
    let import = || match py.import("numpy") {
        Ok(_) => Ok(()),
        Err(cause) => {
            let text = "rlaunch moves numpy arrays, and numpy can't be imported; \
                        hint: pip install numpy for the Python that runs this rank";
            let error = PyImportError::new_err(text);
            error.set_cause(py, Some(cause));
            Err(error)
        }
    };
    NUMPY.get_or_try_init(py, import)?;
    Ok(())
}

fn dtype_of(dtype: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    if dtype.is_native_byteorder() != Some(true) {
        return None;
    }
    match (dtype.kind(), dtype.itemsize()) {
        (b'i', 4) => Some(DType::I32),
        (b'i', 8) => Some(DType::I64),
        (b'f', 4) => Some(DType::F32),
        (b'f', 8) => Some(DType::F64),
        _ => None,
    }
}

fn value_error(text: String) -> PyErr {
    PyValueError::new_err(text)
}

/// `torch.Tensor`, `list`
fn type_name(object: &Bound<'_, PyAny>) -> String {
    let kind = object.get_type();
    let name = kind
        .name()
        .map_or_else(|_| "object".to_owned(), |name| name.to_string());
    match kind.module() {
        Ok(module) if module != "builtins" => format!("{module}.{name}"),
        _ => name,
    }
}

fn not_an_array(object: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let kind = type_name(object);
    let hint = if kind.starts_with("torch.") {
        format!(
            "{name}.numpy() shares a CPU tensor's memory \
             ({name}.detach().numpy() for one with gradients)"
        )
    } else if kind.starts_with("numpy.") || kind == "int" || kind == "float" {
        format!("{name} = numpy.array({name}), an array of one element")
    } else if object.hasattr("__array__").unwrap_or(false) || kind == "list" || kind == "tuple" {
        format!("{name} = numpy.asarray({name})")
    } else {
        "pass a numpy.ndarray of int32, int64, float32 or float64".to_owned()
    };
    PyTypeError::new_err(format!(
        "{name} is a {kind}, not a numpy array; hint: {hint}"
    ))
}

fn wrong_dtype(array: &Bound<'_, PyUntypedArray>, name: &str) -> PyErr {
    let dtype = array.dtype();
    let hint = match dtype.kind() {
        b'O' => format!("{name} holds Python objects; numpy.array({name}, dtype=numpy.float64)"),
        b'i' | b'f' if dtype.is_native_byteorder() == Some(false) => {
            format!(
                "{name} has the other byte order; {name}.astype({name}.dtype.newbyteorder('='))"
            )
        }
        b'b' | b'i' | b'u' => format!("pass {name}.astype(numpy.int64)"),
        b'f' => format!("pass {name}.astype(numpy.float32)"),
        b'c' => format!("pass {name}.view(numpy.float64) of a complex128 array to sum it"),
        _ => "convert it to one of these".to_owned(),
    };
    PyTypeError::new_err(format!(
        "{name} has dtype {dtype}; rlaunch moves int32, int64, float32 and float64; hint: {hint}"
    ))
}

fn not_contiguous(array: &Bound<'_, PyUntypedArray>, name: &str, access: Access) -> PyErr {
    let back = match access {
        Access::Read => String::new(),
        Access::Write => format!(", then {name}[...] = copy"),
    };
    value_error(format!(
        "{name} is not one block of memory in C order (shape {:?}, strides {:?}); \
         hint: pass copy = numpy.ascontiguousarray({name}){back}",
        array.shape(),
        array.strides()
    ))
}
