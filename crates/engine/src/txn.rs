//! A transaction: snapshot, locks, writes, savepoints, commit.
//!
//! Dropping a `Txn` rolls it back. Futures of its methods can be dropped at any await (cancel): a lock
//! wait leaves its queue, and the statement's earlier changes stay until [`Txn::undo_to`] or [`Txn::rollback_to`].
//!
//! Commit, in this order: the commit record is appended in the transaction's turn of the commit order,
//! which gives the version and decides every row at once; rows, marks and files are restamped; locks go;
//! the transaction entry is retired; the reply waits until the record is durable. So whoever is granted a
//! lock finds decided stamps, and nobody is told of a commit that a power cut could undo.

mod build;
mod chain;
mod commit;
mod consequences;
mod entries;
mod large;
mod rows;
mod writes;

pub use consequences::Consequence;
pub use large::{FoundRow, LargeUpdate};
pub use rows::{CurrentRow, Inserted, Locked};
pub(crate) use rows::{Settled, damaged_row, decode_row, settled};
pub(crate) use writes::{Change, WriteSet};

use crate::locks::{LockPosition, Mode, Object, Owner};
use crate::read::{KeyRange, ReadContext};
use crate::record::Edits;
use crate::tablet::{FileEntry, Tablet};
use crate::validation::{ReadSet, Running};
use crate::{Catalog, CatalogEdit, Engine, Error, Result, TableLock, WaitPolicy};
use basalt_meta::{Over, Pin, PinReason, SequenceDef};
use basalt_types::{FileId, Key, Lsn, ObjectId, ReadAt, TableDef, TabletId, TxnId, Version};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Changes, or locks, beyond which the end of a transaction is long work.
const SHORT_MAX: usize = 1_000;

/// PostgreSQL manual 13.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Each statement has its snapshot.
    ReadCommitted,
    /// One snapshot for the whole transaction, and 40001 for who changes what was changed since.
    RepeatableRead,
    /// And 40001 for who writes and has read what was changed since ([`ReadSet`]).
    Serializable,
}

impl Isolation {
    /// As SQL has it.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        }
    }

    /// By its name; READ UNCOMMITTED is READ COMMITTED.
    pub fn named(name: &str) -> Option<Isolation> {
        match name.to_ascii_lowercase().as_str() {
            "read committed" | "read uncommitted" => Some(Isolation::ReadCommitted),
            "repeatable read" => Some(Isolation::RepeatableRead),
            "serializable" => Some(Isolation::Serializable),
            _ => None,
        }
    }

    /// Whether there is one snapshot for all statements of a transaction.
    pub fn has_one_snapshot(self) -> bool {
        self != Isolation::ReadCommitted
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnOptions {
    pub isolation: Isolation,
    /// Whether commit waits for the log (`synchronous_commit`).
    pub synchronous_commit: bool,
    /// The greatest version that the session has met: its snapshots are never below.
    pub session_version: Version,
    /// Whose it is, as lock reports tell it.
    pub session: i32,
}

/// A place in a transaction's changes to go back to, with the locks that were taken since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    changes: usize,
    operations: u64,
    catalog_edits: usize,
}

/// A user's place to go back to, as if nothing had happened since: locks that were taken since are given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    position: Position,
    locks: LockPosition,
    /// Of [`Txn::tables`].
    tables: usize,
}

pub struct Txn {
    pub(crate) engine: Arc<Engine>,
    options: TxnOptions,
    pub(crate) owner: Owner,
    /// Drawn at the first write.
    id: Option<TxnId>,
    /// Statement counter; a statement sees own rows of earlier ones.
    seq: u32,
    pin: Arc<Pin>,
    /// A statement has read, or may have: the snapshot of REPEATABLE READ stays from then on.
    has_read: bool,
    writes: WriteSet,
    /// Row operations logged so far: what a savepoint's void record counts.
    operations: u64,
    catalog_edits: Vec<CatalogEdit>,
    /// Of each of them, what it was made over.
    edits_over: Vec<Option<Over>>,
    /// The committed catalog with `catalog_edits`, while there are any.
    own_catalog: Option<Arc<Catalog>>,
    /// Table locks known to be held.
    tables: Vec<(ObjectId, Mode)>,
    /// How others' keys are waited for, where a statement does not say.
    pub(crate) wait: WaitPolicy,
    /// The row lock that is being taken. Whoever cancels a statement may leave one here.
    looking: Option<Object>,
    /// Row locks held by one who has not looked whether an undecided batch brings their keys.
    pub(crate) unlooked: HashSet<Object>,
    /// The greatest version met in conflicts, on top of the session's.
    met: Version,
    /// The greatest version that there was when a lock was granted last: whoever had it may have committed without being
    /// published yet, and the next snapshot has that.
    pub(crate) granted_behind: Version,
    ended: bool,
    consequences: consequences::Consequences,
    last_inserted: Option<(TabletId, Key)>,
    /// Marks of the running statement that more may be added to: where in `writes`, by file.
    marking: HashMap<FileId, usize>,
    /// Where marks are left that could not be taken back with their statement.
    left: Vec<Arc<Tablet>>,
    /// Of a serializable one.
    running: Option<Running>,
    /// It writes entries that nobody can have read: its changes are not noted for validation.
    unread: bool,
}

