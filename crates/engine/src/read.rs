//! Reading: a snapshot first, then a pinned view of each tablet.

mod blocks;
mod cold_scan;
mod habits;
mod hot_scan;
mod many;
pub(crate) mod mirror;
mod prefix;
mod row_batch;
pub(crate) mod row_cache;
mod row_file_scan;
mod sample;
mod walk;

use crate::tablet::{FileEntry, ReadView, Tablet};
use crate::txn::CurrentRow;
use crate::validation::{ReadSet, ScanRead};
use crate::{Engine, Error, Result, route};
use arrow_array::ArrayRef;
use basalt_hot::{Found, Lookup, Reader};
use basalt_meta::{Pin, PinReason};
use basalt_types::{ColumnId, ColumnPredicate, Datum, Key, ReadAt, Rid, Stamp, TableDef, TabletId, TxnStates, Version};
pub use blocks::Block;
use cold_scan::ColdScan;
use habits::Habits;
use hot_scan::HotScan;
pub use many::SeenRows;
pub use row_cache::RowCacheStats;
use row_cache::{Admission, Asked, Origin};
use row_file_scan::RowFileScan;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
pub use walk::{Direction, KeyRange, Walk, WalkSpec, WalkedRow, behind_prefix};

/// Rows per batch: a page of a segment.
pub const BATCH_ROWS: usize = 8192;

/// How a statement reads: its snapshot (pinned while this lives) and its own writes.
#[derive(Clone)]
pub struct ReadContext {
    engine: Arc<Engine>,
    pin: Arc<Pin>,
    at: ReadAt,
    noted: Option<Arc<ReadSet>>,
}

/// How single rows are read: at which moment, and where it is noted what was read.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub at: ReadAt,
    /// Of a serializable transaction.
    pub noted: Option<&'a ReadSet>,
}

/// A snapshot that its owner moves on from statement to statement, for single rows read outside of transactions.
pub struct RollingSnapshot {
    engine: Arc<Engine>,
    pin: Pin,
}

/// A row where it lies.
pub enum SeenRow<'r> {
    /// In hot, in a row file or in the row cache, as `types::row` encodes it. Of the cache: columns that were not asked
    /// for may be null.
    Encoded(&'r [u8]),
    /// From a segment, in column-id order, likewise.
    Values(&'r [Datum]),
}

/// What a scan wants.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    pub table: Arc<TableDef>,
    /// Columns to return, in this order.
    pub columns: Vec<ColumnId>,
    /// Conjuncts that storage may use to skip; rows that fail them may still be returned.
    pub predicates: Vec<ColumnPredicate>,
    /// Adds three columns at the end that name the row: tablet (Int64), key (BinaryView), stamp (Int64).
    pub with_identity: bool,
}

/// What a scan met and did.
#[derive(Default, Debug)]
pub struct ScanStats {
    pub row_groups_total: AtomicU64,
    pub row_groups_pruned: AtomicU64,
    /// Those of the pruned ones whose bounds would have let them pass.
    pub row_groups_filtered: AtomicU64,
    /// Of the row groups of segments that were not ruled out.
    pub pages_total: AtomicU64,
    pub pages_pruned: AtomicU64,
    /// Rows of the row groups of which bitmaps knew the rows that are wanted, and how many these were.
    pub bitmap_rows_total: AtomicU64,
    pub bitmap_rows_chosen: AtomicU64,
    /// Of pages of segments, as they are encoded, column by column: what is not asked for is not counted.
    pub bytes_read: AtomicU64,
    pub rows_read: AtomicU64,
    pub hot_rows: AtomicU64,
}

