//! Brings the rows of a table into an index beside those who write them (`docs/decisions/0020-indexes-built-online.md`).
//!
//! A scan says which rows to ask about. The entry is that of the row as it is under its lock, and is written as any writer
//! of the row would. Who has the row's lock, in a mode that excludes writers, is the only one to write its entries: here
//! it is FOR SHARE. Nothing is waited for while rows are locked: what others have is put off until nothing is.

use super::Txn;
use super::entries::Claim;
use super::rows::Seen;
use crate::index::{RowEntry, check_length};
use crate::{Error, Locked, Result, RowLock, ScanBatch, ScanSpec, WaitPolicy};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use basalt_types::batch::{datum_at, to_stored};
use basalt_types::schema::{Entry, IndexDef};
use basalt_types::{ColumnId, Datum, Key, PhysType, Stamp, TableDef, TabletId, Version};
use std::sync::Arc;

/// Rows that one transaction brings, and locks meanwhile.
const BATCH_ROWS: usize = 128;
/// Rows put off before they are waited for.
const PUT_OFF_MAX: usize = 1024;

struct Build<'a> {
    txn: &'a mut Txn,
    table: Arc<TableDef>,
    index: Arc<IndexDef>,
    /// What entries are made of.
    columns: Vec<(ColumnId, PhysType)>,
    /// The scan's, which all transactions that follow outlive.
    snapshot: Version,
    put_off: Vec<(TabletId, Key)>,
}

/// What became of a row.
enum Brought {
    /// It has its entry, or needs none.
    Done,
    RowLocked,
    EntryLocked(Entry),
}

/// A row as the scan has it, in column-id order; columns that the index does not need are null.
struct Scanned<'a> {
    seen: Seen,
    values: &'a [Datum],
}

impl Txn {
    /// Brings every row into an index for which all writers bring new rows' entries. The caller holds a lock on the table
    /// that keeps other builds out; this becomes another transaction with every batch, which may be dropped at any
    /// await. [`Error::DuplicateKey`] of the index's id if it cannot be unique.
    pub async fn bring_entries(&mut self, table: &Arc<TableDef>, index: &Arc<IndexDef>) -> Result<()> {
        let read = self.latest();
        let columns = columns_for(table, index);
        let ids = columns.iter().map(|(id, _)| *id).collect();
        let spec = ScanSpec { table: table.clone(), columns: ids, predicates: Vec::new(), with_identity: true };
        let (parts, _) = read.scan(spec)?;
        let (table, index, snapshot) = (table.clone(), index.clone(), read.at().snapshot);
        let mut build = Build { txn: self, table, index, columns, snapshot, put_off: Vec::new() };
        build.next_transaction()?;
        for mut part in parts {
            while let Some(rows) = part.next_batch()? {
                build.bring_all(&rows).await?;
            }
        }
        build.bring_put_off().await
    }
}

/// All columns only for the sake of expressions.
fn columns_for(table: &TableDef, index: &IndexDef) -> Vec<(ColumnId, PhysType)> {
    let plain = index.plain_columns().filter(|_| index.predicate.is_none());
    let is_needed = |id: &ColumnId| index.include.contains(id) || plain.as_ref().is_none_or(|plain| plain.contains(id));
    let needed = table.live_columns().filter(|column| is_needed(&column.id));
    needed.map(|column| (column.id, column.ty.phys().expect("storable"))).collect()
}

