//! Calls under way, and how the three forms of a call run.

use crate::argument::{place, seconds as limit};
use crate::error::{Failure, guarded};
use crate::group;
use crate::handle::{get, get_mut, give, rl_comm, rl_request, take};
use rlaunch_runtime::{Call, Communicator, Status};
use std::ffi::c_int;
use std::time::Duration;

/// Of a completed receive or probe: where the message came from, and how many elements it had. All
/// zero of other calls.
#[repr(C)]
pub struct rl_status {
    pub source: i32,
    pub tag: u32,
    pub count: u64,
}

/// Runs a call, or adds it to the group that this thread is in.
///
/// # Safety
/// `comm` is null or live; what `make` returns has buffers as the runtime wants them.
pub(crate) unsafe fn run(
    name: &str,
    comm: *const rl_comm,
    make: impl FnOnce(&Communicator) -> Result<Call, Failure>,
) -> c_int {
    guarded(name, || {
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let call = make(comm)?;
        if group::is_open() {
            // SAFETY: the caller's word.
            group::add(unsafe { comm.start(call) }?);
            return Ok(());
        }
        // SAFETY: the caller's word.
        Ok(unsafe { comm.run(&call) }?)
    })
}

/// Starts a call.
///
/// # Safety
/// As [`run`], until the request is complete; `request` is null or may be written to.
pub(crate) unsafe fn start(
    name: &str,
    comm: *const rl_comm,
    request: *mut *mut rl_request,
    make: impl FnOnce(&Communicator) -> Result<Call, Failure>,
) -> c_int {
    guarded(name, || {
        let request = place("request", request)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let call = make(comm)?;
        // SAFETY: the caller's word.
        let started = unsafe { comm.start(call) }?;
        // SAFETY: the caller's word.
        unsafe { give("request", request, rl_request::new(None, Some(started))) }
    })
}

/// Prepares a call.
///
/// # Safety
/// As [`start`], for each start.
pub(crate) unsafe fn prepare(
    name: &str,
    comm: *const rl_comm,
    request: *mut *mut rl_request,
    make: impl FnOnce(&Communicator) -> Result<Call, Failure>,
) -> c_int {
    guarded(name, || {
        let request = place("request", request)?;
        // SAFETY: the caller's word.
        let comm = unsafe { &get(comm)?.handle };
        let call = make(comm)?;
        // SAFETY: the caller's word.
        let prepared = unsafe { comm.prepare(call) }?;
        // SAFETY: the caller's word.
        unsafe { give("request", request, rl_request::new(Some(prepared), None)) }
    })
}

/// Starts a prepared request once more; complete the start before, first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_start(request: *mut rl_request) -> c_int {
    guarded("rl_start", || {
        // SAFETY: the caller's word.
        let request = unsafe { get_mut(request)? };
        if request.under_way.is_some() {
            let text = "the request is under way; hint: rl_wait for it before it starts again";
            return Err(Failure::argument(text));
        }
        let prepared = request.prepared.as_ref().ok_or_else(|| {
            Failure::argument("the request is not one that rl_all_reduce_init and so on made")
        })?;
        request.under_way = Some(prepared.start()?);
        Ok(())
    })
}

/// Waits until *request is complete, and returns what the blocking call returns. Frees the request
/// and sets it to NULL, unless it is a prepared one, which can be started again. A NULL *request is
/// complete. status may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_wait(request: *mut *mut rl_request, status: *mut rl_status) -> c_int {
    // SAFETY: the caller's word.
    guarded("rl_wait", || unsafe { wait(request, status) })
}

/// As rl_wait of each, also if one fails; returns the first failure. statuses may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_wait_all(
    count: u64,
    requests: *mut *mut rl_request,
    statuses: *mut rl_status,
) -> c_int {
    guarded("rl_wait_all", || {
        if count > 0 {
            place("requests", requests)?;
        }
        let mut first = Ok(());
        for at in 0..usize::try_from(count).unwrap_or(0) {
            let status = match statuses.is_null() {
                true => statuses,
                false => statuses.wrapping_add(at),
            };
            // SAFETY: the caller's word: `count` of both.
            let waited = unsafe { wait(requests.wrapping_add(at), status) };
            first = first.and(waited);
        }
        first
    })
}

/// Sets *done to whether *request is complete, and if so does what rl_wait does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_test(
    request: *mut *mut rl_request,
    done: *mut c_int,
    status: *mut rl_status,
) -> c_int {
    // SAFETY: the caller's word.
    guarded("rl_test", || unsafe {
        wait_at_most(request, None, done, status)
    })
}

