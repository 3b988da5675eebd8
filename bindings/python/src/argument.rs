//! Arguments beside the arrays: their values, and how arrays have to fit each other.

use crate::array::Array;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::time::Duration;

/// In a receive or a probe: from whichever rank, with whichever tag.
pub(crate) const ANY: i64 = -1;

/// A whole number that Python gave. One past 64 bits becomes the nearest that has them, which is no
/// rank and no tag either, so that the refusal names the argument.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) i64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract::<i64>() {
            Ok(value) => Ok(Self(value)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                let end = if object.lt(0)? { i64::MIN } else { i64::MAX };
                Ok(Self(end))
            }
            Err(error) => Err(error),
        }
    }
}

impl<'py> IntoPyObject<'py> for Whole {
    type Target = PyInt;
    type Output = Bound<'py, PyInt>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        self.0.into_pyobject(py)
    }
}

/// This rank's place in the communicator of a call.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

pub(crate) fn rank(group: Group, name: &str, Whole(value): Whole) -> PyResult<u32> {
    match u32::try_from(value) {
        Ok(rank) if rank < group.size => Ok(rank),
        _ => Err(PyValueError::new_err(format!(
            "{name}={value} is no rank here; ranks are 0 to {}",
            group.size - 1
        ))),
    }
}

pub(crate) fn tag(Whole(tag): Whole) -> PyResult<u32> {
    u32::try_from(tag)
        .map_err(|_| PyValueError::new_err(format!("tag={tag} is outside 0 to {}", u32::MAX)))
}

pub(crate) fn color(Whole(color): Whole) -> PyResult<u32> {
    u32::try_from(color)
        .map_err(|_| PyValueError::new_err(format!("color={color} is outside 0 to {}", u32::MAX)))
}

pub(crate) fn key(Whole(key): Whole) -> PyResult<i64> {
    // The ends stand for all that is beyond them.
    if key == i64::MAX || key == i64::MIN {
        return Err(PyValueError::new_err(format!(
            "key={key} has more than 63 bits"
        )));
    }
    Ok(key)
}

pub(crate) fn seconds(name: &str, value: Option<f64>) -> PyResult<Option<Duration>> {
    let parse = |seconds: f64| {
        let duration = Duration::try_from_secs_f64(seconds).ok();
        duration
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| {
                PyValueError::new_err(format!(
                    "{name}={seconds} is not a number of seconds above 0; hint: None for no own limit"
                ))
            })
    };
    value.map(parse).transpose()
}

/// The two have one type, and share no memory unless `part` lies in `whole` exactly at element
/// `own`: in place.
pub(crate) fn check_apart(
    (whole_name, whole): (&str, &Array<'_>),
    (part_name, part): (&str, &Array<'_>),
    own: usize,
) -> PyResult<()> {
    if whole.buffer.dtype != part.buffer.dtype {
        return Err(PyTypeError::new_err(format!(
            "{whole_name} has elements of {}, but {part_name} of {}; hint: give both the same dtype",
            whole.buffer.dtype, part.buffer.dtype
        )));
    }
    if !whole.overlaps(part) || whole.buffer.at(own) == part.buffer.pointer {
        return Ok(());
    }
    Err(PyValueError::new_err(
        "x and out share memory, and out would overwrite x; hint: pass x.copy(), or this rank's \
         own part of the larger one",
    ))
}

/// `whole` has `part` for each rank.
pub(crate) fn check_times(
    group: Group,
    (whole_name, whole): (&str, &Array<'_>),
    (part_name, part): (&str, &Array<'_>),
) -> PyResult<()> {
    let (whole, part) = (whole.buffer.count, part.buffer.count);
    if part.checked_mul(group.size as usize) == Some(whole) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{whole_name} has {whole} elements, but must have {part_name}'s {part} for each of {} \
         ranks; hint: leave out away, and it is made",
        group.size
    )))
}

pub(crate) fn check_same(x: &Array<'_>, out: &Array<'_>) -> PyResult<()> {
    if x.buffer.count == out.buffer.count {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "out has {} elements, but x has {}; hint: out = numpy.empty_like(x)",
        out.buffer.count, x.buffer.count
    )))
}

/// `x[r]` belongs to rank r: the shape of one of them.
pub(crate) fn part_of(group: Group, shape: &[usize]) -> PyResult<&[usize]> {
    match shape.split_first() {
        Some((parts, shape)) if *parts == group.size as usize => Ok(shape),
        _ => Err(PyValueError::new_err(format!(
            "x has shape {shape:?}, but x[r] is what rank r gets, so its first length must be {0}; \
             hint: x.reshape({0}, -1), or give out",
            group.size
        ))),
    }
}
