//! Arguments beside the arrays: their values, and how arrays have to fit each other.

use crate::array::Array;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rlaunch_runtime::Op;

pub(crate) fn rank(size: u32, name: &str, value: i64) -> PyResult<u32> {
    match u32::try_from(value) {
        Ok(rank) if rank < size => Ok(rank),
        _ => Err(PyValueError::new_err(format!(
            "{name}={value} is no rank of this world; ranks are 0 to {}",
            size - 1
        ))),
    }
}

pub(crate) fn op(name: &str) -> PyResult<Op> {
    let found = Op::ALL[..4].iter().find(|op| op.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = Op::ALL[..4].iter().map(|op| op.name()).collect();
        let hint = match name {
            "avg" | "mean" | "average" => "; hint: take the sum and divide by rl.size()",
            _ => "",
        };
        PyValueError::new_err(format!(
            "op is {name:?}; there are {}{hint}",
            names.join(", ")
        ))
    })
}

pub(crate) fn tag(tag: i64) -> PyResult<u32> {
    u32::try_from(tag)
        .map_err(|_| PyValueError::new_err(format!("tag={tag} is outside 0 to {}", u32::MAX)))
}

pub(crate) fn check_apart(input: &Array<'_>, output: &Array<'_>) -> PyResult<()> {
    if input.buffer.dtype != output.buffer.dtype {
        return Err(PyTypeError::new_err(format!(
            "x has dtype {}, but out has {}; hint: give both the same",
            input.buffer.dtype, output.buffer.dtype
        )));
    }
    if input.overlaps(output) {
        return Err(PyValueError::new_err(
            "x and out share memory, and out would overwrite x; hint: pass x.copy()",
        ));
    }
    Ok(())
}
