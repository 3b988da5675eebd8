//! From a call's Python arguments to the runtime's [`Call`], checked. All three ways to call, at
//! once, as a request and prepared, start here.

use crate::argument::{self, Group, check_apart, check_same, check_times};
use crate::array::{Access, Array, Buffer};
use crate::in_use::{self, Use};
use crate::number::Whole;
use crate::reduction::{self, Raised};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlaunch_runtime::Call;

type Object<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// A call with what it needs alive, and with what it gives back.
pub(crate) struct Plan<'py> {
    pub(crate) call: Call,
    input: Option<Array<'py>>,
    output: Option<Array<'py>>,
    gives: Gives,
    pub(crate) raised: Option<Raised>,
}

#[derive(Clone, Copy)]
enum Gives {
    Nothing,
    Input,
    Output,
}

impl<'py> Plan<'py> {
    pub(crate) fn input_of(array: Array<'py>, call: Call) -> Self {
        Self {
            call,
            input: Some(array),
            output: None,
            gives: Gives::Input,
            raised: None,
        }
    }

    pub(crate) fn between(
        input: Option<Array<'py>>,
        output: Option<Array<'py>>,
        call: Call,
    ) -> Self {
        let gives = match output {
            Some(_) => Gives::Output,
            None => Gives::Nothing,
        };
        Self {
            call,
            input,
            output,
            gives,
            raised: None,
        }
    }

    pub(crate) fn with(self, raised: Option<Raised>) -> Self {
        Self { raised, ..self }
    }

    /// What has to stay alive while the call goes on.
    pub(crate) fn keepers(&self) -> Vec<Py<PyAny>> {
        let arrays = [&self.input, &self.output];
        arrays
            .into_iter()
            .flatten()
            .flat_map(Array::keepers)
            .collect()
    }

    /// What memory the call has until it is complete.
    pub(crate) fn in_use(&self) -> Vec<Use> {
        let input = self.input.as_ref().map(|array| array.in_use("x"));
        let output = self.output.as_ref().map(|array| array.in_use("out"));
        input.into_iter().chain(output).collect()
    }

    pub(crate) fn check_free(&self) -> PyResult<()> {
        let array =
            |array: &Option<Array<'_>>, name| array.as_ref().map(|array| array.in_use(name));
        let uses = [array(&self.input, "x"), array(&self.output, "out")];
        in_use::check(self.name(), uses.iter().flatten())
    }

    pub(crate) fn name(&self) -> &'static str {
        self.call.collective.name()
    }

    /// What the Python function returns.
    pub(crate) fn into_result(self, py: Python<'_>) -> Py<PyAny> {
        let array = match self.gives {
            Gives::Nothing => None,
            Gives::Input => self.input,
            Gives::Output => self.output,
        };
        array.map_or_else(|| py.None(), Array::into_object)
    }
}

pub(crate) fn barrier<'py>(_: Group) -> PyResult<Plan<'py>> {
    Ok(Plan::between(None, None, Call::barrier()))
}

pub(crate) fn broadcast<'py>(group: Group, x: Object<'_, 'py>, root: Whole) -> PyResult<Plan<'py>> {
    let root = argument::rank(group, "root", &root)?;
    let access = if group.rank == root {
        Access::Read
    } else {
        Access::Write
    };
    let array = Array::new(x, "x", access)?;
    let Buffer {
        pointer,
        count,
        dtype,
    } = array.buffer;
    Ok(Plan::input_of(
        array,
        Call::broadcast(pointer, count, dtype, root),
    ))
}

/// Of all_reduce, scan and exscan, which differ in their constructor alone.
macro_rules! elementwise {
    ($name:ident) => {
        pub(crate) fn $name<'py>(
            group: Group,
            x: Object<'_, 'py>,
            op: Optional<'_, 'py>,
            out: Optional<'_, 'py>,
        ) -> PyResult<Plan<'py>> {
            let _ = group;
            let Some(out) = out else {
                let array = Array::new(x, "x", Access::Write)?;
                let (op, raised) = reduction::parse(op, &array)?;
                let at = array.buffer;
                let call = Call::$name(at.pointer, at.pointer, at.count, at.dtype, op);
                return Ok(Plan::input_of(array, call).with(raised));
            };
            let (input, output) = (
                Array::new(x, "x", Access::Read)?,
                Array::new(out, "out", Access::Write)?,
            );
            check_apart(("out", &output), ("x", &input), 0)?;
            check_same(&input, &output)?;
            let (op, raised) = reduction::parse(op, &input)?;
            let (from, to) = (input.buffer, output.buffer);
            let call = Call::$name(from.pointer, to.pointer, from.count, from.dtype, op);
            Ok(Plan::between(Some(input), Some(output), call).with(raised))
        }
    };
}
elementwise!(all_reduce);
elementwise!(scan);
elementwise!(exscan);

