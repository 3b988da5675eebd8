//! The collectives, prepared: `rl_…_init` makes a request that rl_start starts, many times.
//!
//! Safety, of each: as the blocking form, for each start, until the request is freed; `request` may
//! be written.

use crate::form;
use crate::handle::{rl_comm, rl_request};
use crate::request::prepare;
use rlaunch_runtime::{Call, Communicator};
use std::ffi::{c_int, c_void};

/// Prepares rl_barrier to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_barrier_init(
    comm: *const rl_comm,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe { prepare("rl_barrier_init", comm, request, |_| Ok(Call::barrier())) }
}

/// Prepares rl_broadcast to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_broadcast_init(
    comm: *const rl_comm,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_broadcast_init", comm, request, |comm| {
            form::broadcast(comm, buffer, count, dtype, root)
        })
    }
}

/// Prepares rl_reduce to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_reduce_init", comm, request, |comm| {
            form::reduce(comm, input, output, count, dtype, op, root)
        })
    }
}

/// Prepares rl_all_reduce to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_reduce_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_all_reduce_init", comm, request, |comm| {
            form::all_reduce(comm, input, output, count, dtype, op)
        })
    }
}

/// Prepares rl_scan to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_scan_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_scan_init", comm, request, |comm| {
            form::scan(comm, input, output, count, dtype, op)
        })
    }
}

/// Prepares rl_exscan to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_exscan_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_exscan_init", comm, request, |comm| {
            form::exscan(comm, input, output, count, dtype, op)
        })
    }
}

/// Prepares rl_all_gather to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_gather_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_all_gather_init", comm, request, |comm| {
            form::all_gather(comm, input, output, count, dtype)
        })
    }
}

/// Prepares rl_gather to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_gather_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_gather_init", comm, request, |comm| {
            form::gather(comm, input, output, count, dtype, root)
        })
    }
}

/// Prepares rl_scatter to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_scatter_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_scatter_init", comm, request, |comm| {
            form::scatter(comm, input, output, count, dtype, root)
        })
    }
}

/// Prepares rl_reduce_scatter to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce_scatter_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_reduce_scatter_init", comm, request, |comm| {
            form::reduce_scatter(comm, input, output, count, dtype, op)
        })
    }
}

/// Prepares rl_all_to_all to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_to_all_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        prepare("rl_all_to_all_init", comm, request, |comm| {
            form::all_to_all(comm, input, output, count, dtype)
        })
    }
}

/// Prepares rl_all_gather_v to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_gather_v_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::all_gather_v(comm, input, output, counts, offsets, dtype)
    };
    // SAFETY: the caller's word.
    unsafe { prepare("rl_all_gather_v_init", comm, request, make) }
}

/// Prepares rl_gather_v to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_gather_v_init(
    comm: *const rl_comm,
    input: *const c_void,
    count: u64,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::gather_v(comm, (input, count), output, counts, offsets, dtype, root)
    };
    // SAFETY: the caller's word.
    unsafe { prepare("rl_gather_v_init", comm, request, make) }
}

/// Prepares rl_scatter_v to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_scatter_v_init(
    comm: *const rl_comm,
    input: *const c_void,
    counts: *const u64,
    offsets: *const u64,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::scatter_v(comm, input, counts, offsets, (output, count), dtype, root)
    };
    // SAFETY: the caller's word.
    unsafe { prepare("rl_scatter_v_init", comm, request, make) }
}

/// Prepares rl_reduce_scatter_v to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce_scatter_v_init(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    counts: *const u64,
    offsets: *const u64,
    dtype: c_int,
    op: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| unsafe {
        form::reduce_scatter_v(comm, input, output, counts, offsets, dtype, op)
    };
    // SAFETY: the caller's word.
    unsafe { prepare("rl_reduce_scatter_v_init", comm, request, make) }
}

/// Prepares rl_all_to_all_v to be started by rl_start, many times, on the same buffers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_to_all_v_init(
    comm: *const rl_comm,
    input: *const c_void,
    send_counts: *const u64,
    send_offsets: *const u64,
    output: *mut c_void,
    recv_counts: *const u64,
    recv_offsets: *const u64,
    dtype: c_int,
    request: *mut *mut rl_request,
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
    unsafe { prepare("rl_all_to_all_v_init", comm, request, make) }
}
