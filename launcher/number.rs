//! Times as people write them.

use std::time::Duration;

/// A century: beyond, arithmetic on time could overflow, and nobody waits.
const SECONDS_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// `90`, `1.5`, `500ms`, `30s`, `10m`, `2h`, `1d`; None for anything else.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let end = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    if number.starts_with(['+', '-']) {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds <= SECONDS_MAX).then(|| Duration::from_secs_f64(seconds))
}

/// `90 s`, `1.5 s`
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_millis() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let table = [
            ("90", Some(90_000)),
            ("1.5", Some(1500)),
            ("0", Some(0)),
            ("500ms", Some(500)),
            ("10m", Some(600_000)),
            ("2h", Some(7_200_000)),
            ("", None),
            ("-1", None),
            ("1x", None),
            ("inf", None),
            ("nan", None),
            ("1e300", None),
            ("h", None),
        ];
        for (text, expected_ms) in table {
            assert_eq!(
                duration(text),
                expected_ms.map(Duration::from_millis),
                "{text}"
            );
        }
    }
}
