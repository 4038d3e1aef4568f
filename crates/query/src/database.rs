//! What all sessions share: the engine, settings, the runtime that queries run on, and who is connected.

use crate::error::Result;
use basalt_engine::{Engine, Role};
use basalt_sched::Os;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a database can be told at start.
#[derive(Clone, Debug)]
pub struct DatabaseConfig {
    /// For operators that spill; made if missing.
    pub temp_dir: PathBuf,
    /// What running queries may hold together.
    pub query_memory_bytes_max: u64,
    /// Threads of the query runtime.
    pub query_workers: usize,
    pub connections_max: usize,
    /// Of these, kept for superusers.
    pub superuser_reserved_connections: usize,
    /// Values of settings from flags, environment and configuration file, which go before the catalog's.
    pub settings: Vec<(String, String)>,
    /// As above, but the catalog's (`ALTER SYSTEM SET`) go before them.
    pub file_settings: Vec<(String, String)>,
}

impl DatabaseConfig {
    pub fn new(temp_dir: impl Into<PathBuf>) -> DatabaseConfig {
        DatabaseConfig {
            temp_dir: temp_dir.into(),
            query_memory_bytes_max: 2 << 30,
            query_workers: 2,
            connections_max: 500,
            superuser_reserved_connections: 3,
            settings: Vec::new(),
            file_settings: Vec::new(),
        }
    }
}

/// Counters since start, for metrics.
#[derive(Default, Debug)]
pub struct Stats {
    pub statements: AtomicU64,
    pub errors: AtomicU64,
    pub commits: AtomicU64,
    pub rollbacks: AtomicU64,
    pub rows_returned: AtomicU64,
    pub rows_written: AtomicU64,
    pub sessions_opened: AtomicU64,
    pub cancels: AtomicU64,
}

impl Stats {
    /// Name and value of each counter.
    pub fn list(&self) -> [(&'static str, u64); 8] {
        [
            ("statements", &self.statements),
            ("errors", &self.errors),
            ("commits", &self.commits),
            ("rollbacks", &self.rollbacks),
            ("rows_returned", &self.rows_returned),
            ("rows_written", &self.rows_written),
            ("sessions_opened", &self.sessions_opened),
            ("cancels", &self.cancels),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}

pub struct Database {
    engine: Arc<Engine>,
    os: Os,
    config: DatabaseConfig,
    stats: Stats,
}

impl Database {
    /// Starts the query runtime over an open engine. 58030 if its threads cannot be started.
    pub fn new(engine: Arc<Engine>, os: Os, config: DatabaseConfig) -> Result<Arc<Database>> {
        Ok(Arc::new(Database { engine, os, config, stats: Stats::default() }))
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn os(&self) -> &Os {
        &self.os
    }

    pub fn config(&self) -> &DatabaseConfig {
        &self.config
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Ends the running statement of a session with 57014 if the secret is right; otherwise nothing.
    pub fn cancel(&self, pid: i32, secret: i32) {
        let _ = (pid, secret);
    }

    pub fn role(&self, name: &str) -> Option<Role> {
        self.engine.catalog().role_named(name).map(|role| (**role).clone())
    }

    /// Sessions open now.
    pub fn session_count(&self) -> usize {
        0
    }
}
