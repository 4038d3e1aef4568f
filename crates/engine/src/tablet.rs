//! One tablet: its hot rows, its files, and the view through which both are read (DESIGN 5, Read view).
//!
//! Invariants:
//! 1. A view is immutable. A reader takes its snapshot first and then pins the current view, so a view
//!    shows everything that its reader's snapshot contains.
//! 2. `latch` is held shared by whoever finds a row's place and marks or replaces it there, exclusively by
//!    whoever changes where rows are (freeze, compaction, registering a file). So a place that was found
//!    under the latch is still the place when the mark is made.
//! 3. Marks go to files of the current view only. A reader of an older view never needs them: their
//!    versions are above its snapshot. Those made before its view was replaced it may need: a merge restamps
//!    in its inputs what is committed by then (`compaction/carry.rs`).
//! 4. The latch is never held across an await, a write to the store or a wait for the log.
//!
//! Order of locks: row or table lock → move gate → latch → commit turn → (inside hot, delete maps, log).

mod locate;

use crate::data_file::DataFile;
use crate::read::mirror::Mirror;
use basalt_cold::DeleteMap;
use basalt_hot::{HotTablet, Newest, Spot};
use basalt_meta::{FileInfo, FileStamps};
use basalt_types::{FileId, Key, ObjectId, ReadAt, Rid, Stamp, TabletId, TxnId, TxnState, TxnStates, Version, ViewNo};
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Forwards of one key. A statement that waits for a row while so many others leave its key follows a later one, or none.
const FORWARDS_MAX: usize = 1024;

/// More views than are made, by loads that begin and end, while one move marks its rows.
const VIEWS_PER_MOVE: u64 = 1 << 24;

/// A file as a tablet lists it.
pub struct FileEntry {
    pub data: DataFile,
    pub deletes: DeleteMap,
    pub stamps: EntryStamps,
    pub bytes: u64,
}

/// Whose the rows of a listed file are.
pub enum EntryStamps {
    /// The file has a version column.
    PerRow,
    /// All rows carry this stamp; a registering transaction's until it is decided. `seq` is its statement.
    Uniform { stamp: AtomicU64, seq: u32 },
}

impl FileEntry {
    pub fn id(&self) -> FileId {
        self.data.id()
    }

    /// The file's stamp, or `None` if rows carry their own.
    pub fn uniform(&self) -> Option<(Stamp, u32)> {
        match &self.stamps {
            EntryStamps::PerRow => None,
            EntryStamps::Uniform { stamp, seq } => Some((Stamp::from_raw(stamp.load(Ordering::Acquire)), *seq)),
        }
    }

    /// The transaction that registered the file, while it is undecided or not yet restamped.
    pub fn undecided(&self) -> Option<TxnId> {
        self.uniform().and_then(|(stamp, _)| stamp.as_txn())
    }

    pub fn restamp(&self, version: Version) {
        if let EntryStamps::Uniform { stamp, .. } = &self.stamps {
            stamp.store(Stamp::version(version).raw(), Ordering::Release);
        }
    }

    /// Whether a file whose rows carry one stamp is seen as a whole.
    pub fn sees_uniform(&self, at: &ReadAt, txns: &dyn TxnStates) -> bool {
        let Some((stamp, seq)) = self.uniform() else { return true };
        // The writer may restamp and retire between our two looks: look again before believing "aborted".
        at.sees(stamp, seq, txns) || self.uniform().is_some_and(|(now, seq)| now != stamp && at.sees(now, seq, txns))
    }

    /// A row's own version; `None` where all have the file's.
    pub fn version_of(&self, ordinal: u32) -> basalt_cold::Result<Option<Version>> {
        match &self.stamps {
            EntryStamps::Uniform { .. } => Ok(None),
            EntryStamps::PerRow => Ok(Some(self.data.stamp_at(ordinal)?.unwrap_or(Version::ZERO))),
        }
    }

    /// The stamp of one row.
    pub fn stamp_of(&self, ordinal: u32) -> basalt_cold::Result<(Stamp, u32)> {
        match self.uniform() {
            Some(uniform) => Ok(uniform),
            None => Ok((Stamp::version(self.data.stamp_at(ordinal)?.unwrap_or(Version::ZERO)), 0)),
        }
    }

    /// Whether a reader sees a row of this file at all (its deletion apart).
    pub fn sees_row(&self, ordinal: u32, at: &ReadAt, txns: &dyn TxnStates) -> basalt_cold::Result<bool> {
        match &self.stamps {
            EntryStamps::Uniform { .. } => Ok(self.sees_uniform(at, txns)),
            EntryStamps::PerRow => {
                let (stamp, seq) = self.stamp_of(ordinal)?;
                Ok(at.sees(stamp, seq, txns))
            }
        }
    }

