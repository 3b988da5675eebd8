//! Figures of many single times.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
    /// Standard deviation over mean.
    pub(crate) cv_percent: f64,
}

impl Spread {
    /// None of no times.
    pub(crate) fn of(times_us: &[f64]) -> Option<Self> {
        let mut sorted = times_us.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min_us, max_us) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let squares: f64 = sorted.iter().map(|time| (time - mean).powi(2)).sum();
        let cv_percent = if mean > 0.0 {
            (squares / count).sqrt() / mean * 100.0
        } else {
            0.0
        };
        Some(Self {
            min_us,
            p50_us: percentile(&sorted, 50),
            p99_us: percentile(&sorted, 99),
            max_us,
            cv_percent,
        })
    }
}

/// The smallest value that `percent` of all do not exceed.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let spread = Spread::of(&times).unwrap();
        assert_eq!((spread.min_us, spread.max_us), (1.0, 200.0));
        assert_eq!((spread.p50_us, spread.p99_us), (100.0, 198.0));
        let one = Spread::of(&[4.0]).unwrap();
        assert_eq!((one.p50_us, one.p99_us, one.cv_percent), (4.0, 4.0, 0.0));
        assert_eq!(Spread::of(&[]), None);
    }
}
