//! Joining, leaving, and what holds for the job.

use crate::argument::place;
use crate::error::{guarded, lend};
use crate::handle::{get, give, rl_comm, rl_world, take};
use rlaunch_runtime::World;
use std::ffi::{c_char, c_int};

/// Joins the job that the environment describes; returns once every rank has joined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_init(world: *mut *mut rl_world) -> c_int {
    guarded("rl_init", || {
        let world = place("world", world)?;
        let joined = rl_world::new(rlaunch_runtime::init()?);
        // SAFETY: writable by the caller's word.
        unsafe { give("world", world, joined) }
    })
}

/// Leaves the job in good order and frees the world, also when it returns an error. No other thread
/// may be inside a call on it; its communicators may only be freed afterwards. NULL is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_finalize(world: *mut rl_world) -> c_int {
    guarded("rl_finalize", || {
        if world.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's word.
        let world = unsafe { take(world)? };
        Ok(world.world.finalize()?)
    })
}

/// The communicator of all ranks. It lives as long as the world, and is not freed by itself. NULL
/// for a NULL world.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_world_comm(world: *mut rl_world) -> *mut rl_comm {
    let mut comm = std::ptr::null_mut();
    guarded("rl_world_comm", || {
        // SAFETY: the caller's word.
        let world = unsafe { get(world.cast_const())? };
        comm = (&raw const world.comm).cast_mut();
        Ok(())
    });
    comm
}

/// This rank's number in the job, from 0. -1 for a NULL world.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_rank(world: *const rl_world) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_rank", world, |world| world.rank()) }
}

/// How many ranks the job has. -1 for a NULL world.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_size(world: *const rl_world) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_size", world, |world| world.size()) }
}

/// This rank's number among the ranks of its host, from 0. -1 for a NULL world.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_local_rank(world: *const rl_world) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_local_rank", world, World::local_rank) }
}

/// How many ranks run on this host. -1 for a NULL world.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_local_size(world: *const rl_world) -> c_int {
    // SAFETY: the caller's word.
    unsafe { number("rl_local_size", world, World::local_size) }
}

/// The last calls of this rank on each communicator, with their times, as text. Valid until this
/// thread asks again. "" for a NULL world.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_flight_recorder(world: *const rl_world) -> *const c_char {
    let mut text = String::new();
    guarded("rl_flight_recorder", || {
        // SAFETY: the caller's word.
        let world = unsafe { get(world)? };
        text = world.world.flight_recorder().to_string();
        Ok(())
    });
    lend(&text)
}

/// The library's version: "0.1.0". RL_VERSION is the header's.
#[unsafe(no_mangle)]
pub extern "C" fn rl_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

unsafe fn number(name: &str, world: *const rl_world, of: fn(&World) -> u32) -> c_int {
    let mut number = -1;
    guarded(name, || {
        // SAFETY: the caller's word.
        let world = unsafe { get(world)? };
        number = c_int::try_from(of(&world.world)).unwrap_or(-1);
        Ok(())
    });
    number
}