    pub fn info(&self, stamps: FileStamps) -> FileInfo {
        FileInfo { id: self.id(), kind: self.data.kind(), rows: u64::from(self.data.rows()), bytes: self.bytes, stamps }
    }

    /// Rows that are not marked deleted by anybody.
    pub fn unmarked_rows(&self) -> u64 {
        u64::from(self.data.rows()).saturating_sub(self.deletes.count())
    }
}

/// A tablet's files at one instant. Pinned by holding the `Arc`.
pub struct ReadView {
    /// Of all views that this process has made.
    id: u64,
    pub number: ViewNo,
    /// In the order of their arrival.
    pub files: Vec<Arc<FileEntry>>,
    plan: locate::PlanCache,
}

impl ReadView {
    fn new(number: ViewNo, files: Vec<Arc<FileEntry>>) -> ReadView {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        ReadView { id, number, files, plan: locate::PlanCache::default() }
    }

    /// For [`Tablet::is_current`].
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn file(&self, id: FileId) -> Option<&Arc<FileEntry>> {
        self.files.iter().find(|file| file.id() == id)
    }
}

pub struct Tablet {
    pub id: TabletId,
    pub table: ObjectId,
    pub hot: HotTablet,
    /// Columns of hot rows for scans.
    pub mirror: Mirror,
    /// See invariant 2.
    pub latch: RwLock<()>,
    view: arc_swap::ArcSwap<ReadView>,
    /// Earlier views that may still be pinned.
    past: Mutex<Vec<(ViewNo, Weak<ReadView>)>>,
    next_rid: AtomicU64,
    /// The version up to which rows have left (`background/pressure.rs`).
    pub relieved_upto: AtomicU64,
    /// One move out of hot at a time, and one merge: these two go together, each changes its own files.
    pub moving: Mutex<()>,
    pub merging: Mutex<()>,
    /// Large changes that are under way ([`Undisturbed`]).
    large_changes: AtomicUsize,
    locate: locate::Locate,
    /// Where rows whose primary key an UPDATE changed have gone, in turn, while a snapshot may know them by their
    /// old key: a re-check follows.
    forwards: Mutex<HashMap<Key, VecDeque<Forward>>>,
}

/// Keeps merges away from files with live rows of these tablets as long as it lives: for a statement that is about to
/// mark rows in many of them, which puts off a merge at its end (`txn/large.rs`).
pub struct Undisturbed(Vec<Arc<Tablet>>);

