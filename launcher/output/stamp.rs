//! Wall-clock time as text: UTC, milliseconds.

/// `2026-11-30T06:20:13.123Z`
pub(crate) fn stamp(time_us: i64) -> String {
    let milliseconds = time_us.div_euclid(1000);
    let seconds = milliseconds.div_euclid(1000);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let fraction = milliseconds.rem_euclid(1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Days since 1970-01-01 → year, month, day, by 400-year eras that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(stamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(stamp(951_782_400_000_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(stamp(1_796_019_613_123_999), "2026-11-30T06:20:13.123Z");
        assert_eq!(stamp(-1), "1969-12-31T23:59:59.999Z");
    }
}
