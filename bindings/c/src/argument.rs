//! What C hands over, checked as far as it can be.

use crate::error::Failure;
use rlaunch_runtime::{Communicator, DType};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::time::Duration;

/// The largest block that pointers of one process can span.
const BYTES_MAX: usize = isize::MAX as usize;

pub(crate) fn dtype(code: c_int) -> Result<DType, Failure> {
    let known = u8::try_from(code).ok().and_then(DType::from_code);
    known.ok_or_else(|| Failure::argument(&format!("dtype is {code}, none of RL_INT32 and so on")))
}

pub(crate) fn rank(comm: &Communicator, name: &str, value: c_int) -> Result<u32, Failure> {
    match u32::try_from(value) {
        Ok(rank) if rank < comm.size() => Ok(rank),
        _ => Err(Failure::argument(&format!(
            "{name} is {value}, but ranks are 0 to {}",
            comm.size() - 1
        ))),
    }
}

/// `None` for 0: no own limit.
pub(crate) fn seconds(value: f64) -> Result<Option<Duration>, Failure> {
    if value == 0.0 {
        return Ok(None);
    }
    rlaunch_runtime::seconds(value).map(Some).ok_or_else(|| {
        Failure::argument(&format!(
            "seconds is {value:?}, which is no time to wait; hint: 0 for no limit of its own, \
             INFINITY for none at all"
        ))
    })
}

/// A place that C wants something written to.
pub(crate) fn place<T>(name: &str, to: *mut T) -> Result<*mut T, Failure> {
    if to.is_null() {
        let text = format!("{name} is NULL, where something is to be written to");
        return Err(Failure::argument(&text));
    }
    if !to.is_aligned() {
        let text = format!("{name} is {to:p}, which is not aligned as its type has to be");
        return Err(Failure::argument(&text));
    }
    Ok(to)
}

/// Elements in memory.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) pointer: *mut u8,
    pub(crate) count: usize,
    pub(crate) dtype: DType,
}

impl Block {
    pub(crate) fn new(
        name: &str,
        buffer: *const c_void,
        count: u64,
        dtype: DType,
    ) -> Result<Self, Failure> {
        let fits = usize::try_from(count).ok().filter(|count| {
            let bytes = count.checked_mul(dtype.size_bytes());
            bytes.is_some_and(|bytes| bytes <= BYTES_MAX)
        });
        let Some(count) = fits else {
            let text = format!("{name} has {count} elements of {dtype}, more than memory can hold");
            return Err(Failure::argument(&text));
        };
        if count == 0 {
            // Whatever C passes for nothing, also NULL.
            return Ok(Self {
                pointer: NonNull::<u128>::dangling().as_ptr().cast(),
                count,
                dtype,
            });
        }
        if buffer.is_null() {
            let text = format!("{name} is NULL, but has {count} elements");
            return Err(Failure::argument(&text));
        }
        let alignment = alignment_bytes(dtype);
        if !(buffer as usize).is_multiple_of(alignment) {
            let text = format!("{name} is not aligned to {alignment} bytes, as {dtype} has to be");
            return Err(Failure::argument(&text));
        }
        Ok(Self {
            pointer: buffer.cast_mut().cast(),
            count,
            dtype,
        })
    }

    fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.pointer as usize;
        start..start.saturating_add(self.count * self.dtype.size_bytes())
    }

    /// The two share no memory, unless `part` lies in this one exactly at element `own`: in place.
    pub(crate) fn apart(&self, part: &Self, own: usize) -> Result<(), Failure> {
        let (a, b) = (self.addresses(), part.addresses());
        let in_place = b.start == a.start.wrapping_add(own * self.dtype.size_bytes());
        if in_place || b.end <= a.start || a.end <= b.start {
            return Ok(());
        }
        Err(Failure::argument(
            "input and output overlap, and not as the call allows in place",
        ))
    }
}

fn alignment_bytes(dtype: DType) -> usize {
    match dtype {
        DType::C64 | DType::F32I32 | DType::I32I32 => 4,
        DType::C128 | DType::F64I64 | DType::I64I64 => 8,
        _ => dtype.size_bytes(),
    }
}

/// `count` elements for each rank.
pub(crate) fn total(count: u64, comm: &Communicator) -> Result<u64, Failure> {
    count.checked_mul(comm.size().into()).ok_or_else(|| {
        Failure::argument(&format!(
            "{count} elements for each rank are more than memory can hold"
        ))
    })
}

/// Counts of a v-variant, and where the parts lie.
pub(crate) struct Parts {
    pub(crate) counts: Vec<usize>,
    pub(crate) offsets: Vec<usize>,
    /// One past the last element of all.
    pub(crate) end: u64,
}

impl Parts {
    /// Offsets that are NULL: one behind the other.
    ///
    /// # Safety
    /// `counts` and `offsets` are null or hold a number for each rank.
    pub(crate) unsafe fn new(
        comm: &Communicator,
        names: (&str, &str),
        counts: *const u64,
        offsets: *const u64,
    ) -> Result<Self, Failure> {
        // SAFETY: the caller's word.
        let Some(counts) = (unsafe { numbers(comm, names.0, counts)? }) else {
            let text = format!("{} is NULL, but has a number for each rank", names.0);
            return Err(Failure::argument(&text));
        };
        // SAFETY: the caller's word.
        let offsets = match unsafe { numbers(comm, names.1, offsets)? } {
            Some(offsets) => offsets,
            None => contiguous(&counts),
        };
        let ends = counts.iter().zip(&offsets);
        let end = ends
            .map(|(count, offset)| offset.saturating_add(*count))
            .max();
        Ok(Self {
            counts,
            offsets,
            end: end.unwrap_or(0) as u64,
        })
    }
}

unsafe fn numbers(
    comm: &Communicator,
    name: &str,
    start: *const u64,
) -> Result<Option<Vec<usize>>, Failure> {
    if start.is_null() {
        return Ok(None);
    }
    if !start.is_aligned() {
        return Err(Failure::argument(&format!("{name} is not aligned")));
    }
    // SAFETY: not null, aligned, and by the caller's word one for each rank.
    let numbers = unsafe { std::slice::from_raw_parts(start, comm.size() as usize) };
    let numbers: Result<Vec<usize>, _> = numbers.iter().copied().map(usize::try_from).collect();
    numbers
        .map(Some)
        .map_err(|_| Failure::argument(&format!("{name} hold more than memory can")))
}

fn contiguous(counts: &[usize]) -> Vec<usize> {
    let mut at = 0_usize;
    let next = |count: &usize| {
        let offset = at;
        at = at.saturating_add(*count);
        offset
    };
    counts.iter().map(next).collect()
}