/// As rl_test, but waits at most so many seconds for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_wait_timeout(
    request: *mut *mut rl_request,
    seconds: f64,
    done: *mut c_int,
    status: *mut rl_status,
) -> c_int {
    guarded("rl_wait_timeout", || {
        let longest = limit(seconds)?.unwrap_or(Duration::ZERO);
        // SAFETY: the caller's word.
        unsafe { wait_at_most(request, Some(longest), done, status) }
    })
}

/// Ends a receive that no message has met, and sets *cancelled to whether it did: its message goes to
/// another receive, and rl_wait of it returns RL_ERROR_CANCELLED. Sets *cancelled to 0 where it is too
/// late, or the call is no receive: it goes on. Either way the request is still to be waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_request_cancel(
    request: *mut rl_request,
    cancelled: *mut c_int,
) -> c_int {
    guarded("rl_request_cancel", || {
        let cancelled = place("cancelled", cancelled)?;
        // SAFETY: the caller's word.
        let request = unsafe { get(request.cast_const())? };
        let is_cancelled = match &request.under_way {
            Some(under_way) => under_way.cancel()?,
            None => false,
        };
        // SAFETY: checked; writable by the caller's word.
        unsafe { cancelled.write(c_int::from(is_cancelled)) };
        Ok(())
    })
}

/// Frees a request and sets it to NULL. One under way is waited for first; a receive that no message
/// has met is cancelled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_request_free(request: *mut *mut rl_request) -> c_int {
    guarded("rl_request_free", || {
        let at = place("request", request)?;
        // SAFETY: checked; readable by the caller's word.
        let request = unsafe { at.read() };
        if request.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's word.
        drop(unsafe { take(request)? });
        // SAFETY: as above.
        unsafe { at.write(std::ptr::null_mut()) };
        Ok(())
    })
}

unsafe fn wait(at: *mut *mut rl_request, status: *mut rl_status) -> Result<(), Failure> {
    let at = place("request", at)?;
    // SAFETY: checked; readable by the caller's word.
    let pointer = unsafe { at.read() };
    if pointer.is_null() {
        // SAFETY: the caller's word.
        return unsafe { tell(status, Status::default()) };
    }
    // SAFETY: the caller's word.
    let request = unsafe { get_mut(pointer)? };
    let result = match request.under_way.take() {
        Some(under_way) => under_way.wait(),
        None => Ok(request.status),
    };
    if let Ok(known) = &result {
        request.status = *known;
    }
    if request.prepared.is_none() {
        // SAFETY: the caller's word.
        drop(unsafe { take(pointer)? });
        // SAFETY: as above.
        unsafe { at.write(std::ptr::null_mut()) };
    }
    // SAFETY: the caller's word.
    unsafe { tell(status, result?) }
}

/// `None` asks without waiting.
unsafe fn wait_at_most(
    at: *mut *mut rl_request,
    longest: Option<Duration>,
    done: *mut c_int,
    status: *mut rl_status,
) -> Result<(), Failure> {
    let (at, done) = (place("request", at)?, place("done", done)?);
    // SAFETY: checked; writable by the caller's word.
    unsafe { done.write(0) };
    // SAFETY: checked; readable by the caller's word.
    let pointer = unsafe { at.read() };
    if !pointer.is_null() {
        // SAFETY: the caller's word.
        let request = unsafe { get(pointer.cast_const())? };
        let is_complete = match (&request.under_way, longest) {
            (None, _) => true,
            // A failed one is complete; the wait below tells its error.
            (Some(under_way), None) => under_way.test().unwrap_or(true),
            (Some(under_way), Some(longest)) => under_way.wait_timeout(longest).unwrap_or(true),
        };
        if !is_complete {
            return Ok(());
        }
    }
    // SAFETY: checked; writable by the caller's word.
    unsafe { done.write(1) };
    // SAFETY: the caller's word.
    unsafe { wait(at, status) }
}

/// # Safety
/// `to` is null or may be written to.
pub(crate) unsafe fn tell(to: *mut rl_status, status: Status) -> Result<(), Failure> {
    if to.is_null() {
        return Ok(());
    }
    let to = place("status", to)?;
    let status = rl_status {
        source: i32::try_from(status.source).unwrap_or(-1),
        tag: status.tag,
        count: status.count as u64,
    };
    // SAFETY: checked; writable by the caller's word.
    unsafe { to.write(status) };
    Ok(())
}
