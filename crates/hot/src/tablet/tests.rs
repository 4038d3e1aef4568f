use super::*;
use basalt_types::{Epoch, ReadAt, TxnState, TxnStates};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
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
    assert!(full > 20_000 * 98 && full < 20_000 * (98 + 87), "{full}");
    for i in 0..20_000u64 {
        hot.delete(&i.to_be_bytes(), txn(2), 0);
        hot.restamp(&i.to_be_bytes(), txn(2), Version(2));
    }
    assert!(hot.bytes() > full);
    while hot.sweep(&[Version(2)], ViewNo(0)).more {}
    assert!(hot.is_empty());
    assert!(hot.bytes() < empty + full / 8, "{} of {full} stay", hot.bytes());
}

/// What a range holds for a reader of the newest version.
fn held(hot: &HotTablet, from: u32, to: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let table = Table::default();
    let reader = Reader { at: ReadAt::version(Version::MAX), view: ViewNo(0), txns: &table };
    let mut rows = Rows::new();
    let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
    let mut next = Some(Bound::Included(Key::from(&from[..])));
    while let Some(bound) = next {
        let bound = bound.as_ref().map(|key| key.as_bytes());
        next = hot.scan(bound, Bound::Excluded(&to), &reader, usize::MAX, &mut rows).map(Bound::Excluded);
    }
    rows.iter().map(|row| (row.key.to_vec(), row.row.to_vec())).collect()
}

#[test]
fn a_range_that_is_untouched_holds_what_it_held() {
    const KEYS: u32 = 2000;
    let hot = HotTablet::new();
    let mut random = StdRng::seed_from_u64(1);
    let mut draw = |below: u32| random.random_range(0..below);
    let mut kept: Vec<(u32, u32, u64, Vec<_>)> = Vec::new();
    let (mut untouched, mut touched) = (0, 0);
    for version in 1..4000u64 {
        // Now many keys come, now many go, and with them whole pages.
        let going = version / 500 % 2 == 1;
        let first = draw(KEYS);
        for key in first..first + if going { draw(120) } else { draw(20) } {
            let key = key.to_be_bytes();
            match going {
                true => hot.delete(&key, txn(version), 0),
                false => hot.put(&key, &vec![7; draw(60) as usize], Rid(version), txn(version), 0),
            }
            hot.restamp(&key, txn(version), Version(version));
        }
        if draw(4) == 0 {
            while hot.sweep(&[Version(version)], ViewNo(0)).more {}
        }
        kept.retain(|(from, to, since, rows)| {
            let (low, high) = (from.to_be_bytes(), to.to_be_bytes());
            let state = hot.state_of(Bound::Included(&low), Bound::Excluded(&high));
            if state.touched > *since {
                touched += 1;
                return false;
            }
            untouched += 1;
            assert_eq!(*rows, held(&hot, *from, *to), "keys {from} to {to} at {version}");
            state.plain_since.is_some()
        });
        let from = draw(KEYS);
        let to = from + 1 + draw(200);
        let (low, high) = (from.to_be_bytes(), to.to_be_bytes());
        let state = hot.state_of(Bound::Included(&low), Bound::Excluded(&high));
        assert_eq!(state.changes, hot.changes());
        kept.push((from, to, state.changes, held(&hot, from, to)));
    }
    assert!(untouched > 1000 && touched > 1000, "{untouched} {touched}");
}

#[test]
fn a_range_without_keys_does_not_reach_what_lies_behind_it() {
    let hot = HotTablet::new();
    let key = |number: u32| [number.to_be_bytes(), [7; 4]].concat();
    for number in 0..3000 {
        hot.put(&key(number), &[7; 30], Rid(0), txn(1), 0);
    }
    // Of a page it is known from what on it has keys: fewer bytes than its first key has.
    let first = hot.cut_behind(Bound::Unbounded, 500).unwrap();
    let state = || hot.state_of(Bound::Included(&first.as_bytes()[..4]), Bound::Excluded(first.as_bytes()));
    let before = state();
    hot.put(&key(3000), &[7; 30], Rid(0), txn(1), 0);
    assert_eq!(state().touched, before.touched);
    hot.put(&[&first.as_bytes()[..4], &[0]].concat(), &[7; 30], Rid(0), txn(1), 0);
    assert_eq!(state().touched, hot.changes());
}

