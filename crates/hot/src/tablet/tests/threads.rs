//! Writers, scanners and a sweeper at once: every scan sees one state.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KEYS: u64 = 500;

#[test]
fn scans_see_one_state_while_rows_change_move_and_are_swept() {
    let hot = Arc::new(HotTablet::new());
    let published = AtomicU64::new(1);
    let stop = AtomicBool::new(false);
    // The snapshot that the scanner holds, so that the sweeper keeps what it needs.
    let pinned = Mutex::new(None::<u64>);
    write_all(&hot, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 2..400 {
                write_all(&hot, version);
                published.store(version, Ordering::Release);
            }
            stop.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let guard = pinned.lock();
                let now = published.load(Ordering::Acquire);
                let live: Vec<Version> = guard.iter().copied().chain([now]).map(Version).collect();
                hot.sweep(&live, ViewNo(0));
                drop(guard);
                std::thread::yield_now();
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                let snapshot = {
                    let mut guard = pinned.lock();
                    *guard.insert(published.load(Ordering::Acquire))
                };
                scan_is_whole(&hot, snapshot);
                *pinned.lock() = None;
            }
        });
    });
    let last = published.load(Ordering::Acquire);
    while hot.sweep(&[Version(last)], ViewNo(0)).more {}
    assert_eq!((hot.undo_versions(), hot.rows() as u64), (0, KEYS));
    scan_is_whole(&hot, last);
}

fn write_all(hot: &HotTablet, version: u64) {
    let row = version.to_be_bytes();
    let keys: Vec<[u8; 8]> = (0..KEYS).map(|key| (key * 31 % KEYS).to_be_bytes()).collect();
    let changes: Vec<Change<'_>> = keys.iter().map(|key| Change { key, row: Some(&row), rid: Rid(version) }).collect();
    hot.put_many(&changes, txn(version), 0);
    let keys: Vec<(Spot, &[u8])> = keys.iter().map(|key| (Spot::UNKNOWN, key.as_slice())).collect();
    hot.restamp_many(&keys, txn(version), Version(version));
}

fn scan_is_whole(hot: &HotTablet, snapshot: u64) {
    let table = Table::default();
    let reader = Reader { at: ReadAt::version(Version(snapshot)), view: ViewNo(0), txns: &table };
    let mut out = Rows::new();
    let mut next = hot.scan(Bound::Unbounded, Bound::Unbounded, &reader, 64, &mut out);
    while let Some(last) = next {
        next = hot.scan(Bound::Excluded(last.as_bytes()), Bound::Unbounded, &reader, 64, &mut out);
    }
    assert_eq!(out.len() as u64, KEYS, "at {snapshot}");
    for (i, row) in out.iter().enumerate() {
        assert_eq!((row.key, row.row), (&(i as u64).to_be_bytes()[..], &snapshot.to_be_bytes()[..]));
    }
}
