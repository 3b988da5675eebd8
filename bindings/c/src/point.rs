//! Calls of two ranks.

use crate::argument::{self, Block, place};
use crate::codes::{RL_ANY_SOURCE, RL_ANY_TAG};
use crate::error::{Failure, guarded};
use crate::group;
use crate::handle::{get, give, rl_comm, rl_request};
use crate::request::{rl_status, tell};
use rlaunch_runtime::{Communicator, Source, Status, Tag};
use std::ffi::{c_int, c_void};

/// Sends to one rank. Small messages are on their way at once, larger ones when the receiver takes
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_send(
    comm: *const rl_comm,
    buffer: *const c_void,
    count: u64,
    dtype: c_int,
    to: c_int,
    tag: u32,
) -> c_int {
    guarded("rl_send", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let to = argument::rank(comm, "to", to)?;
        let Block {
            pointer,
            count,
            dtype,
        } = Block::new("buffer", buffer, count, argument::dtype(dtype)?)?;
        if group::is_open() {
            // SAFETY: checked for null and alignment; the length, and that the buffer stays as it
            // is to the end of the group, is the caller's word.
            group::add(unsafe { comm.start_send_raw(pointer, count, dtype, to, tag, None) }?);
            return Ok(());
        }
        // SAFETY: checked for null and alignment; the length is the caller's word.
        Ok(unsafe { comm.send_raw(pointer, count, dtype, to, tag, None) }?)
    })
}

/// Receives the oldest message that matches, of this type and at most count elements; a longer one
/// is an error. from may be RL_ANY_SOURCE, tag RL_ANY_TAG; status may be NULL, and has nothing in a
/// group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_recv(
    comm: *const rl_comm,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    from: c_int,
    tag: i64,
    status: *mut rl_status,
) -> c_int {
    guarded("rl_recv", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let (source, tag) = (source(comm, from)?, wanted(tag)?);
        let Block {
            pointer,
            count,
            dtype,
        } = Block::new("buffer", buffer, count, argument::dtype(dtype)?)?;
        if group::is_open() {
            // SAFETY: checked for null and alignment; the length, and that nobody uses the buffer
            // to the end of the group, is the caller's word.
            group::add(unsafe { comm.start_recv_raw(pointer, count, dtype, source, tag, None) }?);
            // SAFETY: the caller's word.
            return unsafe { tell(status, Status::default()) };
        }
        // SAFETY: checked for null and alignment; the length is the caller's word.
        let known = unsafe { comm.recv_raw(pointer, count, dtype, source, tag, None) }?;
        // SAFETY: the caller's word.
        unsafe { tell(status, known) }
    })
}

/// As rl_send, but returns at once, with a request to wait for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_isend(
    comm: *const rl_comm,
    buffer: *const c_void,
    count: u64,
    dtype: c_int,
    to: c_int,
    tag: u32,
    request: *mut *mut rl_request,
) -> c_int {
    guarded("rl_isend", || {
        let request = place("request", request)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let to = argument::rank(comm, "to", to)?;
        let at = Block::new("buffer", buffer, count, argument::dtype(dtype)?)?;
        // SAFETY: checked for null and alignment; the rest is the caller's word.
        let started =
            unsafe { comm.start_send_raw(at.pointer, at.count, at.dtype, to, tag, None) }?;
        // SAFETY: the caller's word.
        unsafe { give("request", request, rl_request::new(None, Some(started))) }
    })
}

/// As rl_recv, but returns at once, with a request to wait for, which has the status.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_irecv(
    comm: *const rl_comm,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    from: c_int,
    tag: i64,
    request: *mut *mut rl_request,
) -> c_int {
    guarded("rl_irecv", || {
        let request = place("request", request)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let (source, tag) = (source(comm, from)?, wanted(tag)?);
        let at = Block::new("buffer", buffer, count, argument::dtype(dtype)?)?;
        // SAFETY: checked for null and alignment; the rest is the caller's word.
        let started =
            unsafe { comm.start_recv_raw(at.pointer, at.count, at.dtype, source, tag, None) }?;
        // SAFETY: the caller's word.
        unsafe { give("request", request, rl_request::new(None, Some(started))) }
    })
}

/// Sends and receives at once; neither waits for the other. The status is the receive's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_sendrecv(
    comm: *const rl_comm,
    send_buffer: *const c_void,
    send_count: u64,
    to: c_int,
    send_tag: u32,
    recv_buffer: *mut c_void,
    recv_count: u64,
    from: c_int,
    recv_tag: i64,
    dtype: c_int,
    status: *mut rl_status,
) -> c_int {
    guarded("rl_sendrecv", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let dtype = argument::dtype(dtype)?;
        let to = argument::rank(comm, "to", to)?;
        let (source, recv_tag) = (source(comm, from)?, wanted(recv_tag)?);
        let sent = Block::new("send_buffer", send_buffer, send_count, dtype)?;
        let taken = Block::new("recv_buffer", recv_buffer, recv_count, dtype)?;
        taken.apart(&sent, taken.count + 1)?;
        let (pointer, count) = (taken.pointer, taken.count);
        // SAFETY: checked for null, alignment and overlap; the length is the caller's word.
        let receive =
            unsafe { comm.start_recv_raw(pointer, count, dtype, source, recv_tag, None) }?;
        // SAFETY: as above.
        unsafe { comm.send_raw(sent.pointer, sent.count, dtype, to, send_tag, None) }?;
        let known = receive.wait()?;
        // SAFETY: the caller's word.
        unsafe { tell(status, known) }
    })
}

/// Waits until a message is there that rl_recv with the same arguments would take.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_probe(
    comm: *const rl_comm,
    from: c_int,
    tag: i64,
    status: *mut rl_status,
) -> c_int {
    guarded("rl_probe", || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let known = comm.probe(source(comm, from)?, wanted(tag)?)?;
        // SAFETY: the caller's word.
        unsafe { tell(status, known) }
    })
}

/// Sets *found to whether such a message is there now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_iprobe(
    comm: *const rl_comm,
    from: c_int,
    tag: i64,
    found: *mut c_int,
    status: *mut rl_status,
) -> c_int {
    guarded("rl_iprobe", || {
        let found = place("found", found)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let known = comm.try_probe(source(comm, from)?, wanted(tag)?)?;
        // SAFETY: checked; writable by the caller's word.
        unsafe { found.write(c_int::from(known.is_some())) };
        // SAFETY: the caller's word.
        known.map_or(Ok(()), |known| unsafe { tell(status, known) })
    })
}

fn source(comm: &Communicator, from: c_int) -> Result<Source, Failure> {
    match from {
        RL_ANY_SOURCE => Ok(Source::Any),
        _ => Ok(Source::Rank(argument::rank(comm, "from", from)?)),
    }
}

fn wanted(tag: i64) -> Result<Tag, Failure> {
    match tag {
        RL_ANY_TAG => Ok(Tag::Any),
        _ => u32::try_from(tag).map(Tag::Is).map_err(|_| {
            let text = format!("tag is {tag}, outside 0 to {} and not RL_ANY_TAG", u32::MAX);
            Failure::argument(&text)
        }),
    }
}
