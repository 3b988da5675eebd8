//! From the arguments of a C function to the runtime's [`Call`], checked. All three forms of a
//! collective start here.

use crate::argument::{Block, Parts, dtype, rank, total};
use crate::error::Failure;
use crate::operation::reduction;
use rlaunch_runtime::{Call, Communicator, Counts};
use std::ffi::{c_int, c_void};

type Made = Result<Call, Failure>;

pub(crate) fn broadcast(
    comm: &Communicator,
    buffer: *mut c_void,
    count: u64,
    dtype_code: c_int,
    root: c_int,
) -> Made {
    let root = rank(comm, "root", root)?;
    let at = Block::new("buffer", buffer, count, dtype(dtype_code)?)?;
    Ok(Call::broadcast(at.pointer, at.count, at.dtype, root))
}

/// Input and output of one length.
fn between(
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
) -> Result<(Block, Block), Failure> {
    let dtype = dtype(dtype_code)?;
    let from = Block::new("input", input, count, dtype)?;
    let to = Block::new("output", output, count, dtype)?;
    to.apart(&from, 0)?;
    Ok((from, to))
}

macro_rules! elementwise {
    ($($name:ident),+) => {$(
        pub(crate) fn $name(
            _: &Communicator,
            input: *const c_void,
            output: *mut c_void,
            count: u64,
            dtype_code: c_int,
            op: c_int,
        ) -> Made {
            let (from, to) = between(input, output, count, dtype_code)?;
            let op = reduction(op, from.dtype)?;
            Ok(Call::$name(from.pointer, to.pointer, from.count, from.dtype, op))
        }
    )+};
}
elementwise!(all_reduce, scan, exscan);

pub(crate) fn reduce(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
    op: c_int,
    root: c_int,
) -> Made {
    let root = rank(comm, "root", root)?;
    let (from, to) = if comm.rank() == root {
        let (from, to) = between(input, output, count, dtype_code)?;
        (from, to.pointer)
    } else {
        let from = Block::new("input", input, count, dtype(dtype_code)?)?;
        (from, std::ptr::null_mut())
    };
    let op = reduction(op, from.dtype)?;
    Ok(Call::reduce(
        from.pointer,
        to,
        from.count,
        from.dtype,
        op,
        root,
    ))
}

/// `part` of each rank, and the `whole`, in which this rank's own may lie.
fn whole_and_part(
    comm: &Communicator,
    whole: (&str, *const c_void),
    part: (&str, *const c_void),
    count: u64,
    dtype_code: c_int,
) -> Result<(Block, Block), Failure> {
    let dtype = dtype(dtype_code)?;
    let part = Block::new(part.0, part.1, count, dtype)?;
    let whole = Block::new(whole.0, whole.1, total(count, comm)?, dtype)?;
    whole.apart(&part, comm.rank() as usize * part.count)?;
    Ok((whole, part))
}

pub(crate) fn all_gather(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
) -> Made {
    let (whole, part) = (("output", output.cast_const()), ("input", input));
    let (to, from) = whole_and_part(comm, whole, part, count, dtype_code)?;
    Ok(Call::all_gather(
        from.pointer,
        to.pointer,
        from.count,
        from.dtype,
    ))
}

pub(crate) fn gather(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
    root: c_int,
) -> Made {
    let root = rank(comm, "root", root)?;
    let (from, to) = if comm.rank() == root {
        let (whole, part) = (("output", output.cast_const()), ("input", input));
        let (to, from) = whole_and_part(comm, whole, part, count, dtype_code)?;
        (from, to.pointer)
    } else {
        let from = Block::new("input", input, count, dtype(dtype_code)?)?;
        (from, std::ptr::null_mut())
    };
    Ok(Call::gather(from.pointer, to, from.count, from.dtype, root))
}

pub(crate) fn scatter(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
    root: c_int,
) -> Made {
    let root = rank(comm, "root", root)?;
    let (from, to) = if comm.rank() == root {
        let (whole, part) = (("input", input), ("output", output.cast_const()));
        let (from, to) = whole_and_part(comm, whole, part, count, dtype_code)?;
        (from.pointer, to)
    } else {
        let to = Block::new("output", output, count, dtype(dtype_code)?)?;
        (std::ptr::null_mut(), to)
    };
    Ok(Call::scatter(from, to.pointer, to.count, to.dtype, root))
}

pub(crate) fn reduce_scatter(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
    op: c_int,
) -> Made {
    let (whole, part) = (("input", input), ("output", output.cast_const()));
    let (from, to) = whole_and_part(comm, whole, part, count, dtype_code)?;
    let op = reduction(op, to.dtype)?;
    Ok(Call::reduce_scatter(
        from.pointer,
        to.pointer,
        to.count,
        to.dtype,
        op,
    ))
}

pub(crate) fn all_to_all(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
) -> Made {
    let (from, to) = between(input, output, total(count, comm)?, dtype_code)?;
    let count = from.count / comm.size() as usize;
    Ok(Call::all_to_all(
        from.pointer,
        to.pointer,
        count,
        from.dtype,
    ))
}

