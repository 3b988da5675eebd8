//! The collectives, started: `rl_i…` returns at once.
//!
//! Safety, of each: as the blocking form, until the request is complete; `request` may be written.

use crate::form;
use crate::handle::{rl_comm, rl_request};
use crate::request::start;
use rlaunch_runtime::{Call, Communicator};
use std::ffi::{c_int, c_void};

/// As rl_barrier, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_ibarrier(comm: *const rl_comm, request: *mut *mut rl_request) -> c_int {
    // SAFETY: the caller's word.
    unsafe { start("rl_ibarrier", comm, request, |_| Ok(Call::barrier())) }
}

/// As rl_broadcast, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_ibroadcast(
    comm: *const rl_comm,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    root: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        start("rl_ibroadcast", comm, request, |comm| {
            form::broadcast(comm, buffer, count, dtype, root)
        })
    }
}

/// As rl_reduce, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_ireduce(
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
        start("rl_ireduce", comm, request, |comm| {
            form::reduce(comm, input, output, count, dtype, op, root)
        })
    }
}

/// As rl_all_reduce, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iall_reduce(
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
        start("rl_iall_reduce", comm, request, |comm| {
            form::all_reduce(comm, input, output, count, dtype, op)
        })
    }
}

/// As rl_scan, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iscan(
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
        start("rl_iscan", comm, request, |comm| {
            form::scan(comm, input, output, count, dtype, op)
        })
    }
}

/// As rl_exscan, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iexscan(
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
        start("rl_iexscan", comm, request, |comm| {
            form::exscan(comm, input, output, count, dtype, op)
        })
    }
}

/// As rl_all_gather, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iall_gather(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        start("rl_iall_gather", comm, request, |comm| {
            form::all_gather(comm, input, output, count, dtype)
        })
    }
}

/// As rl_gather, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_igather(
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
        start("rl_igather", comm, request, |comm| {
            form::gather(comm, input, output, count, dtype, root)
        })
    }
}

/// As rl_scatter, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iscatter(
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
        start("rl_iscatter", comm, request, |comm| {
            form::scatter(comm, input, output, count, dtype, root)
        })
    }
}

/// As rl_reduce_scatter, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_ireduce_scatter(
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
        start("rl_ireduce_scatter", comm, request, |comm| {
            form::reduce_scatter(comm, input, output, count, dtype, op)
        })
    }
}

/// As rl_all_to_all, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iall_to_all(
    comm: *const rl_comm,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    request: *mut *mut rl_request,
) -> c_int {
    // SAFETY: the caller's word.
    unsafe {
        start("rl_iall_to_all", comm, request, |comm| {
            form::all_to_all(comm, input, output, count, dtype)
        })
    }
}

/// As rl_all_gather_v, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iall_gather_v(
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
    unsafe { start("rl_iall_gather_v", comm, request, make) }
}

/// As rl_gather_v, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_igather_v(
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
    unsafe { start("rl_igather_v", comm, request, make) }
}

/// As rl_scatter_v, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iscatter_v(
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
    unsafe { start("rl_iscatter_v", comm, request, make) }
}

/// As rl_reduce_scatter_v, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_ireduce_scatter_v(
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
    unsafe { start("rl_ireduce_scatter_v", comm, request, make) }
}

/// As rl_all_to_all_v, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iall_to_all_v(
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
    unsafe { start("rl_iall_to_all_v", comm, request, make) }
}
