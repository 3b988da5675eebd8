//! The collectives, each in three forms: blocking, started (`rl_i…`), prepared (`rl_…_init`).
//!
//! One list, at the end, of names, arguments and what they mean makes all three. The generator of
//! `rlaunch.h` reads the same list (`bindings/c/gen/src/list.rs` shows its form).
//!
//! Safety, of each: `comm` is null or a live communicator; buffers hold what the counts say, until
//! the call, or the started request, is complete, and for each start of a prepared one until that
//! is freed; `request` may be written.

use crate::form;
use crate::handle::{rl_comm, rl_request};
use crate::request::{prepare, run, start};
use rlaunch_runtime::Call;
use std::ffi::{c_int, c_void};

macro_rules! collectives {
    ($(
        $(#[doc = $line:literal])+
        $run:ident, $start:ident, $prepare:ident ($($name:ident: $kind:ty),*) => |$comm:pat_param| $make:expr;
    )+) => {$(
        $(#[doc = $line])+
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $run(comm: *const rl_comm, $($name: $kind),*) -> c_int {
            // SAFETY: the caller's word.
            unsafe { run(stringify!($run), comm, |$comm| $make) }
        }

        #[doc = concat!("As ", stringify!($run), ", but returns at once, with a request to wait for.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $start(
            comm: *const rl_comm,
            $($name: $kind,)*
            request: *mut *mut rl_request,
        ) -> c_int {
            // SAFETY: the caller's word.
            unsafe { start(stringify!($start), comm, request, |$comm| $make) }
        }

        #[doc = concat!(
            "Prepares ", stringify!($run), " to be started by rl_start, many times, on the same buffers.",
        )]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $prepare(
            comm: *const rl_comm,
            $($name: $kind,)*
            request: *mut *mut rl_request,
        ) -> c_int {
            // SAFETY: the caller's word.
            unsafe { prepare(stringify!($prepare), comm, request, |$comm| $make) }
        }
    )+};
}

collectives! {
    /// Returns when every rank has called it.
    rl_barrier, rl_ibarrier, rl_barrier_init () => |_| Ok(Call::barrier());

    /// Every rank's buffer becomes root's.
    rl_broadcast, rl_ibroadcast, rl_broadcast_init (
        buffer: *mut c_void, count: u64, dtype: c_int, root: c_int
    ) => |comm| form::broadcast(comm, buffer, count, dtype, root);

    /// As rl_all_reduce, with the result on root alone; the others' output is not touched and may be
    /// NULL.
    rl_reduce, rl_ireduce, rl_reduce_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, op: c_int, root: c_int
    ) => |comm| form::reduce(comm, input, output, count, dtype, op, root);

    /// Each element of output becomes the reduction of all ranks' inputs at its place, with the same
    /// bits on every rank. In place where input is output.
    rl_all_reduce, rl_iall_reduce, rl_all_reduce_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, op: c_int
    ) => |comm| form::all_reduce(comm, input, output, count, dtype, op);

    /// Each element of output becomes the reduction of the inputs of ranks 0 to this one. In place where
    /// input is output.
    rl_scan, rl_iscan, rl_scan_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, op: c_int
    ) => |comm| form::scan(comm, input, output, count, dtype, op);

    /// As rl_scan without this rank's own input: of ranks 0 to the one before. Rank 0's output is left
    /// as it is.
    rl_exscan, rl_iexscan, rl_exscan_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, op: c_int
    ) => |comm| form::exscan(comm, input, output, count, dtype, op);

    /// Output becomes all ranks' inputs in rank order: count elements from each, count * size in all.
    /// In place where input is this rank's part of output.
    rl_all_gather, rl_iall_gather, rl_all_gather_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int
    ) => |comm| form::all_gather(comm, input, output, count, dtype);

    /// As rl_all_gather on root alone; the others' output is not touched and may be NULL.
    rl_gather, rl_igather, rl_gather_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, root: c_int
    ) => |comm| form::gather(comm, input, output, count, dtype, root);

    /// Output becomes this rank's part, count elements, of root's input, which has count * size; the
    /// others' input may be NULL. In place where root's output is its part of input.
    rl_scatter, rl_iscatter, rl_scatter_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, root: c_int
    ) => |comm| form::scatter(comm, input, output, count, dtype, root);

    /// Output becomes this rank's part, count elements, of the reduction of all ranks' inputs of
    /// count * size. In place where output is this rank's part of input.
    rl_reduce_scatter, rl_ireduce_scatter, rl_reduce_scatter_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int, op: c_int
    ) => |comm| form::reduce_scatter(comm, input, output, count, dtype, op);

    /// The r-th count elements of rank s's input become the s-th of rank r's output. In place where
    /// input is output.
    rl_all_to_all, rl_iall_to_all, rl_all_to_all_init (
        input: *const c_void, output: *mut c_void, count: u64, dtype: c_int
    ) => |comm| form::all_to_all(comm, input, output, count, dtype);

    /// As rl_all_gather with a count for each rank: counts[r] elements of rank r go to offsets[r] of
    /// output. Offsets that are NULL: one part behind the other.
    rl_all_gather_v, rl_iall_gather_v, rl_all_gather_v_init (
        input: *const c_void, output: *mut c_void, counts: *const u64, offsets: *const u64,
        dtype: c_int
    ) => |comm| form::all_gather_v(comm, input, output, counts, offsets, dtype);

    /// As rl_all_gather_v on root alone. count is this rank's; the others' output, counts and offsets
    /// may be NULL.
    rl_gather_v, rl_igather_v, rl_gather_v_init (
        input: *const c_void, count: u64, output: *mut c_void, counts: *const u64,
        offsets: *const u64, dtype: c_int, root: c_int
    ) => |comm| form::gather_v(comm, (input, count), output, counts, offsets, dtype, root);

    /// As rl_scatter with a count for each rank: counts[r] elements at offsets[r] of root's input go to
    /// rank r, which gives its own as count. Offsets that are NULL: one part behind the other; the others'
    /// input, counts and offsets may be NULL.
    rl_scatter_v, rl_iscatter_v, rl_scatter_v_init (
        input: *const c_void, counts: *const u64, offsets: *const u64, output: *mut c_void,
        count: u64, dtype: c_int, root: c_int
    ) => |comm| form::scatter_v(comm, input, counts, offsets, (output, count), dtype, root);

    /// As rl_reduce_scatter with a count for each rank: rank r gets the reduction of the counts[r]
    /// elements at offsets[r] of all inputs. Offsets that are NULL: one part behind the other.
    rl_reduce_scatter_v, rl_ireduce_scatter_v, rl_reduce_scatter_v_init (
        input: *const c_void, output: *mut c_void, counts: *const u64, offsets: *const u64,
        dtype: c_int, op: c_int
    ) => |comm| form::reduce_scatter_v(comm, input, output, counts, offsets, dtype, op);

    /// As rl_all_to_all with counts: send_counts[r] elements at send_offsets[r] of input go to rank r;
    /// recv_counts[r] come from it, to recv_offsets[r] of output. Offsets that are NULL: one part behind
    /// the other.
    rl_all_to_all_v, rl_iall_to_all_v, rl_all_to_all_v_init (
        input: *const c_void, send_counts: *const u64, send_offsets: *const u64,
        output: *mut c_void, recv_counts: *const u64, recv_offsets: *const u64, dtype: c_int
    ) => |comm| form::all_to_all_v(
        comm, (input, send_counts, send_offsets), (output, recv_counts, recv_offsets), dtype
    );
}
