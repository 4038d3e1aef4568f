//! The table scan: morsels in one queue.
//!
//! All morsels are pinned at one moment (`engine::ReadContext::scan`), so workers may come and go: each takes
//! the next morsel when it has finished its last, and a slow one holds nobody up. A worker that rests keeps
//! what its morsel has pinned, and nothing computes for it meanwhile.

use crate::Stop;
use crate::error::{Error, Result};
use crate::stop::check;
use basalt_engine::{Ahead, Block, ReadContext, ScanBatch, ScanSpec, ScanStats, TabletScan};
use basalt_types::{ColumnId, ColumnPredicate};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A scan that several workers share.
pub struct Scan {
    morsels: Mutex<Morsels<TabletScan>>,
    stats: Arc<ScanStats>,
    /// What storage skips by.
    predicates: Vec<ColumnPredicate>,
    stop: Stop,
}

struct Morsels<T> {
    queue: VecDeque<T>,
    /// Of how many of the first ones the store has been told.
    told: usize,
    /// Of how many it is to be told behind the one that is taken: who stops early has not asked for many.
    window: usize,
}

/// Morsels of which the store is told before anybody takes them. Those of a large table are row groups.
const AHEAD_MORSELS: usize = 6;

/// One worker's hold on a scan: the morsel that it is reading.
pub struct Worker {
    scan: Arc<Scan>,
    morsel: Option<TabletScan>,
}

impl Scan {
    /// Pins the table and cuts it into morsels. Workers end with [`Error::Stopped`] once `stop` is set.
    pub fn start(read: &ReadContext, spec: ScanSpec, stop: Stop) -> Result<Arc<Scan>> {
        let predicates = spec.predicates.clone();
        let (morsels, stats) = read.scan(spec)?;
        Ok(Arc::new(Scan { morsels: Mutex::new(Morsels::new(morsels)), stats, predicates, stop }))
    }

    pub fn worker(self: &Arc<Scan>) -> Worker {
        Worker { scan: self.clone(), morsel: None }
    }

    pub fn stats(&self) -> &Arc<ScanStats> {
        &self.stats
    }

    /// In the order in which blocks tell of them.
    pub fn predicates(&self) -> &[ColumnPredicate] {
        &self.predicates
    }

    /// The least and greatest values of all pages in a column, ascending, if pages have nothing but these in common.
    pub fn shared_keys(&self, column: ColumnId) -> Result<Option<Vec<i64>>> {
        let mut bounds = Vec::new();
        for morsel in &self.morsels.lock().unwrap_or_else(PoisonError::into_inner).queue {
            let known = bounds.len();
            let are_bounded = morsel.page_bounds(column, &mut bounds)?;
            // Of a table in another order the first few tell.
            if !are_bounded || overlap(&mut bounds[known..]) {
                return Ok(None);
            }
        }
        if overlap(&mut bounds) {
            return Ok(None);
        }
        let mut keys: Vec<i64> = bounds.into_iter().flat_map(|(least, greatest)| [least, greatest]).collect();
        keys.dedup();
        Ok(Some(keys))
    }

    /// Before any worker comes: morsels with the least values of a column come first, or those with the greatest.
    pub fn begin_with(&self, column: ColumnId, greatest: bool) -> Result<()> {
        let morsels = &mut self.morsels.lock().unwrap_or_else(PoisonError::into_inner).queue;
        let mut ranked = Vec::with_capacity(morsels.len());
        for morsel in morsels.drain(..) {
            check()?;
            let mut bounds = Vec::new();
            let is_known = morsel.page_bounds(column, &mut bounds)?;
            let rank = match greatest {
                true => bounds.iter().map(|(_, greatest)| !greatest).min(),
                false => bounds.iter().map(|(least, _)| *least).min(),
            };
            // Nothing is known of the latest rows, which are likely to have the greatest values.
            let unknown = if greatest { i64::MIN } else { i64::MAX };
            ranked.push((rank.filter(|_| is_known).unwrap_or(unknown), morsel));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        morsels.extend(ranked.into_iter().map(|(_, morsel)| morsel));
        Ok(())
    }

    /// Morsels that nobody has taken yet.
    pub fn morsels(&self) -> usize {
        self.morsels.lock().unwrap_or_else(PoisonError::into_inner).queue.len()
    }

    fn next_morsel(&self) -> Option<TabletScan> {
        let (morsel, ahead) = {
            let mut morsels = self.morsels.lock().unwrap_or_else(PoisonError::into_inner);
            morsels.take(TabletScan::ahead)?
        };
        ahead.into_iter().for_each(Ahead::will_read);
        Some(morsel)
    }
}

impl<T> Morsels<T> {
    fn new(morsels: Vec<T>) -> Morsels<T> {
        Morsels { queue: morsels.into(), told: 0, window: 1 }
    }

