//! A call whose arguments were found to be possible, and the lengths that follow from them.

use std::ops::Range;

use rlaunch_schedule::Layout;
use rlaunch_wire::{Collective, Op};

use crate::call::Counts;
use crate::{Call, Error};

/// Lengths are in elements unless their name says bytes.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) layout: Layout,
    /// 0 where the collective has none.
    pub(crate) root: u32,
    /// What all ranks must give alike; for v-variants the sum, where all know it.
    pub(crate) agreed_count: u64,
    /// Of the counts that all ranks must give alike; 0 where there are none.
    pub(crate) digest: u32,
    /// Bytes of the vector, or of all ranks' blocks; 0 where not every rank knows.
    pub(crate) bytes_of_all: usize,
    /// From the input's start to its last element.
    pub(crate) input_elements: usize,
    /// Of this rank's result; of the part that it contributes, where it gathers.
    pub(crate) result_count: usize,
    root_only: bool,
}

impl Checked {
    /// Of a call by member `me` of `size`.
    pub(crate) fn new(call: &Call, size: u32, me: u32) -> Result<Self, Error> {
        check_reduction(call)?;
        let root = if call.collective.has_root() {
            call.root
        } else {
            0
        };
        if root >= size {
            return Err(Error::Argument(format!(
                "root {root} is outside the communicator of {size} ranks (they count from 0)"
            )));
        }
        let is_root = root == me;
        let counts = counts(call, size, is_root)?;
        let layout = layout(call, counts, me, is_root);
        let (of_all, input, output) = extents(call, &layout, size, is_root)?;
        for count in [of_all, input, output] {
            bytes(count, call)?;
        }
        let agreed_count = match call.collective {
            Collective::GatherV | Collective::ScatterV | Collective::AllToAllV => 0,
            Collective::AllGatherV | Collective::ReduceScatterV => of_all,
            _ => call.count,
        };
        let known = agreed_count > 0;
        Ok(Self {
            root,
            agreed_count: agreed_count as u64,
            digest: match call.collective {
                Collective::AllGatherV | Collective::ReduceScatterV => {
                    counts.map_or(0, |counts| digest(&counts.recv))
                }
                _ => 0,
            },
            bytes_of_all: if known { bytes(of_all, call)? } else { 0 },
            input_elements: input,
            result_count: part(call, &layout, me),
            layout,
            root_only: matches!(
                call.collective,
                Collective::Reduce | Collective::Gather | Collective::GatherV
            ),
        })
    }

    /// Whether member `me` receives anything.
    pub(crate) fn has_result(&self, me: u32) -> bool {
        !self.root_only || self.root == me
    }

    /// Where this rank's own part lies in its input, in a communicator of one.
    pub(crate) fn own_input(&self) -> usize {
        match &self.layout {
            Layout::Ranges { input, .. } => input.first().map_or(0, |range| range.start),
            _ => 0,
        }
    }

    /// The same for its output.
    pub(crate) fn own_output(&self) -> usize {
        match &self.layout {
            Layout::Ranges { output, .. } => output.first().map_or(0, |range| range.start),
            _ => 0,
        }
    }
}

#[inline]
fn check_reduction(call: &Call) -> Result<(), Error> {
    let collective = call.collective;
    if collective.is_point_to_point() {
        return Err(Error::Argument(format!("{collective} is no collective")));
    }
    if !collective.reduces() {
        return Ok(());
    }
    let Some(reduction) = &call.reduction else {
        return Err(Error::Argument(format!("{collective} needs an operation")));
    };
    let (op, dtype) = (reduction.op, call.dtype);
    if let Some(reason) = op.refusal(dtype) {
        return Err(Error::Argument(format!("{op} of {dtype}: {reason}")));
    }
    if op == Op::Avg && matches!(collective, Collective::Scan | Collective::Exscan) {
        return Err(Error::Argument(format!(
            "{collective} has no avg; use sum and divide by the number of ranks so far"
        )));
    }
    if (op == Op::PremulSum) != reduction.scalar.is_some() {
        return Err(Error::Argument(format!(
            "{op}: a scalar belongs to premul_sum, and to nothing else"
        )));
    }
    if let Some(of) = reduction.scalar.and_then(|scalar| scalar.dtype)
        && of != dtype
    {
        return Err(Error::Argument(format!(
            "premul_sum's scalar is of {of}, but the elements are of {dtype}; hint: give it in their \
             type"
        )));
    }
    if (op == Op::User) != reduction.user.is_some() {
        return Err(Error::Argument(format!(
            "{op}: a function belongs to the operation `user`, and to nothing else"
        )));
    }
    Ok(())
}

