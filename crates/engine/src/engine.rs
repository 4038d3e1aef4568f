//! What a server opens: one data directory, recovered and served.

use crate::background::Background;
use crate::bulk::Encoding;
use crate::data_file::DataFile;
use crate::locks::{Acquired, LockReport, LockWaiter, Locks, Mode, Object, Owner};
use crate::read::ReadContext;
use crate::read::mirror::MirrorBudget;
use crate::read::row_cache::{RowCache, RowCacheStats};
use crate::sequence::{self, Sequences};
use crate::statistics::{Samples, StatisticsCache};
use crate::tablet::{FileEntry, Tablet};
use crate::txn::Change;
use crate::validation::Recent;
use crate::{Catalog, EngineConfig, Error, Result, Txn, TxnOptions, WaitPolicy, recovery};
use ahash::AHashMap;
use arc_swap::ArcSwap;
use basalt_cold::{BlockCache, Files, LocatorBudget};
use basalt_meta::{CommitOrder, FileKind, Pin, PinReason, PinTable, TxnTable};
use basalt_sched::Os;
use basalt_types::{Datum, Epoch, FileId, Lsn, ObjectId, ReadAt, Rid, TableDef, TabletId, TxnId, Version, ViewNo};
use basalt_wal::Log;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How far recovery has come.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryProgress {
    pub done_bytes: u64,
    pub total_bytes: u64,
    pub records: u64,
}

/// How long a shutdown waits for encoders of statements that have ended.
const ENCODERS_END: Duration = Duration::from_secs(5);

/// All that there are, by id.
type Tablets = AHashMap<TabletId, Arc<Tablet>>;

pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) os: Os,
    pub(crate) log: Arc<Log>,
    pub(crate) files: Files,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) row_cache: RowCache,
    pub(crate) locators: Arc<LocatorBudget>,
    pub(crate) mirrors: Arc<MirrorBudget>,
    pub(crate) order: Arc<CommitOrder>,
    pub(crate) txns: Arc<TxnTable>,
    pub(crate) pins: Arc<PinTable>,
    pub(crate) locks: Locks,
    pub(crate) ids: Ids,
    catalog: ArcSwap<Catalog>,
    tablets: ArcSwap<Tablets>,
    /// Held shared while a move switches a view and appends its record; exclusively while a checkpoint
    /// takes all views at one version.
    pub(crate) move_gate: RwLock<()>,
    /// Files that no view lists any more, with the end of the record that dropped them.
    pub(crate) dropped: Mutex<BTreeMap<FileId, DroppedFile>>,
    pub(crate) encoding: Arc<Encoding>,
    pub(crate) background: Background,
    pub(crate) checkpoints: crate::checkpoint::State,
    pub(crate) sequences: Sequences,
    pub(crate) recent: Recent,
    pub(crate) statistics: StatisticsCache,
    pub(crate) samples: Samples,
    pub(crate) index_values: std::sync::OnceLock<Box<crate::IndexValues>>,
    _directory: Box<dyn Send + Sync>,
}

/// A file on its way out: kept while something still names it.
pub(crate) struct DroppedFile {
    pub kind: FileKind,
    /// Its last mention in the log ends here; zero for one that the log never named.
    pub last_named: Lsn,
    /// Readers of older views.
    pub entry: Option<std::sync::Weak<FileEntry>>,
}

/// Sources of identities. Those of objects continue what the catalog has seen; the rest start with the epoch.
pub(crate) struct Ids {
    pub epoch: Epoch,
    pub txn: AtomicU64,
    pub file: AtomicU32,
    pub owner: AtomicU64,
    pub object: AtomicU32,
    pub tablet: AtomicU32,
}

/// What recovery hands over.
pub(crate) struct Recovered {
    pub catalog: Catalog,
    pub tablets: HashMap<TabletId, Arc<Tablet>>,
    pub order: Arc<CommitOrder>,
    pub txns: Arc<TxnTable>,
    pub log: Arc<Log>,
    pub files: Files,
    pub cache: Arc<BlockCache>,
    pub ids: Ids,
    pub checkpoints: crate::checkpoint::State,
    pub sequences: HashMap<ObjectId, sequence::State>,
    pub dropped: BTreeMap<FileId, DroppedFile>,
    pub directory: Box<dyn Send + Sync>,
}