impl Undisturbed {
    pub(crate) fn new(tablets: Vec<Arc<Tablet>>) -> Undisturbed {
        for tablet in &tablets {
            tablet.large_changes.fetch_add(1, Ordering::Relaxed);
        }
        Undisturbed(tablets)
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        for tablet in &self.0 {
            tablet.large_changes.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What an UPDATE of a primary key leaves under the old key.
#[derive(Clone, Debug)]
pub struct Forward {
    pub stamp: Stamp,
    /// Forwards are numbered as they are left: a row that was followed goes on by later ones only.
    pub number: u64,
    pub tablet: TabletId,
    pub key: Key,
}

/// Where the newest version of a key is, whoever wrote it.
pub enum Place {
    /// Never there, or nothing of it is left.
    Nowhere,
    Hot {
        stamp: Stamp,
        rid: Rid,
        row: Vec<u8>,
        spot: Spot,
        /// In which view it was found ([`Tablet::is_current`]).
        view: u64,
    },
    /// Live in a file: nobody has marked it.
    Cold { file: Arc<FileEntry>, ordinal: u32, stamp: Stamp, view: u64 },
    /// Deleted by this writer.
    Deleted { stamp: Stamp },
    /// In a file that a transaction registered and has not decided.
    Pending { txn: TxnId },
}

/// What an occurrence of a key in a file is.
enum Judged {
    Newest(Stamp),
    /// Registered by a transaction that has not decided it.
    Pending(TxnId),
}

/// Whose undecided files a search minds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Batches {
    All,
    Own,
    None,
}

impl Tablet {
    pub fn new(id: TabletId, table: ObjectId, files: Vec<Arc<FileEntry>>, next_rid: Rid) -> Tablet {
        Tablet {
            id,
            table,
            hot: HotTablet::new(),
            mirror: Mirror::default(),
            latch: RwLock::new(()),
            view: arc_swap::ArcSwap::from_pointee(ReadView::new(ViewNo(1), files)),
            past: Mutex::default(),
            next_rid: AtomicU64::new(next_rid.0),
            relieved_upto: AtomicU64::new(0),
            moving: Mutex::new(()),
            merging: Mutex::new(()),
            large_changes: AtomicUsize::new(0),
            locate: locate::Locate::default(),
            forwards: Mutex::default(),
        }
    }

    /// Pins the current view.
    pub fn view(&self) -> Arc<ReadView> {
        self.view.load_full()
    }

    /// Which view is the current one.
    pub fn view_id(&self) -> u64 {
        self.view.load().id
    }

    /// Whether a large change is under way ([`Undisturbed`]).
    pub fn is_undisturbed(&self) -> bool {
        self.large_changes.load(Ordering::Relaxed) > 0
    }

    /// Whether nothing has moved since this view was looked at. True as long as the caller holds `latch`.
    pub fn is_current(&self, view: u64) -> bool {
        self.view.load().id == view
    }

    /// A number that no other switch reaches while a move marks its rows.
    pub fn number_of_move(&self) -> ViewNo {
        ViewNo(self.view.load().number.0 + VIEWS_PER_MOVE)
    }

    /// Makes the next view. The caller holds `latch` exclusively.
    pub fn switch_view(&self, files: Vec<Arc<FileEntry>>) {
        let next = ViewNo(self.view.load().number.0 + 1);
        self.switch_view_to(next, files);
    }

    /// Makes the view of a move for which rows were marked. The caller holds `latch` exclusively.
    pub fn switch_view_to(&self, number: ViewNo, files: Vec<Arc<FileEntry>>) {
        // Locked over both steps: `oldest_view` must not see the new view without the old one in `past`.
        let mut past = self.past.lock();
        let old = self.view.load_full();
        assert!(number > old.number, "view {number:?} of {} comes after {:?}", self.id, old.number);
        past.push((old.number, Arc::downgrade(&old)));
        self.view.store(Arc::new(ReadView::new(number, files)));
    }

    /// The oldest view that somebody may still read through.
    pub fn oldest_view(&self) -> ViewNo {
        let mut past = self.past.lock();
        let current = self.view.load().number;
        past.retain(|(_, view)| view.strong_count() > 0);
        past.first().map_or(current, |(number, _)| *number)
    }

    /// A region: `count` consecutive row ids that one batch owns.
    pub fn take_region(&self, count: u64) -> Rid {
        Rid(self.next_rid.fetch_add(count, Ordering::Relaxed))
    }

    pub fn next_rid(&self) -> Rid {
        Rid(self.next_rid.load(Ordering::Relaxed))
    }

    /// Replay met this row id: later ones are above it.
    pub fn met_rid(&self, rid: Rid) {
        self.next_rid.fetch_max(rid.0 + 1, Ordering::Relaxed);
    }

    /// Finds the newest version of a key. The caller holds `latch` (shared is enough) if it acts on the
    /// answer, and the row's lock if it must stay true. `own` registers are not pending. A row that is there comes
    /// before a batch that is undecided: the batch will be refused.
    pub fn find(&self, key: &Key, own: Option<TxnId>, txns: &dyn TxnStates) -> basalt_cold::Result<Place> {
        self.search(key, own, txns, Batches::All)
    }

    /// The same for a holder of the row's lock who found it settled: a batch that lists the key since then
    /// waits for that lock, and is looked past.
    pub fn find_settled(&self, key: &Key, own: Option<TxnId>, txns: &dyn TxnStates) -> basalt_cold::Result<Place> {
        self.search(key, own, txns, Batches::Own)
    }

    /// Apart from all batches that are undecided, `own` ones too.
    pub fn find_beside_batches(
        &self,
        key: &Key,
        own: Option<TxnId>,
        txns: &dyn TxnStates,
    ) -> basalt_cold::Result<Place> {
        self.search(key, own, txns, Batches::None)
    }

    fn search(&self, key: &Key, own: Option<TxnId>, txns: &dyn TxnStates, met: Batches) -> basalt_cold::Result<Place> {
        let (mut deleted, mut pending) = (None, None);
        let view = self.view.load();
        // Marked for a view to come: still here.
        let is_here = |(newest, _): &(Newest, Spot)| newest.moved_at.is_none_or(|moved_at| moved_at > view.number);
        if let Some((newest, spot)) = self.hot.find_newest(key.as_bytes()).filter(is_here) {
            match newest.row {
                Some(row) => return Ok(Place::Hot { stamp: newest.stamp, rid: newest.rid, row, spot, view: view.id }),
                // Files hold older versions marked; a batch may have brought the key back since.
                None => deleted = Some(newest.stamp),
            }
        }
        for place in self.places(&view, key.as_bytes()) {
            let (position, ordinal) = place?;
            let file = &view.files[position];
            if met == Batches::None && own.is_some() && file.undecided() == own {
                continue;
            }
            match self.judge(file, ordinal, own, txns, &mut deleted)? {
                None => {}
                Some(Judged::Pending(txn)) => pending = pending.or(Some(txn)),
                Some(Judged::Newest(stamp)) => {
                    return Ok(Place::Cold { file: file.clone(), ordinal, stamp, view: view.id });
                }
            }
        }
        if let Some(txn) = pending.filter(|_| met == Batches::All) {
            return Ok(Place::Pending { txn });
        }
        Ok(deleted.map_or(Place::Nowhere, |stamp| Place::Deleted { stamp }))
    }

    /// Whether this occurrence of a key in a file is its newest version; if it is deleted, notes by whom.
    fn judge(
        &self,
        file: &Arc<FileEntry>,
        ordinal: u32,
        own: Option<TxnId>,
        txns: &dyn TxnStates,
        deleted: &mut Option<Stamp>,
    ) -> basalt_cold::Result<Option<Judged>> {
        let mut committed = None;
        if let Some(txn) = file.undecided()
            && Some(txn) != own
        {
            match txns.state(txn) {
                TxnState::Active => return Ok(Some(Judged::Pending(txn))),
                TxnState::Committed(version) => committed = Some(Stamp::version(version)),
                // Rolled back and about to leave the view, unless it was restamped and retired just now.
                TxnState::Aborted if file.undecided().is_some() => return Ok(None),
                TxnState::Aborted => {}
            }
        }
        Ok(match file.deletes.status(ordinal) {
            None => {
                let stamp = committed.map_or_else(|| file.stamp_of(ordinal).map(|(stamp, _)| stamp), Ok)?;
                Some(Judged::Newest(stamp))
            }
            Some((stamp, _)) => {
                let newer = match (&*deleted, stamp.as_version()) {
                    (None, _) | (_, None) => true,
                    (Some(seen), Some(version)) => seen.as_version().is_some_and(|seen| seen < version),
                };
                if newer {
                    *deleted = Some(stamp);
                }
                None
            }
        })
    }

    /// Notes that `txn` moves the row `from` to another key.
    pub fn leave_forward(&self, from: &Key, txn: TxnId, tablet: TabletId, key: Key) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let forward = Forward { stamp: Stamp::txn(txn), number, tablet, key };
        let mut forwards = self.forwards.lock();
        let of_key = forwards.entry(from.clone()).or_default();
        if of_key.len() == FORWARDS_MAX {
            of_key.pop_front();
        }
        of_key.push_back(forward);
    }

    /// The transaction that left forwards is decided, with a version; or (`None`) it takes the last one back.
    pub fn settle_forward(&self, from: &Key, txn: TxnId, version: Option<Version>) {
        let mut forwards = self.forwards.lock();
        let Some(of_key) = forwards.get_mut(from) else { return };
        let is_own = |forward: &Forward| forward.stamp.as_txn() == Some(txn);
        match version {
            Some(version) => {
                // Nobody else has left any since his first: he holds the key's lock.
                for forward in of_key.iter_mut().rev().take_while(|forward| is_own(forward)) {
                    forward.stamp = Stamp::version(version);
                }
            }
            None => {
                of_key.pop_back_if(|last| is_own(last));
                if of_key.is_empty() {
                    forwards.remove(from);
                }
            }
        }
    }

    /// Where the row that had this key at `snapshot` was moved first, if its key was changed since; or the row that the
    /// forward `after` has led to.
    pub fn follow(&self, from: &Key, snapshot: Version, after: Option<u64>) -> Option<Forward> {
        let forwards = self.forwards.lock();
        let is_later = |forward: &&Forward| {
            forward.stamp.as_version().is_some_and(|version| version > snapshot)
                && after.is_none_or(|after| forward.number > after)
        };
        forwards.get(from)?.iter().find(is_later).cloned()
    }

    /// Drops forwards that no snapshot can ask for any more.
    pub fn sweep_forwards(&self, horizon: Version) {
        let mut forwards = self.forwards.lock();
        forwards.retain(|_, of_key| {
            of_key.retain(|forward| forward.stamp.as_version().is_none_or(|version| version > horizon));
            !of_key.is_empty()
        });
    }

    /// The file place that `txn` has marked for this key, wherever moves have carried the mark.
    pub fn find_mark(&self, key: &Key, txn: TxnId) -> basalt_cold::Result<Option<(Arc<FileEntry>, u32)>> {
        let view = self.view.load();
        for place in self.places(&view, key.as_bytes()) {
            let (position, ordinal) = place?;
            let file = &view.files[position];
            if file.deletes.status(ordinal).is_some_and(|(stamp, _)| stamp.as_txn() == Some(txn)) {
                return Ok(Some((file.clone(), ordinal)));
            }
        }
        Ok(None)
    }
}