/// A range may end at what was not its last page's first key when something lay below it there.
#[test]
fn a_page_that_loses_its_first_key_touches_the_range_before_it() {
    let hot = HotTablet::new();
    let key = |number: u32| number.to_be_bytes();
    for number in 0..3000 {
        hot.put(&key(number), &[7; 30], Rid(0), txn(1), 0);
        hot.restamp(&key(number), txn(1), Version(1));
    }
    let first = hot.cut_behind(Bound::Unbounded, 500).unwrap();
    let delete_and_sweep = |version: u64| {
        hot.delete(first.as_bytes(), txn(version), 0);
        hot.restamp(first.as_bytes(), txn(version), Version(version));
        let seen = hot.state_of(Bound::Unbounded, Bound::Excluded(first.as_bytes()));
        while hot.sweep(&[Version(version)], ViewNo(1)).more {}
        seen
    };
    delete_and_sweep(2);
    let next = hot.cut_behind(Bound::Unbounded, 500).unwrap();
    assert!(next > first);
    let state = || hot.state_of(Bound::Unbounded, Bound::Excluded(next.as_bytes()));
    hot.put(first.as_bytes(), &[7; 30], Rid(0), txn(3), 0);
    hot.restamp(first.as_bytes(), txn(3), Version(3));
    let with_it = state();
    delete_and_sweep(4);
    assert!(state().touched > with_it.changes, "{:?}, {with_it:?}", state());
}

#[test]
fn cuts_are_first_keys_of_pages_with_about_as_many_keys_between() {
    let hot = HotTablet::new();
    for i in 0..3000u32 {
        hot.put(&i.to_be_bytes(), &[7; 30], Rid(0), txn(1), 0);
    }
    let (mut from, mut parts) = (Bound::Unbounded, Vec::new());
    loop {
        let bound = from.as_ref().map(|key: &Key| key.as_bytes());
        let cut = hot.cut_behind(bound, 500);
        let to = cut.as_ref().map_or(3000, |key| u32::from_be_bytes(key.as_bytes().try_into().unwrap()));
        parts.push(to);
        match cut {
            Some(key) => from = Bound::Included(key),
            None => break,
        }
    }
    let begins = [0].iter().chain(&parts).copied();
    assert!(begins.zip(&parts).all(|(from, to)| from < *to && to - from <= 500), "{parts:?}");
    assert!((6..=8).contains(&parts.len()) && parts.last() == Some(&3000), "{parts:?}");
}

#[test]
fn rows_are_looked_at_by_their_places() {
    let hot = HotTablet::new();
    let look_at = |places: &[u64]| {
        let mut ids = Vec::new();
        hot.look_at(places, |row| ids.push(u32::from_be_bytes(row[..4].try_into().unwrap())));
        ids
    };
    assert!(look_at(&[0, 1, 9]).is_empty());
    // Far apart, so that pages are not in the order of their keys.
    for i in 0..30_000u32 {
        let key = (i.wrapping_mul(7_919) % 30_000).to_be_bytes();
        hot.put(&key, &[&key[..], &[7; 26]].concat(), Rid(0), txn(1), 0);
    }
    for i in (0..30_000u32).step_by(3) {
        hot.delete(&i.to_be_bytes(), txn(1), 1);
    }
    let all: Vec<u64> = (0..40_000).collect();
    let mut seen = look_at(&all);
    // Each once.
    let places: Vec<u64> = (0..30_000).filter(|place| place % 7 == 0).collect();
    let some = look_at(&places);
    assert!((2_700..3_000).contains(&some.len()) && some.iter().all(|id| seen.contains(id)), "{}", some.len());
    seen.sort_unstable();
    assert_eq!(seen, (0..30_000).filter(|id| id % 3 != 0).collect::<Vec<u32>>());
}
