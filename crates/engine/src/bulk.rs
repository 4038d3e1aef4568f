//! Batches: rows that arrive together and become visible together (Karst 3, one process).
//!
//! *Request*: the transaction draws its TxnId and a region of row ids in each tablet it touches.
//! *Manipulate*: rows of each tablet are encoded into files on a thread of their own, with no lock and
//! no vote. *Commit*: the transaction's one record names the files, and all rows appear.
//!
//! A batch that stays small takes the other way: its rows go to hot under row locks, like single rows.
//!
//! Keys of a large batch: its files enter the tablets' views undecided, and only then are their keys
//! compared with hot rows, other files and row locks (`bulk/check.rs`). A single-row writer looks at the view
//! after it has its lock, so of two writers of one key at least one sees the other: it waits for it, and is
//! refused if the other commits. Whoever finds a row under the key does not mind the batch, which is refused.

mod check;
mod encoder;
mod entries;

pub(crate) use encoder::{Encoder, Encoding};

use crate::file_writer::WrittenFile;
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::{Error, Result, Txn, route};
use arrow_array::{ArrayRef, Int64Array, UInt32Array};
use arrow_select::take::take;
use basalt_cold::DeleteMap;
use basalt_types::batch::{bytes_of, datum_at, own_if_few};
use basalt_types::{Datum, Key, Rid, Stamp, TableDef, TabletId, row};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Rows per message to the encoder, unless they are wide.
pub(crate) const CHUNK_ROWS: usize = 65_536;
/// Rows per log record of a small batch, unless they are wide.
const RECORD_ROWS: usize = 1024;
/// Bytes of rows that close a log record of a small batch.
const RECORD_BYTES: usize = 1 << 20;

pub struct BulkInsert<'a> {
    txn: &'a mut Txn,
    table: Arc<TableDef>,
    parts: Vec<Part>,
    by_tablet: HashMap<TabletId, usize>,
    rows: u64,
    /// Whether keys may be those of rows that are there: no in an index whose entries end with their rows' keys.
    is_unique: bool,
}

/// Where a part of a batch goes: the table itself, or one of its indexes.
#[derive(Clone)]
struct Target {
    table: Arc<TableDef>,
    is_unique: bool,
}

/// What goes to one tablet.
struct Part {
    target: Target,
    tablet: Arc<Tablet>,
    chunk: Chunk,
    encoder: Option<Encoder>,
}

/// Rows on their way, as pushed.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Each with the row id of its first row. In a table without a key whose rows keep the row ids that they have, these
    /// are a column of their own, the last one.
    pub batches: Vec<(Vec<ArrayRef>, Rid)>,
    pub rows: usize,
    pub bytes: usize,
}

impl Chunk {
    pub fn push(&mut self, columns: Vec<ArrayRef>, first: Rid) {
        let columns: Vec<ArrayRef> = columns.into_iter().map(own_if_few).collect();
        self.rows += columns[0].len();
        self.bytes += bytes_of(&columns);
        self.batches.push((columns, first));
    }
}

impl Txn {
    /// A batch (COPY, INSERT … SELECT): small ones go to hot, large ones straight into files. Becomes
    /// visible with the transaction; duplicate keys are reported by `push` or `finish`.
    pub fn bulk_insert(&mut self, table: &Arc<TableDef>) -> Result<BulkInsert<'_>> {
        self.writer()?;
        Ok(BulkInsert {
            txn: self,
            table: table.clone(),
            parts: Vec::new(),
            by_tablet: HashMap::new(),
            rows: 0,
            is_unique: table.primary_key.is_some(),
        })
    }

    /// Enters files into the tablet's view, undecided.
    pub(crate) fn register_files(
        &mut self,
        tablet: &Arc<Tablet>,
        written: Vec<WrittenFile>,
    ) -> Result<Vec<Arc<FileEntry>>> {
        let txn = self.writer()?;
        let open = |file: &WrittenFile| {
            let stamps = EntryStamps::Uniform { stamp: AtomicU64::new(Stamp::txn(txn).raw()), seq: self.seq() };
            let data = self.engine.open_file(file.id, file.kind)?;
            Ok(Arc::new(FileEntry { data, deletes: DeleteMap::new(), stamps, bytes: file.bytes }))
        };
        let opened: Result<Vec<_>> = written.iter().map(open).collect();
        let Ok(entries) = opened else {
            written.iter().for_each(|file| self.engine.discard_file(file.id, file.kind));
            return opened;
        };
        let _gate = self.engine.clone();
        let _gate = _gate.move_gate.read();
        let _latch = tablet.latch.write();
        let mut files = tablet.view().files.clone();
        files.extend(entries.iter().cloned());
        tablet.switch_view(files);
        for file in &entries {
            self.push_file(tablet, file);
        }
        basalt_sched::failpoint::hit("bulk-registered");
        Ok(entries)
    }
}

