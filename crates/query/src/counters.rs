//! What the server counts, with names and meanings: for `basalt.counters` and Prometheus.

use crate::database::Database;

/// One number.
pub struct Counter {
    pub name: &'static str,
    pub kind: Kind,
    /// In which unit, if it is not what its name says.
    pub description: &'static str,
    pub value: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Since the server's start: it never goes down.
    Counter,
    /// Now.
    Gauge,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        }
    }
}

/// All of them.
pub fn list(db: &Database) -> Vec<Counter> {
    let statements = db.stats().list().map(|(name, description, value)| counter(name, description, value));
    let engine = db.engine().stats();
    let background = db.engine().background().status();
    let log_stopped = u64::from(db.engine().failure().is_some());
    let behind = engine.log_end.0.saturating_sub(engine.checkpoint_lsn.0);
    let of_engine = [
        gauge("connections", "Sessions that are open.", db.session_count() as u64),
        gauge("connections_max", "Sessions that may be open at once.", db.config().connections_max as u64),
        gauge("published_version", "The greatest version that is durable.", engine.published.0),
        gauge("tablets", "Tablets of all tables.", engine.tablets),
        gauge("hot_rows", "Rows in memory.", engine.hot_rows),
        gauge("hot_bytes", "Bytes of rows in memory.", engine.hot_bytes),
        gauge("undo_versions", "Older versions of rows in memory, kept for open snapshots.", engine.undo_versions),
        gauge("cold_rows", "Rows in files.", engine.cold_rows),
        gauge("files", "Files that hold rows.", engine.files),
        gauge("file_bytes", "Bytes of these files.", engine.file_bytes),
        gauge("pins", "Snapshots that keep old rows and files.", engine.pins),
        gauge("active_writers", "Transactions that have written and have not ended.", engine.active_writers),
        gauge(
            "locks_held",
            "Locks of rows, tables and transactions that are held, advisory ones apart.",
            engine.locks_held,
        ),
        gauge("lock_waiters", "Sessions that wait for such a lock.", engine.lock_waiters),
        counter("log_records", "Records of the log.", engine.log.records),
        counter("log_written_bytes", "Bytes written to the log.", engine.log.written_bytes),
        counter("log_syncs", "Syncs of the log.", engine.log.syncs),
        counter(
            "log_commits_synced",
            "Waits for a sync that have ended: one for each commit that waits to be durable.",
            engine.log.commits,
        ),
        counter("log_gathers", "Times that the log waited for more committers before a sync.", engine.log.gathers),
        gauge("log_end", "The log's end, as a position in bytes (LSN).", engine.log_end.0),
        gauge("checkpoint_lsn", "Where a restart would begin to replay the log.", engine.checkpoint_lsn.0),
        gauge("log_behind_checkpoint_bytes", "Bytes of the log that a restart would replay.", behind),
        gauge("log_failed", "1 once the log has stopped: a restart is needed.", log_stopped),
        gauge("locator_entries", "Keys of cold rows that the locator tells the files of.", engine.locator_entries),
        gauge("locator_bytes", "Bytes of memory that the locator takes.", engine.locator_bytes),
        gauge("row_cache_rows", "Cold rows that are kept in memory for gets.", engine.row_cache.rows),
        gauge("row_cache_bytes", "Bytes of these.", engine.row_cache.bytes),
        counter("row_cache_hits", "Gets of cold rows that found them there.", engine.row_cache.hits),
        counter("row_cache_misses", "Gets of cold rows that did not.", engine.row_cache.misses),
        counter("background_errors", "Background work that failed, panics included.", background.errors),
        counter("background_panics", "Background work that panicked.", background.panics),
        gauge("background_failing", "Background work whose latest try failed.", background.failing.len() as u64),
    ];
    statements.into_iter().chain(of_engine).collect()
}

fn counter(name: &'static str, description: &'static str, value: u64) -> Counter {
    Counter { name, kind: Kind::Counter, description, value }
}

fn gauge(name: &'static str, description: &'static str, value: u64) -> Counter {
    Counter { name, kind: Kind::Gauge, description, value }
}
