//! A walk over a range of keys in key order: hot and every file that has some of it, merged.
//!
//! For one reader each visible key is in one place only (`hot/tablet.rs`, invariant), so the merge drops nothing. Files
//! whose keys come later are opened when the walk reaches them. Of a file that is not in key order all keys are read then,
//! and the rows of the range are sorted.

use super::{Reading, SeenRow};
use crate::data_file::{ColdRows, DataFile};
use crate::tablet::{FileEntry, ReadView, Tablet};
use crate::{Engine, Result};
use basalt_cold::ROW_GROUP_ROWS;
use basalt_hot::{Reader, Rows};
use basalt_types::{ColumnId, Datum, Key, ReadAt, Stamp, TableDef, TabletId, TxnStates};
use std::cmp::Ordering;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Rows that a source of a walk looks at together: at first, and at most.
const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 1024;
/// At first where hardly any are asked for.
const HINT_MIN: usize = 4;
/// Looks that it takes to find where a range begins in hot, and in a file.
const HOT_LOOKS: usize = 2;
const FILE_LOOKS: usize = 16;
/// Keys that one scan of hot passes over at most.
const HOT_KEYS_MAX: usize = 4096;

/// Keys from `from` up to, and without, `to`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRange {
    pub from: Vec<u8>,
    /// `None`: to the greatest.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys that begin with `prefix`.
    pub fn of_prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { from: prefix.to_vec(), to: behind_prefix(prefix) }
    }

    /// Whether it has some of the keys from `least` to `greatest`, both included.
    pub(crate) fn overlaps(&self, least: &[u8], greatest: &[u8]) -> bool {
        &self.from[..] <= greatest && self.to.as_ref().is_none_or(|to| least < &to[..])
    }
}

/// The least key that is greater than all that begin with `prefix`; `None` if there is none.
pub fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    Ascending,
    Descending,
}

/// Where a [`Walk`] goes, and what it brings.
pub struct WalkSpec<'a> {
    pub table: &'a TableDef,
    /// Of the table.
    pub tablets: &'a [TabletId],
    pub range: KeyRange,
    pub direction: Direction,
    /// Columns that the rows need, ascending.
    pub columns: &'a [ColumnId],
    /// The caller keeps its snapshot pinned.
    pub reading: Reading<'a>,
    /// Whether rows come with their stamps, and whether with their keys.
    pub stamped: bool,
    pub keyed: bool,
    /// How many rows it will take, about; 0 if nobody knows.
    pub rows_hint: usize,
    /// How much it may look at ([`Walk::looked`]) before it ends early.
    pub looks_max: usize,
}

/// A row of a walk.
pub struct WalkedRow<'w> {
    pub tablet: TabletId,
    /// Empty if the walk was not asked for it.
    pub key: &'w [u8],
    /// If the walk was asked for it.
    pub stamp: Option<Stamp>,
    pub row: SeenRow<'w>,
}

/// Gives rows one by one ([`Walk::next_row`]).
pub struct Walk<'a> {
    engine: &'a Engine,
    spec: WalkSpec<'a>,
    open: Vec<Source>,
    /// Files with rows further on; the next one last.
    waiting: Vec<Waiting>,
    /// The source of the row that was given last.
    given: Option<usize>,
    values: Vec<Datum>,
    looked: usize,
    /// The caller knows that there are no more rows.
    ended: bool,
}

struct Waiting {
    tablet: Arc<Tablet>,
    view: Arc<ReadView>,
    file: usize,
    /// No row of it comes before this key.
    bound: Vec<u8>,
}

/// Rows of one place, in the order of the walk.
struct Source {
    tablet: Arc<Tablet>,
    view: Arc<ReadView>,
    chunk: Chunk,
    /// In the chunk.
    at: usize,
    chunk_rows: usize,
}