/// The counts of a v-variant, each list as long as it must be.
fn counts(call: &Call, size: u32, is_root: bool) -> Result<Option<&Counts>, Error> {
    use Collective as C;
    if !call.collective.has_counts() {
        return Ok(None);
    }
    let Some(counts) = call.counts.as_deref() else {
        return Err(Error::Argument(format!(
            "{} needs a count for each rank",
            call.collective
        )));
    };
    let (sends, receives) = match call.collective {
        C::AllToAllV => (true, true),
        C::ScatterV => (is_root, false),
        C::GatherV => (false, is_root),
        _ => (false, true),
    };
    let lists = [
        (sends, &counts.send, &counts.send_offsets, "send"),
        (receives, &counts.recv, &counts.recv_offsets, "recv"),
    ];
    for (is_needed, lengths, offsets, name) in lists {
        let expected = size as usize;
        if is_needed && (lengths.len() != expected || offsets.len() != expected) {
            return Err(Error::Argument(format!(
                "{}: {} {name} counts and {} offsets for a communicator of {size} ranks",
                call.collective,
                lengths.len(),
                offsets.len()
            )));
        }
        let mut parts = lengths.iter().zip(offsets);
        if parts.any(|(length, offset)| length.checked_add(*offset).is_none()) {
            return Err(too_large());
        }
    }
    Ok(Some(counts))
}

#[inline]
fn layout(call: &Call, counts: Option<&Counts>, me: u32, is_root: bool) -> Layout {
    use Collective as C;
    let count = call.count;
    let Some(counts) = counts else {
        return match call.collective {
            C::AllGather
            | C::ReduceScatter
            | C::Gather
            | C::Scatter
            | C::AllToAll
            | C::Split
            | C::Duplicate
            | C::FromRanks
            | C::Shrink => Layout::Blocks { count },
            _ => Layout::Vector { count },
        };
    };
    let sends = || ranges(&counts.send, &counts.send_offsets);
    let receives = || ranges(&counts.recv, &counts.recv_offsets);
    let own = |length: usize| std::iter::once(0..length).collect();
    let (input, output) = match call.collective {
        C::AllGatherV => (own(counts.recv[me as usize]), receives()),
        C::ReduceScatterV => (receives(), own(counts.recv[me as usize])),
        C::GatherV if is_root => (own(count), receives()),
        C::GatherV => (own(count), Vec::new()),
        C::ScatterV if is_root => (sends(), own(count)),
        C::ScatterV => (Vec::new(), own(count)),
        _ => (sends(), receives()),
    };
    Layout::Ranges { input, output }
}

fn ranges(lengths: &[usize], offsets: &[usize]) -> Vec<Range<usize>> {
    let parts = lengths.iter().zip(offsets);
    parts
        .map(|(length, offset)| *offset..offset + length)
        .collect()
}

/// Elements of all ranks together, and how far input and output reach.
#[inline]
fn extents(
    call: &Call,
    layout: &Layout,
    size: u32,
    is_root: bool,
) -> Result<(usize, usize, usize), Error> {
    use Collective as C;
    match layout {
        Layout::Vector { count } => Ok((*count, *count, *count)),
        Layout::Blocks { count } => {
            let all = count.checked_mul(size as usize).ok_or_else(too_large)?;
            Ok(match call.collective {
                C::ReduceScatter => (all, all, *count),
                C::Scatter if is_root => (all, all, *count),
                C::Scatter => (all, 0, *count),
                C::AllToAll => (all, all, all),
                _ => (all, *count, all),
            })
        }
        Layout::Ranges { input, output } => {
            let end = |side: &[Range<usize>]| side.iter().map(|range| range.end).max().unwrap_or(0);
            let longer = if input.len() > output.len() {
                input
            } else {
                output
            };
            let sum = longer
                .iter()
                .try_fold(0usize, |sum, range| sum.checked_add(range.len()));
            Ok((sum.ok_or_else(too_large)?, end(input), end(output)))
        }
    }
}

/// Lists that differ in a few places, or in their order, have different ones.
fn digest(counts: &[usize]) -> u32 {
    // FNV-1a by words, with the upper half, where all of them have left a trace, folded in.
    let fold = |sum: u64, count: &usize| (sum ^ *count as u64).wrapping_mul(0x0100_0000_01B3);
    let sum = counts.iter().fold(0xCBF2_9CE4_8422_2325, fold);
    (sum ^ (sum >> 32)) as u32
}

/// This rank's own part.
#[inline]
fn part(call: &Call, layout: &Layout, me: u32) -> usize {
    match layout {
        Layout::Vector { count } | Layout::Blocks { count } => *count,
        Layout::Ranges { input, output } => match call.collective {
            Collective::AllGatherV | Collective::GatherV => input[0].len(),
            Collective::ReduceScatterV | Collective::ScatterV => output[0].len(),
            _ => output[me as usize].len(),
        },
    }
}

#[inline]
fn bytes(count: usize, call: &Call) -> Result<usize, Error> {
    count
        .checked_mul(call.dtype.size_bytes())
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::Argument("more bytes than an address space holds".into())
}