impl BulkInsert<'_> {
    /// Appends rows: one array per column of the table in column-id order, in stored form
    /// (`types::batch::to_stored`), not-null and types checked by the caller.
    /// `Error::DuplicateKey` ends the statement.
    pub async fn push(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        if rows == 0 {
            return Ok(());
        }
        self.txn.engine.admit().await?;
        self.rows += rows as u64;
        let target = Target { table: self.table.clone(), is_unique: self.is_unique };
        for (tablet, columns) in self.route(columns, rows)? {
            let first = self.push_part(&target, tablet, columns.clone()).await?;
            self.push_entries(tablet, &columns, first).await?;
        }
        Ok(())
    }

    /// Splits rows by tablet.
    fn route(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<(TabletId, Vec<ArrayRef>)>> {
        let tablets = &self.table.partitions[0].tablets;
        if tablets.len() == 1 {
            return Ok(vec![(tablets[0], columns.to_vec())]);
        }
        let types = self.table.phys_types();
        let needed = match &self.table.distribution {
            basalt_types::schema::Distribution::Hash(columns) => columns.clone(),
            basalt_types::schema::Distribution::Range => Vec::new(),
        };
        let mut values = vec![Datum::Null; types.len()];
        let mut picks: HashMap<TabletId, Vec<u32>> = HashMap::new();
        for index in 0..rows {
            for id in &needed {
                let at = id.position();
                values[at] = datum_at(types[at], &columns[at], index);
            }
            picks.entry(route::tablet_of_row(&self.table, &values)).or_default().push(index as u32);
        }
        let mut split: Vec<_> = picks.into_iter().collect();
        split.sort_by_key(|(tablet, _)| *tablet);
        let pick = |(tablet, rows): (TabletId, Vec<u32>)| {
            let rows = UInt32Array::from(rows);
            let taken = columns.iter().map(|column| take(column, &rows, None).expect("indices are in range"));
            (tablet, taken.collect())
        };
        Ok(split.into_iter().map(pick).collect())
    }

    /// Gives the row id of the first row.
    async fn push_part(&mut self, target: &Target, tablet: TabletId, columns: Vec<ArrayRef>) -> Result<Rid> {
        let at = match self.by_tablet.get(&tablet) {
            Some(at) => *at,
            None => {
                let tablet = self.txn.tablet(tablet)?;
                self.by_tablet.insert(tablet.id, self.parts.len());
                self.parts.push(Part { target: target.clone(), tablet, chunk: Chunk::default(), encoder: None });
                self.parts.len() - 1
            }
        };
        let part = &mut self.parts[at];
        let first = part.tablet.take_region(columns[0].len() as u64);
        part.chunk.push(columns, first);
        let large = self.txn.engine.config.bulk_rows_min;
        let wide = part.chunk.bytes >= self.txn.engine.config.chunk_bytes();
        if part.encoder.is_none() && (part.chunk.rows >= large || wide) {
            let kind = self.txn.catalog().file_kind(&target.table);
            part.encoder = Some(Encoder::start(&self.txn.engine, &target.table, kind)?);
        }
        if let Some(encoder) = &mut part.encoder
            && (part.chunk.rows >= CHUNK_ROWS.min(large) || wide)
        {
            encoder.send(std::mem::take(&mut part.chunk)).await?;
        }
        Ok(first)
    }

    /// Writes what is buffered and checks the keys. Returns the number of rows.
    pub async fn finish(mut self) -> Result<u64> {
        let parts = std::mem::take(&mut self.parts);
        let mut large = Vec::new();
        for part in parts {
            match part.encoder {
                None => self.finish_small(&part.target, &part.tablet, part.chunk).await?,
                Some(mut encoder) => {
                    encoder.send(part.chunk).await?;
                    large.push((part.target, part.tablet, encoder));
                }
            }
        }
        let mut registered = Vec::new();
        for (target, tablet, encoder) in large {
            let files = encoder.finish().await?;
            registered.push((target, tablet.clone(), self.txn.register_files(&tablet, files)?));
        }
        for (target, tablet, files) in registered.iter().filter(|(target, ..)| target.is_unique) {
            check::keys_are_new(self.txn, &target.table, tablet, files).await?;
        }
        Ok(self.rows)
    }

    async fn finish_small(&mut self, target: &Target, tablet: &Arc<Tablet>, chunk: Chunk) -> Result<()> {
        let table = &target.table;
        let types = table.phys_types();
        let mut rows: Vec<(Key, Rid, Vec<u8>)> = Vec::with_capacity(RECORD_ROWS);
        let mut bytes = 0;
        let mut keys: HashSet<Key> = HashSet::new();
        for (batch, first) in &chunk.batches {
            let mut rid = *first;
            for index in 0..batch[0].len() {
                let values: Vec<Datum> =
                    types.iter().zip(batch).map(|(ty, column)| datum_at(*ty, column, index)).collect();
                let key = match table.key_of(&values) {
                    None => Key::hidden(rid),
                    Some(key) => {
                        let is_new = !target.is_unique
                            || (keys.insert(key.clone()) && self.txn.claim_key(tablet, &key).await?.is_some());
                        if !is_new {
                            return Err(Error::DuplicateKey { table: table.id, key });
                        }
                        key
                    }
                };
                let mut encoded = Vec::with_capacity(64);
                row::encode(&types, &values, &mut encoded);
                bytes += encoded.len();
                rows.push((key, rid, encoded));
                rid = Rid(rid.0 + 1);
                if rows.len() == RECORD_ROWS || bytes >= RECORD_BYTES {
                    self.txn.put_batch(tablet, &rows)?;
                    rows.clear();
                    keys.clear();
                    bytes = 0;
                }
            }
        }
        if !rows.is_empty() {
            self.txn.put_batch(tablet, &rows)?;
        }
        Ok(())
    }
}

/// The hidden key column of consecutive rows.
pub(crate) fn hidden_keys(first: Rid, rows: usize) -> ArrayRef {
    hidden_keys_of((0..rows as u64).map(|i| Rid(first.0 + i)))
}

pub(crate) fn hidden_keys_of(rids: impl Iterator<Item = Rid>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rids.map(|rid| rid.0 as i64)))
}
