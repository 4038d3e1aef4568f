//! Hot rows as columns: stripe by stripe, which workers share, and chunk by chunk in key order, so that no latch is held
//! between batches.

use super::mirror::{KeyRange, Use};
use super::row_batch::RowBatches;
use super::{BATCH_ROWS, Part, ScanBatch, Shared, TabletScan};
use crate::Result;
use crate::freeze::as_bytes;
use crate::tablet::{ReadView, Tablet};
use basalt_hot::{Reader, Rows};
use basalt_types::Key;
use basalt_types::vector::Vector;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub struct HotScan {
    batches: RowBatches,
    view: Arc<ReadView>,
    stripe: KeyRange,
    /// Where to go on; `None` at the end.
    from: Option<Bound<Key>>,
    rows: Rows,
    /// `None` before the first batch of vectors of a table that is as committed.
    mirror: Option<Use>,
}

pub fn parts(shared: &Arc<Shared>, tablet: &Arc<Tablet>, view: &Arc<ReadView>, out: &mut Vec<TabletScan>) {
    if tablet.hot.is_empty() {
        return;
    }
    // Columns that a transaction adds are filled in as it defines them, and its definition may never be anybody else's.
    let catalog = shared.read.engine.catalog();
    let committed = catalog.table_of(tablet.id).is_some_and(|table| Arc::ptr_eq(table, &shared.spec.table));
    for stripe in tablet.mirror.stripes(&tablet.hot) {
        let scan = HotScan {
            batches: RowBatches::new(shared, tablet),
            view: view.clone(),
            from: Some(stripe.from()),
            stripe,
            rows: Rows::new(),
            mirror: (!committed).then_some(Use::Nothing),
        };
        out.push(TabletScan { part: Part::Hot(Box::new(scan)) });
    }
}

impl HotScan {
    pub fn shared(&self) -> &Shared {
        self.batches.shared()
    }

    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        match self.gather() {
            true => self.batches.batch(&self.rows).map(Some),
            false => Ok(None),
        }
    }

    /// The same as vectors, and how many rows they have.
    pub fn next_vectors(&mut self) -> Result<Option<(usize, Vec<Vector>)>> {
        if let Use::Read(columns, next) = self.mirror() {
            *next += 1;
            let (at, columns) = (*next - 1, columns.clone());
            let shared = self.batches.shared();
            let batch = columns.batch(at, &shared.spec.columns);
            let rows = batch.as_ref().map_or(0, |(rows, _)| *rows as u64);
            shared.stats.hot_rows.fetch_add(rows, Ordering::Relaxed);
            return Ok(batch);
        }
        if !self.gather() {
            self.keep();
            return Ok(None);
        }
        let (rows, columns) = self.batches.vectors(&self.rows)?;
        if let Some(Use::Keep(keeping)) = &mut self.mirror {
            keeping.add(&self.batches.shared().spec.columns, rows, &columns);
        }
        Ok(Some((rows, columns)))
    }

    /// What this scan does with what is kept of its stripe, which is settled before its first rows.
    fn mirror(&mut self) -> &mut Use {
        let (batches, stripe) = (&self.batches, &self.stripe);
        self.mirror.get_or_insert_with(|| {
            let (tablet, shared) = (batches.tablet(), batches.shared());
            let (snapshot, now) = (shared.read.at.snapshot, shared.read.engine.os.clock.monotonic());
            tablet.mirror.begin(stripe, &shared.spec.columns, snapshot, now, &tablet.hot)
        })
    }

    /// Leaves what was found for later scans.
    fn keep(&mut self) {
        if let Some(Use::Keep(keeping)) = self.mirror.replace(Use::Nothing) {
            let (tablet, engine) = (self.batches.tablet(), &self.batches.shared().read.engine);
            tablet.mirror.keep(&self.stripe, keeping, &tablet.hot, &engine.mirrors);
        }
    }

    /// The next rows; whether there are any.
    fn gather(&mut self) -> bool {
        self.rows.clear();
        let shared = self.batches.shared();
        while let Some(from) = self.from.take() {
            let reader = Reader { at: shared.read.at, view: self.view.number, txns: &*shared.read.engine.txns };
            let budget = BATCH_ROWS - self.rows.len();
            let hot = &self.batches.tablet().hot;
            let last = hot.scan(as_bytes(&from), self.stripe.to(), &reader, budget, &mut self.rows);
            self.from = last.map(Bound::Excluded);
            if self.rows.len() >= BATCH_ROWS {
                break;
            }
        }
        shared.stats.hot_rows.fetch_add(self.rows.len() as u64, Ordering::Relaxed);
        !self.rows.is_empty()
    }
}
