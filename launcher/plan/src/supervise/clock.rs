//! How far a host's wall clock is ahead of the launcher's.

/// The best estimate so far: that of the exchange with the shortest round trip.
///
/// `sample` takes wall-clock microseconds: when the launcher sent, what the host's clock showed
/// in between, when the launcher received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockOffset {
    best: Option<Estimate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Estimate {
    offset_us: i64,
    error_us: u64,
}

impl ClockOffset {
    pub fn sample(&mut self, sent_us: i64, host_us: i64, received_us: i64) {
        // A clock that was set in between gives a negative round trip: no estimate.
        let Ok(round_trip_us) = u64::try_from(received_us.saturating_sub(sent_us)) else {
            return;
        };
        let half_us = (round_trip_us / 2) as i64;
        let estimate = Estimate {
            offset_us: host_us.saturating_sub(sent_us.saturating_add(half_us)),
            error_us: round_trip_us.div_ceil(2),
        };
        if self
            .best
            .is_none_or(|best| estimate.error_us < best.error_us)
        {
            self.best = Some(estimate);
        }
    }

    /// Host clock minus launcher clock; 0 before the first sample.
    pub fn offset_us(&self) -> i64 {
        self.best.map_or(0, |best| best.offset_us)
    }

    /// The offset is right to within this; unknown before the first sample.
    pub fn error_us(&self) -> Option<u64> {
        self.best.map(|best| best.error_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_wins() {
        let mut clock = ClockOffset::default();
        assert_eq!((clock.offset_us(), clock.error_us()), (0, None));
        clock.sample(1000, 6000, 3000);
        assert_eq!((clock.offset_us(), clock.error_us()), (4000, Some(1000)));
        clock.sample(10_000, 15_150, 10_100);
        assert_eq!((clock.offset_us(), clock.error_us()), (5100, Some(50)));
        clock.sample(20_000, 90_000, 25_000);
        assert_eq!(clock.offset_us(), 5100);
    }

    #[test]
    fn nonsense_is_not_taken() {
        let mut clock = ClockOffset::default();
        clock.sample(1000, 5, 900);
        assert_eq!(clock.error_us(), None);
        clock.sample(i64::MIN, i64::MAX, i64::MAX);
        clock.sample(i64::MAX, i64::MIN, i64::MAX);
    }
}
