//! A transaction: snapshot, locks, writes, savepoints, commit.
//!
//! Dropping a `Txn` rolls it back. Futures of its methods can be dropped at any await (cancel): a lock
//! wait leaves its queue, and the statement's earlier changes stay until [`Txn::rollback_to`].

use crate::read::ReadContext;
use crate::{BulkInsert, Catalog, CatalogEdit, Engine, Result, RowLock, TableLock, WaitPolicy};
use basalt_types::{Datum, Key, ObjectId, Rid, Stamp, TableDef, TabletId, Version};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnOptions {
    /// One snapshot for the whole transaction, and 40001 on conflicts.
    pub repeatable_read: bool,
    /// Whether commit waits for the log (`synchronous_commit`).
    pub synchronous_commit: bool,
    /// The greatest version that the session has met: its snapshots are never below.
    pub session_version: Version,
}

/// A place to roll back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint(pub(crate) usize);

/// The newest version of a row after its lock was granted.
#[derive(Clone, Debug)]
pub struct CurrentRow {
    pub tablet: TabletId,
    pub key: Key,
    pub stamp: Stamp,
    pub rid: Rid,
    /// All columns in column-id order.
    pub values: Vec<Datum>,
}

#[derive(Clone, Debug)]
pub enum Locked {
    Row(CurrentRow),
    /// Deleted by a transaction that committed meanwhile (or never there).
    Gone,
    /// Only with [`WaitPolicy::Skip`].
    Skipped,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inserted {
    Done,
    /// A live row has this primary key: 23505, or ON CONFLICT.
    Duplicate {
        tablet: TabletId,
        key: Key,
    },
}

pub struct Txn {
    engine: Arc<Engine>,
    options: TxnOptions,
}

impl Txn {
    pub(crate) fn new(engine: Arc<Engine>, options: TxnOptions) -> Txn {
        Txn { engine, options }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The committed catalog with this transaction's own edits.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.engine.catalog()
    }

    /// Starts the next statement: under READ COMMITTED a new snapshot; own rows written before it are
    /// seen by it. Call before planning each statement.
    pub fn next_statement(&mut self) {}

    /// How the current statement reads. Cheap to clone; keeps its snapshot pinned.
    pub fn read(&self) -> ReadContext {
        let _ = self.options;
        todo!()
    }

    pub fn has_writes(&self) -> bool {
        false
    }

    /// Takes a table lock for the rest of the transaction. After it, re-resolve the name: the catalog may
    /// have changed while waiting.
    pub async fn lock_table(&mut self, table: ObjectId, mode: TableLock, wait: WaitPolicy) -> Result<()> {
        let _ = (table, mode, wait);
        Ok(())
    }

    /// Locks one row by key and returns its newest committed (or own) version. Under REPEATABLE READ a row
    /// changed since the snapshot is `Error::Serialization`.
    pub async fn lock_row(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        mode: RowLock,
        wait: WaitPolicy,
    ) -> Result<Locked> {
        let _ = (table, tablet, key, mode, wait);
        Ok(Locked::Gone)
    }

    /// Inserts one row (all columns in column-id order, dropped ones null, checked and coerced by the
    /// caller). Waits for undecided writers of the same key.
    pub async fn insert(&mut self, table: &Arc<TableDef>, values: &[Datum]) -> Result<Inserted> {
        let _ = (table, values);
        Ok(Inserted::Done)
    }

    /// Replaces a row that [`Txn::lock_row`] returned. A changed primary key moves the row; the new key
    /// may be a duplicate.
    pub async fn update(&mut self, table: &Arc<TableDef>, row: &CurrentRow, values: &[Datum]) -> Result<Inserted> {
        let _ = (table, row, values);
        Ok(Inserted::Done)
    }

    /// Deletes a row that [`Txn::lock_row`] returned.
    pub async fn delete(&mut self, table: &Arc<TableDef>, row: &CurrentRow) -> Result<()> {
        let _ = (table, row);
        Ok(())
    }

    /// A batch (COPY, INSERT … SELECT): small ones go to hot, large ones straight into files. Becomes
    /// visible with the transaction; duplicate keys are reported by `push` or `finish`.
    pub fn bulk_insert(&mut self, table: &Arc<TableDef>) -> Result<BulkInsert<'_>> {
        let _ = table;
        todo!()
    }

    /// Edits the catalog in this transaction. The caller holds the table locks that PostgreSQL asks for.
    /// New tablets named by the edit can be written right away.
    pub fn edit_catalog(&mut self, edits: Vec<CatalogEdit>) -> Result<()> {
        let _ = edits;
        Ok(())
    }

    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint(0)
    }

    /// Undoes everything since the savepoint, which stays usable. Locks taken since are kept.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        let _ = savepoint;
    }

    /// Commits and waits until it is durable (unless `synchronous_commit` is off). Returns the version, or
    /// the greatest version met if nothing was written.
    pub async fn commit(self) -> Result<Version> {
        Ok(Version::ZERO)
    }

    pub fn rollback(self) {}
}
