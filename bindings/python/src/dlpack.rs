//! DLPack: how torch, JAX and others show their memory to strangers, without being imported here.
//!
//! The capsule that `__dlpack__` gives is looked at, not taken: while it lives the memory does, and
//! its own destructor gives the memory back.

use crate::array::Buffer;
use crate::dtype;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};

const NAME: &CStr = c"dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";

const FLAG_READ_ONLY: u64 = 1;
const FLAG_COPIED: u64 = 2;

/// Devices whose memory the processor reaches: CPU, and memory pinned for CUDA and ROCm.
const HOST_DEVICES: [i32; 4] = [1, 3, 11, 13];

#[repr(C)]
struct Device {
    kind: i32,
    number: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    dtype: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The first fields of `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: *const c_void,
    flags: u64,
    tensor: Tensor,
}

/// What an object showed of itself.
pub(crate) struct Shown<'py> {
    /// Keeps the memory alive.
    pub(crate) capsule: Bound<'py, PyAny>,
    pub(crate) buffer: Buffer,
    pub(crate) shape: Vec<usize>,
    pub(crate) is_read_only: bool,
}

/// `None` where the object does not speak DLPack. `name` is the argument's, for refusals.
pub(crate) fn show<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Shown<'py>>> {
    let Ok(export) = object.getattr(intern!(object.py(), "__dlpack__")) else {
        return Ok(None);
    };
    let capsule = call(&export).map_err(|cause| {
        let text = format!(
            "{name} does not give its memory: {cause}; \
             hint: a tensor with gradients can be passed as {name}.detach()"
        );
        let refused = PyValueError::new_err(text);
        refused.set_cause(object.py(), Some(cause));
        refused
    })?;
    let (tensor, flags) = tensor_of(&capsule, name)?;
    // SAFETY: the capsule is alive, and the tensor inside it with it.
    let tensor = unsafe { &*tensor };
    let (buffer, shape) = look(tensor, name)?;
    Ok(Some(Shown {
        capsule,
        buffer,
        shape,
        is_read_only: flags & (FLAG_READ_ONLY | FLAG_COPIED) != 0,
    }))
}

/// Exporters of before DLPack 1.0 know no versions.
fn call<'py>(export: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = export.py();
    let options = PyDict::new(py);
    options.set_item(intern!(py, "max_version"), (1, 1))?;
    match export.call((), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call0(),
        result => result,
    }
}

fn tensor_of(capsule: &Bound<'_, PyAny>, name: &str) -> PyResult<(*const Tensor, u64)> {
    let raw = capsule.as_ptr();
    // SAFETY: any object and a name may be asked about.
    if unsafe { ffi::PyCapsule_IsValid(raw, NAME_VERSIONED.as_ptr()) } == 1 {
        // SAFETY: valid by the line above.
        let inside = unsafe { ffi::PyCapsule_GetPointer(raw, NAME_VERSIONED.as_ptr()) };
        let versioned = inside.cast::<Versioned>();
        // SAFETY: what a capsule of this name holds, by DLPack's contract.
        let version = unsafe { (*versioned).version };
        if version[0] != 1 {
            let text = format!("{name} speaks DLPack {}, but 1 was asked for", version[0]);
            return Err(PyTypeError::new_err(text));
        }
        // SAFETY: as above; the layout of version 1 was checked.
        let flags = unsafe { (*versioned).flags };
        // SAFETY: as above.
        return Ok((unsafe { &raw const (*versioned).tensor }, flags));
    }
    // SAFETY: any object and a name may be asked about.
    if unsafe { ffi::PyCapsule_IsValid(raw, NAME.as_ptr()) } == 1 {
        // SAFETY: valid by the line above; a DLManagedTensor begins with its tensor.
        let tensor = unsafe { ffi::PyCapsule_GetPointer(raw, NAME.as_ptr()) };
        return Ok((tensor.cast_const().cast(), 0));
    }
    Err(PyTypeError::new_err(format!(
        "{name}.__dlpack__() gave no DLPack capsule"
    )))
}

fn look(tensor: &Tensor, name: &str) -> PyResult<(Buffer, Vec<usize>)> {
    if !HOST_DEVICES.contains(&tensor.device.kind) {
        return Err(PyTypeError::new_err(format!(
            "{name} is in the memory of a device (DLPack's {}, number {}); \
             hint: rlaunch moves host memory, pass {name}.cpu()",
            tensor.device.kind, tensor.device.number
        )));
    }
    let dtype = (tensor.dtype.lanes == 1)
        .then(|| dtype::of_dlpack(tensor.dtype.code, tensor.dtype.bits))
        .flatten();
    let Some(dtype) = dtype else {
        return Err(PyTypeError::new_err(format!(
            "{name} has a type that does not travel (DLPack's code {}, {} bits); \
             hint: convert it to one of those that rlaunch.World lists",
            tensor.dtype.code, tensor.dtype.bits
        )));
    };
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(0);
    let shape = numbers(tensor.shape, dimensions);
    let shape: Vec<usize> = shape
        .iter()
        .map(|length| usize::try_from(*length).unwrap_or(0))
        .collect();
    let count = shape.iter().product();
    if count > 0 && !is_one_block(&shape, numbers(tensor.strides, dimensions)) {
        return Err(PyValueError::new_err(format!(
            "{name} is not one block of memory in C order (shape {shape:?}); \
             hint: pass {name}.contiguous()"
        )));
    }
    let offset = usize::try_from(tensor.byte_offset).unwrap_or(0);
    let pointer = tensor.data.cast::<u8>().wrapping_add(offset);
    Ok((
        Buffer {
            pointer,
            count,
            dtype,
        },
        shape,
    ))
}

/// Empty where DLPack gives none: compact strides.
fn numbers<'t>(start: *const i64, count: usize) -> &'t [i64] {
    if start.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: DLPack's contract: one number for each dimension, alive as long as the tensor, which
    // the caller holds.
    unsafe { std::slice::from_raw_parts(start, count) }
}

fn is_one_block(shape: &[usize], strides: &[i64]) -> bool {
    if strides.is_empty() {
        return true;
    }
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(length, stride)| {
        let fits = *length == 1 || usize::try_from(*stride) == Ok(expected);
        expected *= length;
        fits
    })
}
