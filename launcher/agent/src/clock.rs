//! The wall clock, as messages carry it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds after 1970; 0 for a clock set before.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
