//! What C hands over, checked as far as it can be.

use crate::error::Failure;
use rlaunch_runtime::{DType, Op, World};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

/// The largest block that pointers of one process can span.
const BYTES_MAX: usize = isize::MAX as usize;

pub(crate) fn dtype(code: c_int) -> Result<DType, Failure> {
    let known = u8::try_from(code).ok().and_then(DType::from_code);
    known.ok_or_else(|| Failure::argument(&format!("dtype is {code}, none of RL_INT32 and so on")))
}

pub(crate) fn op(code: c_int) -> Result<Op, Failure> {
    let known = u8::try_from(code).ok().and_then(Op::from_code);
    known.ok_or_else(|| Failure::argument(&format!("op is {code}, none of RL_SUM and so on")))
}

pub(crate) fn rank(world: &World, name: &str, value: c_int) -> Result<u32, Failure> {
    match u32::try_from(value) {
        Ok(rank) if rank < world.size() => Ok(rank),
        _ => Err(Failure::argument(&format!(
            "{name} is {value}, but ranks are 0 to {}",
            world.size() - 1
        ))),
    }
}

pub(crate) fn read(
    name: &str,
    buffer: *const c_void,
    count: u64,
    dtype: DType,
) -> Result<(*const u8, usize), Failure> {
    let (buffer, count) = write(name, buffer.cast_mut(), count, dtype)?;
    Ok((buffer.cast_const(), count))
}

pub(crate) fn write(
    name: &str,
    buffer: *mut c_void,
    count: u64,
    dtype: DType,
) -> Result<(*mut u8, usize), Failure> {
    let size = dtype.size_bytes();
    let fits = usize::try_from(count).ok().filter(|count| {
        let bytes = count.checked_mul(size);
        bytes.is_some_and(|bytes| bytes <= BYTES_MAX)
    });
    let Some(count) = fits else {
        let text = format!("{name} has {count} elements of {dtype}, more than memory can hold");
        return Err(Failure::argument(&text));
    };
    if count == 0 {
        // Whatever C passes for nothing, also NULL.
        return Ok((NonNull::<f64>::dangling().as_ptr().cast(), 0));
    }
    if buffer.is_null() {
        let text = format!("{name} is NULL, but has {count} elements");
        return Err(Failure::argument(&text));
    }
    if !(buffer as usize).is_multiple_of(size) {
        let text = format!("{name} is not aligned to {size} bytes, as {dtype} has to be");
        return Err(Failure::argument(&text));
    }
    Ok((buffer.cast(), count))
}

/// `count` elements for each rank.
pub(crate) fn total(count: usize, world: &World) -> Result<u64, Failure> {
    let total = u64::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(world.size().into()));
    total.ok_or_else(|| {
        Failure::argument(&format!(
            "{count} elements for each rank are more than memory can hold"
        ))
    })
}

/// `part` lies outside `whole`, or is this rank's own part of it.
pub(crate) fn apart(
    world: &World,
    whole: (*const u8, usize),
    part: (*const u8, usize),
    dtype: DType,
) -> Result<(), Failure> {
    let range = |(start, count): (*const u8, usize)| {
        let start = start as usize;
        start..start.saturating_add(count * dtype.size_bytes())
    };
    let own_offset = world.rank() as usize * part.1 * dtype.size_bytes();
    let (whole, part) = (range(whole), range(part));
    let in_place = part.start == whole.start.saturating_add(own_offset);
    if in_place || part.end <= whole.start || whole.end <= part.start {
        return Ok(());
    }
    Err(Failure::argument(
        "input and output overlap, and not as this rank's part of the whole",
    ))
}
