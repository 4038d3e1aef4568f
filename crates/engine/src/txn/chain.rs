//! Work of several transactions under one table lock: what is done in each is committed, and nobody alters or drops the
//! table in between (as PostgreSQL's session locks; `docs/decisions/0020-indexes-built-online.md`).

use super::commit::Keep;
use super::{Txn, WriteSet};
use crate::locks::{Mode, Object};
use crate::{Result, TableLock, WaitPolicy};
use basalt_meta::PinReason;
use basalt_types::ObjectId;
use std::sync::Arc;

impl Txn {
    /// Commits without waiting for the disk, and begins another transaction of the same owner: it has the table locks of
    /// this one, and no other. Whoever commits the last one waits for all of them.
    pub fn commit_and_chain(&mut self) -> Result<()> {
        let engine = self.engine.clone();
        match self.decide(Keep::Tables)? {
            Some((version, _)) => self.note_met(version),
            None => {
                self.undo_all();
                engine.locks.release_all_but_tables(self.owner);
            }
        }
        engine.log.flush_soon();
        self.begin_again();
        basalt_sched::failpoint::hit("chain-committed");
        Ok(())
    }

    fn begin_again(&mut self) {
        (self.id, self.seq, self.operations) = (None, 1, 0);
        self.writes = WriteSet::default();
        self.catalog_edits.clear();
        self.edits_over.clear();
        self.own_catalog = None;
        self.looking = None;
        self.unlooked.clear();
        self.marking.clear();
        self.consequences.clear();
        (self.last_inserted, self.unread, self.ended) = (None, false, false);
        // What the catalog's tables hold is seen, durable or not.
        let catalog = self.engine.catalog_at_hand().committed;
        self.note_met(catalog);
        self.pin = Arc::new(self.engine.pin(PinReason::Transaction, self.met()));
    }

    /// Waits until all have ended who have a lock on a table now that does not go with `mode`. Who takes one later knows
    /// the catalog of now.
    pub async fn wait_for_lockers(&mut self, table: ObjectId, mode: TableLock, wait: WaitPolicy) -> Result<()> {
        let engine = self.engine.clone();
        for other in engine.locks.holders_against(self.owner, &Object::Table(table), Mode::from(mode)) {
            engine.wait_for_end(self.owner, other, wait).await?;
        }
        let last = engine.order.take_turn().last();
        self.note_met(last);
        Ok(())
    }
}