impl Engine {
    /// Takes the directory (making it if it is empty or missing), recovers it, starts background work.
    pub fn open(os: Os, config: EngineConfig, progress: &dyn Fn(RecoveryProgress)) -> Result<Arc<Engine>> {
        let recovered = recovery::recover(&os, &config, progress)?;
        let background = Background::new(config.background);
        let locator_bytes_max = config.locator_bytes_max.min(config.memory_bytes_max / 4);
        let mirror_bytes_max = config.memory_bytes_max / 32;
        let engine = Arc::new(Engine {
            locks: Locks::new(config.locks_max),
            os,
            log: recovered.log,
            files: recovered.files,
            cache: recovered.cache,
            row_cache: RowCache::new(config.row_cache_bytes()),
            locators: Arc::new(LocatorBudget::new(locator_bytes_max)),
            mirrors: Arc::new(MirrorBudget::new(usize::try_from(mirror_bytes_max).unwrap_or(usize::MAX))),
            order: recovered.order,
            txns: recovered.txns,
            pins: Arc::default(),
            ids: recovered.ids,
            catalog: ArcSwap::from_pointee(recovered.catalog),
            tablets: ArcSwap::from_pointee(recovered.tablets.into_iter().collect()),
            move_gate: RwLock::new(()),
            dropped: Mutex::new(recovered.dropped),
            encoding: Arc::default(),
            background,
            checkpoints: recovered.checkpoints,
            sequences: Sequences::new(recovered.sequences),
            recent: Recent::default(),
            statistics: StatisticsCache::default(),
            samples: Samples::default(),
            index_values: std::sync::OnceLock::new(),
            _directory: recovered.directory,
            config,
        });
        engine.background.start(&engine);
        Ok(engine)
    }

    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    pub fn os(&self) -> &Os {
        &self.os
    }

    /// The committed catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// The same for a look at it: threads that do nothing else do not meet at its count of owners.
    pub fn catalog_at_hand(&self) -> impl Deref<Target = Arc<Catalog>> {
        self.catalog.load()
    }

    pub fn begin(self: &Arc<Self>, options: TxnOptions) -> Txn {
        Txn::new(self.clone(), options)
    }

    /// A fresh object id, never handed out again (ids of aborted transactions leave gaps).
    pub fn next_object_id(&self) -> ObjectId {
        ObjectId(self.ids.object.fetch_add(1, Ordering::Relaxed))
    }