impl Build<'_> {
    fn next_transaction(&mut self) -> Result<()> {
        self.txn.commit_and_chain()?;
        self.txn.unread = true;
        Ok(())
    }

    async fn bring_all(&mut self, rows: &ScanBatch) -> Result<()> {
        let types = self.columns.iter().map(|(id, _)| &self.table.column(*id).ty);
        let stored: Vec<ArrayRef> = types.zip(&rows.columns).map(|(ty, array)| to_stored(ty, array)).collect();
        let width = self.columns.len();
        let tablets = rows.columns[width].as_primitive::<Int64Type>();
        let keys = rows.columns[width + 1].as_binary_view();
        let stamps = rows.columns[width + 2].as_primitive::<Int64Type>();
        let mut values = vec![Datum::Null; self.table.columns.len()];
        for first in (0..rows.rows).step_by(BATCH_ROWS) {
            self.txn.engine.admit().await?;
            for row in first..rows.rows.min(first + BATCH_ROWS) {
                for ((id, ty), array) in self.columns.iter().zip(&stored) {
                    values[id.position()] = datum_at(*ty, array, row);
                }
                let (tablet, key) = (TabletId(tablets.value(row) as u32), Key::from(keys.value(row)));
                let stamp = Stamp::from_raw(stamps.value(row) as u64);
                let seen = Seen { stamp, snapshot: self.snapshot, values: true };
                let scanned = Scanned { seen, values: &values };
                if !matches!(self.bring(tablet, &key, Some(scanned)).await?, Brought::Done) {
                    self.put_off.push((tablet, key));
                }
            }
            self.next_transaction()?;
            tokio::task::yield_now().await;
            if self.put_off.len() >= PUT_OFF_MAX {
                self.bring_put_off().await?;
            }
        }
        Ok(())
    }

    /// Brings a row, unless somebody has it or its entry.
    async fn bring(&mut self, tablet: TabletId, key: &Key, scanned: Option<Scanned<'_>>) -> Result<Brought> {
        let seen = scanned.as_ref().map(|scanned| scanned.seen);
        let (share, skip) = (RowLock::Share, WaitPolicy::Skip);
        let row = match self.txn.lock_found_row(&self.table, tablet, key, seen, share, skip).await? {
            Locked::Row(row) => row,
            Locked::Gone => return Ok(Brought::Done),
            Locked::Skipped => return Ok(Brought::RowLocked),
        };
        let values = match scanned.filter(|scanned| row.stamp == scanned.seen.stamp) {
            Some(scanned) => scanned.values,
            None => &row.values,
        };
        let engine = self.txn.engine.clone();
        let base = values;
        let Some(values) = engine.index_values(&self.table, &self.index, base)? else { return Ok(Brought::Done) };
        let entry = self.index.entry(&values, base, row.tablet, &row.key);
        check_length(&entry)?;
        if self.txn.has_entry(&self.index, &entry, row.tablet, &row.key)? {
            return Ok(Brought::Done);
        }
        if entry.exclusive {
            match self.txn.try_claim_entry(&self.index, &entry, skip).await? {
                Claim::Free => {}
                Claim::Skipped => return Ok(Brought::EntryLocked(entry)),
                Claim::Taken { .. } => return Err(Error::DuplicateKey { table: self.index.id, key: entry.key() }),
            }
        }
        let entry = RowEntry { base: self.table.id, index: self.index.clone(), entry, values };
        self.txn.put_entry(&entry, row.tablet, &row.key)?;
        Ok(Brought::Done)
    }

    /// Waits for what others had, one by one, with nothing locked but the table.
    async fn bring_put_off(&mut self) -> Result<()> {
        let wait = self.txn.wait;
        for (tablet, key) in std::mem::take(&mut self.put_off) {
            self.txn.engine.admit().await?;
            loop {
                let locked = self.txn.lock_row(&self.table, tablet, &key, RowLock::Share, wait).await?;
                if matches!(locked, Locked::Gone) {
                    break;
                }
                let brought = self.bring(tablet, &key, None).await?;
                self.next_transaction()?;
                match brought {
                    Brought::Done => break,
                    Brought::RowLocked => {}
                    Brought::EntryLocked(entry) => {
                        let at = self.txn.tablet(self.index.tablet())?;
                        self.txn.lock_settled(&at, &entry.key(), RowLock::Update, wait).await?;
                        self.next_transaction()?;
                    }
                }
            }
        }
        self.next_transaction()
    }
}