impl ScanStats {
    /// What another scan has counted, too.
    pub fn add(&self, other: &ScanStats) {
        fn counters(stats: &ScanStats) -> [&AtomicU64; 10] {
            [
                &stats.row_groups_total,
                &stats.row_groups_pruned,
                &stats.row_groups_filtered,
                &stats.pages_total,
                &stats.pages_pruned,
                &stats.bitmap_rows_total,
                &stats.bitmap_rows_chosen,
                &stats.bytes_read,
                &stats.rows_read,
                &stats.hot_rows,
            ]
        }
        for (own, other) in counters(self).into_iter().zip(counters(other)) {
            own.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// A part of a table that one worker reads: a row group of a file, or the hot rows of a tablet.
/// `Send`, independent of its siblings; all were pinned at one moment.
pub struct TabletScan {
    part: Part,
}

enum Part {
    Cold(Box<ColdScan>),
    RowFile(Box<RowFileScan>),
    Hot(Box<HotScan>),
}

/// What the parts of one scan share.
pub(crate) struct Shared {
    pub read: ReadContext,
    pub spec: ScanSpec,
    pub stats: Arc<ScanStats>,
    /// Columns of which bitmaps are asked.
    pub bitmaps: Vec<ColumnId>,
    pub habits: Habits,
}

/// Rows in the types that operators use (`DataType::to_arrow`).
pub struct ScanBatch {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
}

impl ReadContext {
    pub(crate) fn new(engine: Arc<Engine>, pin: Arc<Pin>, at: ReadAt) -> ReadContext {
        ReadContext { engine, pin, at, noted: None }
    }

    /// The same; what is read is noted.
    pub(crate) fn noting(self, noted: Option<Arc<ReadSet>>) -> ReadContext {
        ReadContext { noted, ..self }
    }

    pub fn reading(&self) -> Reading<'_> {
        Reading { at: self.at, noted: self.noted.as_deref() }
    }

    pub fn at(&self) -> ReadAt {
        self.at
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What was read so far counts only if this is well: garbage collection does not wait for a snapshot that is too
    /// old.
    pub fn check_age(&self) -> Result<()> {
        match self.pin.is_expired() {
            true => Err(Error::SnapshotTooOld),
            false => Ok(()),
        }
    }

    /// Pins every tablet of the table and cuts it into parts (row group by row group; hot in ranges).
    pub fn scan(&self, spec: ScanSpec) -> Result<(Vec<TabletScan>, Arc<ScanStats>)> {
        if let Some(noted) = &self.noted {
            let (columns, predicates) = (spec.columns.clone(), spec.predicates.clone());
            noted.note_scan(ScanRead { table: spec.table.clone(), columns, predicates });
        }
        let stats = Arc::new(ScanStats::default());
        let mut bitmaps = spec.table.file_indexes().bitmaps;
        bitmaps.retain(|column| spec.predicates.iter().any(|predicate| predicate.column() == *column));
        let shared =
            Arc::new(Shared { read: self.clone(), habits: Habits::of(&spec), spec, stats: stats.clone(), bitmaps });
        let mut parts = Vec::new();
        for id in shared.spec.table.tablets().collect::<Vec<_>>() {
            let tablet = self.engine.tablet(id)?;
            let view = tablet.view();
            cold_scan::parts(&shared, &tablet, &view, &mut parts)?;
            hot_scan::parts(&shared, &tablet, &view, &mut parts);
        }
        self.check_age()?;
        Ok((parts, stats))
    }

    /// One row by primary key (or hidden key), at this snapshot.
    pub fn get(&self, table: &Arc<TableDef>, tablet: TabletId, key: &Key) -> Result<Option<CurrentRow>> {
        let live: Vec<ColumnId> = table.live_columns().map(|column| column.id).collect();
        self.get_columns(table, tablet, key, &live)
    }

    /// The same with at least the given columns, which ascend; the others may be null.
    pub fn get_columns(
        &self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        columns: &[ColumnId],
    ) -> Result<Option<CurrentRow>> {
        if let Some(noted) = &self.noted {
            noted.note_key(tablet, key.as_bytes());
        }
        let tablet = self.engine.tablet(tablet)?;
        let view = tablet.view();
        let txns = &*self.engine.txns;
        let found =
            |stamp, rid, values| CurrentRow { tablet: tablet.id, key: key.clone(), stamp, rid, values, place: None };
        match tablet.hot.get(key.as_bytes(), &Reader { at: self.at, view: view.number, txns }) {
            Lookup::Row { row, stamp, rid, .. } => {
                let values = crate::rows::decode_columns(table, &row, columns);
                let values = values.ok_or_else(|| crate::txn::damaged_row(&tablet, key))?;
                return Ok(Some(found(stamp, rid, values)));
            }
            // Deleted here: what files hold of it is marked, unless a batch has brought the key back since.
            Lookup::Deleted | Lookup::Elsewhere | Lookup::Absent => {}
        }
        basalt_sched::failpoint::hit("get-from-files");
        let found_in = in_files(&tablet, &view, key.as_bytes(), &self.at, txns)?;
        let Some(InFile { file, ordinal, .. }) = found_in else { return Ok(None) };
        let (stamp, _) = file.stamp_of(ordinal)?;
        Ok(Some(found(stamp, Rid(0), file.data.columns_at(table, ordinal, columns)?)))
    }

    /// Which tablet holds a primary key; `None` if it takes more than the key to know.
    pub fn tablet_of(&self, table: &TableDef, key: &Key) -> Option<TabletId> {
        route::tablet_of_key(table, key.as_bytes())
    }
}

/// A row of a file that a reader sees.
struct InFile<'v> {
    file: &'v Arc<FileEntry>,
    /// Of the file in the view.
    position: usize,
    ordinal: u32,
}

/// Where the files of a view have the row of a key that a reader sees.
fn in_files<'v>(
    tablet: &Tablet,
    view: &'v ReadView,
    key: &'v [u8],
    at: &ReadAt,
    txns: &dyn TxnStates,
) -> Result<Option<InFile<'v>>> {
    for place in tablet.places(view, key) {
        let (position, ordinal) = place?;
        let file = &view.files[position];
        if sees(file, ordinal, at, txns)? {
            return Ok(Some(InFile { file, position, ordinal }));
        }
    }
    Ok(None)
}