enum Chunk {
    /// The range that is left, if any.
    Hot { rows: Rows, rest: Option<(Bound<Key>, Bound<Key>)> },
    /// The ordinals that are left; where the range ends among them is seen by the keys. Rows lie in ascending order;
    /// those of the range are the first, or backwards the last.
    /// Where nobody asks for keys, and there is no other source, those are not read.
    File {
        file: Arc<FileEntry>,
        rows: ColdRows,
        ordinals: Vec<u32>,
        within: usize,
        rest: Range<u32>,
        backwards: bool,
        keyed: bool,
    },
    /// All rows of the range in a file that is not in key order: as they lie, and where each comes.
    Unsorted { file: Arc<FileEntry>, rows: ColdRows, ordinals: Vec<u32>, order: Vec<u32> },
}

impl Engine {
    /// Begins a walk. `None`: there is more to look at than it may, in a file that is not in key order.
    pub fn walk<'a>(&'a self, spec: WalkSpec<'a>) -> Result<Option<Walk<'a>>> {
        let values = vec![Datum::Null; spec.table.columns.len()];
        let mut walk = Walk {
            engine: self,
            open: Vec::new(),
            waiting: Vec::new(),
            given: None,
            values,
            looked: 0,
            ended: false,
            spec,
        };
        if walk.spec.range.to.as_ref().is_some_and(|to| *to <= walk.spec.range.from) {
            return Ok(Some(walk));
        }
        for id in walk.spec.tablets {
            let tablet = self.tablet(*id)?;
            let view = tablet.view();
            let mut cold_rows = 0;
            for (at, file) in view.files.iter().enumerate() {
                let Some(bound) = walk.bound_of(file) else { continue };
                cold_rows += u64::from(file.data.rows());
                if !file.data.is_sorted() && file.data.rows() as usize > walk.spec.looks_max {
                    return Ok(None);
                }
                walk.waiting.push(Waiting { tablet: tablet.clone(), view: view.clone(), file: at, bound });
            }
            let (from, to) = (&walk.spec.range.from, &walk.spec.range.to);
            let to = to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(Key::from(&to[..])));
            let rest = Some((Bound::Included(Key::from(&from[..])), to));
            walk.looked += HOT_LOOKS;
            let chunk = Chunk::Hot { rows: Rows::new(), rest };
            let first = match cold_rows {
                0 => walk.first_rows(),
                // As many as come from hot, if rows in the range lie as those of the tablet and these files do.
                _ => {
                    let hot_rows = tablet.hot.rows() as u64;
                    let share = walk.first_rows() as u64 * hot_rows / (hot_rows + cold_rows);
                    (2 * share as usize).clamp(HINT_MIN, walk.first_rows())
                }
            };
            walk.open_source(tablet, view, chunk, first)?;
        }
        let direction = walk.spec.direction;
        walk.waiting.sort_by(|a, b| direction.order(&b.bound, &a.bound));
        Ok(Some(walk))
    }
}

impl Direction {
    /// Of two keys as the walk meets them.
    fn order(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Direction::Ascending => a.cmp(b),
            Direction::Descending => b.cmp(a),
        }
    }
}

impl<'a> Walk<'a> {
    /// Whether keys of its files are left where they are.
    #[cfg(test)]
    pub(crate) fn leaves_keys(&self) -> bool {
        self.open.iter().any(|source| matches!(source.chunk, Chunk::File { keyed: false, .. }))
    }

    /// Keys and places looked at so far, those that the reader does not see included.
    pub fn looked(&self) -> usize {
        self.looked
    }

    /// Whether it ended before its range did.
    pub fn is_spent(&self) -> bool {
        self.looked > self.spec.looks_max
    }