pub(crate) fn reduce<'py>(
    group: Group,
    x: Object<'_, 'py>,
    root: Whole,
    op: Optional<'_, 'py>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let root = argument::rank(group, "root", &root)?;
    if group.rank != root {
        let input = Array::new(x, "x", Access::Read)?;
        let (op, raised) = reduction::parse(op, &input)?;
        let from = input.buffer;
        let nowhere = std::ptr::null_mut();
        let call = Call::reduce(from.pointer, nowhere, from.count, from.dtype, op, root);
        return Ok(Plan::between(Some(input), None, call).with(raised));
    }
    let Some(out) = out else {
        let array = Array::new(x, "x", Access::Write)?;
        let (op, raised) = reduction::parse(op, &array)?;
        let at = array.buffer;
        let call = Call::reduce(at.pointer, at.pointer, at.count, at.dtype, op, root);
        return Ok(Plan::input_of(array, call).with(raised));
    };
    let (input, output) = (
        Array::new(x, "x", Access::Read)?,
        Array::new(out, "out", Access::Write)?,
    );
    check_apart(("out", &output), ("x", &input), 0)?;
    check_same(&input, &output)?;
    let (op, raised) = reduction::parse(op, &input)?;
    let (from, to) = (input.buffer, output.buffer);
    let call = Call::reduce(from.pointer, to.pointer, from.count, from.dtype, op, root);
    Ok(Plan::between(Some(input), Some(output), call).with(raised))
}

/// `out[r]` is rank r's x.
fn gathered<'py>(group: Group, input: &Array<'py>, out: Optional<'_, 'py>) -> PyResult<Array<'py>> {
    let output = match out {
        Some(out) => Array::new(out, "out", Access::Write)?,
        None => input.new_like(&[&[group.size as usize], input.shape()].concat())?,
    };
    let own = group.rank as usize * input.buffer.count;
    check_apart(("out", &output), ("x", input), own)?;
    check_times(group, ("out", &output), ("x", input))?;
    Ok(output)
}

pub(crate) fn all_gather<'py>(
    group: Group,
    x: Object<'_, 'py>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let input = Array::new(x, "x", Access::Read)?;
    let output = gathered(group, &input, out)?;
    let (from, to) = (input.buffer, output.buffer);
    let call = Call::all_gather(from.pointer, to.pointer, from.count, from.dtype);
    Ok(Plan::between(Some(input), Some(output), call))
}

pub(crate) fn gather<'py>(
    group: Group,
    x: Object<'_, 'py>,
    root: Whole,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let root = argument::rank(group, "root", &root)?;
    let input = Array::new(x, "x", Access::Read)?;
    let output = match group.rank == root {
        true => Some(gathered(group, &input, out)?),
        false => None,
    };
    let from = input.buffer;
    let to = output
        .as_ref()
        .map_or(std::ptr::null_mut(), |output| output.buffer.pointer);
    let call = Call::gather(from.pointer, to, from.count, from.dtype, root);
    Ok(Plan::between(Some(input), output, call))
}

/// This rank's part of `input`, whose first length is the number of ranks.
fn scattered<'py>(
    group: Group,
    input: &Array<'py>,
    out: Optional<'_, 'py>,
) -> PyResult<Array<'py>> {
    let output = match out {
        Some(out) => Array::new(out, "out", Access::Write)?,
        None => input.new_like(argument::part_of(group, input.shape())?)?,
    };
    let own = group.rank as usize * output.buffer.count;
    check_apart(("x", input), ("out", &output), own)?;
    check_times(group, ("x", input), ("out", &output))?;
    Ok(output)
}

pub(crate) fn reduce_scatter<'py>(
    group: Group,
    x: Object<'_, 'py>,
    op: Optional<'_, 'py>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let input = Array::new(x, "x", Access::Read)?;
    let output = scattered(group, &input, out)?;
    let (op, raised) = reduction::parse(op, &input)?;
    let (from, to) = (input.buffer, output.buffer);
    let call = Call::reduce_scatter(from.pointer, to.pointer, to.count, to.dtype, op);
    Ok(Plan::between(Some(input), Some(output), call).with(raised))
}

pub(crate) fn scatter<'py>(
    group: Group,
    x: Optional<'_, 'py>,
    root: Whole,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let root = argument::rank(group, "root", &root)?;
    if group.rank == root {
        let x = x.ok_or_else(|| PyValueError::new_err("the root has to give x"))?;
        let input = Array::new(x, "x", Access::Read)?;
        let output = scattered(group, &input, out)?;
        let (from, to) = (input.buffer, output.buffer);
        let call = Call::scatter(from.pointer, to.pointer, to.count, to.dtype, root);
        return Ok(Plan::between(Some(input), Some(output), call));
    }
    let output = taken(out, "scatter")?;
    let to = output.buffer;
    let call = Call::scatter(std::ptr::null(), to.pointer, to.count, to.dtype, root);
    Ok(Plan::between(None, Some(output), call))
}

/// Where only the root knows what comes, the others say what they take.
pub(crate) fn taken<'py>(out: Optional<'_, 'py>, call: &str) -> PyResult<Array<'py>> {
    let out = out.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{call}: a rank other than the root has to give out, of its part's size and dtype; \
             hint: out=numpy.empty(n, dtype)"
        ))
    })?;
    Array::new(out, "out", Access::Write)
}

pub(crate) fn all_to_all<'py>(
    group: Group,
    x: Object<'_, 'py>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let input = Array::new(x, "x", Access::Read)?;
    let size = group.size as usize;
    let output = match out {
        Some(out) => Array::new(out, "out", Access::Write)?,
        None => {
            argument::part_of(group, input.shape())?;
            input.new_like(input.shape())?
        }
    };
    check_apart(("out", &output), ("x", &input), 0)?;
    check_same(&input, &output)?;
    let (from, to) = (input.buffer, output.buffer);
    if !from.count.is_multiple_of(size) {
        return Err(PyValueError::new_err(format!(
            "x has {} elements, which are no equal parts for {size} ranks; hint: all_to_all_v",
            from.count
        )));
    }
    let call = Call::all_to_all(from.pointer, to.pointer, from.count / size, from.dtype);
    Ok(Plan::between(Some(input), Some(output), call))
}