/// Whether a reader sees a row of a file, which is not deleted for him.
fn sees(file: &FileEntry, ordinal: u32, at: &ReadAt, txns: &dyn TxnStates) -> Result<bool> {
    Ok(file.sees_row(ordinal, at, txns)? && !file.deletes.is_deleted(ordinal, at, txns))
}

/// The same of a row from the row cache.
fn sees_kept(view: &ReadView, origin: Origin, at: &ReadAt, txns: &dyn TxnStates) -> bool {
    let file = &view.files[origin.position as usize];
    let sees = match origin.stamp {
        Some(version) => at.sees(Stamp::version(version), 0, txns),
        None => file.sees_uniform(at, txns),
    };
    sees && !file.deletes.is_deleted(origin.ordinal, at, txns)
}

impl RollingSnapshot {
    pub fn new(engine: &Arc<Engine>) -> RollingSnapshot {
        let mut pin = engine.pin(PinReason::Read, Version::ZERO);
        pin.rest();
        RollingSnapshot { engine: engine.clone(), pin }
    }

    /// Pins the greater of `at_least` and what is published.
    pub fn begin(&mut self, at_least: Version) -> ReadAt {
        self.engine.renew_pin(&mut self.pin, PinReason::Read, at_least);
        ReadAt::version(self.pin.version())
    }

    /// Lets go until the next statement.
    pub fn end(&mut self) {
        self.pin.rest();
    }
}

