//! The argument `op`: a name, or what `premul_sum` and `operation` make.

use crate::array::Array;
use crate::dtype;
use crate::refusal::type_name;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};
use rlaunch_runtime::{Op, Reduction, Scalar, UserOp};
use std::sync::{Arc, Mutex, PoisonError};

/// What a user's function raised, on whatever thread it ran.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// A reduction with something of its own: made by premul_sum() or operation().
#[pyclass(frozen, module = "rlaunch")]
pub(crate) struct Operation {
    kind: Kind,
}

enum Kind {
    Premultiplied(Py<PyAny>),
    User {
        function: Py<PyAny>,
        is_commutative: bool,
    },
}

#[pymethods]
impl Operation {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match &self.kind {
            Kind::Premultiplied(scalar) => {
                format!("rlaunch.premul_sum({})", scalar.bind(py).repr()?)
            }
            Kind::User { function, .. } => {
                format!("rlaunch.operation({})", function.bind(py).repr()?)
            }
        })
    }
}

/// An op: each rank's input times its scalar, then the sum. Ranks may give different scalars.
#[pyfunction]
pub(crate) fn premul_sum(scalar: Bound<'_, PyAny>) -> PyResult<Operation> {
    if !is_number(&scalar)? {
        return Err(PyTypeError::new_err(format!(
            "scalar is {}, a {}, where one number is meant",
            scalar.repr()?,
            type_name(&scalar)
        )));
    }
    Ok(Operation {
        kind: Kind::Premultiplied(scalar.unbind()),
    })
}

/// Python's int, float or complex, and what numpy takes for a single number: its scalars, ml_dtypes',
/// arrays without dimensions, Fraction. Truth values are none.
fn is_number(scalar: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = scalar.py();
    if scalar.is_instance_of::<PyBool>() {
        return Ok(false);
    }
    if scalar.is_instance_of::<PyInt>() {
        return Ok(true);
    }
    let array = crate::array::numpy(py)?.call_method1(intern!(py, "asarray"), (scalar,))?;
    let kind = array.getattr("dtype")?.getattr("kind")?.extract::<char>()?;
    let is_one = array.getattr("ndim")?.extract::<usize>()? == 0;
    let is_fraction = || scalar.hasattr(intern!(py, "__float__")).unwrap_or(false);
    Ok(is_one
        && match kind {
            'i' | 'u' | 'f' | 'c' => true,
            // Floats of ml_dtypes, and fractions.
            'V' | 'O' => is_fraction(),
            _ => false,
        })
}

/// An op of your own. function(a, b) gets two one-dimensional numpy arrays, a from lower ranks
/// than b, and returns their combination, or changes a in place and returns None. It must be
/// associative; ranks are combined in their order.
#[pyfunction]
#[pyo3(signature = (function, *, commutative=true))]
pub(crate) fn operation(function: Bound<'_, PyAny>, commutative: bool) -> PyResult<Operation> {
    if !function.is_callable() {
        return Err(PyTypeError::new_err(
            "function can't be called; hint: rl.operation(lambda a, b: numpy.hypot(a, b))",
        ));
    }
    Ok(Operation {
        kind: Kind::User {
            function: function.unbind(),
            is_commutative: commutative,
        },
    })
}

/// `None` is the default of every call, the sum. `array` says which elements are meant.
pub(crate) fn parse(
    op: Option<&Bound<'_, PyAny>>,
    array: &Array<'_>,
) -> PyResult<(Reduction, Option<Raised>)> {
    let Some(op) = op else {
        return Ok((served(Op::Sum, array)?.into(), None));
    };
    if let Ok(name) = op.cast::<PyString>() {
        return Ok((served(named(name)?, array)?.into(), None));
    }
    let Ok(own) = op.cast::<Operation>() else {
        return Err(PyTypeError::new_err(format!(
            "op is {}; hint: pass a name, such as \"sum\", or what rl.premul_sum or rl.operation \
             returns",
            op.repr()?
        )));
    };
    match &own.get().kind {
        Kind::Premultiplied(scalar) => {
            served(Op::PremulSum, array)?;
            let scalar = scalar_in_type(scalar.bind(op.py()), array)?;
            Ok((Reduction::premul_sum(scalar), None))
        }
        Kind::User {
            function,
            is_commutative,
        } => {
            let raised = Raised::default();
            let user = user(function.clone_ref(op.py()), *is_commutative, array, &raised)?;
            Ok((Reduction::user(user), Some(raised)))
        }
    }
}

fn served(op: Op, array: &Array<'_>) -> PyResult<Op> {
    let dtype = array.buffer.dtype;
    match op.refusal(dtype) {
        None => Ok(op),
        Some(reason) => Err(PyTypeError::new_err(format!(
            "op {op} on elements of {dtype}: {reason}"
        ))),
    }
}

