use super::*;
use basalt_types::Epoch;

struct Txns;

/// Transactions with an even counter have committed at version 100 + counter, odd ones run.
impl TxnStates for Txns {
    fn state(&self, txn: TxnId) -> TxnState {
        let counter = txn.0 & ((1 << TxnId::COUNTER_BITS) - 1);
        if counter.is_multiple_of(2) { TxnState::Committed(Version(100 + counter)) } else { TxnState::Active }
    }
}

fn txn(counter: u64) -> TxnId {
    TxnId::new(Epoch(1), counter)
}

fn bits(map: &DeleteMap, rows: Range<u32>, read: ReadAt) -> Option<Vec<bool>> {
    map.live(rows, &read, &Txns).map(|live| live.iter().collect())
}

#[test]
fn readers_see_deletions_of_their_past_and_their_own() {
    let map = DeleteMap::new();
    assert_eq!(bits(&map, 0..4, ReadAt::version(Version(50))), None);
    map.mark(0, Stamp::version(Version(10)), 0).unwrap();
    map.mark(1, Stamp::txn(txn(2)), 1).unwrap();
    map.mark(2, Stamp::txn(txn(3)), 1).unwrap();
    assert_eq!(bits(&map, 0..4, ReadAt::version(Version(9))), None);
    assert_eq!(bits(&map, 0..4, ReadAt::version(Version(10))), Some(vec![false, true, true, true]));
    assert_eq!(bits(&map, 0..4, ReadAt::version(Version(102))), Some(vec![false, false, true, true]));
    let own = ReadAt { snapshot: Version(10), own: Some(txn(3)), seq: 2 };
    assert_eq!(bits(&map, 0..4, own), Some(vec![false, true, false, true]));
    assert_eq!(bits(&map, 1..3, own), Some(vec![true, false]));
    assert!(!map.is_deleted(2, &ReadAt { seq: 1, ..own }, &Txns));
}

#[test]
fn a_marked_row_cannot_be_marked_again_until_its_writer_rolls_back() {
    let map = DeleteMap::new();
    map.mark(7, Stamp::txn(txn(3)), 4).unwrap();
    let taken = AlreadyMarked { stamp: Stamp::txn(txn(3)), seq: 4 };
    assert_eq!(map.mark(7, Stamp::txn(txn(5)), 0), Err(taken));
    assert!(!map.unmark(7, txn(5)));
    assert!(map.unmark(7, txn(3)));
    assert_eq!(map.count(), 0);
    map.mark(7, Stamp::txn(txn(5)), 0).unwrap();
    assert!(map.restamp(7, txn(5), Version(20)));
    assert!(!map.restamp(7, txn(5), Version(21)));
    map.prune(Version(19));
    assert_eq!(map.status(7), Some((Stamp::version(Version(20)), 0)));
    map.prune(Version(20));
    assert_eq!(map.status(7), Some((Stamp::version(Version(0)), 0)));
    assert!(map.mark(7, Stamp::txn(txn(7)), 0).is_err());
    assert_eq!((map.stamped().len(), map.folded_count()), (0, 1));
}

#[test]
fn bytes_hold_what_was_decided_at_the_version_and_damage_is_noticed() {
    let map = DeleteMap::new();
    for ordinal in [3, 5, 900] {
        map.mark(ordinal, Stamp::version(Version(u64::from(ordinal))), 0).unwrap();
    }
    map.mark(4, Stamp::txn(txn(2)), 0).unwrap();
    map.mark(6, Stamp::txn(txn(3)), 0).unwrap();
    map.prune(Version(3));
    let bytes = map.to_bytes(Version(102), &Txns);
    let again = DeleteMap::from_bytes(&bytes, 1000, Version(4)).unwrap();
    assert_eq!(again.count(), 3);
    assert_eq!(again.status(3), Some((Stamp::version(Version(0)), 0)));
    assert_eq!(again.status(4), Some((Stamp::version(Version(102)), 0)));
    assert_eq!(again.status(6), None);
    assert!(DeleteMap::from_bytes(&bytes, 5, Version(0)).is_err());
    for cut in 0..bytes.len() {
        assert!(DeleteMap::from_bytes(&bytes[..cut], 1000, Version(0)).is_err());
    }
    for i in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[i] ^= 0x40;
        assert!(DeleteMap::from_bytes(&flipped, 1000, Version(0)).is_err());
    }
}

#[test]
fn a_watcher_is_told_what_changed_but_not_what_was_folded() {
    let map = DeleteMap::new();
    for ordinal in 0..10 {
        map.mark(ordinal, Stamp::txn(txn(2)), 1).unwrap();
    }
    assert_eq!(map.undecided_count(), 10);
    map.watch();
    assert_eq!(map.changed_count(), 0);
    map.mark(20, Stamp::txn(txn(3)), 1).unwrap();
    assert!(map.restamp(4, txn(2), Version(102)));
    assert!(map.unmark(5, txn(2)));
    map.prune(Version(200));
    assert_eq!(map.take_changed().iter().collect::<Vec<_>>(), [4, 5, 20]);
    assert_eq!((map.changed_count(), map.undecided_count(), map.folded_count()), (0, 9, 1));
    assert_eq!(map.folded().iter().collect::<Vec<_>>(), [4]);
    map.unwatch();
    map.mark(30, Stamp::txn(txn(3)), 1).unwrap();
    assert_eq!(map.changed_count(), 0);
}