    /// The next row. `None` at the end of the range, or if the walk [is spent](Walk::is_spent).
    pub fn next_row(&mut self) -> Result<Option<WalkedRow<'_>>> {
        if let Some(given) = self.given.take() {
            self.step(given)?;
        }
        let nearest = loop {
            if self.is_spent() {
                return Ok(None);
            }
            let nearest = self.nearest();
            let others = !self.waiting.is_empty();
            let head = nearest.filter(|_| others).map(|nearest| self.open[nearest].key());
            // What is equal may be behind it.
            let is_near = |waiting: &Waiting| match head {
                Some(head) => self.spec.direction.order(&waiting.bound, head).is_le(),
                None => true,
            };
            match self.waiting.pop_if(|waiting| is_near(waiting)) {
                Some(waiting) => self.open_file(waiting)?,
                None => break nearest,
            }
        };
        if self.is_spent() {
            return Ok(None);
        }
        self.given = nearest;
        let Some(nearest) = nearest else {
            self.ended = true;
            return Ok(None);
        };
        let source = &self.open[nearest];
        let (stamp, row) = match &source.chunk {
            Chunk::Hot { rows, .. } => {
                let row = rows.get(source.at);
                (Some(row.stamp), SeenRow::Encoded(row.row))
            }
            Chunk::File { file, rows, ordinals, .. } | Chunk::Unsorted { file, rows, ordinals, .. } => {
                let at = source.place();
                let stamp = self.spec.stamped.then(|| file.stamp_of(ordinals[at])).transpose()?;
                let row = rows.seen(at, self.spec.table, self.spec.columns, &mut self.values);
                (stamp.map(|(stamp, _)| stamp), row)
            }
        };
        let key = if self.spec.keyed { source.key() } else { &[] };
        Ok(Some(WalkedRow { tablet: source.tablet.id, key, stamp, row }))
    }

    fn nearest(&self) -> Option<usize> {
        let order = |a: &usize, b: &usize| self.spec.direction.order(self.open[*a].key(), self.open[*b].key());
        (0..self.open.len()).min_by(order)
    }

    /// Where rows of a file begin for this walk; `None`: it has none in the range.
    fn bound_of(&self, file: &FileEntry) -> Option<Vec<u8>> {
        let (least, greatest) = file.data.key_range()?;
        let KeyRange { from, to } = &self.spec.range;
        if greatest.as_bytes() < &from[..] || to.as_ref().is_some_and(|to| least.as_bytes() >= &to[..]) {
            return None;
        }
        let bound = match (self.spec.direction, to) {
            (Direction::Ascending, _) => least.as_bytes().max(from),
            (Direction::Descending, Some(to)) => greatest.as_bytes().min(to),
            (Direction::Descending, None) => greatest.as_bytes(),
        };
        Some(bound.to_vec())
    }

    fn open_file(&mut self, waiting: Waiting) -> Result<()> {
        let Waiting { tablet, view, file, .. } = waiting;
        let file = view.files[file].clone();
        if !file.sees_uniform(&self.spec.reading.at, &*self.engine.txns) {
            return Ok(());
        }
        if !file.data.is_sorted() {
            return self.open_unsorted(tablet, view, file);
        }
        self.looked += FILE_LOOKS;
        let KeyRange { from, to } = &self.spec.range;
        let backwards = self.spec.direction == Direction::Descending;
        let rest = match (backwards, to) {
            (false, _) => file.data.lower_bound(from)?..file.data.rows(),
            (true, Some(to)) => 0..file.data.lower_bound(to)?,
            (true, None) => 0..file.data.rows(),
        };
        let (rows, ordinals) = (ColdRows::default(), Vec::new());
        let is_alone = self.open.is_empty() && self.waiting.is_empty();
        let keyed = self.spec.keyed || self.spec.reading.noted.is_some() || !is_alone;
        let chunk = Chunk::File { file, rows, ordinals, within: 0, rest, backwards, keyed };
        self.open_source(tablet, view, chunk, self.first_rows())
    }

    fn open_unsorted(&mut self, tablet: Arc<Tablet>, view: Arc<ReadView>, file: Arc<FileEntry>) -> Result<()> {
        let all = file.data.rows();
        self.looked += all as usize;
        if self.is_spent() {
            return Ok(());
        }
        let (range, mut ordinals) = (&self.spec.range, Vec::new());
        for first in (0..all).step_by(ROW_GROUP_ROWS as usize) {
            let seen =
                visible(&file, first..all.min(first + ROW_GROUP_ROWS), &self.spec.reading.at, &*self.engine.txns)?;
            let keys = file.data.keys(first..all.min(first + ROW_GROUP_ROWS))?;
            ordinals.extend(seen.into_iter().filter(|ordinal| {
                let key = keys.get((ordinal - first) as usize);
                range.overlaps(key, key)
            }));
        }
        if ordinals.is_empty() {
            return Ok(());
        }
        let rows = file.data.rows_at(&ordinals, self.spec.columns, true)?;
        let mut order: Vec<u32> = (0..ordinals.len() as u32).collect();
        order.sort_by(|a, b| self.spec.direction.order(rows.key(*a as usize), rows.key(*b as usize)));
        let chunk = Chunk::Unsorted { file, rows, ordinals, order };
        self.open.push(Source { tablet, view, chunk, at: 0, chunk_rows: CHUNK_MAX });
        Ok(())
    }

    /// Rows that a source looks at first, if all come from there.
    fn first_rows(&self) -> usize {
        match self.spec.rows_hint {
            0 => CHUNK_MIN,
            hint => hint.clamp(HINT_MIN, CHUNK_MAX),
        }
    }

    fn open_source(&mut self, tablet: Arc<Tablet>, view: Arc<ReadView>, chunk: Chunk, chunk_rows: usize) -> Result<()> {
        let mut source = Source { tablet, view, chunk, at: 0, chunk_rows };
        if source.fill(self.engine, &self.spec, &mut self.looked)? {
            source.chunk_rows = source.chunk_rows.max(self.first_rows());
            self.open.push(source);
        }
        Ok(())
    }

    /// Past a row that was given.
    fn step(&mut self, given: usize) -> Result<()> {
        let source = &mut self.open[given];
        source.at += 1;
        if source.at == source.chunk.rows() && !source.fill(self.engine, &self.spec, &mut self.looked)? {
            self.open.swap_remove(given);
        }
        Ok(())
    }
}

