//! A clock that costs a few nanoseconds: the processor's counter, scaled when it is read out.
//!
//! It is for the flight recorder alone, where a wrong time misleads nobody into a wrong result:
//! the counter may drift a little between cores, and where there is none, or none that can be
//! trusted, the system's clock serves.

use std::time::{Duration, Instant};

/// The counter now. Monotonic as far as the processor's is.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: the instruction exists on every x86-64 processor and touches no memory.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds of the system's monotonic clock.
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(crate) fn ticks() -> u64 {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    epoch: Instant,
    at: Instant,
    ticks: u64,
}

/// A clock with its rate, as measured from its making until now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScaledClock {
    clock: Clock,
    ticks_per_second: f64,
}

/// The rate is measured over at least this long.
const MEASURE_MIN: Duration = Duration::from_millis(2);

impl Clock {
    /// Times are told since `epoch`.
    pub(crate) fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            at: Instant::now(),
            ticks: ticks(),
        }
    }

    pub(crate) fn scaled(self) -> ScaledClock {
        let missing = MEASURE_MIN.saturating_sub(self.at.elapsed());
        if !missing.is_zero() {
            std::thread::sleep(missing);
        }
        let (now, ticks) = (Instant::now(), ticks());
        let passed = ticks.saturating_sub(self.ticks).max(1);
        ScaledClock {
            clock: self,
            ticks_per_second: passed as f64 / (now - self.at).as_secs_f64(),
        }
    }
}

impl ScaledClock {
    pub(crate) fn since_epoch(&self, ticks: u64) -> Duration {
        (self.clock.at - self.clock.epoch) + self.between(self.clock.ticks, ticks)
    }

    pub(crate) fn between(&self, begun: u64, ended: u64) -> Duration {
        let ticks = ended.saturating_sub(begun);
        Duration::try_from_secs_f64(ticks as f64 / self.ticks_per_second).unwrap_or_default()
    }
}