impl Txn {
    pub(crate) fn new(engine: Arc<Engine>, options: TxnOptions) -> Txn {
        let owner = engine.next_owner(options.session);
        // What the catalog's tables hold is seen, durable or not.
        let mut met = options.session_version.max(engine.catalog_at_hand().committed);
        let running = (options.isolation == Isolation::Serializable).then(|| {
            let (running, last) = Running::enter(&engine);
            met = met.max(last);
            running
        });
        let pin = Arc::new(engine.pin(PinReason::Transaction, met));
        Txn {
            engine,
            options,
            owner,
            id: None,
            seq: 1,
            pin,
            has_read: false,
            writes: WriteSet::default(),
            operations: 0,
            catalog_edits: Vec::new(),
            edits_over: Vec::new(),
            own_catalog: None,
            tables: Vec::new(),
            wait: WaitPolicy::Wait(None),
            looking: None,
            unlooked: HashSet::new(),
            met,
            granted_behind: Version::ZERO,
            ended: false,
            consequences: Default::default(),
            last_inserted: None,
            marking: HashMap::new(),
            left: Vec::new(),
            running,
            unread: false,
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The committed catalog with this transaction's own edits.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.own_catalog.clone().unwrap_or_else(|| self.engine.catalog())
    }

    /// The version of [`Txn::catalog`].
    pub fn catalog_version(&self) -> u64 {
        self.own_catalog.as_ref().map_or_else(|| self.engine.catalog_at_hand().version, |own| own.version)
    }

    /// How long waits for others' keys last at most (`lock_timeout`), from now on; `None`: for ever.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.wait = WaitPolicy::Wait(timeout);
    }

    /// Starts what reads no rows (LOCK TABLE, SAVEPOINT): it takes no snapshot, which the first statement behind it does.
    pub fn next_command(&mut self) {
        self.seq += 1;
        self.marking.clear();
    }

    /// Starts the next statement: under READ COMMITTED a new snapshot; own rows written before it are
    /// seen by it. Call before planning each statement.
    pub fn next_statement(&mut self) {
        // After commands that have read nothing the snapshot is older than it should be.
        let is_late = !self.has_read && self.seq > 1;
        self.has_read = true;
        self.next_command();
        if is_late && let Some(running) = &mut self.running {
            let (now, last) = Running::enter(&self.engine);
            *running = now;
            self.note_met(last);
        }
        if is_late || !self.repeatable_read() || basalt_sched::failpoint::is_weakened("snapshot") {
            // What the catalog's tables hold is seen, durable or not.
            let catalog = self.engine.catalog_at_hand().committed;
            self.note_met(catalog);
            let met = self.met();
            match Arc::get_mut(&mut self.pin) {
                Some(pin) => self.engine.renew_pin(pin, PinReason::Statement, met),
                // Something still reads at the snapshot before: a cursor.
                None => self.pin = Arc::new(self.engine.pin(PinReason::Statement, met)),
            }
        }
        if !self.catalog_edits.is_empty() {
            // See what others have committed meanwhile. If it clashes, commit will say so.
            if let Ok(next) = self.engine.catalog().apply(&self.catalog_edits) {
                self.own_catalog = Some(Arc::new(next));
            }
        }
    }

    /// How the current statement reads. Cheap to clone; keeps its snapshot pinned.
    pub fn read(&self) -> ReadContext {
        ReadContext::new(self.engine.clone(), self.pin.clone(), self.read_at()).noting(self.reads())
    }