#[test]
fn a_row_is_given_the_mark_that_it_has_elsewhere() {
    let map = DeleteMap::new();
    map.set(3, Some((Stamp::txn(txn(3)), 7)));
    map.set(4, Some((Stamp::version(Version(9)), 0)));
    map.set(3, Some((Stamp::version(Version(11)), 0)));
    map.set(4, None);
    map.set(5, None);
    assert_eq!((map.count(), map.undecided_count()), (1, 0));
    assert_eq!(map.status(3), Some((Stamp::version(Version(11)), 0)));
}

/// Many marks, so that several holds of the latch are needed.
#[test]
fn pruning_folds_all_that_is_old_enough_and_asks_again_for_the_rest() {
    let map = DeleteMap::new();
    for ordinal in 0..10_000 {
        map.mark(ordinal, Stamp::version(Version(u64::from(ordinal % 7))), 0).unwrap();
    }
    for horizon in [0, 0, 3, 5, 6] {
        map.prune(Version(horizon));
        let left = (0..10_000).filter(|ordinal| ordinal % 7 > horizon).count();
        assert_eq!((map.stamped().len(), map.count()), (left, 10_000), "{horizon}");
    }
}

fn set(ordinals: Range<u32>) -> RoaringBitmap {
    ordinals.collect()
}

#[test]
fn marks_made_many_at_a_time_are_undone_and_decided_together() {
    let map = DeleteMap::new();
    map.mark(3, Stamp::version(Version(10)), 0).unwrap();
    map.mark(5, Stamp::txn(txn(5)), 1).unwrap();
    map.mark(8, Stamp::version(Version(2)), 0).unwrap();
    map.prune(Version(5));
    // Only rows without a mark, whoever made it.
    let fresh = map.mark_many(&set(0..10), Stamp::txn(txn(3)), 2);
    assert_eq!(fresh, set(0..10) - RoaringBitmap::from([3, 5, 8]));
    assert_eq!((map.count(), map.undecided_count(), map.has_many()), (10, 1, true));
    assert!(map.mark_many(&set(0..10), Stamp::txn(txn(7)), 1).is_empty());
    assert_eq!(map.mark(4, Stamp::txn(txn(7)), 0), Err(AlreadyMarked { stamp: Stamp::txn(txn(3)), seq: 2 }));
    assert!(!map.unmark(4, txn(3)) && !map.restamp(4, txn(3), Version(30)));
    let own = ReadAt { snapshot: Version(10), own: Some(txn(3)), seq: 3 };
    assert_eq!(bits(&map, 3..7, own), Some(vec![false, false, true, false]));
    assert_eq!(bits(&map, 6..7, ReadAt { seq: 2, ..own }), None);
    assert_eq!(bits(&map, 6..7, ReadAt::version(Version(200))), None);
    // A second statement, which is undone.
    assert_eq!(map.mark_many(&set(8..20), Stamp::txn(txn(3)), 4), set(10..20));
    assert_eq!((map.unmark_many(&set(10..20), txn(5)), map.unmark_many(&set(10..20), txn(3))), (0, 10));
    assert_eq!((map.status(12), map.count()), (None, 10));
    assert_eq!(map.restamp_many(&fresh, txn(3), Version(50)), 7);
    assert_eq!(map.restamp_many(&fresh, txn(3), Version(51)), 0);
    assert_eq!(map.status(4), Some((Stamp::version(Version(50)), 0)));
    assert_eq!(bits(&map, 3..5, ReadAt::version(Version(49))), Some(vec![false, true]));
    assert_eq!(bits(&map, 3..5, ReadAt::version(Version(50))), Some(vec![false, false]));
    map.prune(Version(49));
    assert!(map.has_many());
    map.prune(Version(50));
    assert_eq!((map.has_many(), map.folded_count(), map.count()), (false, 9, 10));
}

#[test]
fn a_watcher_learns_of_marks_made_many_at_a_time() {
    let map = DeleteMap::new();
    map.watch();
    map.mark_many(&set(0..100), Stamp::txn(txn(3)), 1);
    assert_eq!(map.take_changed(), set(0..100));
    map.restamp_many(&set(0..50), txn(3), Version(20));
    assert_eq!(map.take_changed(), set(0..50));
    map.unmark_many(&set(0..100), txn(3));
    assert_eq!(map.take_changed(), set(50..100));
}

#[test]
fn bytes_hold_marks_made_many_at_a_time_that_are_decided() {
    let map = DeleteMap::new();
    map.mark_many(&set(0..10), Stamp::txn(txn(3)), 1);
    map.restamp_many(&set(0..10), txn(3), Version(20));
    // Committed at 102, not restamped; undecided; decided later.
    map.mark_many(&set(10..20), Stamp::txn(txn(2)), 1);
    map.mark_many(&set(20..30), Stamp::txn(txn(5)), 1);
    map.mark_many(&set(30..40), Stamp::version(Version(200)), 0);
    for (at, deleted) in [(19, 0..0), (20, 0..10), (101, 0..10), (102, 0..20)] {
        let read = DeleteMap::from_bytes(&map.to_bytes(Version(at), &Txns), 40, Version::ZERO).unwrap();
        assert_eq!(read.folded(), set(deleted), "at {at}");
        assert_eq!(read.count(), read.folded_count());
    }
}
