//! Why an object can't travel, and the way out.

use crate::array::Access;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

pub(crate) const TYPES: &str = "rlaunch moves integers and floats of 8 to 64 bits, bfloat16, \
                                float8_e4m3fn, float8_e5m2, complex64, complex128, bool, and pairs \
                                of a value and an index";

/// `torch.Tensor`, `list`
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    let kind = object.get_type();
    let name = kind
        .name()
        .map_or_else(|_| "object".to_owned(), |name| name.to_string());
    match kind.module() {
        Ok(module) if module != "builtins" => format!("{module}.{name}"),
        _ => name,
    }
}

pub(crate) fn not_an_array(object: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let kind = type_name(object);
    let hint = if kind == "int" || kind == "float" || kind == "complex" || kind == "bool" {
        format!("{name} = numpy.array({name}), an array of one element")
    } else if object.hasattr("__array__").unwrap_or(false) || kind == "list" || kind == "tuple" {
        format!("{name} = numpy.asarray({name})")
    } else {
        "pass a numpy array, or any object through rl.send_object, rl.broadcast_object and so on"
            .to_owned()
    };
    PyTypeError::new_err(format!(
        "{name} is a {kind}, which has no memory to share (numpy, DLPack, buffer protocol); \
         hint: {hint}"
    ))
}

pub(crate) fn wrong_dtype(array: &Bound<'_, PyUntypedArray>, name: &str) -> PyErr {
    let dtype = array.dtype();
    let hint = match dtype.kind() {
        b'O' => format!(
            "{name} holds Python objects; numpy.array({name}, dtype=numpy.float64), or \
             rl.send_object, rl.broadcast_object and so on"
        ),
        b'i' | b'u' | b'f' | b'c' if dtype.is_native_byteorder() == Some(false) => {
            format!(
                "{name} has the other byte order; {name}.astype({name}.dtype.newbyteorder('='))"
            )
        }
        b'f' => format!("pass {name}.astype(numpy.float64)"),
        b'c' => format!("pass {name}.astype(numpy.complex128)"),
        b'M' | b'm' => format!("pass {name}.view(numpy.int64)"),
        _ => format!("{name}.view(numpy.uint8) travels as bytes"),
    };
    PyTypeError::new_err(format!("{name} has dtype {dtype}; {TYPES}; hint: {hint}"))
}

pub(crate) fn not_contiguous(
    array: &Bound<'_, PyUntypedArray>,
    name: &str,
    access: Access,
) -> PyErr {
    let back = match access {
        Access::Read => String::new(),
        Access::Write => format!(", then {name}[...] = copy"),
    };
    PyValueError::new_err(format!(
        "{name} is not one block of memory in C order (shape {:?}, strides {:?}); \
         hint: pass copy = numpy.ascontiguousarray({name}){back}",
        array.shape(),
        array.strides()
    ))
}

pub(crate) fn read_only(name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name} is read-only, and its contents would change; hint: pass a copy, {name}.copy()"
    ))
}

pub(crate) fn unaligned(name: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{name} does not start at a multiple of its element's size; \
         hint: pass a copy, {name}.copy()"
    ))
}

pub(crate) fn needs_out(object: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a new {} for the result can't be made from here; hint: pass out",
        type_name(object)
    ))
}
