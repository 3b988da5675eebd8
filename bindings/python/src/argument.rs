//! Arguments beside the arrays: their values, and how arrays have to fit each other.

use crate::array::Array;
use crate::number::{Seconds, Whole};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::time::Duration;

/// This rank's place in the communicator of a call.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) rank: u32,
    pub(crate) size: u32,
}

pub(crate) fn rank(group: Group, name: &str, value: &Whole) -> PyResult<u32> {
    let known = value.within().filter(|rank| *rank < group.size);
    known.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{name}={value} is no rank here; ranks are 0 to {}",
            group.size - 1
        ))
    })
}

pub(crate) fn tag(value: &Whole) -> PyResult<u32> {
    within_u32("tag", value)
}

pub(crate) fn color(value: &Whole) -> PyResult<u32> {
    within_u32("color", value)
}

fn within_u32(name: &str, value: &Whole) -> PyResult<u32> {
    value.within().ok_or_else(|| {
        PyValueError::new_err(format!("{name}={value} is outside 0 to {}", u32::MAX))
    })
}

pub(crate) fn key(value: &Whole) -> PyResult<i64> {
    value.value().ok_or_else(|| {
        let (least, greatest) = (i64::MIN, i64::MAX);
        PyValueError::new_err(format!("key={value} is outside {least} to {greatest}"))
    })
}

/// A length for each rank.
pub(crate) fn counts(name: &str, values: &[Whole]) -> PyResult<Vec<usize>> {
    let parse = |(rank, value): (usize, &Whole)| {
        value.within().ok_or_else(|| {
            let problem = match value.value() {
                Some(_) => "negative",
                None => "more than memory can hold, or negative",
            };
            PyValueError::new_err(format!("{name}[{rank}]={value} is {problem}"))
        })
    };
    values.iter().enumerate().map(parse).collect()
}

/// A size in memory.
pub(crate) fn bytes(value: &Whole) -> PyResult<usize> {
    if let Some(bytes) = value.within() {
        return Ok(bytes);
    }
    let is_negative = match value {
        Whole::Is(_) => true,
        Whole::Beyond(object) => Python::attach(|py| object.bind(py).lt(0))?,
    };
    Err(if is_negative {
        PyValueError::new_err(format!("bytes={value} is negative"))
    } else {
        PyMemoryError::new_err(format!("bytes={value} are more than any machine has"))
    })
}

/// None where it is not given: no own limit.
pub(crate) fn seconds(name: &str, value: Option<Seconds>) -> PyResult<Option<Duration>> {
    let parse = |seconds: Seconds| {
        seconds.limit().ok_or_else(|| {
            PyValueError::new_err(format!(
                "{name}={seconds} is not a number of seconds above 0; hint: None for what \
                 RLAUNCH_TIMEOUT or set_timeout() says, math.inf for no limit"
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
