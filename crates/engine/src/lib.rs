//! The storage engine: tablets, read views, transactions, locks, freeze, compaction, checkpoint, recovery.
//!
//! This crate joins `wal`, `hot`, `cold` and `meta`, which never see each other. It knows rows, keys and
//! predicates over single columns; it never knows SQL, plans or protocols.
//!
//! Where to start: [`Engine`] (what a server opens), [`Txn`] (what a session writes through),
//! [`ReadContext`] and [`TabletScan`] (what a query reads through).

mod background;
mod bulk;
mod check;
mod checkpoint;
mod compaction;
mod config;
mod data_file;
mod engine;
mod error;
mod failstop;
mod file_writer;
mod freeze;
mod index;
mod locks;
mod order;
mod read;
mod record;
mod recovery;
mod route;
mod rows;
mod sequence;
mod statistics;
mod tablet;
mod txn;
mod unlisted;
mod validation;

#[cfg(test)]
mod tests;

pub use background::{Background, BackgroundStatus, Failing};
pub use bulk::BulkInsert;
pub use check::{CheckReport, check};
pub use config::EngineConfig;
pub use engine::{Engine, EngineStats, FileLine, RecoveryProgress, TabletLine};
pub use error::{Error, Result};
pub use file_writer::has_file_index;
pub use index::IndexValues;
pub use locks::{LockReport, LockWait, LockWaiter, Object as LockObject, RowLock, TableLock, WaitPolicy};
pub use read::{
    Ahead, BATCH_ROWS, Block, Direction, KeyRange, ReadContext, Reading, RollingSnapshot, RowCacheStats, ScanBatch,
    ScanSpec, ScanStats, SeenRow, SeenRows, TabletScan, Walk, WalkSpec, WalkedRow, behind_prefix,
};
pub use sequence::{Drawn, LEASE_VALUES, SequenceState};
pub use statistics::{ColumnStatistics, TableStatistics};
pub use tablet::Undisturbed;
pub use txn::{
    Consequence, CurrentRow, FoundRow, Inserted, Isolation, LargeUpdate, Locked, Position, Savepoint, Txn, TxnOptions,
};
pub use validation::ReadSet;

pub use basalt_cold::blocks_brought;
pub use basalt_meta::Error as CatalogError;
pub use basalt_meta::{
    Catalog, CatalogEdit, CheckOption, CommentKey, Database, FileKind, Membership, Namespace, Role, RoleSetting,
    SequenceDef, SequenceOwner, SequenceValue, TypeDef, TypeKind, TypeUser, ViewDef, catalog, is_defined, privilege,
};
