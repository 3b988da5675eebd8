//! Making communicators, and what holds for one.

use crate::argument::{place, rank, seconds};
use crate::codes::RL_NO_COLOR;
use crate::error::{Failure, guarded};
use crate::handle::{get, give, rl_comm, take};
use rlaunch_runtime::{Communicator, Error};
use std::ffi::{CStr, c_char, c_int};

/// This rank's number in the communicator, from 0. -1 for a NULL comm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_rank(comm: *const rl_comm) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_comm_rank", comm, Communicator::rank) }
}

/// How many ranks it has. -1 for a NULL comm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_size(comm: *const rl_comm) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_comm_size", comm, Communicator::size) }
}

/// Its number in messages, the same on all its ranks; the world's is 0. -1 for a NULL comm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_id(comm: *const rl_comm) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_comm_id", comm, Communicator::id) }
}

/// Writes the members' ranks in the world, in this communicator's order: rl_comm_size of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_ranks(comm: *const rl_comm, ranks: *mut c_int) -> c_int {
    guarded("rl_comm_ranks", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let ranks = place("ranks", ranks)?;
        for (at, rank) in comm.ranks().iter().enumerate() {
            let rank = c_int::try_from(*rank).unwrap_or(-1);
            // SAFETY: room for one each by the caller's word.
            unsafe { ranks.wrapping_add(at).write(rank) };
        }
        Ok(())
    })
}

/// Makes a communicator of those that give the same color (0 and above), ordered by key, then by
/// rank here. *made is NULL for those that give RL_NO_COLOR. All ranks of comm call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_split(
    comm: *const rl_comm,
    color: i64,
    key: i64,
    made: *mut *mut rl_comm,
) -> c_int {
    // SAFETY: the caller's word.
    let make = |comm: &Communicator| {
        let color = match color {
            RL_NO_COLOR => None,
            _ => Some(u32::try_from(color).map_err(|_| {
                Failure::argument(&format!("color is {color}, outside 0 to {}", u32::MAX))
            })?),
        };
        Ok(comm.split(color, key)?)
    };
    // SAFETY: the caller's word.
    unsafe { derive("rl_comm_split", comm, made, make) }
}

/// Makes a communicator of the same ranks, whose calls never meet with comm's. All ranks call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_dup(comm: *const rl_comm, made: *mut *mut rl_comm) -> c_int {
    let make = |comm: &Communicator| Ok(Some(comm.duplicate()?));
    // SAFETY: the caller's word.
    unsafe { derive("rl_comm_dup", comm, made, make) }
}

/// Makes a communicator of these ranks of comm, in this order; *made is NULL for the others. All
/// ranks of comm call it, with the same list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_from_ranks(
    comm: *const rl_comm,
    ranks: *const c_int,
    count: u64,
    made: *mut *mut rl_comm,
) -> c_int {
    let make = |comm: &Communicator| {
        if count > u64::from(comm.size()) {
            let text = format!("{count} ranks of a communicator of {}", comm.size());
            return Err(Failure::argument(&text));
        }
        let count = usize::try_from(count).unwrap_or(0);
        let mut list = Vec::with_capacity(count);
        if count > 0 {
            place("ranks", ranks.cast_mut())?;
        }
        for at in 0..count {
            // SAFETY: so many by the caller's word.
            list.push(rank(comm, "ranks: one", unsafe {
                *ranks.wrapping_add(at)
            })?);
        }
        Ok(comm.from_ranks(&list)?)
    };
    // SAFETY: the caller's word.
    unsafe { derive("rl_comm_from_ranks", comm, made, make) }
}

/// After a failure: makes a communicator of the ranks that are alive, in comm's order. All of them
/// call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_shrink(comm: *const rl_comm, made: *mut *mut rl_comm) -> c_int {
    let make = |comm: &Communicator| Ok(Some(comm.shrink()?));
    // SAFETY: the caller's word.
    unsafe { derive("rl_comm_shrink", comm, made, make) }
}

/// Frees a communicator; not the world's own. Its requests may still be waited for. NULL is no
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_free(comm: *mut rl_comm) -> c_int {
    guarded("rl_comm_free", || {
        if comm.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's word.
        if unsafe { get(comm.cast_const())?.is_lent } {
            let text = "the world's own communicator is freed by rl_finalize";
            return Err(Failure::argument(text));
        }
        // SAFETY: the caller's word.
        drop(unsafe { take(comm)? });
        Ok(())
    })
}

/// Ends all calls on the communicator with RL_ERROR_ABORTED, here at once, on its other ranks as
/// soon as they hear of it. From any thread. reason is shown to all of them, and may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_abort(comm: *const rl_comm, reason: *const c_char) -> c_int {
    guarded("rl_comm_abort", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        if reason.is_null() {
            comm.abort("aborted by the program");
            return Ok(());
        }
        // SAFETY: not null, and a C string by the caller's word.
        comm.abort(&unsafe { CStr::from_ptr(reason) }.to_string_lossy());
        Ok(())
    })
}

/// RL_OK while the communicator is well; else the code it failed with, and rl_last_error() tells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_error(comm: *const rl_comm) -> c_int {
    guarded("rl_comm_error", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        Ok(comm.error().map_or(Ok(()), Err::<(), Error>)?)
    })
}

/// How many seconds a call on the communicator may wait for its peers; 0 for RLAUNCH_TIMEOUT's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_comm_set_timeout(comm: *const rl_comm, seconds_max: f64) -> c_int {
    guarded("rl_comm_set_timeout", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        Ok(comm.set_timeout(seconds(seconds_max)?)?)
    })
}

/// # Safety
/// `comm` is null or live, `made` null or may be written to.
unsafe fn derive(
    name: &str,
    comm: *const rl_comm,
    made: *mut *mut rl_comm,
    make: impl FnOnce(&Communicator) -> Result<Option<Communicator>, Failure>,
) -> c_int {
    guarded(name, || {
        let made = place("made", made)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        match make(comm)? {
            // SAFETY: the caller's word.
            Some(new) => unsafe { give("made", made, rl_comm::new(new)) },
            None => {
                // SAFETY: the caller's word.
                unsafe { made.write(std::ptr::null_mut()) };
                Ok(())
            }
        }
    })
}

unsafe fn number(name: &str, comm: *const rl_comm, of: fn(&Communicator) -> u32) -> c_int {
    let mut number = -1;
    guarded(name, || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        number = c_int::try_from(of(comm)).unwrap_or(-1);
        Ok(())
    });
    number
}
