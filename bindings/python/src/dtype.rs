//! Element types under their names in numpy, ml_dtypes and DLPack.

use crate::array::numpy;
use numpy::npyffi::_PyArray_GET_ITEM_DATA;
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use rlaunch_runtime::DType;

/// numpy numbers types of extensions, such as ml_dtypes, from here on.
const FIRST_OF_EXTENSIONS: i32 = 256;

/// `None` for what can't travel: other types, and the other byte order.
pub(crate) fn of_numpy(dtype: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    if dtype.num() >= FIRST_OF_EXTENSIONS {
        return of_extension(dtype);
    }
    if dtype.kind() == b'V' {
        return of_pair(dtype);
    }
    if dtype.is_native_byteorder() == Some(false) {
        return None;
    }
    match (dtype.kind(), dtype.itemsize()) {
        (b'f', 4) => Some(DType::F32),
        (b'f', 8) => Some(DType::F64),
        (b'f', 2) => Some(DType::F16),
        (b'i', 8) => Some(DType::I64),
        (b'i', 4) => Some(DType::I32),
        (b'i', 2) => Some(DType::I16),
        (b'i', 1) => Some(DType::I8),
        (b'u', 8) => Some(DType::U64),
        (b'u', 4) => Some(DType::U32),
        (b'u', 2) => Some(DType::U16),
        (b'u', 1) => Some(DType::U8),
        (b'c', 8) => Some(DType::C64),
        (b'c', 16) => Some(DType::C128),
        (b'b', 1) => Some(DType::Bool),
        _ => None,
    }
}

/// The types of ml_dtypes, by name: the module need not be there.
fn of_extension(dtype: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let name = dtype.getattr("name").ok()?;
    match name.extract::<String>().ok()?.as_str() {
        "bfloat16" => Some(DType::BF16),
        "float8_e4m3fn" => Some(DType::F8E4M3),
        "float8_e5m2" => Some(DType::F8E5M2),
        _ => None,
    }
}

/// A record of a value and an index, whatever the two are called, with nothing between them.
fn of_pair(dtype: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    let names = dtype.names()?;
    let [value, index] = names.as_slice() else {
        return None;
    };
    let (value, value_offset) = dtype.get_field(value).ok()?;
    let (index, index_offset) = dtype.get_field(index).ok()?;
    let pair = match (of_numpy(&value)?, of_numpy(&index)?) {
        (DType::F32, DType::I32) => DType::F32I32,
        (DType::F64, DType::I64) => DType::F64I64,
        (DType::I32, DType::I32) => DType::I32I32,
        (DType::I64, DType::I64) => DType::I64I64,
        _ => return None,
    };
    let is_packed = value_offset == 0
        && index_offset == value.itemsize()
        && dtype.itemsize() == pair.size_bytes();
    is_packed.then_some(pair)
}

/// DLPack's (code, bits) of a type of one lane.
pub(crate) fn of_dlpack(code: u8, bits: u8) -> Option<DType> {
    match (code, bits) {
        (0, 8) => Some(DType::I8),
        (0, 16) => Some(DType::I16),
        (0, 32) => Some(DType::I32),
        (0, 64) => Some(DType::I64),
        (1, 8) => Some(DType::U8),
        (1, 16) => Some(DType::U16),
        (1, 32) => Some(DType::U32),
        (1, 64) => Some(DType::U64),
        (2, 16) => Some(DType::F16),
        (2, 32) => Some(DType::F32),
        (2, 64) => Some(DType::F64),
        (4, 16) => Some(DType::BF16),
        (5, 64) => Some(DType::C64),
        (5, 128) => Some(DType::C128),
        (6, 8) => Some(DType::Bool),
        (10, 8) => Some(DType::F8E4M3),
        (12, 8) => Some(DType::F8E5M2),
        _ => None,
    }
}

/// What an element's address must be a multiple of.
pub(crate) fn alignment_bytes(dtype: DType) -> usize {
    match dtype {
        DType::C64 | DType::F32I32 | DType::I32I32 => 4,
        DType::C128 | DType::F64I64 | DType::I64I64 => 8,
        _ => dtype.size_bytes(),
    }
}

/// numpy's name for a type; ml_dtypes has some of them.
pub(crate) fn to_numpy(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let numpy = numpy(py)?;
    let pair = |value: &str, index: &str| {
        let fields = vec![("value", value), ("index", index)];
        numpy.call_method1(intern!(py, "dtype"), (fields,))
    };
    match dtype {
        DType::BF16 => of_ml_dtypes(py, "bfloat16"),
        DType::F8E4M3 => of_ml_dtypes(py, "float8_e4m3fn"),
        DType::F8E5M2 => of_ml_dtypes(py, "float8_e5m2"),
        DType::F32I32 => pair("f4", "i4"),
        DType::F64I64 => pair("f8", "i8"),
        DType::I32I32 => pair("i4", "i4"),
        DType::I64I64 => pair("i8", "i8"),
        _ => numpy.call_method1(intern!(py, "dtype"), (dtype.name(),)),
    }
}

fn of_ml_dtypes<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("ml_dtypes").map_err(|cause| {
        let text = format!("numpy has {name} from ml_dtypes only; hint: pip install ml_dtypes");
        let error = PyImportError::new_err(text);
        error.set_cause(py, Some(cause));
        error
    })?;
    let scalar = module.getattr(name)?;
    numpy(py)?.call_method1(intern!(py, "dtype"), (scalar,))
}

/// Where a numpy array's elements lie, for an array made here.
pub(crate) fn memory_of_numpy(array: &Bound<'_, PyAny>) -> PyResult<*mut u8> {
    let array = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
    // SAFETY: the array is alive, so its header is.
    Ok(unsafe { (*_PyArray_GET_ITEM_DATA(array.as_array_ptr())).data }.cast())
}