    pub fn next_tablet_id(&self) -> TabletId {
        TabletId(self.ids.tablet.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn next_file_id(&self) -> FileId {
        FileId { epoch: self.ids.epoch, serial: self.ids.file.fetch_add(1, Ordering::Relaxed) }
    }

    pub(crate) fn next_owner(&self, session: i32) -> Owner {
        Owner::new(self.ids.owner.fetch_add(1, Ordering::Relaxed), session)
    }

    /// Takes a lock ([`Locks::acquire`]). Errors tell objects by their names. `behind` is told the last version that was
    /// decided then: whoever had it may have committed without being published yet, and the next snapshot must see it.
    pub(crate) async fn lock(
        &self,
        owner: Owner,
        object: &Object,
        mode: Mode,
        wait: WaitPolicy,
        behind: &mut Version,
    ) -> Result<Acquired> {
        let acquired = self.locks.acquire(owner, object, mode, wait).await;
        let acquired = acquired.map_err(|error| self.in_names(error, object))?;
        if acquired != Acquired::Skipped {
            *behind = self.order.last();
        }
        Ok(acquired)
    }

    pub(crate) async fn wait_for_end(&self, owner: Owner, of: Owner, wait: WaitPolicy) -> Result<()> {
        let object = Object::Owner(of);
        self.locks.wait_for_end(owner, of, wait).await.map_err(|error| self.in_names(error, &object))
    }

    fn in_names(&self, error: Error, object: &Object) -> Error {
        match error {
            Error::Deadlock(mut waits) => {
                waits.iter_mut().for_each(|wait| wait.name = self.name_of(&wait.object));
                Error::Deadlock(waits)
            }
            Error::LockNotAvailable(_) => Error::LockNotAvailable(self.name_of(object)),
            other => other,
        }
    }

    /// What is locked, as users know it.
    pub fn name_of(&self, object: &Object) -> String {
        let catalog = self.catalog();
        let named = |table: Option<&Arc<TableDef>>| table.map(|table| format!("relation \"{}\"", table.name));
        let name = match object {
            Object::Table(table) => named(catalog.tables.get(table)),
            Object::Row(tablet, _) => named(catalog.table_of(*tablet)).map(|relation| format!("row in {relation}")),
            Object::Values(index, _) => {
                let index = catalog.index_of(*index).map(|(_, index)| &index.entries);
                named(index).map(|relation| format!("values in {relation}"))
            }
            Object::Txn(_) | Object::Owner(_) => None,
        };
        name.unwrap_or_else(|| object.to_string())
    }

    /// Locks that are held or waited for.
    pub fn lock_report(&self) -> Vec<LockReport> {
        self.locks.report()
    }

    /// Which sessions wait, and for what.
    pub fn lock_waits(&self) -> Vec<(i32, Object)> {
        self.locks.waits()
    }

    /// Sessions in the way of what a session waits for.
    pub fn lock_blockers(&self, session: i32) -> Vec<i32> {
        self.locks.blockers(session)
    }

    /// All sessions that wait, and for whom.
    pub fn lock_waiters(&self) -> Vec<LockWaiter> {
        self.locks.waiters()
    }

    /// Enters a writer whose first record will come behind the log's present end.
    pub(crate) fn begin_writer(&self) -> TxnId {
        let id = TxnId::new(self.ids.epoch, self.ids.txn.fetch_add(1, Ordering::Relaxed));
        self.txns.begin(id, || self.log.end());
        id
    }

    /// The greatest durable version.
    pub fn published(&self) -> Version {
        self.order.published()
    }

    /// The greatest version that is decided, durable or not.
    pub fn decided(&self) -> Version {
        self.order.last()
    }

    pub(crate) fn pin(&self, reason: PinReason, at_least: Version) -> Pin {
        self.pins.pin(reason, self.os.clock.monotonic(), || self.order.published().max(at_least))
    }

    pub(crate) fn renew_pin(&self, pin: &mut Pin, reason: PinReason, at_least: Version) {
        pin.renew(reason, self.os.clock.monotonic(), || self.order.published().max(at_least));
    }

    /// Versions that somebody may read, ascending; the last is the newest published. Snapshots that are too old are no
    /// longer among them.
    pub(crate) fn live_snapshots(&self) -> Vec<Version> {
        if let Some(max) = self.config.snapshot_age_max {
            self.pins.expire(self.os.clock.monotonic().saturating_sub(max));
        }
        self.pins.live(|| self.order.published())
    }

    /// Pinned snapshots: version, reason, since when (monotonic clock).
    pub fn pinned(&self) -> Vec<basalt_meta::pins::PinInfo> {
        self.pins.list()
    }

    /// Reads committed data outside of any transaction, at the greater of `at_least` and published.
    pub fn read(self: &Arc<Self>, at_least: Version) -> ReadContext {
        let pin = Arc::new(self.pin(PinReason::Read, at_least));
        let at = ReadAt::version(pin.version());
        ReadContext::new(self.clone(), pin, at)
    }

    pub(crate) fn tablet(&self, id: TabletId) -> Result<Arc<Tablet>> {
        let tablet = self.tablets.load().get(&id).cloned();
        tablet.ok_or_else(|| Error::Internal(format!("tablet {id} is not there: its table was dropped")))
    }

    pub(crate) fn tablets(&self) -> Vec<Arc<Tablet>> {
        let mut all: Vec<_> = self.tablets.load().values().cloned().collect();
        all.sort_by_key(|tablet| tablet.id);
        all
    }

    /// Makes the tablets that tables name and the engine lacks. Returns them.
    pub(crate) fn make_tablets<'a>(&self, tables: impl IntoIterator<Item = &'a Arc<TableDef>>) -> Vec<Arc<Tablet>> {
        let named = tables.into_iter().flat_map(|table| table.tablets().map(|id| (id, table.id)));
        let known = self.tablets.load();
        let named: Vec<(TabletId, ObjectId)> = named.filter(|(id, _)| !known.contains_key(id)).collect();
        if named.is_empty() {
            return Vec::new();
        }
        let mut made = Vec::new();
        self.tablets.rcu(|tablets| {
            let mut tablets = Tablets::clone(tablets);
            made.clear();
            for (id, table) in &named {
                tablets.entry(*id).or_insert_with(|| {
                    let tablet = Arc::new(Tablet::new(*id, *table, Vec::new(), Rid(1)));
                    tablet.relieved_upto.store(self.published().0, Ordering::Relaxed);
                    made.push(tablet.clone());
                    tablet
                });
            }
            tablets
        });
        made
    }

    /// Takes tablets away; gives those that were there.
    fn take_tablets(&self, gone: &[TabletId]) -> Vec<Arc<Tablet>> {
        let before = self.tablets.rcu(|tablets| {
            let mut tablets = Tablets::clone(tablets);
            gone.iter().for_each(|id| drop(tablets.remove(id)));
            tablets
        });
        gone.iter().filter_map(|id| before.get(id).cloned()).collect()
    }

    /// A file found no room on the disk: log files kept for reuse are given up.
    pub(crate) fn make_room_after(&self, error: &Error) {
        if matches!(error, Error::NoSpace { .. }) {
            self.log.give_up_spares();
        }
    }

    pub(crate) fn forget_tablet(&self, id: TabletId) {
        self.take_tablets(&[id]);
    }

    /// Makes a catalog the committed one. The caller holds the commit turn.
    pub(crate) fn install_catalog(&self, next: Catalog) {
        let earlier = self.catalog.swap(Arc::new(next));
        let next = self.catalog.load_full();
        self.forget_sequences(earlier.sequences.values().map(|sequence| &**sequence), &next);
        self.make_tablets(next.stored_tables());
        let gone = earlier.stored_tables().flat_map(|table| table.tablets()).filter(|id| next.table_of(*id).is_none());
        self.drop_tablets(&gone.collect::<Vec<_>>());
    }

    /// Of the tablets that a transaction has made, now that it has committed: those that its catalog does not know, because
    /// it has dropped their tables again, or moved the rows once more.
    pub(crate) fn drop_passing(&self, changes: &[Change]) {
        let catalog = self.catalog();
        let made = changes.iter().filter_map(|change| match change {
            Change::NewTablet { tablet } => Some(tablet.id),
            _ => None,
        });
        self.drop_tablets(&made.filter(|id| catalog.table_of(*id).is_none()).collect::<Vec<_>>());
    }

    /// Takes tablets away that no catalog knows any more. Their files stay for those who read them.
    fn drop_tablets(&self, gone: &[TabletId]) {
        if gone.is_empty() {
            return;
        }
        let taken = self.take_tablets(gone);
        let last_named = self.log.end();
        for tablet in taken {
            tablet.view().files.iter().for_each(|file| self.drop_file(file, last_named));
        }
    }

    /// Notes that no view lists a file any more; garbage collection removes it when nothing needs it.
    pub(crate) fn drop_file(&self, file: &Arc<FileEntry>, last_named: Lsn) {
        let dropped = DroppedFile { kind: file.data.kind(), last_named, entry: Some(Arc::downgrade(file)) };
        self.dropped.lock().insert(file.id(), dropped);
    }

    /// A file that never was part of committed data.
    pub(crate) fn discard_file(&self, id: FileId, kind: FileKind) {
        let dropped = DroppedFile { kind, last_named: Lsn(0), entry: None };
        self.dropped.lock().insert(id, dropped);
    }

    pub(crate) fn open_file(&self, id: FileId, kind: FileKind) -> Result<DataFile> {
        Ok(DataFile::open(&self.files, &self.cache, id, kind)?)
    }

    /// Appends to the log without waiting.
    pub(crate) fn append(&self, record: &[u8]) -> Result<Lsn> {
        self.append_parts(&[record])
    }

    /// One record in parts.
    pub(crate) fn append_parts(&self, parts: &[&[u8]]) -> Result<Lsn> {
        Ok(self.log.append(parts)?.end)
    }

    /// Lets a writer in: waits while log buffers or hot memory are over their limits.
    pub(crate) async fn admit(&self) -> Result<()> {
        self.log.admit().await?;
        self.background.admit(self).await
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.background.is_stopping() {
            true => Err(Error::ShuttingDown),
            false => Ok(()),
        }
    }

    /// Whether anybody has, or waits for, a table alone. If not, what is read at a snapshot of now needs no lock.
    pub fn is_table_excluded(&self) -> bool {
        self.locks.is_table_excluded()
    }

    /// The tablet that a row (all columns) belongs to.
    pub fn route_row(&self, table: &TableDef, values: &[Datum]) -> TabletId {
        crate::route::tablet_of_row(table, values)
    }

    /// Rows of a table, roughly: files' rows less deleted ones plus hot rows. For planning.
    pub fn estimated_rows(&self, table: &TableDef) -> u64 {
        let (hot, cold) = self.estimated_places(table);
        hot + cold
    }

    /// The same apart: hot rows, and those in files.
    pub fn estimated_places(&self, table: &TableDef) -> (u64, u64) {
        let tablets = table.tablets().filter_map(|id| self.tablet(id).ok());
        tablets.fold((0, 0), |(hot, cold), tablet| {
            let of_files: u64 = tablet.view().files.iter().map(|file| file.unmarked_rows()).sum();
            (hot + tablet.hot.rows() as u64, cold + of_files)
        })
    }

    /// Bytes of a table: files and hot rows.
    pub fn table_bytes(&self, table: &TableDef) -> u64 {
        let bytes = |tablet: Arc<Tablet>| {
            tablet.view().files.iter().map(|file| file.bytes).sum::<u64>() + tablet.hot.bytes() as u64
        };
        table.tablets().filter_map(|id| self.tablet(id).ok()).map(bytes).sum()
    }

    /// Memory that hot rows hold.
    pub fn hot_bytes(&self) -> u64 {
        self.tablets.load().values().map(|tablet| tablet.hot.bytes() as u64).sum()
    }

    /// The part of [`hot_bytes`](Engine::hot_bytes) that only older readers need: moving rows out does not
    /// free it.
    pub fn kept_bytes(&self) -> u64 {
        self.tablets.load().values().map(|tablet| tablet.hot.kept_bytes() as u64).sum()
    }

    /// Position behind the last record of the log.
    pub fn log_end(&self) -> Lsn {
        self.log.end()
    }

    /// Position up to which the log is durable.
    pub fn log_durable(&self) -> Lsn {
        self.log.durable()
    }

    pub fn stats(&self) -> EngineStats {
        let tablets = self.tablets();
        let mut stats = EngineStats {
            published: self.published(),
            tablets: tablets.len() as u64,
            locks_held: self.locks.held_count() as u64,
            lock_waiters: self.locks.waiting_count() as u64,
            pins: self.pins.list().len() as u64,
            active_writers: self.txns.active_count() as u64,
            log: self.log.stats(),
            log_end: self.log.end(),
            checkpoint_lsn: self.checkpoints.replay_start(),
            locator_entries: self.locators.entries(),
            locator_bytes: self.locators.bytes(),
            locator_bytes_max: self.locators.bytes_max(),
            row_cache: self.row_cache.stats(),
            mirror_bytes: self.mirrors.bytes(),
            mirror_bytes_max: self.mirrors.bytes_max(),
            ..EngineStats::default()
        };
        for tablet in tablets {
            stats.hot_rows += tablet.hot.rows() as u64;
            stats.hot_bytes += tablet.hot.bytes() as u64;
            stats.undo_versions += tablet.hot.undo_versions() as u64;
            let view = tablet.view();
            stats.files += view.files.len() as u64;
            stats.file_bytes += view.files.iter().map(|file| file.bytes).sum::<u64>();
            stats.cold_rows += view.files.iter().map(|file| file.unmarked_rows()).sum::<u64>();
        }
        stats
    }

    /// One line per listed file: for `basalt.files`.
    pub fn file_list(&self) -> Vec<FileLine> {
        let mut lines = Vec::new();
        let catalog = self.catalog();
        for tablet in self.tablets() {
            let (view, table) = (tablet.view(), table_of(&catalog, &tablet));
            lines.extend(view.files.iter().map(|file| FileLine {
                tablet: tablet.id,
                table,
                file: file.id(),
                kind: file.data.kind(),
                rows: u64::from(file.data.rows()),
                deleted: file.deletes.count(),
                bytes: file.bytes,
            }));
        }
        lines
    }

    /// One line per tablet: for `basalt.tablets`.
    pub fn tablet_list(&self) -> Vec<TabletLine> {
        let catalog = self.catalog();
        let line = |tablet: Arc<Tablet>| TabletLine {
            tablet: tablet.id,
            table: table_of(&catalog, &tablet),
            view: tablet.view().number,
            hot_rows: tablet.hot.rows() as u64,
            hot_bytes: tablet.hot.bytes() as u64,
            undo_versions: tablet.hot.undo_versions() as u64,
            files: tablet.view().files.len() as u64,
        };
        self.tablets().into_iter().map(line).collect()
    }

    pub fn background(&self) -> &Background {
        &self.background
    }

    /// Stops background work, checkpoints, closes the log. Transactions still open lose their writes.
    pub fn shutdown(self: &Arc<Self>) -> Result<()> {
        self.background.stop();
        self.encoding.wait(ENCODERS_END);
        self.sequences.close();
        let checkpointed = self.checkpoint();
        self.log.close()?;
        checkpointed
    }
}

/// Whose a tablet is: REINDEX CONCURRENTLY gives an index another's.
fn table_of(catalog: &Catalog, tablet: &Tablet) -> ObjectId {
    catalog.table_of(tablet.id).map_or(tablet.table, |table| table.id)
}

#[derive(Clone, Debug, Default)]
pub struct EngineStats {
    pub published: Version,
    pub tablets: u64,
    pub hot_rows: u64,
    pub hot_bytes: u64,
    pub undo_versions: u64,
    pub cold_rows: u64,
    pub files: u64,
    pub file_bytes: u64,
    pub locks_held: u64,
    pub lock_waiters: u64,
    pub pins: u64,
    pub active_writers: u64,
    pub log: basalt_wal::Stats,
    pub log_end: Lsn,
    pub checkpoint_lsn: Lsn,
    pub locator_entries: u64,
    pub locator_bytes: u64,
    pub locator_bytes_max: u64,
    pub row_cache: RowCacheStats,
    /// Columns of hot rows, kept for scans.
    pub mirror_bytes: u64,
    pub mirror_bytes_max: u64,
}

#[derive(Clone, Debug)]
pub struct FileLine {
    pub tablet: TabletId,
    pub table: ObjectId,
    pub file: FileId,
    pub kind: FileKind,
    pub rows: u64,
    pub deleted: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub struct TabletLine {
    pub tablet: TabletId,
    pub table: ObjectId,
    pub view: ViewNo,
    pub hot_rows: u64,
    pub hot_bytes: u64,
    pub undo_versions: u64,
    pub files: u64,
}
