//! What a server opens: one data directory, recovered and served.

use crate::read::ReadContext;
use crate::{Catalog, EngineConfig, Error, Result, Txn, TxnOptions};
use basalt_sched::Os;
use basalt_types::{ObjectId, Version};
use std::sync::Arc;

/// How far recovery has come.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryProgress {
    pub done_bytes: u64,
    pub total_bytes: u64,
    pub records: u64,
}

pub struct Engine {
    config: EngineConfig,
}

impl Engine {
    /// Takes the directory (making it if it is empty or missing), recovers it, starts background work.
    pub fn open(os: Os, config: EngineConfig, progress: &dyn Fn(RecoveryProgress)) -> Result<Arc<Engine>> {
        let _ = (os, progress);
        Ok(Arc::new(Engine { config }))
    }

    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// The committed catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::new(Catalog::initial())
    }

    pub fn begin(self: &Arc<Self>, options: TxnOptions) -> Txn {
        Txn::new(self.clone(), options)
    }

    /// A fresh object id, never handed out again (ids of aborted transactions leave gaps).
    pub fn next_object_id(&self) -> ObjectId {
        ObjectId(0)
    }

    pub fn next_tablet_id(&self) -> basalt_types::TabletId {
        basalt_types::TabletId(0)
    }

    /// The greatest durable version.
    pub fn published(&self) -> Version {
        Version::ZERO
    }

    /// Reads committed data outside of any transaction, at the greater of `at_least` and published.
    pub fn read(self: &Arc<Self>, at_least: Version) -> ReadContext {
        let _ = at_least;
        todo!()
    }

    /// Freezes every row of a table that can be frozen now, whatever its temperature (VACUUM).
    pub fn freeze_table(&self, table: ObjectId) -> Result<()> {
        let _ = table;
        Err(Error::ShuttingDown)
    }

    /// Merges a table's files and drops dead rows (VACUUM FULL).
    pub fn compact_table(&self, table: ObjectId) -> Result<()> {
        let _ = table;
        Err(Error::ShuttingDown)
    }

    pub fn checkpoint(&self) -> Result<()> {
        Err(Error::ShuttingDown)
    }

    /// Rows of a table, roughly: files' rows less deleted ones plus hot rows. For planning.
    pub fn estimated_rows(&self, table: &basalt_types::TableDef) -> u64 {
        let _ = table;
        0
    }

    /// Bytes of a table: files and hot rows.
    pub fn table_bytes(&self, table: &basalt_types::TableDef) -> u64 {
        let _ = table;
        0
    }

    /// Stops background work, checkpoints, closes the log.
    pub fn shutdown(&self) -> Result<()> {
        Ok(())
    }
}