    /// As [`ReadContext::check_age`], of the current statement.
    pub fn check_age(&self) -> Result<()> {
        match self.pin.is_expired() {
            true => Err(Error::SnapshotTooOld),
            false => Ok(()),
        }
    }

    /// The same without keeping anything pinned beyond this transaction's statement.
    pub fn read_at(&self) -> ReadAt {
        let snapshot = match !self.repeatable_read() && basalt_sched::failpoint::is_weakened("statement-snapshot") {
            true => Version::MAX,
            false => self.pin.version(),
        };
        ReadAt { snapshot, own: self.id, seq: self.seq }
    }

    /// All of a table counts as read from now on: by a cursor that is read when the transaction has ended.
    pub fn note_all(&self, table: &TableDef) {
        if let Some(running) = &self.running {
            running.reads.note_all(table);
        }
    }

    /// A key was looked for, or answered for.
    pub(crate) fn note_key(&self, tablet: TabletId, key: &Key) {
        if let Some(running) = &self.running {
            running.reads.note_key(tablet, key.as_bytes());
        }
    }

    /// Where what is read is noted.
    pub fn reads(&self) -> Option<Arc<ReadSet>> {
        self.running.as_ref().map(|running| running.reads.clone())
    }

    /// Whether the snapshot holds what the tables of a catalog hold. Not so if the catalog was committed since: start
    /// the statement again.
    pub fn sees(&self, catalog: &Catalog) -> bool {
        self.repeatable_read() || catalog.committed <= self.pin.version()
    }

    /// Whether indexes have entries for all rows that the snapshot sees: it may be older than one of them.
    pub fn sees_indexes(&self, catalog: &Catalog) -> bool {
        !self.repeatable_read() || !self.edits_catalog() && catalog.committed <= self.pin.version()
    }

    /// Whether [`Txn::catalog`] is this transaction's own.
    pub fn edits_catalog(&self) -> bool {
        self.own_catalog.is_some()
    }

    /// Whether it has written rows of one of these tables.
    pub fn has_written_to(&self, tables: &[ObjectId]) -> bool {
        self.writes.reach(tables)
    }

    pub fn has_writes(&self) -> bool {
        self.id.is_some()
    }

    /// Whether it takes long to end it or to go back to a savepoint: no work for a thread that serves others.
    pub fn is_long(&self) -> bool {
        let looks_long = || self.running.as_ref().is_some_and(Running::has_much_to_look_at);
        self.writes.len() > SHORT_MAX || self.engine.locks.held_by(self.owner) > SHORT_MAX || looks_long()
    }

    /// The greatest version of others that it was told of: an error may rest on it.
    pub fn told(&self) -> Version {
        self.met
    }

    /// What later transactions of the session must see: the greatest version that this one has met, or behind which it
    /// was granted a lock.
    pub fn met(&self) -> Version {
        self.met.max(self.granted_behind)
    }

    /// Takes a table lock for the rest of the transaction. After it, re-resolve the name: the catalog may
    /// have changed while waiting.
    pub async fn lock_table(&mut self, table: ObjectId, mode: TableLock, wait: WaitPolicy) -> Result<()> {
        let object = Object::Table(table);
        let mut behind = self.granted_behind;
        self.engine.lock(self.owner, &object, Mode::from(mode), wait, &mut behind).await?;
        // A mode of readers and writers that was free is no reason for the next snapshot to wait for others' syncs.
        if matches!(wait, WaitPolicy::Wait(_)) || mode >= TableLock::Share {
            self.granted_behind = behind;
        }
        if !self.catalog_edits.is_empty() {
            // So is what they did to the catalog, below this transaction's own edits.
            self.own_catalog = Some(Arc::new(self.engine.catalog().apply(&self.catalog_edits)?));
        }
        Ok(())
    }

    /// [`Txn::lock_table`] for a mode that others may hold too, if nobody is in the way. False: somebody is.
    pub fn try_lock_table(&mut self, table: ObjectId, mode: TableLock) -> Result<bool> {
        let mode = Mode::from(mode);
        if self.tables.iter().any(|(held, had)| *held == table && had.covers(mode)) {
            return Ok(true);
        }
        let taken = self.engine.locks.try_acquire(self.owner, &Object::Table(table), mode)?;
        if taken {
            self.tables.push((table, mode));
        }
        Ok(taken)
    }

