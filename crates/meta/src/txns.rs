//! The transaction table: what has become of a writer.
//!
//! Commit sets one entry here and thereby decides every row of the transaction; rows are restamped
//! afterwards and the entry is then retired. An id that is not here is aborted, or was retired after all
//! its rows were restamped: whoever meets an unknown id reads the stamp once more before believing it
//! aborted, or holds the latch under which the stamp would be rewritten. A committed entry whose rows could not all be
//! restamped stays until the restart.

use basalt_types::{Lsn, TxnId, TxnState, TxnStates, Version};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};

const SHARDS: usize = 16;

#[derive(Default)]
pub struct TxnTable {
    shards: [RwLock<HashMap<TxnId, TxnState>>; SHARDS],
    /// Undecided writers with a position at or before their first log record.
    first_lsn: Mutex<BTreeMap<TxnId, Lsn>>,
}

impl TxnTable {
    fn shard(&self, txn: TxnId) -> &RwLock<HashMap<TxnId, TxnState>> {
        &self.shards[txn.0 as usize % SHARDS]
    }

    /// Enters a writer. `log_end` is read under the table's lock, so that a checkpoint either sees the
    /// writer or has taken its own position before the writer's first record.
    pub fn begin(&self, txn: TxnId, log_end: impl FnOnce() -> Lsn) {
        self.shard(txn).write().insert(txn, TxnState::Active);
        let mut first_lsn = self.first_lsn.lock();
        let at = log_end();
        first_lsn.insert(txn, at);
    }

    /// Decides: every row of `txn` is of `version` from now on.
    pub fn commit(&self, txn: TxnId, version: Version) {
        self.shard(txn).write().insert(txn, TxnState::Committed(version));
        self.first_lsn.lock().remove(&txn);
    }

    /// Forgets: all rows are restamped, or undone.
    pub fn retire(&self, txn: TxnId) {
        self.first_lsn.lock().remove(&txn);
        self.shard(txn).write().remove(&txn);
    }

    /// The least position that an undecided writer's records may start at.
    pub fn least_first_lsn(&self) -> Option<Lsn> {
        self.first_lsn.lock().values().min().copied()
    }

    pub fn active_count(&self) -> usize {
        self.first_lsn.lock().len()
    }
}

impl TxnStates for TxnTable {
    fn state(&self, txn: TxnId) -> TxnState {
        self.shard(txn).read().get(&txn).copied().unwrap_or(TxnState::Aborted)
    }
}
