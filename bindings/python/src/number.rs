//! Numbers as Python gives them: what is none is refused as a TypeError, what is out of range by whoever
//! knows the argument's name, as a ValueError.

use crate::refusal::type_name;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::fmt;
use std::time::Duration;

/// In a receive or a probe: from whichever rank, with whichever tag.
pub(crate) const ANY: i64 = -1;

/// A whole number that Python gave, of any size: what is none (a bool, a float, a string) is a
/// TypeError, and what is out of range a ValueError that shows it whole.
#[derive(Debug)]
pub(crate) enum Whole {
    Is(i64),
    /// More than 64 bits; as it was given.
    Beyond(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if is_bool(&object) {
            return Err(PyTypeError::new_err(format!(
                "{} is a bool, where a whole number is meant",
                object.repr()?
            )));
        }
        match object.extract::<i64>() {
            Ok(value) => Ok(Self::Is(value)),
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                Ok(Self::Beyond(object.to_owned().unbind()))
            }
            Err(error) => Err(error),
        }
    }
}

impl<'py> IntoPyObject<'py> for Whole {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        match self {
            Self::Is(value) => Ok(value.into_pyobject(py)?.into_any()),
            Self::Beyond(object) => Ok(object.into_bound(py)),
        }
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => write!(f, "{value}"),
            Self::Beyond(object) => {
                // Python itself refuses to print numbers of thousands of digits.
                let text = Python::attach(|py| object.bind(py).str().map(|text| text.to_string()));
                f.write_str(text.as_deref().unwrap_or("(thousands of digits)"))
            }
        }
    }
}

impl Whole {
    pub(crate) fn value(&self) -> Option<i64> {
        match self {
            Self::Is(value) => Some(*value),
            Self::Beyond(_) => None,
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.value() == Some(ANY)
    }

    pub(crate) fn within<T: TryFrom<i64>>(&self) -> Option<T> {
        self.value().and_then(|value| T::try_from(value).ok())
    }
}

/// A number of seconds that Python gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(f64);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let refused = |object: Borrowed<'_, 'py, PyAny>| -> PyErr {
            let (kind, text) = (type_name(&object), object.repr());
            let text = text.map_or_else(|_| "it".to_owned(), |text| text.to_string());
            PyTypeError::new_err(format!(
                "{text} is a {kind}, where a number of seconds is meant"
            ))
        };
        if is_bool(&object) {
            return Err(refused(object));
        }
        match object.extract::<f64>() {
            Ok(value) => Ok(Self(value)),
            // An integer that no float holds.
            Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
                let sign = if object.lt(0)? { -1.0 } else { 1.0 };
                Ok(Self(sign * f64::INFINITY))
            }
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Err(refused(object)),
            Err(error) => Err(error),
        }
    }
}

/// As Python shows it, but without the `.0` of whole numbers.
impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            return f.write_str("nan");
        }
        let text = format!("{:?}", self.0);
        f.write_str(text.strip_suffix(".0").unwrap_or(&text))
    }
}

impl Seconds {
    /// How long a call may wait; None for what is no limit.
    pub(crate) fn limit(self) -> Option<Duration> {
        rlaunch_runtime::seconds(self.0)
    }

    /// How long to look for something: none is once, infinity is for ever.
    pub(crate) fn longest(self) -> PyResult<Duration> {
        if self.0 == 0.0 {
            return Ok(Duration::ZERO);
        }
        self.limit().ok_or_else(|| {
            PyValueError::new_err(format!(
                "seconds={self} is no time to wait; hint: 0 looks without waiting"
            ))
        })
    }
}

/// Python's, or numpy's, which is no int but has a value as float.
fn is_bool(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBool>() || type_name(object).starts_with("numpy.bool")
}
