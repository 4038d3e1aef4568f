//! Columns of hot rows, kept while nothing changes: rows that are written seldom stay in rows, but are not decoded again
//! by each query that scans them.
//!
//! The keys of a tablet are cut into stripes of about a batch of rows each, at which workers read as they read pages of a
//! file. What a scan finds in a stripe is kept if all later readers find the same there ([`RangeState::plain_since`]), if the scan before it found nothing changed either, and if nothing is until it has ended. It serves
//! readers of that snapshot or a later one for as long as no page that the stripe reaches is touched. Whoever writes
//! touches before it can be seen, as moves out of hot do; a stripe that is written between any two scans is never kept,
//! and costs the others nothing.
//!
//! Source: DESIGN 5, Hot.

use arrow_array::Array;
use basalt_hot::{HotTablet, RangeState};
use basalt_types::vector::Vector;
use basalt_types::{ColumnId, Key, Version};
use parking_lot::Mutex;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Fewer rows take no time.
const KEYS_MIN: usize = if cfg!(test) { 1 } else { 128 };
/// Keys of a stripe: a batch of rows, if all of them are seen.
const STRIPE_KEYS: usize = super::BATCH_ROWS;
/// After so long without a scan nothing is kept any more.
const REST: Duration = Duration::from_secs(60);

/// The mirror of a tablet.
#[derive(Default)]
pub struct Mirror(Mutex<State>);

#[derive(Default)]
struct State {
    /// Of all keys, in their order; none before the first scan.
    stripes: Vec<Stripe>,
    /// How many keys there were when they were cut.
    keys: usize,
    last_read: Duration,
}

struct Stripe {
    /// `None`: it is the first one, and begins before all keys.
    from: Option<Key>,
    left: Left,
}

/// What scans have left of a stripe.
enum Left {
    Nothing,
    /// One has been here when so many changes had been made: if nothing is touched until the next, it is worth keeping.
    Scanned(u64),
    Kept(Arc<Kept>),
}

struct Kept {
    columns: Arc<Columns>,
    /// From this version on readers find them.
    since: Version,
    /// It holds as long as nothing is touched that had not been when so many changes had been made.
    changes: AtomicU64,
    _charge: Charge,
}

/// The keys of a stripe.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRange {
    from: Option<Key>,
    /// `None`: it ends behind all keys.
    to: Option<Key>,
}

/// Columns of all rows, batch by batch.
#[derive(Clone, Default)]
pub struct Columns(Vec<Batch>);

#[derive(Clone)]
struct Batch {
    rows: usize,
    columns: Vec<(ColumnId, Vector)>,
}

/// What a scan does with what is kept of its stripe.
pub enum Use {
    Nothing,
    /// Batches from this one on are there.
    Read(Arc<Columns>, usize),
    Keep(Keeping),
}

/// What a scan has found so far.
pub struct Keeping {
    /// As in [`Kept`].
    changes: u64,
    since: Version,
    found: Columns,
}

/// What the mirrors of all tablets may take.
pub struct MirrorBudget {
    used: AtomicUsize,
    max: usize,
}

/// Given back when it is dropped.
struct Charge {
    budget: Arc<MirrorBudget>,
    bytes: usize,
}

impl Mirror {
    /// The stripes of a tablet, whose parts a scan reads one by one.
    pub fn stripes(&self, hot: &HotTablet) -> Vec<KeyRange> {
        let keys = hot.keys();
        if keys < KEYS_MIN {
            return vec![KeyRange::default()];
        }
        let mut state = self.0.lock();
        if keys < state.keys / 2 {
            *state = State::default();
        }
        if state.stripes.is_empty() || keys > state.keys + state.keys / 4 + STRIPE_KEYS {
            state.cut(hot, keys);
        }
        (0..state.stripes.len()).map(|at| state.range(at)).collect()
    }

    /// How a scan of these columns goes about a stripe.
    pub fn begin(
        &self,
        range: &KeyRange,
        columns: &[ColumnId],
        snapshot: Version,
        now: Duration,
        hot: &HotTablet,
    ) -> Use {
        let (kept, scanned) = {
            let mut state = self.0.lock();
            let Some(at) = state.find(range) else { return Use::Nothing };
            state.last_read = now;
            match &state.stripes[at].left {
                Left::Nothing => (None, None),
                Left::Scanned(changes) => (None, Some(*changes)),
                Left::Kept(kept) => (Some(kept.clone()), None),
            }
        };
        let kept = kept.filter(|kept| kept.holds(range, hot));
        if let Some(kept) = &kept {
            // An old reader leaves alone what serves the others.
            if kept.since > snapshot {
                return Use::Nothing;
            }
            if kept.columns.has(columns) {
                return Use::Read(kept.columns.clone(), 0);
            }
        }
        let RangeState { touched, changes, plain_since } = range.state(hot);
        let quiet = kept.is_some() || scanned.is_some_and(|then| touched <= then);
        match plain_since {
            Some(since) if quiet && since <= snapshot => {
                Use::Keep(Keeping { changes, since, found: Columns::default() })
            }
            _ => {
                let mut state = self.0.lock();
                if let Some(at) = state.find(range) {
                    state.stripes[at].left = Left::Scanned(changes);
                }
                Use::Nothing
            }
        }
    }

