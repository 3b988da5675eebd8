//! librlaunch.so: the C API of `include/rlaunch.h`, which says what each function does.
//!
//! Thin: check what C cannot (null, codes, ranges, alignment), call `rlaunch_runtime`, turn its
//! errors into a code and a text. No panic crosses into C. Only `rl_*` is exported.

mod argument;
mod error;

use argument::{dtype, op, rank, read, write};
use error::{Failure, guarded};
use rlaunch_runtime::{Call, World};
use std::ffi::{c_char, c_int, c_void};

/// # Safety
/// `world` is null or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_init(world: *mut *mut World) -> c_int {
    guarded("rl_init", || {
        if world.is_null() {
            return Err(Failure::argument("world is NULL"));
        }
        let joined = Box::into_raw(Box::new(rlaunch_runtime::init()?));
        // SAFETY: not null, and by the caller's word writable.
        unsafe { world.write(joined) };
        Ok(())
    })
}

/// # Safety
/// `world` is null or came from `rl_init`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_finalize(world: *mut World) -> c_int {
    guarded("rl_finalize", || {
        if world.is_null() {
            return Ok(());
        }
        // SAFETY: made by Box::into_raw in rl_init, and given up by the caller.
        let world = unsafe { Box::from_raw(world) };
        Ok(world.finalize()?)
    })
}

/// # Safety
/// `world` is null or came from `rl_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_rank(world: *const World) -> c_int {
    // SAFETY: the caller's word.
    number(unsafe { world.as_ref() }, |world| world.rank())
}

/// # Safety
/// `world` is null or came from `rl_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_size(world: *const World) -> c_int {
    // SAFETY: the caller's word.
    number(unsafe { world.as_ref() }, |world| world.size())
}

/// # Safety
/// `world` is null or came from `rl_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_local_rank(world: *const World) -> c_int {
    // SAFETY: the caller's word.
    number(unsafe { world.as_ref() }, World::local_rank)
}

/// # Safety
/// `world` is null or came from `rl_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_local_size(world: *const World) -> c_int {
    // SAFETY: the caller's word.
    number(unsafe { world.as_ref() }, World::local_size)
}

/// # Safety
/// `world` is null or came from `rl_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_barrier(world: *const World) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_barrier", || Ok(some(world)?.barrier()?))
}

/// # Safety
/// `world` is null or came from `rl_init`; `buffer` holds `count` elements of `dtype`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_broadcast(
    world: *const World,
    buffer: *mut c_void,
    count: u64,
    dtype_code: c_int,
    root: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_broadcast", || {
        let (world, dtype) = (some(world)?, dtype(dtype_code)?);
        let root = rank(world, "root", root)?;
        let (buffer, count) = write("buffer", buffer, count, dtype)?;
        // SAFETY: checked for null and alignment; the length is the caller's word.
        Ok(unsafe { world.run(&Call::broadcast(buffer, count, dtype, root)) }?)
    })
}

/// # Safety
/// `world` is null or came from `rl_init`; `buffer` holds `count` elements of `dtype`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_reduce(
    world: *const World,
    buffer: *mut c_void,
    count: u64,
    dtype_code: c_int,
    op_code: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_all_reduce", || {
        let (world, dtype, op) = (some(world)?, dtype(dtype_code)?, op(op_code)?);
        let (buffer, count) = write("buffer", buffer, count, dtype)?;
        // SAFETY: checked for null and alignment; the length is the caller's word.
        Ok(unsafe { world.run(&Call::all_reduce(buffer, buffer, count, dtype, op)) }?)
    })
}

/// # Safety
/// `world` is null or came from `rl_init`; `input` holds `count` elements of `dtype`, `output`
/// `count` times the world's size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_all_gather(
    world: *const World,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_all_gather", || {
        let (world, dtype) = (some(world)?, dtype(dtype_code)?);
        let (input, count) = read("input", input, count, dtype)?;
        let total = argument::total(count, world)?;
        let (output, total) = write("output", output, total, dtype)?;
        argument::apart(world, (output, total), (input, count), dtype)?;
        // SAFETY: checked for null, alignment and overlap; the lengths are the caller's word.
        Ok(unsafe { world.run(&Call::all_gather(input, output, count, dtype)) }?)
    })
}

/// # Safety
/// `world` is null or came from `rl_init`; `output` holds `count` elements of `dtype`, `input`
/// `count` times the world's size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_reduce_scatter(
    world: *const World,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype_code: c_int,
    op_code: c_int,
) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_reduce_scatter", || {
        let (world, dtype, op) = (some(world)?, dtype(dtype_code)?, op(op_code)?);
        let (output, count) = write("output", output, count, dtype)?;
        let total = argument::total(count, world)?;
        let (input, total) = read("input", input, total, dtype)?;
        argument::apart(world, (input, total), (output, count), dtype)?;
        // SAFETY: checked for null, alignment and overlap; the lengths are the caller's word.
        Ok(unsafe { world.run(&Call::reduce_scatter(input, output, count, dtype, op)) }?)
    })
}

/// # Safety
/// `world` is null or came from `rl_init`; `buffer` holds `count` elements of `dtype`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_send(
    world: *const World,
    buffer: *const c_void,
    count: u64,
    dtype_code: c_int,
    to: c_int,
    tag: u32,
) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_send", || {
        let (world, dtype) = (some(world)?, dtype(dtype_code)?);
        let to = rank(world, "to", to)?;
        let (buffer, count) = read("buffer", buffer, count, dtype)?;
        // SAFETY: checked for null and alignment; the length is the caller's word.
        Ok(unsafe { world.send_raw(buffer, count, dtype, to, tag) }?)
    })
}

/// # Safety
/// `world` is null or came from `rl_init`; `buffer` holds `count` elements of `dtype`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_recv(
    world: *const World,
    buffer: *mut c_void,
    count: u64,
    dtype_code: c_int,
    from: c_int,
    tag: u32,
) -> c_int {
    // SAFETY: the caller's word.
    let world = unsafe { world.as_ref() };
    guarded("rl_recv", || {
        let (world, dtype) = (some(world)?, dtype(dtype_code)?);
        let from = rank(world, "from", from)?;
        let (buffer, count) = write("buffer", buffer, count, dtype)?;
        // SAFETY: checked for null and alignment; the length is the caller's word.
        unsafe { world.recv_raw(buffer, count, dtype, from, tag) }?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rl_last_error() -> *const c_char {
    error::last()
}

fn some(world: Option<&World>) -> Result<&World, Failure> {
    world.ok_or_else(|| Failure::argument("world is NULL; hint: call rl_init first"))
}

/// Ranks are bounded far below an int's end.
fn number(world: Option<&World>, of: fn(&World) -> u32) -> c_int {
    world.map_or(-1, |world| c_int::try_from(of(world)).unwrap_or(-1))
}