/// What was walked over has been read.
impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let Some(noted) = self.spec.reading.noted else { return };
        let mut range = std::mem::take(&mut self.spec.range);
        if let (false, Some(given)) = (self.ended, self.given) {
            let last = self.open[given].key().to_vec();
            match self.spec.direction {
                // Up to this key, and no further than the least one behind it.
                Direction::Ascending => range.to = Some([&last[..], &[0]].concat()),
                Direction::Descending => range.from = last,
            }
        }
        for tablet in self.spec.tablets {
            noted.note_range(*tablet, range.clone());
        }
    }
}

impl Source {
    fn key(&self) -> &[u8] {
        match &self.chunk {
            Chunk::Hot { rows, .. } => rows.get(self.at).key,
            Chunk::File { rows, .. } | Chunk::Unsorted { rows, .. } => rows.key(self.place()),
        }
    }

    /// Where the row at hand lies among those of the chunk.
    fn place(&self) -> usize {
        match &self.chunk {
            Chunk::File { ordinals, backwards: true, .. } => ordinals.len() - 1 - self.at,
            Chunk::Unsorted { order, .. } => order[self.at] as usize,
            Chunk::Hot { .. } | Chunk::File { .. } => self.at,
        }
    }

    /// Looks at the next rows. False: there are none, or the walk is spent.
    fn fill(&mut self, engine: &Engine, spec: &WalkSpec<'_>, looked: &mut usize) -> Result<bool> {
        let txns = &*engine.txns;
        self.at = 0;
        loop {
            if *looked > spec.looks_max {
                return Ok(false);
            }
            match &mut self.chunk {
                // It has given all that it has.
                Chunk::Unsorted { .. } => return Ok(false),
                Chunk::Hot { rows, rest } => {
                    rows.clear();
                    let Some((from, to)) = rest.take() else { return Ok(false) };
                    let reader = Reader { at: spec.reading.at, view: self.view.number, txns };
                    let bounds = (from.as_ref().map(Key::as_bytes), to.as_ref().map(Key::as_bytes));
                    *rest = match spec.direction {
                        Direction::Ascending => {
                            let last = self.tablet.hot.scan(bounds.0, bounds.1, &reader, self.chunk_rows, rows);
                            last.map(|last| (Bound::Excluded(last), to))
                        }
                        Direction::Descending => {
                            let last = self.tablet.hot.scan_back(bounds.0, bounds.1, &reader, self.chunk_rows, rows);
                            last.map(|last| (from, Bound::Excluded(last)))
                        }
                    };
                    // What ends before it is full has passed over many keys.
                    *looked += if rest.is_some() && rows.len() < self.chunk_rows { HOT_KEYS_MAX } else { rows.len() };
                }
                Chunk::File { file, rows, ordinals, within, rest, backwards, keyed } => {
                    *within = 0;
                    if rest.start >= rest.end {
                        return Ok(false);
                    }
                    let count = rest.len().min(self.chunk_rows) as u32;
                    let next = if *backwards { rest.end - count..rest.end } else { rest.start..rest.start + count };
                    *rest = if *backwards { rest.start..next.start } else { next.end..rest.end };
                    *looked += next.len();
                    *ordinals = visible(file, next, &spec.reading.at, txns)?;
                    let KeyRange { from, to } = &spec.range;
                    let before = |rows: &ColdRows, key: &[u8]| match *keyed {
                        true => Ok(rows.before(key)),
                        false => ordinals_before(&file.data, ordinals, key, *backwards),
                    };
                    *rows = file.data.rows_at(ordinals, spec.columns, *keyed)?;
                    let beyond = match (*backwards, to) {
                        (true, _) => before(rows, from)?,
                        (false, Some(to)) => ordinals.len() - before(rows, to)?,
                        (false, None) => 0,
                    };
                    *within = ordinals.len() - beyond;
                    if beyond > 0 {
                        *rest = 0..0;
                    } else if ordinals.is_empty() {
                        // No key tells where the range ends.
                        match (*backwards, to) {
                            (true, _) => rest.start = rest.start.max(file.data.lower_bound(from)?),
                            (false, Some(to)) => rest.end = rest.end.min(file.data.lower_bound(to)?),
                            (false, None) => {}
                        }
                        *looked += FILE_LOOKS;
                    }
                }
            }
            self.chunk_rows = (self.chunk_rows * 2).min(CHUNK_MAX);
            if self.chunk.rows() > 0 {
                return Ok(true);
            }
        }
    }
}