    /// The next one, and what the store is to be told of it and of those behind it.
    fn take<A>(&mut self, ahead: impl Fn(&T) -> Option<A>) -> Option<(T, Vec<A>)> {
        let last = self.queue.len().min(self.window + 1).max(self.told);
        let ahead = self.queue.range(self.told..last).filter_map(ahead).collect();
        let morsel = self.queue.pop_front()?;
        self.told = last.saturating_sub(1);
        self.window = (self.window * 2).min(AHEAD_MORSELS);
        Some((morsel, ahead))
    }
}

impl Worker {
    /// The next rows (at least one, at most `engine::BATCH_ROWS`), `None` when no morsel is left. Synchronous;
    /// milliseconds, unless many morsels hold no row that passes.
    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        loop {
            if self.scan.stop.is_set() {
                self.morsel = None;
                return Err(Error::Stopped);
            }
            if self.morsel.is_none() {
                self.morsel = self.scan.next_morsel();
            }
            let Some(morsel) = &mut self.morsel else { return Ok(None) };
            match morsel.next_batch()? {
                None => self.morsel = None,
                Some(batch) if batch.rows == 0 => {}
                Some(batch) => return Ok(Some(batch)),
            }
        }
    }

    /// Hands the next rows to `take`; whether there were any. As [`Worker::next_batch`] otherwise.
    pub fn with_block(&mut self, take: impl FnOnce(Block<'_>) -> Result<()>) -> Result<bool> {
        loop {
            if self.scan.stop.is_set() {
                self.morsel = None;
                return Err(Error::Stopped);
            }
            if self.morsel.is_none() {
                self.morsel = self.scan.next_morsel();
            }
            let Some(morsel) = &mut self.morsel else { return Ok(false) };
            if let Some(block) = morsel.next_block()? {
                return take(block).map(|()| true);
            }
            self.morsel = None;
        }
    }
}

/// Whether some of them have more than their ends in common; sorts them.
fn overlap(bounds: &mut [(i64, i64)]) -> bool {
    bounds.sort_unstable();
    bounds.windows(2).any(|two| two[0].1 > two[1].0)
}

#[cfg(test)]
mod tests {
    use super::{Morsels, overlap};

    #[test]
    fn pages_may_have_their_ends_in_common() {
        assert!(!overlap(&mut []) && !overlap(&mut [(5, 9), (1, 5), (9, 9), (9, 12)]));
        assert!(overlap(&mut [(1, 5), (4, 9)]) && overlap(&mut [(1, 9), (3, 3)]) && overlap(&mut [(1, 2), (1, 2)]));
    }

    #[test]
    fn the_store_is_told_of_each_morsel_once_and_of_ever_more_before_they_are_taken() {
        let mut morsels = Morsels::new((0..30).collect());
        let (mut told, mut ahead_by) = (Vec::new(), Vec::new());
        while let Some((taken, ahead)) = morsels.take(|morsel: &usize| Some(*morsel)) {
            told.extend(ahead);
            assert!(told.contains(&taken), "{taken}");
            ahead_by.push(told.len() - 1 - taken);
        }
        assert_eq!(told, (0..30).collect::<Vec<_>>());
        assert_eq!(ahead_by[..6], [1, 2, 4, 6, 6, 6]);
        assert_eq!(ahead_by[23..], [6, 5, 4, 3, 2, 1, 0]);
        assert!(Morsels::new(Vec::<usize>::new()).take(|_| Some(())).is_none());
    }
}
