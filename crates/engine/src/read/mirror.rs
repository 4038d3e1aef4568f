//! Columns of hot rows, kept while nothing changes: a small table that is written seldom stays in rows, but is not
//! decoded again by each query that scans it.
//!
//! What a scan finds is kept if, under the latch, every key was a row that all readers from its snapshot on find in hot
//! ([`basalt_hot::HotTablet::changes_of_plain_rows`]), and if nothing was changed until the scan had ended. It serves
//! readers of that snapshot or a later one for as long as nothing is changed. Whoever writes counts as a change before it
//! can be seen, as moves out of hot do; a table that is written between any two scans is never kept.

use arrow_array::Array;
use basalt_types::vector::Vector;
use basalt_types::{ColumnId, Version};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Fewer rows take no time, and more are soon frozen.
const KEYS_MIN: usize = if cfg!(test) { 1 } else { 128 };
const KEYS_MAX: usize = 1 << 16;
/// What is kept of one tablet.
const BYTES_MAX: usize = 4 << 20;
/// After so long without a scan nothing is kept any more.
const REST: Duration = Duration::from_secs(60);

/// The mirror of a tablet, if there is one.
#[derive(Default)]
pub struct Mirror(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Nothing,
    /// A scan has been here when so many changes had been made: the next one is worth keeping.
    Scanned(u64),
    Kept(Kept),
}

struct Kept {
    rows: Arc<Columns>,
    changes: u64,
    /// The snapshot of the scan that found them.
    since: Version,
    last_read: Duration,
}

/// Columns of all rows, batch by batch.
#[derive(Clone, Default)]
pub struct Columns(Vec<Batch>);

#[derive(Clone)]
struct Batch {
    rows: usize,
    columns: Vec<(ColumnId, Vector)>,
}

/// What a scan does with a mirror.
pub enum Use {
    Nothing,
    /// Batches from this one on are there.
    Read(Arc<Columns>, usize),
    Keep(Keeping),
}

/// What a scan has found so far.
pub struct Keeping {
    changes: u64,
    since: Version,
    found: Columns,
    bytes: usize,
}

impl Mirror {
    /// How a scan of these columns goes about it. `changes`: of now; `plain`: the same, if all rows can be kept.
    pub fn begin(
        &self,
        columns: &[ColumnId],
        snapshot: Version,
        now: Duration,
        changes: u64,
        plain: impl FnOnce() -> Option<u64>,
    ) -> Use {
        let mut state = self.0.lock();
        match &mut *state {
            State::Kept(kept) if kept.changes == changes && kept.since <= snapshot => {
                kept.last_read = now;
                if kept.rows.has(columns) {
                    return Use::Read(kept.rows.clone(), 0);
                }
            }
            State::Scanned(then) if *then == changes => {}
            // An old reader leaves alone what serves the others.
            State::Kept(kept) if kept.changes == changes => return Use::Nothing,
            State::Nothing | State::Scanned(_) | State::Kept(_) => {
                *state = State::Scanned(changes);
                return Use::Nothing;
            }
        }
        drop(state);
        match plain() {
            Some(changes) => Use::Keep(Keeping { changes, since: snapshot, found: Columns::default(), bytes: 0 }),
            None => Use::Nothing,
        }
    }

    /// Keeps what a scan has found, beside what others have found of the same rows. `changes`: of now.
    pub fn keep(&self, keeping: Keeping, now: Duration, changes: u64) {
        let Keeping { changes: then, since, mut found, mut bytes } = keeping;
        if then != changes {
            return;
        }
        let mut state = self.0.lock();
        let mut first = since;
        if let State::Kept(kept) = &*state
            && kept.changes == changes
        {
            bytes += found.take_over(&kept.rows);
            first = first.max(kept.since);
        }
        if bytes <= BYTES_MAX {
            *state = State::Kept(Kept { rows: Arc::new(found), changes, since: first, last_read: now });
        }
    }

    /// Lets go of what nobody has read for a while.
    pub fn rest(&self, now: Duration) {
        let mut state = self.0.lock();
        if matches!(&*state, State::Kept(kept) if now.saturating_sub(kept.last_read) > REST) {
            *state = State::Nothing;
        }
    }

    /// Whether something is kept.
    #[cfg(test)]
    pub fn keeps(&self) -> bool {
        matches!(&*self.0.lock(), State::Kept(_))
    }

    /// How many keys are worth it.
    pub fn keys() -> std::ops::RangeInclusive<usize> {
        KEYS_MIN..=KEYS_MAX
    }
}

impl Columns {
    fn has(&self, columns: &[ColumnId]) -> bool {
        let of = |batch: &Batch| columns.iter().all(|id| batch.column(*id).is_some());
        self.0.iter().all(of)
    }

    /// A batch's rows and columns; `None` behind the last.
    pub fn batch(&self, at: usize, columns: &[ColumnId]) -> Option<(usize, Vec<Vector>)> {
        let batch = self.0.get(at)?;
        let columns = columns.iter().map(|id| batch.column(*id).cloned()).collect::<Option<Vec<_>>>()?;
        Some((batch.rows, columns))
    }

    /// Adds columns of others that are cut into the same batches; their bytes.
    fn take_over(&mut self, others: &Columns) -> usize {
        let alike = self.0.len() == others.0.len();
        if !alike || self.0.iter().zip(&others.0).any(|(own, other)| own.rows != other.rows) {
            return 0;
        }
        let mut bytes = 0;
        for (own, other) in self.0.iter_mut().zip(&others.0) {
            for (id, column) in &other.columns {
                if own.column(*id).is_none() {
                    bytes += bytes_of(column);
                    own.columns.push((*id, column.clone()));
                }
            }
        }
        bytes
    }
}

impl Batch {
    fn column(&self, id: ColumnId) -> Option<&Vector> {
        self.columns.iter().find(|(own, _)| *own == id).map(|(_, column)| column)
    }
}

impl Keeping {
    /// Adds a batch; false if that is more than is kept.
    pub fn add(&mut self, ids: &[ColumnId], rows: usize, columns: &[Vector]) -> bool {
        self.bytes += columns.iter().map(bytes_of).sum::<usize>();
        let columns = ids.iter().copied().zip(columns.iter().cloned()).collect();
        self.found.0.push(Batch { rows, columns });
        self.bytes <= BYTES_MAX
    }
}

fn bytes_of(column: &Vector) -> usize {
    match column {
        Vector::Ints(ints) => ints.values.len() * size_of::<i64>(),
        Vector::Flat(values) => values.get_array_memory_size(),
        Vector::Codes(codes) => codes.codes.len() * size_of::<u32>() + codes.dictionary.get_array_memory_size(),
    }
}