impl Chunk {
    fn rows(&self) -> usize {
        match self {
            Chunk::Hot { rows, .. } => rows.len(),
            Chunk::File { within, .. } => *within,
            Chunk::Unsorted { order, .. } => order.len(),
        }
    }
}

/// How many of a file's ordinals, which ascend, have keys below this one. Mostly it is the outermost key that tells: the
/// last one, or backwards the first.
fn ordinals_before(data: &DataFile, ordinals: &[u32], key: &[u8], backwards: bool) -> Result<usize> {
    let (Some(first), Some(last)) = (ordinals.first(), ordinals.last()) else { return Ok(0) };
    if backwards && data.key_at(*first)?.as_bytes() >= key {
        return Ok(0);
    }
    if !backwards && data.key_at(*last)?.as_bytes() < key {
        return Ok(ordinals.len());
    }
    let bound = data.lower_bound(key)?;
    Ok(ordinals.partition_point(|ordinal| *ordinal < bound))
}

/// Those ordinals of a file, seen as a whole, whose rows the reader sees.
fn visible(file: &FileEntry, ordinals: Range<u32>, at: &ReadAt, txns: &dyn TxnStates) -> Result<Vec<u32>> {
    let all_older = |data: &DataFile| data.greatest_stamp().is_some_and(|greatest| greatest <= at.snapshot);
    let all_arrived = file.uniform().is_some() || all_older(&file.data);
    let live = file.deletes.live(ordinals.clone(), at, txns);
    let mut seen = Vec::with_capacity(ordinals.len());
    for (position, ordinal) in ordinals.enumerate() {
        let is_live = live.as_ref().is_none_or(|live| live.value(position));
        if is_live && (all_arrived || file.sees_row(ordinal, at, txns)?) {
            seen.push(ordinal);
        }
    }
    Ok(seen)
}