impl Engine {
    /// Looks at one row by its key, at a snapshot that the caller keeps pinned. `columns`, ascending: those that
    /// `look` needs. It may run under a latch: it must be short, and never call back into the engine. `None`: there
    /// is no such row.
    pub fn look<R>(
        &self,
        table: &TableDef,
        tablet: TabletId,
        key: &[u8],
        Reading { at, noted }: Reading<'_>,
        columns: &[ColumnId],
        look: impl FnOnce(SeenRow<'_>) -> R,
    ) -> Result<Option<R>> {
        if let Some(noted) = noted {
            noted.note_key(tablet, key);
        }
        let tablet = self.tablet(tablet)?;
        let view = tablet.view();
        let txns = &*self.txns;
        let mut look = Some(look);
        let mut seen = |row: SeenRow<'_>| look.take().map(|look| look(row));
        let found = tablet.hot.look(key, &Reader { at, view: view.number, txns }, |found| match found {
            Found::Row { row, .. } => seen(SeenRow::Encoded(row)),
            // As in [`ReadContext::get`].
            Found::Deleted | Found::Elsewhere | Found::Absent => None,
        });
        if found.is_some() {
            return Ok(found);
        }
        if view.files.is_empty() {
            return Ok(None);
        }
        let asked = Asked { tablet: tablet.id, view: view.id(), key, columns };
        let sees = |origin| sees_kept(&view, origin, &at, txns);
        let kept = self.row_cache.look(&asked, |origin, row| sees(origin).then(|| seen(SeenRow::Encoded(row))));
        match kept {
            Ok(found) => Ok(found),
            Err(None) => match in_files(&tablet, &view, key, &at, txns)? {
                Some(InFile { file, ordinal, .. }) => file.data.look(table, ordinal, columns, seen),
                None => Ok(None),
            },
            Err(Some(admission)) => {
                let row = self.look_and_keep(table, &tablet, &view, &asked, admission, &at)?;
                Ok(row.and_then(|row| seen(SeenRow::Encoded(&row))))
            }
        }
    }

    /// The row of a file that a reader sees, with what was asked for and maybe more, in row format. The first one that a
    /// search meets, seen or not, goes into the row cache; where there is none, that is noted there.
    fn look_and_keep(
        &self,
        table: &TableDef,
        tablet: &Tablet,
        view: &ReadView,
        asked: &Asked<'_>,
        mut admission: Admission,
        at: &ReadAt,
    ) -> Result<Option<Vec<u8>>> {
        let first = tablet.places(view, asked.key).next();
        let Some((position, ordinal)) = first.transpose()? else {
            self.row_cache.keep(asked, admission, None);
            return Ok(None);
        };
        // Others may have asked for columns that the reader's catalog does not have.
        admission.columns.retain(|column| column.position() < table.columns.len());
        let file = &view.files[position];
        let row = file.data.encoded_at(table, ordinal, &admission.columns)?;
        let origin = Origin { position: position as u32, ordinal, stamp: file.version_of(ordinal)? };
        self.row_cache.keep(asked, admission, Some((origin, &row)));
        if sees(file, ordinal, at, &*self.txns)? {
            return Ok(Some(row));
        }
        match in_files(tablet, view, asked.key, at, &*self.txns)? {
            Some(InFile { file, ordinal, .. }) => Ok(Some(file.data.encoded_at(table, ordinal, asked.columns)?)),
            None => Ok(None),
        }
    }

    /// The stamp of a row that a reader sees, as scans with identity give it.
    pub fn stamp_of(&self, tablet: TabletId, key: &[u8], at: ReadAt) -> Result<Option<Stamp>> {
        let tablet = self.tablet(tablet)?;
        let view = tablet.view();
        let txns = &*self.txns;
        let in_hot = tablet.hot.look(key, &Reader { at, view: view.number, txns }, |found| match found {
            Found::Row { stamp, .. } => Some(stamp),
            Found::Deleted | Found::Elsewhere | Found::Absent => None,
        });
        if in_hot.is_some() {
            return Ok(in_hot);
        }
        match in_files(&tablet, &view, key, &at, txns)? {
            Some(InFile { file, ordinal, .. }) => Ok(Some(file.stamp_of(ordinal)?.0)),
            None => Ok(None),
        }
    }

    /// Which tablet holds a primary key; `None` if it takes more than the key to know.
    pub fn tablet_of(&self, table: &TableDef, key: &[u8]) -> Option<TabletId> {
        route::tablet_of_key(table, key)
    }
}

/// What will be read of a part of a scan that nobody has begun.
pub struct Ahead(cold_scan::Ahead);

impl Ahead {
    /// Has the store begin to read it. What is wrong with a file is met by who reads it.
    pub fn will_read(self) {
        if let Err(error) = self.0.will_read() {
            tracing::debug!(%error, "nothing was read ahead");
        }
    }
}

impl TabletScan {
    /// What it will read; `None` if nobody knows, or if it is in memory.
    pub fn ahead(&self) -> Option<Ahead> {
        match &self.part {
            Part::Cold(scan) => scan.ahead().map(Ahead),
            Part::RowFile(_) | Part::Hot(_) => None,
        }
    }

    /// Adds the least and the greatest value of each page in a column of integers; whether they are known at all.
    pub fn page_bounds(&self, column: ColumnId, out: &mut Vec<(i64, i64)>) -> Result<bool> {
        match &self.part {
            Part::Cold(scan) => scan.page_bounds(column, out),
            Part::RowFile(_) | Part::Hot(_) => Ok(false),
        }
    }

    /// The next rows (at most [`BATCH_ROWS`]), `None` at the end. Synchronous; milliseconds at most.
    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        let (batch, shared) = match &mut self.part {
            Part::Cold(scan) => (scan.next_batch(), scan.shared()),
            Part::RowFile(scan) => (scan.next_batch(), scan.shared()),
            Part::Hot(scan) => (scan.next_batch(), scan.shared()),
        };
        shared.read.check_age()?;
        batch
    }
}

impl Tablet {
    pub(crate) fn damaged_row(&self, key: &[u8]) -> Error {
        Error::Corrupt(format!("row {:?} of tablet {} does not fit its table", Key::from(key), self.id))
    }
}
