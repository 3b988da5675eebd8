//! Calls that all start before any is waited for.

use crate::error::{Failure, guarded};
use rlaunch_runtime::Request;
use std::cell::RefCell;
use std::ffi::c_int;

thread_local! {
    static OPEN: RefCell<Option<Vec<Request>>> = const { RefCell::new(None) };
}

pub(crate) fn is_open() -> bool {
    OPEN.with_borrow(Option::is_some)
}

pub(crate) fn add(request: Request) {
    OPEN.with_borrow_mut(|open| open.get_or_insert_default().push(request));
}

/// Until rl_group_end, this thread's blocking calls start and return at once. So exchanges that
/// could deadlock one after the other can't.
#[unsafe(no_mangle)]
pub extern "C" fn rl_group_begin() -> c_int {
    guarded("rl_group_begin", || {
        if is_open() {
            return Err(Failure::argument("a group is open in this thread already"));
        }
        OPEN.set(Some(Vec::new()));
        Ok(())
    })
}

/// Waits for all calls since rl_group_begin; returns the first failure.
#[unsafe(no_mangle)]
pub extern "C" fn rl_group_end() -> c_int {
    guarded("rl_group_end", || {
        let Some(requests) = OPEN.take() else {
            let text = "no group is open in this thread; hint: rl_group_begin first";
            return Err(Failure::argument(text));
        };
        let mut first = Ok(());
        for request in requests {
            first = first.and(request.wait().map(|_| ()));
        }
        Ok(first?)
    })
}