    /// The writer's id, drawn now if this is its first write.
    pub(crate) fn writer(&mut self) -> Result<TxnId> {
        if let Some(id) = self.id {
            return Ok(id);
        }
        self.engine.check_writable()?;
        let id = self.engine.begin_writer();
        self.engine.locks.acquire_new(self.owner, &Object::Txn(id), Mode::RUNNING)?;
        self.id = Some(id);
        Ok(id)
    }

    /// Edits the catalog in this transaction. The caller holds the table locks that PostgreSQL asks for.
    /// New tablets named by the edit can be written right away.
    pub fn edit_catalog(&mut self, edits: Vec<CatalogEdit>) -> Result<()> {
        let seen = self.engine.catalog();
        self.edit_catalog_over(&seen, edits)
    }

    /// The same of edits that were made with this catalog in view: what they take away, or put in the place of, has to be
    /// as it was there.
    pub fn edit_catalog_over(&mut self, seen: &Catalog, edits: Vec<CatalogEdit>) -> Result<()> {
        basalt_meta::edit::check(&edits)?;
        self.writer()?;
        // On top of what others have committed by now; if that clashes with earlier edits, commit will say so.
        let all: Vec<CatalogEdit> = self.catalog_edits.iter().chain(&edits).cloned().collect();
        let committed = self.engine.catalog();
        committed.check_current(&edits)?;
        // Own edits are part of what was seen: then it is what is below them now.
        let seen = if self.catalog_edits.is_empty() { seen } else { &committed };
        let over: Vec<Option<Over>> = edits.iter().map(|edit| seen.over(edit)).collect();
        committed.check_over(&edits, &over)?;
        let next = committed.apply(&all).or_else(|_| self.catalog().apply(&edits))?;
        // Only of the tables edited: another's may be of a table that was dropped since it was seen here.
        let put = edits.iter().flat_map(|edit| match edit {
            CatalogEdit::PutTable(table) => table.stored().collect(),
            CatalogEdit::PutIndex { index, .. } => vec![&index.entries],
            _ => Vec::new(),
        });
        let new_tablets = self.engine.make_tablets(put);
        for tablet in new_tablets {
            self.writes.push(Change::NewTablet { tablet });
        }
        sequences_put(&edits).for_each(|sequence| self.engine.sequences.enter(sequence));
        self.edits_over.extend(over);
        self.catalog_edits.extend(edits);
        self.own_catalog = Some(Arc::new(next));
        Ok(())
    }

    /// Where changes are now: of a statement that may begin again.
    pub fn position(&mut self) -> Position {
        self.marking.clear();
        Position { changes: self.writes.len(), operations: self.operations, catalog_edits: self.catalog_edits.len() }
    }

    pub fn savepoint(&mut self) -> Savepoint {
        let (locks, tables) = (self.engine.locks.position(self.owner), self.tables.len());
        Savepoint { position: self.position(), locks, tables }
    }

