//! Clocks: for durations, and for the time of day.

use nix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since some fixed moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    id: ClockId,
}

impl Clock {
    /// Of the process's processor time, on all its threads; else of the time that passes.
    pub(crate) fn new(is_processor_time: bool) -> Self {
        let id = if is_processor_time {
            ClockId::CLOCK_PROCESS_CPUTIME_ID
        } else {
            ClockId::CLOCK_MONOTONIC
        };
        Self { id }
    }

    pub(crate) fn now_us(self) -> f64 {
        let time = clock_gettime(self.id).expect("Linux has both clocks");
        time.tv_sec() as f64 * 1e6 + time.tv_nsec() as f64 / 1e3
    }
}

/// `2026-11-30T09:15:00Z`
pub(crate) fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    utc(since.map_or(0, |time| time.as_secs()))
}

fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Civil from days: years begin in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_796_030_100, "2026-11-30T09:15:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