/// # Safety
/// `counts` and `offsets` are null or hold a number for each rank.
pub(crate) unsafe fn all_gather_v(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype_code: c_int,
) -> Made {
    // SAFETY: the caller's word.
    let parts = unsafe { Parts::new(comm, ("counts", "offsets"), counts, offsets)? };
    let (dtype, rank) = (dtype(dtype_code)?, comm.rank() as usize);
    let from = Block::new("input", input, parts.counts[rank] as u64, dtype)?;
    let to = Block::new("output", output, parts.end, dtype)?;
    to.apart(&from, parts.offsets[rank])?;
    let counts = received(parts);
    Ok(Call::all_gather_v(from.pointer, to.pointer, dtype, counts))
}

/// # Safety
/// As [`all_gather_v`].
pub(crate) unsafe fn reduce_scatter_v(
    comm: &Communicator,
    input: *const c_void,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype_code: c_int,
    op: c_int,
) -> Made {
    // SAFETY: the caller's word.
    let parts = unsafe { Parts::new(comm, ("counts", "offsets"), counts, offsets)? };
    let (dtype, rank) = (dtype(dtype_code)?, comm.rank() as usize);
    let to = Block::new("output", output, parts.counts[rank] as u64, dtype)?;
    let from = Block::new("input", input, parts.end, dtype)?;
    from.apart(&to, parts.offsets[rank])?;
    let op = reduction(op, dtype)?;
    let counts = received(parts);
    Ok(Call::reduce_scatter_v(
        from.pointer,
        to.pointer,
        dtype,
        counts,
        op,
    ))
}

/// # Safety
/// As [`all_gather_v`].
pub(crate) unsafe fn gather_v(
    comm: &Communicator,
    (input, count): (*const c_void, u64),
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype_code: c_int,
    root: c_int,
) -> Made {
    let (dtype, root) = (dtype(dtype_code)?, rank(comm, "root", root)?);
    let from = Block::new("input", input, count, dtype)?;
    if comm.rank() != root {
        let (none, nowhere) = (Counts::default(), std::ptr::null_mut());
        return Ok(Call::gather_v(
            from.pointer,
            nowhere,
            from.count,
            dtype,
            none,
            root,
        ));
    }
    // SAFETY: the caller's word.
    let parts = unsafe { Parts::new(comm, ("counts", "offsets"), counts, offsets)? };
    let to = Block::new("output", output, parts.end, dtype)?;
    to.apart(&from, parts.offsets[root as usize])?;
    let counts = received(parts);
    Ok(Call::gather_v(
        from.pointer,
        to.pointer,
        from.count,
        dtype,
        counts,
        root,
    ))
}

/// # Safety
/// As [`all_gather_v`].
pub(crate) unsafe fn scatter_v(
    comm: &Communicator,
    input: *const c_void,
    counts: *const u64,
    offsets: *const u64,
    (output, count): (*mut c_void, u64),
    dtype_code: c_int,
    root: c_int,
) -> Made {
    let (dtype, root) = (dtype(dtype_code)?, rank(comm, "root", root)?);
    let to = Block::new("output", output, count, dtype)?;
    if comm.rank() != root {
        let (none, nowhere) = (Counts::default(), std::ptr::null());
        return Ok(Call::scatter_v(
            nowhere, to.pointer, to.count, dtype, none, root,
        ));
    }
    // SAFETY: the caller's word.
    let parts = unsafe { Parts::new(comm, ("counts", "offsets"), counts, offsets)? };
    let from = Block::new("input", input, parts.end, dtype)?;
    from.apart(&to, parts.offsets[root as usize])?;
    let counts = Counts {
        send: parts.counts,
        send_offsets: parts.offsets,
        ..Counts::default()
    };
    Ok(Call::scatter_v(
        from.pointer,
        to.pointer,
        to.count,
        dtype,
        counts,
        root,
    ))
}

/// # Safety
/// As [`all_gather_v`], for both pairs.
pub(crate) unsafe fn all_to_all_v(
    comm: &Communicator,
    (input, send_counts, send_offsets): (*const c_void, *const u64, *const u64),
    (output, recv_counts, recv_offsets): (*mut c_void, *const u64, *const u64),
    dtype_code: c_int,
) -> Made {
    let dtype = dtype(dtype_code)?;
    let names = ("send_counts", "send_offsets");
    // SAFETY: the caller's word.
    let sent = unsafe { Parts::new(comm, names, send_counts, send_offsets)? };
    let names = ("recv_counts", "recv_offsets");
    // SAFETY: the caller's word.
    let taken = unsafe { Parts::new(comm, names, recv_counts, recv_offsets)? };
    let from = Block::new("input", input, sent.end, dtype)?;
    let to = Block::new("output", output, taken.end, dtype)?;
    to.apart(&from, 0)?;
    let counts = Counts {
        send: sent.counts,
        send_offsets: sent.offsets,
        recv: taken.counts,
        recv_offsets: taken.offsets,
    };
    Ok(Call::all_to_all_v(from.pointer, to.pointer, dtype, counts))
}

fn received(parts: Parts) -> Counts {
    Counts {
        recv: parts.counts,
        recv_offsets: parts.offsets,
        ..Counts::default()
    }
}
