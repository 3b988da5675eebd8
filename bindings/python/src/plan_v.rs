//! [`Plan`]s of the calls in which each rank has a count of its own: the lengths of the parts along
//! the first axis, which lie one behind the other.

use crate::argument::{self, Group, check_apart};
use crate::array::{Access, Array};
use crate::number::Whole;
use crate::plan::{Plan, taken};
use crate::reduction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlaunch_runtime::{Call, Counts};

type Object<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Parts of an array, one for each rank.
struct Parts {
    /// Lengths along the first axis.
    lengths: Vec<usize>,
    /// Elements that one step along the first axis holds.
    row: usize,
    /// Elements of each part.
    counts: Vec<usize>,
    total: usize,
}

impl Parts {
    fn new(group: Group, name: &str, lengths: &[Whole], of: &Array<'_>) -> PyResult<Self> {
        let lengths = argument::counts(name, lengths)?;
        if lengths.len() != group.size as usize {
            return Err(PyValueError::new_err(format!(
                "{name} has {} numbers, but must have one for each of {} ranks",
                lengths.len(),
                group.size
            )));
        }
        let row = rest(of).iter().product();
        let counts = lengths
            .iter()
            .map(|length| length.checked_mul(row))
            .collect::<Option<Vec<usize>>>();
        let total = counts.as_ref().and_then(|counts| {
            counts
                .iter()
                .try_fold(0_usize, |sum, count| sum.checked_add(*count))
        });
        let (Some(counts), Some(total)) = (counts, total) else {
            return Err(PyValueError::new_err(format!(
                "{name} add up to more than memory can hold"
            )));
        };
        Ok(Self {
            lengths,
            row,
            counts,
            total,
        })
    }

    fn shape(&self, length: usize, of: &Array<'_>) -> Vec<usize> {
        [&[length], rest(of)].concat()
    }

    fn whole_shape(&self, of: &Array<'_>) -> Vec<usize> {
        self.shape(self.lengths.iter().sum(), of)
    }

    /// Where a rank's part begins, in elements.
    fn start(&self, rank: u32) -> usize {
        self.counts[..rank as usize].iter().sum()
    }

    fn check_whole(&self, name: &str, counts_name: &str, whole: &Array<'_>) -> PyResult<()> {
        if whole.buffer.count == self.total {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{name} has {} elements, but {counts_name} {:?} times {} make {}",
            whole.buffer.count, self.lengths, self.row, self.total
        )))
    }

    fn check_part(&self, group: Group, name: &str, part: &Array<'_>) -> PyResult<()> {
        let expected = self.counts[group.rank as usize];
        if part.buffer.count == expected {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{name} has {} elements, but counts[{}], this rank's, times {} make {expected}",
            part.buffer.count, group.rank, self.row
        )))
    }
}

/// All lengths but the first; none of an array of no dimensions.
fn rest<'a>(array: &'a Array<'_>) -> &'a [usize] {
    array.shape().get(1..).unwrap_or(&[])
}

/// The whole in which x is this rank's part.
fn gathered<'py>(
    group: Group,
    input: &Array<'py>,
    counts: Vec<Whole>,
    out: Optional<'_, 'py>,
) -> PyResult<(Parts, Array<'py>)> {
    let parts = Parts::new(group, "counts", &counts, input)?;
    parts.check_part(group, "x", input)?;
    let output = match out {
        Some(out) => Array::new(out, "out", Access::Write)?,
        None => input.new_like(&parts.whole_shape(input))?,
    };
    let own = parts.start(group.rank);
    check_apart(("out", &output), ("x", input), own)?;
    parts.check_whole("out", "counts", &output)?;
    Ok((parts, output))
}

pub(crate) fn all_gather_v<'py>(
    group: Group,
    x: Object<'_, 'py>,
    counts: Vec<Whole>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let input = Array::new(x, "x", Access::Read)?;
    let (parts, output) = gathered(group, &input, counts, out)?;
    let (from, to) = (input.buffer, output.buffer);
    let counts = Counts::contiguous(&[], &parts.counts);
    let call = Call::all_gather_v(from.pointer, to.pointer, from.dtype, counts);
    Ok(Plan::between(Some(input), Some(output), call))
}

