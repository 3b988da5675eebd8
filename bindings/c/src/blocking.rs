//! The collectives, waiting for their result.
//!
//! Safety, of each: `comm` is null or a live communicator; buffers hold what the counts say.

use crate::form;
use crate::handle::rl_comm;
use crate::request::run;
use rlaunch_runtime::{Call, Communicator};
use std::ffi::{c_int, c_void};

/// Returns when every rank has called it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_barrier(comm: *const rl_comm) -> c_int {
    // SAFETY: the caller's word.
    unsafe { run("rl_barrier", comm, |_| Ok(Call::barrier())) }
}

/// Every rank's buffer becomes root's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_broadcast(
    comm: *const rl_comm,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_broadcast", comm, |comm| {
            form::broadcast(comm, buffer, count, dtype, root)
        })
    }
}

/// As rl_all_reduce, with the result on root alone; the others' output is not touched and may be
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_reduce", comm, |comm| {
            form::reduce(comm, input, output, count, dtype, op, root)
        })
    }
}

/// Each element of output becomes the reduction of all ranks' inputs at its place, with the same
/// bits on every rank. In place where input is output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_reduce(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_all_reduce", comm, |comm| {
            form::all_reduce(comm, input, output, count, dtype, op)
        })
    }
}

/// Each element of output becomes the reduction of the inputs of ranks 0 to this one. In place where
/// input is output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_scan(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_scan", comm, |comm| {
            form::scan(comm, input, output, count, dtype, op)
        })
    }
}

/// As rl_scan without this rank's own input: of ranks 0 to the one before. Rank 0's output is left
/// as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_exscan(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_exscan", comm, |comm| {
            form::exscan(comm, input, output, count, dtype, op)
        })
    }
}

/// Output becomes all ranks' inputs in rank order: count elements from each, count * size in all.
/// In place where input is this rank's part of output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_gather(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_all_gather", comm, |comm| {
            form::all_gather(comm, input, output, count, dtype)
        })
    }
}

/// As rl_all_gather on root alone; the others' output is not touched and may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_gather(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_gather", comm, |comm| {
            form::gather(comm, input, output, count, dtype, root)
        })
    }
}

/// Output becomes this rank's part, count elements, of root's input, which has count * size; the
/// others' input may be NULL. In place where root's output is its part of input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_scatter(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_scatter", comm, |comm| {
            form::scatter(comm, input, output, count, dtype, root)
        })
    }
}

/// Output becomes this rank's part, count elements, of the reduction of all ranks' inputs of
/// count * size. In place where output is this rank's part of input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce_scatter(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_reduce_scatter", comm, |comm| {
            form::reduce_scatter(comm, input, output, count, dtype, op)
        })
    }
}

/// The r-th count elements of rank s's input become the s-th of rank r's output. In place where
/// input is output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_to_all(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        run("rl_all_to_all", comm, |comm| {
            form::all_to_all(comm, input, output, count, dtype)
        })
    }
}

/// As rl_all_gather with a count for each rank: counts[r] elements of rank r go to offsets[r] of
/// output. Offsets that are NULL: one part behind the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_gather_v(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::all_gather_v(comm, input, output, counts, offsets, dtype)
    };
    // SAFETY: the caller's word.
    unsafe { run("rl_all_gather_v", comm, make) }
}

/// As rl_all_gather_v on root alone. count is this rank's; the others' output, counts and offsets
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_gather_v(
    comm: *const rl_comm,
    input: *const c_void,
    count: u64,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::gather_v(comm, (input, count), output, counts, offsets, dtype, root)
    };
    // SAFETY: the caller's word.
    unsafe { run("rl_gather_v", comm, make) }
}

/// As rl_scatter with a count for each rank: counts[r] elements at offsets[r] of root's input go to
/// rank r, which gives its own as count. Offsets that are NULL: one part behind the other; the others'
/// input, counts and offsets may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_scatter_v(
    comm: *const rl_comm,
    input: *const c_void,
    counts: *const u64,
    offsets: *const u64,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::scatter_v(comm, input, counts, offsets, (output, count), dtype, root)
    };
    // SAFETY: the caller's word.
    unsafe { run("rl_scatter_v", comm, make) }
}

/// As rl_reduce_scatter with a count for each rank: rank r gets the reduction of the counts[r]
/// elements at offsets[r] of all inputs. Offsets that are NULL: one part behind the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce_scatter_v(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype: c_int,
    op: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::reduce_scatter_v(comm, input, output, counts, offsets, dtype, op)
    };
    // SAFETY: the caller's word.
    unsafe { run("rl_reduce_scatter_v", comm, make) }
}

/// As rl_all_to_all with counts: send_counts[r] elements at send_offsets[r] of input go to rank r;
/// recv_counts[r] come from it, to recv_offsets[r] of output. Offsets that are NULL: one part behind
/// the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_to_all_v(
    comm: *const rl_comm,
    input: *const c_void,
    send_counts: *const u64,
    send_offsets: *const u64,
    output: *mut c_void,
    recv_counts: *const u64,
    recv_offsets: *const u64,
    dtype: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::all_to_all_v(
            comm,
            (input, send_counts, send_offsets),
            (output, recv_counts, recv_offsets),
            dtype,
        )
    };
    // SAFETY: the caller's word.
    unsafe { run("rl_all_to_all_v", comm, make) }
}
