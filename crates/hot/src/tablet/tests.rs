use super::*;
use basalt_types::{Epoch, ReadAt, TxnState, TxnStates};
use parking_lot::Mutex;
use std::collections::HashMap;

mod model;
mod threads;

/// The transaction table of a test: a transaction that nobody entered is active.
#[derive(Default)]
struct Table(Mutex<HashMap<TxnId, TxnState>>);

impl TxnStates for Table {
    fn state(&self, txn: TxnId) -> TxnState {
        self.0.lock().get(&txn).copied().unwrap_or(TxnState::Active)
    }
}

fn txn(counter: u64) -> TxnId {
    TxnId::new(Epoch(1), counter)
}

fn commit(hot: &HotTablet, version: u64, changes: &[(&str, Option<&str>)]) {
    for (i, (key, row)) in changes.iter().enumerate() {
        match row {
            Some(row) => hot.put(key.as_bytes(), row.as_bytes(), Rid(i as u64), txn(version), 0),
            None => hot.delete(key.as_bytes(), txn(version), 0),
        }
        hot.restamp(key.as_bytes(), txn(version), Version(version));
    }
}

fn row_at(hot: &HotTablet, key: &str, snapshot: u64, view: u64) -> Lookup {
    let table = Table::default();
    hot.get(key.as_bytes(), &Reader { at: ReadAt::version(Version(snapshot)), view: ViewNo(view), txns: &table })
}

fn text(lookup: Lookup) -> Option<String> {
    match lookup {
        Lookup::Row { row, .. } => Some(String::from_utf8(row).unwrap()),
        _ => None,
    }
}

#[test]
fn a_sweep_keeps_exactly_what_the_snapshot_set_needs() {
    let hot = HotTablet::new();
    for version in 1..=100 {
        commit(&hot, version, &[("k", Some(&version.to_string()))]);
    }
    assert_eq!(hot.undo_versions(), 99);
    let swept = hot.sweep(&[3, 50, 90].map(Version), ViewNo(0));
    // 3 and 50 have their versions; 90 is published, so later snapshots may fall on 91 to 99.
    assert_eq!((swept.versions, hot.undo_versions(), swept.more), (99 - 12, 12, false));
    for snapshot in [3, 50, 90, 95, 100] {
        assert_eq!(text(row_at(&hot, "k", snapshot, 0)), Some(snapshot.to_string()));
    }
    hot.sweep(&[50, 100].map(Version), ViewNo(0));
    assert_eq!(hot.undo_versions(), 1);
    hot.sweep(&[Version(100)], ViewNo(0));
    assert_eq!((hot.undo_versions(), hot.rows()), (0, 1));
}

#[test]
fn a_deletion_goes_when_every_snapshot_sees_it() {
    let hot = HotTablet::new();
    commit(&hot, 1, &[("k", Some("a"))]);
    commit(&hot, 2, &[("k", None)]);
    hot.sweep(&[1, 5].map(Version), ViewNo(0));
    assert_eq!(text(row_at(&hot, "k", 1, 0)), Some("a".into()));
    assert_eq!(row_at(&hot, "k", 5, 0), Lookup::Deleted);
    hot.sweep(&[2, 5].map(Version), ViewNo(0));
    assert!(hot.is_empty());
    assert_eq!(row_at(&hot, "k", 5, 0), Lookup::Absent);
}

#[test]
fn a_moved_row_is_here_for_older_views_and_goes_with_the_last_of_them() {
    let hot = HotTablet::new();
    commit(&hot, 1, &[("a", Some("1")), ("b", Some("2"))]);
    let expected = Stamp::version(Version(1));
    let wrong = Stamp::version(Version(2));
    let rows: [(&[u8], Stamp); 4] = [(b"a", expected), (b"a", expected), (b"b", wrong), (b"c", expected)];
    assert_eq!(hot.mark_moved(&rows, ViewNo(7)), [true, false, false, false]);
    assert_eq!(row_at(&hot, "a", 1, 7), Lookup::Elsewhere);
    assert_eq!(text(row_at(&hot, "a", 1, 6)), Some("1".into()));
    assert_eq!((hot.rows(), hot.keys()), (1, 2));
    hot.sweep(&[Version(1)], ViewNo(6));
    assert_eq!(hot.keys(), 2);
    assert_eq!(hot.sweep(&[Version(1)], ViewNo(7)).keys, 1);
    assert_eq!(row_at(&hot, "a", 1, 7), Lookup::Absent);
}

#[test]
fn loading_replaces_all_that_was_known() {
    let hot = HotTablet::new();
    commit(&hot, 1, &[("a", Some("1"))]);
    commit(&hot, 2, &[("a", Some("2"))]);
    let changes = [("a", Some("three")), ("b", Some("4")), ("c", None)];
    let changes: Vec<Change<'_>> = changes
        .iter()
        .map(|(key, row)| Change { key: key.as_bytes(), row: row.map(str::as_bytes), rid: Rid(9) })
        .collect();
    hot.load_many(&changes, Version(3));
    assert_eq!((hot.rows(), hot.keys(), hot.undo_versions()), (2, 3, 0));
    assert_eq!(text(row_at(&hot, "a", 3, 0)), Some("three".into()));
    assert_eq!(row_at(&hot, "a", 2, 0), Lookup::Absent);
    assert_eq!(row_at(&hot, "c", 3, 0), Lookup::Deleted);
}

#[test]
#[should_panic(expected = "over an undecided version")]
fn writing_over_another_transactions_undecided_version_asserts() {
    let hot = HotTablet::new();
    hot.put(b"k", b"a", Rid(1), txn(1), 0);
    hot.put(b"k", b"b", Rid(1), txn(2), 0);
}

#[test]
fn memory_returns_when_all_rows_have_gone() {
    let hot = HotTablet::new();
    let empty = hot.bytes();
    for i in 0..20_000u64 {
        hot.put(&i.to_be_bytes(), &[7; 90], Rid(i), txn(1), 0);
        hot.restamp(&i.to_be_bytes(), txn(1), Version(1));
    }
    let full = hot.bytes();
    assert!(full > 20_000 * 98 && full < 20_000 * (98 + 81), "{full}");
    for i in 0..20_000u64 {
        hot.delete(&i.to_be_bytes(), txn(2), 0);
        hot.restamp(&i.to_be_bytes(), txn(2), Version(2));
    }
    assert!(hot.bytes() > full);
    while hot.sweep(&[Version(2)], ViewNo(0)).more {}
    assert!(hot.is_empty());
    assert!(hot.bytes() < empty + full / 8, "{} of {full} stay", hot.bytes());
}