    /// Keeps what a scan has found, beside what others have found of the same rows.
    pub fn keep(&self, range: &KeyRange, keeping: Keeping, hot: &HotTablet, budget: &Arc<MirrorBudget>) {
        let Keeping { changes, mut since, found } = keeping;
        let now = range.state(hot);
        if now.touched > changes {
            return;
        }
        let mut columns = found.compacted();
        let mut state = self.0.lock();
        let Some(at) = state.find(range) else { return };
        if let Left::Kept(kept) = &state.stripes[at].left
            && now.touched <= kept.changes.load(Ordering::Relaxed)
        {
            columns.take_over(&kept.columns);
            since = since.max(kept.since);
        }
        let Some(charge) = budget.charge(columns.bytes()) else { return };
        let kept = Kept { columns: Arc::new(columns), since, changes: AtomicU64::new(now.changes), _charge: charge };
        state.stripes[at].left = Left::Kept(Arc::new(kept));
    }

    /// Lets go of what nobody has read for a while.
    pub fn rest(&self, now: Duration) {
        let mut state = self.0.lock();
        if now.saturating_sub(state.last_read) > REST {
            *state = State::default();
        }
    }

    /// How many stripes are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.0.lock().stripes.iter().filter(|stripe| matches!(stripe.left, Left::Kept(_))).count()
    }
}

impl State {
    /// Cuts stripes that have become large; others stay.
    fn cut(&mut self, hot: &HotTablet, keys: usize) {
        if self.stripes.is_empty() {
            self.stripes.push(Stripe { from: None, left: Left::Nothing });
        }
        let mut cut = Vec::with_capacity(keys / STRIPE_KEYS + 1);
        for at in 0..self.stripes.len() {
            let KeyRange { mut from, to } = self.range(at);
            let mut left = std::mem::replace(&mut self.stripes[at].left, Left::Nothing);
            let cut_of = |from: &Option<Key>| hot.cut_behind(from_bound(from), STRIPE_KEYS);
            while let Some(next) = cut_of(&from).filter(|next| to.as_ref().is_none_or(|to| next < to)) {
                cut.push(Stripe { from: from.replace(next), left: Left::Nothing });
                left = Left::Nothing;
            }
            cut.push(Stripe { from, left });
        }
        (self.stripes, self.keys) = (cut, keys);
    }

    fn range(&self, at: usize) -> KeyRange {
        let to = self.stripes.get(at + 1).and_then(|next| next.from.clone());
        KeyRange { from: self.stripes[at].from.clone(), to }
    }

    /// `None`: it has been cut otherwise since.
    fn find(&self, range: &KeyRange) -> Option<usize> {
        let at = self.stripes.binary_search_by(|stripe| stripe.from.cmp(&range.from)).ok()?;
        let to = self.stripes.get(at + 1).and_then(|next| next.from.as_ref());
        (to == range.to.as_ref()).then_some(at)
    }
}

fn from_bound(from: &Option<Key>) -> Bound<&[u8]> {
    from.as_ref().map_or(Bound::Unbounded, |key| Bound::Included(key.as_bytes()))
}

impl KeyRange {
    pub fn from(&self) -> Bound<Key> {
        self.from.clone().map_or(Bound::Unbounded, Bound::Included)
    }

    pub fn to(&self) -> Bound<&[u8]> {
        self.to.as_ref().map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_bytes()))
    }

    fn state(&self, hot: &HotTablet) -> RangeState {
        hot.state_of(from_bound(&self.from), self.to())
    }
}

impl Kept {
    /// Whether readers still find this.
    fn holds(&self, range: &KeyRange, hot: &HotTablet) -> bool {
        let known = self.changes.load(Ordering::Relaxed);
        if hot.changes() == known {
            return true;
        }
        let RangeState { touched, changes, .. } = range.state(hot);
        let holds = touched <= known;
        if holds {
            // Next time it need not be looked for.
            self.changes.fetch_max(changes, Ordering::Relaxed);
        }
        holds
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

    fn compacted(self) -> Columns {
        let of = |batch: Batch| Batch {
            rows: batch.rows,
            columns: batch.columns.into_iter().map(|(id, column)| (id, column.compacted())).collect(),
        };
        Columns(self.0.into_iter().map(of).collect())
    }

    /// Adds columns of others that are cut into the same batches.
    fn take_over(&mut self, others: &Columns) {
        let alike = self.0.len() == others.0.len();
        if !alike || self.0.iter().zip(&others.0).any(|(own, other)| own.rows != other.rows) {
            return;
        }
        for (own, other) in self.0.iter_mut().zip(&others.0) {
            for (id, column) in &other.columns {
                if own.column(*id).is_none() {
                    own.columns.push((*id, column.clone()));
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.0.iter().flat_map(|batch| &batch.columns).map(|(_, column)| bytes_of(column)).sum()
    }
}

impl Batch {
    fn column(&self, id: ColumnId) -> Option<&Vector> {
        self.columns.iter().find(|(own, _)| *own == id).map(|(_, column)| column)
    }
}

impl Keeping {
    pub fn add(&mut self, ids: &[ColumnId], rows: usize, columns: &[Vector]) {
        let columns = ids.iter().copied().zip(columns.iter().cloned()).collect();
        self.found.0.push(Batch { rows, columns });
    }
}

impl MirrorBudget {
    pub fn new(max: usize) -> MirrorBudget {
        MirrorBudget { used: AtomicUsize::new(0), max }
    }

    pub fn bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed) as u64
    }

    pub fn bytes_max(&self) -> u64 {
        self.max as u64
    }

    /// `None`: there is no more.
    fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let grown = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).ok()?;
        Some(Charge { budget: self.clone(), bytes })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn bytes_of(column: &Vector) -> usize {
    match column {
        Vector::Ints(ints) => ints.values.bytes(),
        Vector::Flat(values) => values.get_array_memory_size(),
        Vector::Codes(codes) => codes.codes.len() * size_of::<u32>() + codes.dictionary.get_array_memory_size(),
    }
}