    /// Undoes everything since the savepoint, which stays usable, and gives back the locks taken since, unless the
    /// transaction is SERIALIZABLE (`docs/decisions/0034-savepoints-and-locks.md`).
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.undo_to(savepoint.position)?;
        // What SERIALIZABLE has seen under its locks is not noted as read: they keep it so to the end.
        if self.running.is_none() {
            self.tables.truncate(savepoint.tables);
            self.engine.locks.release_since(self.owner, savepoint.locks);
        }
        Ok(())
    }

    /// An error if something that was taken back is partly there still.
    pub(crate) fn is_whole(&self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some(tablet) => Err(Error::Corrupt(format!("tablet {}: a change cannot be taken back alone", tablet.id))),
        }
    }

    /// Undoes everything since the position, which stays usable. Locks taken since are kept. Behind an error nothing but
    /// a whole rollback is left.
    pub fn undo_to(&mut self, position: Position) -> Result<()> {
        self.is_whole()?;
        self.consequences.clear();
        self.marking.clear();
        let Some(id) = self.id else { return Ok(()) };
        if self.operations > position.operations {
            let mut record = Vec::new();
            crate::record::void(&mut record, id, position.operations);
            self.engine.append(&record)?;
            self.operations = position.operations;
        }
        let undone = self.writes.split_off(position.changes);
        self.note_undone(&undone);
        let engine = self.engine.clone();
        let _whole = engine.whole("rollback to a savepoint");
        self.left.extend(self.engine.undo(id, undone));
        self.is_whole()?;
        if self.catalog_edits.len() > position.catalog_edits {
            let undone = self.catalog_edits.split_off(position.catalog_edits);
            self.edits_over.truncate(position.catalog_edits);
            self.own_catalog = match self.catalog_edits.is_empty() {
                true => None,
                false => Some(Arc::new(self.engine.catalog().apply(&self.catalog_edits)?)),
            };
            self.engine.forget_sequences(sequences_put(&undone), &self.catalog());
        }
        Ok(())
    }

    /// That keys of a batch were free was seen, and nothing but its files has kept them so, unless it was to a tablet that
    /// is undone, too.
    fn note_undone(&self, undone: &[Change]) {
        let Some(running) = &self.running else { return };
        for change in undone {
            if let Change::File { tablet, file, .. } = change
                && let Some((least, greatest)) = file.data.key_range()
            {
                let (from, mut to) = (least.as_bytes().to_vec(), greatest.as_bytes().to_vec());
                // The least key behind the greatest.
                to.push(0);
                running.reads.note_range(tablet.id, KeyRange { from, to: Some(to) });
            }
        }
        // What was read of a tablet that goes with its making was nobody's but the transaction's own.
        for change in undone {
            if let Change::NewTablet { tablet } = change {
                running.reads.forget(tablet.id);
            }
        }
    }

    /// Rolls back: changes are undone, locks released. The same as dropping.
    pub fn rollback(mut self) {
        self.end_unsuccessfully();
    }

    fn end_unsuccessfully(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let engine = self.engine.clone();
        let _whole = engine.whole("rollback");
        self.undo_all();
        engine.locks.release_all(self.owner);
        self.running = None;
    }

    fn undo_all(&mut self) {
        if let Some(id) = self.id {
            let undone = self.writes.split_off(0);
            self.left.extend(self.engine.undo(id, undone));
            self.left.drain(..).for_each(|tablet| self.engine.unmark_all(id, &tablet));
            // Without this record replay finds no commit and drops the rows all the same: it only frees
            // replay's memory earlier, so a log that cannot take it does no harm.
            if self.operations > 0 {
                let mut record = Vec::new();
                crate::record::abort(&mut record, id);
                if let Err(error) = self.engine.append(&record) {
                    tracing::debug!(%error, txn = %id, "abort record not written");
                }
            }
            self.engine.txns.retire(id);
            let committed = self.engine.catalog();
            self.engine.forget_sequences(sequences_put(&self.catalog_edits), &committed);
        }
    }

    fn edits(&mut self) -> Edits {
        Edits { catalog: std::mem::take(&mut self.catalog_edits), files: self.writes.file_edits() }
    }

    pub(crate) fn note_met(&mut self, version: Version) {
        self.met = self.met.max(version);
    }

    /// Appends one row operation to the log, in parts, without waiting for it.
    pub(crate) fn log_operation(&mut self, parts: &[&[u8]]) -> Result<Lsn> {
        let end = self.engine.append_parts(parts)?;
        self.operations += 1;
        Ok(end)
    }

    pub(crate) fn tablet(&self, id: TabletId) -> Result<Arc<Tablet>> {
        self.engine.tablet(id)
    }

    pub(crate) fn seq(&self) -> u32 {
        self.seq
    }

    /// Whether there is one snapshot for all statements.
    pub(crate) fn repeatable_read(&self) -> bool {
        self.options.isolation.has_one_snapshot()
    }

    pub(crate) fn snapshot(&self) -> Version {
        self.pin.version()
    }

    /// Notes a file that was listed for this transaction just now.
    pub(crate) fn push_file(&mut self, tablet: &Arc<Tablet>, file: &Arc<FileEntry>) {
        let (next_rid, operations) = (tablet.next_rid(), self.operations);
        self.writes.push(Change::File { tablet: tablet.clone(), file: file.clone(), next_rid, operations });
    }

    pub(crate) fn push_change(&mut self, change: Change) {
        self.writes.push(change);
    }

    pub(crate) fn id(&self) -> Option<TxnId> {
        self.id
    }
}

fn sequences_put(edits: &[CatalogEdit]) -> impl Iterator<Item = &SequenceDef> {
    edits.iter().filter_map(|edit| match edit {
        CatalogEdit::PutSequence(sequence) => Some(sequence),
        _ => None,
    })
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.end_unsuccessfully();
    }
}

impl Error {
    /// Whether the transaction may go on after rolling the statement back.
    pub fn is_log_failure(&self) -> bool {
        matches!(self, Error::LogFailed(_))
    }
}
