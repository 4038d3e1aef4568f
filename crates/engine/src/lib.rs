//! The storage engine: tablets, read views, transactions, locks, freeze, compaction, checkpoint, recovery.
//!
//! This crate joins `wal`, `hot`, `cold` and `meta`, which never see each other. It knows rows, keys and
//! predicates over single columns; it never knows SQL, plans or protocols.
//!
//! Where to start: [`Engine`] (what a server opens), [`Txn`] (what a session writes through),
//! [`ReadContext`] and [`TabletScan`] (what a query reads through).

pub mod bulk;
pub mod config;
pub mod engine;
pub mod error;
pub mod locks;
pub mod read;
pub mod txn;

pub use bulk::BulkInsert;
pub use config::EngineConfig;
pub use engine::{Engine, RecoveryProgress};
pub use error::{Error, Result};
pub use locks::{RowLock, TableLock, WaitPolicy};
pub use read::{ReadContext, ScanBatch, ScanSpec, ScanStats, TabletScan};
pub use txn::{CurrentRow, Inserted, Locked, Savepoint, Txn, TxnOptions};

pub use basalt_meta::{Catalog, CatalogEdit, Database, Namespace, Role, ViewDef, catalog};
