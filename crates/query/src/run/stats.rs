//! What the plans of one statement took, for EXPLAIN and `basalt.query_log`. Counted by plan, scan and reservation, never
//! by row.

use datafusion::common::Result as DfResult;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Default, Debug)]
pub struct RunStats {
    on_columns: AtomicBool,
    on_fallback: AtomicBool,
    planning_nanos: AtomicU64,
    bytes_read: AtomicU64,
    bytes_spilled: AtomicU64,
    held_bytes: AtomicUsize,
    held_bytes_max: AtomicUsize,
}

impl RunStats {
    /// A plan ran on the column engine, or the fallback has begun to run one.
    pub fn ran_on(&self, columns: bool) {
        if columns { &self.on_columns } else { &self.on_fallback }.store(true, Ordering::Relaxed);
    }

    /// `None` if no plan ran. What ran on both ran on the fallback: it is the one to be looked at.
    pub fn engine(&self) -> Option<&'static str> {
        match (self.on_fallback.load(Ordering::Relaxed), self.on_columns.load(Ordering::Relaxed)) {
            (true, _) => Some("fallback"),
            (false, true) => Some("column"),
            (false, false) => None,
        }
    }

    pub fn add_planning(&self, took: Duration) {
        self.planning_nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn planning(&self) -> Duration {
        Duration::from_nanos(self.planning_nanos.load(Ordering::Relaxed))
    }

    pub fn add_bytes_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Of segments, as they are encoded.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    pub fn add_bytes_spilled(&self, bytes: u64) {
        self.bytes_spilled.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Written to temporary files by the column engine.
    pub fn bytes_spilled(&self) -> u64 {
        self.bytes_spilled.load(Ordering::Relaxed)
    }

    fn hold(&self, bytes: usize) {
        let held = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.held_bytes_max.fetch_max(held, Ordering::Relaxed);
    }

    fn release(&self, bytes: usize) {
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The most that was held at once.
    pub fn held_bytes_max(&self) -> usize {
        self.held_bytes_max.load(Ordering::Relaxed)
    }
}

/// The queries' memory as the plans of one statement see it: what they hold of it is noted.
pub(super) struct NotedPool {
    pool: Arc<dyn MemoryPool>,
    stats: Arc<RunStats>,
}

impl NotedPool {
    pub fn new(pool: Arc<dyn MemoryPool>, stats: Arc<RunStats>) -> NotedPool {
        NotedPool { pool, stats }
    }
}

impl MemoryPool for NotedPool {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.stats.hold(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.stats.release(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> DfResult<()> {
        self.pool.try_grow(reservation, additional)?;
        self.stats.hold(additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

impl fmt::Debug for NotedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.pool, f)
    }
}

impl fmt::Display for NotedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.pool, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    #[test]
    fn the_most_that_was_held_at_once_is_known_and_limits_stay() {
        let all: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let stats = Arc::new(RunStats::default());
        let own: Arc<dyn MemoryPool> = Arc::new(NotedPool::new(all.clone(), stats.clone()));
        let (one, other) = (MemoryConsumer::new("one").register(&own), MemoryConsumer::new("other").register(&own));
        one.try_grow(30).unwrap();
        other.try_grow(40).unwrap();
        one.shrink(30);
        other.try_grow(20).unwrap();
        assert_eq!(stats.held_bytes_max(), 70);
        assert_eq!(all.reserved(), 60);
        assert!(other.try_grow(41).is_err());
        drop((one, other));
        assert_eq!(all.reserved(), 0);
        assert_eq!(stats.held_bytes_max(), 70);
    }

    #[test]
    fn the_fallback_is_named_before_the_column_engine() {
        let stats = RunStats::default();
        assert_eq!(stats.engine(), None);
        stats.ran_on(true);
        assert_eq!(stats.engine(), Some("column"));
        stats.ran_on(false);
        assert_eq!(stats.engine(), Some("fallback"));
    }
}
