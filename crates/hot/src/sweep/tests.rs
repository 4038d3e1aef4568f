use super::*;
use crate::Spot;
use basalt_types::{Epoch, TxnId};

const KEYS: u32 = 30_000;

fn commit(store: &mut Store, version: u64, keys: impl Iterator<Item = u32>, row: Option<&[u8]>) {
    let txn = TxnId::new(Epoch(1), version);
    for key in keys {
        store.push(Spot::UNKNOWN, &key.to_be_bytes(), row, 1, txn, 0);
        store.restamp(Spot::UNKNOWN, &key.to_be_bytes(), txn, Version(version));
    }
}

fn sweep(store: &mut Store, snapshots: &[u64]) -> Swept {
    let snapshots: Vec<Version> = snapshots.iter().copied().map(Version).collect();
    let live = Live { snapshots: &snapshots, oldest_view: ViewNo(0) };
    let mut swept = Swept::default();
    store.queue.begin_round();
    while store.sweep_page(&live, &mut swept) {}
    swept
}

/// Pages with marks, and those of them that a sweep would pass over.
fn quiet(store: &Store, snapshots: &[u64]) -> (usize, usize) {
    let snapshots: Vec<Version> = snapshots.iter().copied().map(Version).collect();
    let live = Live { snapshots: &snapshots, oldest_view: ViewNo(0) };
    let mut at = store.first_place().page;
    let (mut marked, mut quiet) = (0, 0);
    while at != NONE {
        if store.pages[at].has_marks() {
            marked += 1;
            quiet += usize::from(store.is_quiet(at, &live));
        }
        at = store.pages[at].next;
    }
    (marked, quiet)
}

#[test]
fn pages_that_only_an_old_snapshot_holds_are_passed_over_until_it_goes() {
    let mut store = Store::default();
    commit(&mut store, 1, 0..1000, Some(b"old"));
    commit(&mut store, 3, 0..1000, Some(b"new"));
    assert_eq!(sweep(&mut store, &[1, 3]).versions, 0);
    let (marked, passed) = quiet(&store, &[1, 4, 5, 9]);
    assert!(marked > 10 && passed == marked, "{passed} of {marked}");
    assert_eq!(quiet(&store, &[2, 9]).1, 0);
    commit(&mut store, 10, 0..1, Some(b"newer"));
    assert_eq!(quiet(&store, &[1, 10]).1, marked - 1);
    assert_eq!(sweep(&mut store, &[1, 10]).versions, 1);
    assert_eq!(sweep(&mut store, &[10]).versions, 1000);
    store.check();
}

#[test]
fn pages_with_versions_yet_to_be_published_are_looked_at_again() {
    let mut store = Store::default();
    for version in [1, 4, 5] {
        commit(&mut store, version, 0..1000, Some(b"row"));
    }
    // 4 may still be somebody's snapshot, although 3 is the newest now.
    assert_eq!(sweep(&mut store, &[3]).versions, 0);
    assert_eq!(sweep(&mut store, &[3, 9]).versions, 1000);
}

#[test]
fn sparse_pages_are_joined_and_every_key_is_still_found() {
    let mut store = Store::default();
    // Not ascending, so that pages and tree nodes split in the middle.
    commit(&mut store, 1, (0..KEYS).map(|i| i * 7919 % KEYS), Some(&[1; 40]));
    let full = store.pages.len();
    commit(&mut store, 2, (0..KEYS).filter(|key| key % 20 != 0), None);
    let swept = sweep(&mut store, &[2]);
    assert_eq!((swept.keys as u32, store.keys() as u32), (KEYS / 20 * 19, KEYS / 20));
    assert!(full > 500 && store.pages.len() < full / 4, "{} of {full} pages", store.pages.len());
    store.check();
    commit(&mut store, 3, (0..KEYS).map(|i| i * 7919 % KEYS), Some(&[2; 40]));
    store.check();
}