pub(crate) fn gather_v<'py>(
    group: Group,
    x: Object<'_, 'py>,
    counts: Option<Vec<Whole>>,
    root: Whole,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let root = argument::rank(group, "root", &root)?;
    let input = Array::new(x, "x", Access::Read)?;
    let from = input.buffer;
    let nowhere = std::ptr::null_mut();
    if group.rank != root {
        let none = Counts::default();
        let call = Call::gather_v(from.pointer, nowhere, from.count, from.dtype, none, root);
        return Ok(Plan::between(Some(input), None, call));
    }
    let (parts, output) = gathered(group, &input, known(counts)?, out)?;
    let counts = Counts::contiguous(&[], &parts.counts);
    let to = output.buffer.pointer;
    let call = Call::gather_v(from.pointer, to, from.count, from.dtype, counts, root);
    Ok(Plan::between(Some(input), Some(output), call))
}

/// The part of `input` that is this rank's.
fn scattered<'py>(
    group: Group,
    input: &Array<'py>,
    counts: Vec<Whole>,
    out: Optional<'_, 'py>,
) -> PyResult<(Parts, Array<'py>)> {
    let parts = Parts::new(group, "counts", &counts, input)?;
    parts.check_whole("x", "counts", input)?;
    let output = match out {
        Some(out) => Array::new(out, "out", Access::Write)?,
        None => input.new_like(&parts.shape(parts.lengths[group.rank as usize], input))?,
    };
    let own = parts.start(group.rank);
    check_apart(("x", input), ("out", &output), own)?;
    parts.check_part(group, "out", &output)?;
    Ok((parts, output))
}

pub(crate) fn reduce_scatter_v<'py>(
    group: Group,
    x: Object<'_, 'py>,
    counts: Vec<Whole>,
    op: Optional<'_, 'py>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let input = Array::new(x, "x", Access::Read)?;
    let (parts, output) = scattered(group, &input, counts, out)?;
    let (op, raised) = reduction::parse(op, &input)?;
    let (from, to) = (input.buffer, output.buffer);
    let counts = Counts::contiguous(&[], &parts.counts);
    let call = Call::reduce_scatter_v(from.pointer, to.pointer, from.dtype, counts, op);
    Ok(Plan::between(Some(input), Some(output), call).with(raised))
}

pub(crate) fn scatter_v<'py>(
    group: Group,
    x: Optional<'_, 'py>,
    counts: Option<Vec<Whole>>,
    root: Whole,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let root = argument::rank(group, "root", &root)?;
    if group.rank != root {
        let output = taken(out, "scatter_v")?;
        let (to, none) = (output.buffer, Counts::default());
        let nowhere = std::ptr::null();
        let call = Call::scatter_v(nowhere, to.pointer, to.count, to.dtype, none, root);
        return Ok(Plan::between(None, Some(output), call));
    }
    let x = x.ok_or_else(|| PyValueError::new_err("the root has to give x"))?;
    let input = Array::new(x, "x", Access::Read)?;
    let (parts, output) = scattered(group, &input, known(counts)?, out)?;
    let (from, to) = (input.buffer, output.buffer);
    let counts = Counts::contiguous(&parts.counts, &[]);
    let call = Call::scatter_v(from.pointer, to.pointer, to.count, to.dtype, counts, root);
    Ok(Plan::between(Some(input), Some(output), call))
}

fn known(counts: Option<Vec<Whole>>) -> PyResult<Vec<Whole>> {
    counts.ok_or_else(|| {
        PyValueError::new_err("the root has to give counts, the length of each rank's part")
    })
}

pub(crate) fn all_to_all_v<'py>(
    group: Group,
    x: Object<'_, 'py>,
    send_counts: Vec<Whole>,
    recv_counts: Vec<Whole>,
    out: Optional<'_, 'py>,
) -> PyResult<Plan<'py>> {
    let input = Array::new(x, "x", Access::Read)?;
    let sent = Parts::new(group, "send_counts", &send_counts, &input)?;
    let received = Parts::new(group, "recv_counts", &recv_counts, &input)?;
    sent.check_whole("x", "send_counts", &input)?;
    let output = match out {
        Some(out) => Array::new(out, "out", Access::Write)?,
        None => input.new_like(&received.whole_shape(&input))?,
    };
    check_apart(("out", &output), ("x", &input), 0)?;
    received.check_whole("out", "recv_counts", &output)?;
    let (from, to) = (input.buffer, output.buffer);
    let counts = Counts::contiguous(&sent.counts, &received.counts);
    let call = Call::all_to_all_v(from.pointer, to.pointer, from.dtype, counts);
    Ok(Plan::between(Some(input), Some(output), call))
}
