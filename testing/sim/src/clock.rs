//! Time that passes only when somebody asks for it, sleeps, or a test advances it.

use crate::Rng;
use basalt_sched::Clock;
use basalt_sched::os::real::RealClock;
use parking_lot::Mutex;
use std::time::Duration;

/// 2026-01-01 00:00 UTC, in microseconds since 1970.
const START_UNIX_MICROS: i64 = 1_767_225_600_000_000;
/// Each look at the clock takes up to this long.
const TICK_NANOS_MAX: u64 = 50_000;
/// A sleeper gives way for real at most this long, so that other threads get on.
const REAL_SLEEP_MAX: Duration = Duration::from_millis(1);

pub struct SimClock {
    state: Mutex<(Duration, Rng)>,
    real: RealClock,
}

impl SimClock {
    pub fn new(seed: u64) -> SimClock {
        SimClock { state: Mutex::new((Duration::ZERO, Rng::new(seed))), real: RealClock::new() }
    }

    pub fn advance(&self, duration: Duration) {
        self.state.lock().0 += duration;
    }
}

impl Clock for SimClock {
    fn monotonic(&self) -> Duration {
        let (now, rng) = &mut *self.state.lock();
        *now += Duration::from_nanos(1 + rng.below(TICK_NANOS_MAX));
        *now
    }

    fn unix_micros(&self) -> i64 {
        START_UNIX_MICROS + self.monotonic().as_micros() as i64
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
        self.real.sleep(duration.min(REAL_SLEEP_MAX));
    }
}
