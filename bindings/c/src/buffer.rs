//! Memory that the ranks of a host read in place.

use crate::argument::place;
use crate::error::{Failure, guarded};
use crate::handle::{get, give, rl_buffer, rl_comm, take};
use std::ffi::{c_int, c_void};

/// Allocates memory that the ranks of this host read without a copy between: calls on it, or on any
/// part of it, are faster there. Any rank may ask for some at any time. The memory is zero, aligned
/// for every type, and stays valid after rl_finalize. Where no memory is shared it is plain memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_buffer_allocate(
    comm: *const rl_comm,
    bytes: u64,
    buffer: *mut *mut rl_buffer,
) -> c_int {
    guarded("rl_buffer_allocate", || {
        let buffer = place("buffer", buffer)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let bytes = usize::try_from(bytes).map_err(|_| {
            Failure::argument(&format!("{bytes} bytes are more than memory can hold"))
        })?;
        let memory = comm.allocate(bytes)?;
        // SAFETY: the caller's word.
        unsafe { give("buffer", buffer, rl_buffer::new(memory)) }
    })
}

/// Where its memory is; NULL for a NULL buffer, with rl_last_error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_buffer_data(buffer: *mut rl_buffer) -> *mut c_void {
    let mut data = std::ptr::null_mut();
    guarded("rl_buffer_data", || {
        // SAFETY: the caller's word. What it points to is written by the caller alone.
        let buffer = unsafe { get(buffer.cast_const())? };
        data = buffer.memory.as_ptr().cast_mut().cast();
        Ok(())
    });
    data
}

/// Frees the memory; no call may be under way on it. NULL is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_buffer_free(buffer: *mut rl_buffer) -> c_int {
    guarded("rl_buffer_free", || {
        if buffer.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's word.
        drop(unsafe { take(buffer)? });
        Ok(())
    })
}
