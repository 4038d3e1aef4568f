//! Carrying deletions from the inputs of a merge to its outputs, while writers go on deleting.
//!
//! All that is marked is copied without a latch; the inputs are watched, so that what changes meanwhile is
//! known and copied again, round after round, until little is left. That little is copied under the latch.
//! Beside the outputs' delete maps a bitmap of decided deletions grows, which the commit record will hold:
//! in the commit turn only the undecided marks are looked at, and they are few or the merge is put off.
//!
//! From the switch of the view on a transaction restamps its marks in the outputs, and is then forgotten. Readers of the
//! view before still read the inputs, and their snapshots may have its commit if that came before the switch: so the
//! last thing under the latch is to restamp there what is committed ([`Carry::decide_inputs`]).

use super::NewPlace;
use crate::tablet::FileEntry;
use basalt_cold::DeleteMap;
use basalt_meta::TxnTable;
use basalt_types::{Stamp, TxnId, TxnState, TxnStates, Version};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Undecided marks that the inputs of a merge may have.
pub(super) const UNDECIDED_MAX: u64 = 16_384;
/// Changes that are left for the latch.
const LATCHED_MAX: u64 = 1024;

/// An undecided mark of an output, and the input and ordinal that it comes from.
struct Undecided {
    txn: TxnId,
    input: usize,
    ordinal: u32,
}

/// Watches files as long as it lives.
pub(super) struct Watch<'a> {
    inputs: &'a [Arc<FileEntry>],
}

impl<'a> Watch<'a> {
    pub fn new(inputs: &'a [Arc<FileEntry>]) -> Watch<'a> {
        inputs.iter().for_each(|file| file.deletes.watch());
        Watch { inputs }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.inputs.iter().for_each(|file| file.deletes.unwatch());
    }
}

pub(super) struct Carry<'a> {
    watch: &'a Watch<'a>,
    places: &'a [Vec<NewPlace>],
    outputs: &'a [Arc<FileEntry>],
    /// Per output.
    decided: Vec<RoaringBitmap>,
    undecided: Vec<BTreeMap<u32, Undecided>>,
}

impl<'a> Carry<'a> {
    /// Copies what is marked now. `dead`: per input, the rows that the merge has left out.
    pub fn new(
        watch: &'a Watch<'a>,
        dead: &[RoaringBitmap],
        places: &'a [Vec<NewPlace>],
        outputs: &'a [Arc<FileEntry>],
    ) -> Carry<'a> {
        let decided = vec![RoaringBitmap::new(); outputs.len()];
        let undecided = outputs.iter().map(|_| BTreeMap::new()).collect();
        let mut carry = Carry { watch, places, outputs, decided, undecided };
        for (input, (file, dead)) in watch.inputs.iter().zip(dead).enumerate() {
            for mark in file.deletes.stamped() {
                carry.set(input, mark.ordinal, Some((mark.stamp, mark.seq)));
            }
            // Marks that every reader has come to see since the merge began.
            for ordinal in file.deletes.folded() - dead {
                carry.set(input, ordinal, Some((Stamp::version(Version::ZERO), 0)));
            }
        }
        carry
    }

    /// Copies what has changed since it was copied last.
    pub fn catch_up(&mut self) {
        for (input, file) in self.watch.inputs.iter().enumerate() {
            for ordinal in file.deletes.take_changed() {
                self.set(input, ordinal, file.deletes.status(ordinal));
            }
        }
    }

    /// Whether so little is left that it can be done while writers wait.
    pub fn is_nearly_done(&self) -> bool {
        let changed: u64 = self.watch.inputs.iter().map(|file| file.deletes.changed_count()).sum();
        let undecided: usize = self.undecided.iter().map(BTreeMap::len).sum();
        changed <= LATCHED_MAX && undecided as u64 <= UNDECIDED_MAX
    }

    /// Per output, the bytes of its delete map as of the commits so far; empty if nothing is deleted. The
    /// caller holds latch and commit turn, and has caught up.
    pub fn delete_maps(&mut self, txns: &TxnTable) -> Vec<Vec<u8>> {
        for (decided, undecided) in self.decided.iter_mut().zip(&self.undecided) {
            // Committed and not restamped yet: that takes the latch.
            let committed = |mark: &Undecided| matches!(txns.state(mark.txn), TxnState::Committed(_));
            decided.extend(undecided.iter().filter(|(_, mark)| committed(mark)).map(|(ordinal, _)| *ordinal));
        }
        let bytes = |deleted: &RoaringBitmap| match deleted.is_empty() {
            true => Vec::new(),
            false => DeleteMap::bytes_of(deleted),
        };
        self.decided.iter().map(bytes).collect()
    }

    /// Restamps marks of the inputs whose transactions have committed. The caller has switched the view, and holds the
    /// latch still: who has committed can restamp none of these marks before, so the table knows them all; and who
    /// commits later has a version above every snapshot with which the inputs are read.
    pub fn decide_inputs(&self, txns: &TxnTable) {
        for mark in self.undecided.iter().flat_map(BTreeMap::values) {
            if let TxnState::Committed(version) = txns.state(mark.txn) {
                self.watch.inputs[mark.input].deletes.restamp(mark.ordinal, mark.txn, version);
            }
        }
    }

    fn set(&mut self, input: usize, ordinal: u32, mark: Option<(Stamp, u32)>) {
        let place = self.places[input][ordinal as usize];
        if place == NewPlace::DROPPED {
            return;
        }
        let (of_input, output, ordinal) = (ordinal, place.output as usize, place.ordinal);
        self.outputs[output].deletes.set(ordinal, mark);
        match mark.map(|(stamp, _)| stamp.as_txn()) {
            None => {
                self.decided[output].remove(ordinal);
                self.undecided[output].remove(&ordinal);
            }
            Some(None) => {
                self.decided[output].insert(ordinal);
                self.undecided[output].remove(&ordinal);
            }
            Some(Some(txn)) => {
                self.decided[output].remove(ordinal);
                self.undecided[output].insert(ordinal, Undecided { txn, input, ordinal: of_input });
            }
        }
    }
}