fn named(name: &Bound<'_, PyString>) -> PyResult<Op> {
    if name.is(intern!(name.py(), "sum")) {
        return Ok(Op::Sum);
    }
    let text = name.to_cow()?;
    // The two that need more than a name come from functions.
    let by_name = || {
        Op::ALL
            .iter()
            .filter(|op| !matches!(op, Op::PremulSum | Op::User))
    };
    by_name()
        .find(|op| op.name() == text)
        .copied()
        .ok_or_else(|| {
            let names: Vec<&str> = by_name().map(|op| op.name()).collect();
            let hint = match &*text {
                "mean" | "average" => "; hint: \"avg\"",
                "premul_sum" => "; hint: op=rl.premul_sum(scalar)",
                "user" => "; hint: op=rl.operation(function)",
                _ => "",
            };
            PyValueError::new_err(format!(
                "op is {text:?}; there are {}{hint}",
                names.join(", ")
            ))
        })
}

/// numpy converts, so that a scalar is whatever it takes for the type.
fn scalar_in_type(scalar: &Bound<'_, PyAny>, array: &Array<'_>) -> PyResult<Scalar> {
    let py = scalar.py();
    let dtype = array.numpy_dtype()?;
    let converted = crate::array::numpy(py)?.call_method1(intern!(py, "array"), (scalar, dtype));
    let converted = match converted {
        // Too large, or not a number at all, where integers are added.
        Err(error)
            if error.is_instance_of::<PyOverflowError>(py)
                || error.is_instance_of::<PyValueError>(py) =>
        {
            return Err(unfit(scalar, array));
        }
        converted => converted?,
    };
    // Floats are rounded to the type; whole numbers must be kept.
    let is_rounded = array.buffer.dtype.kind() == rlaunch_runtime::NumberKind::Integer
        && !converted.eq(scalar)?;
    if is_rounded {
        return Err(unfit(scalar, array));
    }
    let bytes = converted.call_method0(intern!(py, "tobytes"))?;
    let bytes = bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
    let fits = bytes.len() == array.buffer.dtype.size_bytes();
    fits.then(|| Scalar::from_bytes(bytes))
        .flatten()
        .ok_or_else(|| PyTypeError::new_err("premul_sum takes one number"))
}

fn unfit(scalar: &Bound<'_, PyAny>, array: &Array<'_>) -> PyErr {
    let text = scalar
        .repr()
        .map_or_else(|_| "it".into(), |text| text.to_string());
    PyValueError::new_err(format!(
        "premul_sum's scalar is {text}, which {} can't hold",
        array.buffer.dtype
    ))
}

fn user(
    function: Py<PyAny>,
    is_commutative: bool,
    array: &Array<'_>,
    raised: &Raised,
) -> PyResult<UserOp> {
    let dtype = array.numpy_dtype()?.unbind();
    let (raised, size) = (raised.clone(), array.buffer.dtype.size_bytes());
    let apply = move |inout: *mut u8, input: *const u8, count: usize| {
        let done = Python::try_attach(|py| {
            // SAFETY: the runtime passes two blocks of `count` elements.
            unsafe { combine(py, &function, &dtype, inout, input, count, count * size) }
        });
        if let Some(Err(error)) = done {
            let mut first = raised.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    };
    Ok(UserOp {
        function: Arc::new(apply),
        is_commutative,
    })
}

/// The user's function works on copies: what it keeps of them stays valid.
///
/// # Safety
/// `inout` and `input` hold `bytes` bytes, `count` elements of `dtype`.
unsafe fn combine(
    py: Python<'_>,
    function: &Py<PyAny>,
    dtype: &Py<PyAny>,
    inout: *mut u8,
    input: *const u8,
    count: usize,
    bytes: usize,
) -> PyResult<()> {
    let copy = |from: *const u8| -> PyResult<(Bound<'_, PyAny>, *mut u8)> {
        let array = crate::array::numpy(py)?.call_method1(intern!(py, "empty"), (count, dtype))?;
        let memory = dtype::memory_of_numpy(&array)?;
        // SAFETY: both hold `bytes` bytes, the one new.
        unsafe { from.copy_to_nonoverlapping(memory, bytes) };
        Ok((array, memory))
    };
    let (a, a_memory) = copy(inout)?;
    let (b, _) = copy(input)?;
    let combined = function.call1(py, (&a, b))?;
    let mut result = a_memory;
    if !combined.is_none(py) {
        let shape = crate::array::numpy(py)?.call_method1(intern!(py, "shape"), (&combined,))?;
        if !shape.eq((count,))? {
            return Err(PyValueError::new_err(format!(
                "the function of rl.operation returned an array of shape {shape} for two of shape \
                 ({count},); it must return as many elements, or change its first argument and \
                 return None"
            )));
        }
        let assign = (pyo3::types::PyEllipsis::get(py), combined);
        a.call_method1(intern!(py, "__setitem__"), assign)?;
        result = dtype::memory_of_numpy(&a)?;
    }
    // SAFETY: `inout` holds `bytes` bytes, and so does the array, which is alive.
    unsafe { inout.copy_from_nonoverlapping(result, bytes) };
    Ok(())
}

/// Raises what a user's function raised during the call.
pub(crate) fn check(raised: Option<&Raised>) -> PyResult<()> {
    let found = raised.and_then(|raised| {
        let mut raised = raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.take()
    });
    found.map_or(Ok(()), Err)
}
