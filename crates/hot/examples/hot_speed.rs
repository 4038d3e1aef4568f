//! How fast one tablet's row section is, on one thread: `cargo run --release -p basalt-hot --example hot_speed`.

use basalt_hot::{Change, HotTablet, Lookup, Reader, Rows, Spot};
use basalt_sched::os::{Clock, real::RealClock};
use basalt_types::{Epoch, ReadAt, Rid, Stamp, TxnId, TxnState, TxnStates, Version, ViewNo};
use std::ops::Bound;

const ROWS: u64 = 1_000_000;
const ROW: [u8; 100] = [7; 100];

struct NobodyWrites;

impl TxnStates for NobodyWrites {
    fn state(&self, _: TxnId) -> TxnState {
        TxnState::Active
    }
}

struct Watch(RealClock);

impl Watch {
    fn time(&self, what: &str, count: u64, work: impl FnOnce()) {
        let start = self.0.monotonic();
        work();
        let seconds = (self.0.monotonic() - start).as_secs_f64();
        println!("{what:42} {:8.2} M/s {:8.0} ns each", count as f64 / seconds / 1e6, seconds * 1e9 / count as f64);
    }
}

fn ascending() -> Vec<[u8; 8]> {
    (0..ROWS).map(u64::to_be_bytes).collect()
}

/// Every key once, far from its neighbours.
fn shuffled() -> Vec<[u8; 8]> {
    (0..ROWS).map(|i| (i * 7_368_787 % ROWS).to_be_bytes()).collect()
}

fn scan_all(hot: &HotTablet, reader: &Reader<'_>, out: &mut Rows) -> u64 {
    out.clear();
    let mut rows = 0;
    let mut next = hot.scan(Bound::Unbounded, Bound::Unbounded, reader, 1024, out);
    while let Some(last) = next {
        rows += out.len() as u64;
        out.clear();
        next = hot.scan(Bound::Excluded(last.as_bytes()), Bound::Unbounded, reader, 1024, out);
    }
    rows + out.len() as u64
}

fn main() {
    let watch = Watch(RealClock::new());
    for (order, keys) in [("ascending", ascending()), ("random", shuffled())] {
        run(&watch, order, &keys);
    }
}

fn run(watch: &Watch, order: &str, keys: &[[u8; 8]]) {
    println!("-- {ROWS} rows of {} bytes, {order}", ROW.len());
    let hot = HotTablet::new();
    let txn = TxnId::new(Epoch(1), 1);
    watch.time("put", ROWS, || {
        keys.iter().enumerate().for_each(|(i, key)| hot.put(key, &ROW, Rid(i as u64), txn, 0));
    });
    let overhead = hot.bytes() as f64 / ROWS as f64 - (8 + ROW.len()) as f64;
    println!("{:42} {overhead:8.1} bytes a row", "overhead");
    watch.time("restamp", ROWS, || keys.iter().for_each(|key| hot.restamp(key, txn, Version(1))));
    reads(watch, &hot, keys);
    updates(watch, &hot, keys);
    let hot = HotTablet::new();
    let changes: Vec<Change<'_>> = keys.iter().map(|key| Change { key, row: Some(&ROW), rid: Rid(1) }).collect();
    watch.time("put_many", ROWS, || hot.put_many(&changes, txn, 0));
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    let spots: Vec<(Spot, &[u8])> = keys.iter().map(|key| (Spot::UNKNOWN, *key)).collect();
    watch.time("restamp_many", ROWS, || hot.restamp_many(&spots, txn, Version(1)));
    let rows: Vec<(&[u8], Stamp)> = keys.iter().map(|key| (*key, Stamp::version(Version(1)))).collect();
    watch.time("mark_moved", ROWS, || assert!(hot.mark_moved(&rows, ViewNo(1)).into_iter().all(|moved| moved)));
    watch.time("sweep of moved rows", ROWS, || while hot.sweep(&[Version(1)], ViewNo(1)).more {});
    println!("{:42} {:8} keys, {} bytes", "left", hot.keys(), hot.bytes());
}

fn reads(watch: &Watch, hot: &HotTablet, keys: &[[u8; 8]]) {
    let reader = Reader { at: ReadAt::version(Version(1)), view: ViewNo(0), txns: &NobodyWrites };
    watch.time("get, same order", ROWS, || {
        keys.iter().for_each(|key| assert!(matches!(hot.get(key, &reader), Lookup::Row { .. })));
    });
    let random = shuffled();
    watch.time("get, random order", ROWS, || {
        random.iter().for_each(|key| assert!(matches!(hot.get(key, &reader), Lookup::Row { .. })));
    });
    let mut out = Rows::new();
    assert_eq!(scan_all(hot, &reader, &mut out), ROWS);
    watch.time("scan, pages wholly visible", ROWS, || assert_eq!(scan_all(hot, &reader, &mut out), ROWS));
    // One undecided row in each page makes every row of it be asked.
    let writer = TxnId::new(Epoch(1), 2);
    let sample: Vec<[u8; 8]> = (0..ROWS).step_by(100).map(u64::to_be_bytes).collect();
    sample.iter().for_each(|key| hot.put(key, &ROW, Rid(0), writer, 0));
    watch.time("scan, 1 row in 100 undecided", ROWS, || assert_eq!(scan_all(hot, &reader, &mut out), ROWS));
    watch.time("rollback", sample.len() as u64, || sample.iter().for_each(|key| assert!(hot.rollback(key, writer))));
    let early = Reader { at: ReadAt::version(Version(0)), ..reader };
    watch.time("scan, pages wholly invisible", ROWS, || assert_eq!(scan_all(hot, &early, &mut out), 0));
}

fn updates(watch: &Watch, hot: &HotTablet, keys: &[[u8; 8]]) {
    let txn = TxnId::new(Epoch(1), 3);
    watch.time("update in place", ROWS, || keys.iter().for_each(|key| hot.put(key, &ROW, Rid(1), txn, 0)));
    keys.iter().for_each(|key| hot.restamp(key, txn, Version(2)));
    println!("{:42} {:8.1} bytes a row", "with undo", hot.bytes() as f64 / ROWS as f64);
    let early = Reader { at: ReadAt::version(Version(1)), view: ViewNo(0), txns: &NobodyWrites };
    let mut out = Rows::new();
    watch.time("scan, all from undo", ROWS, || assert_eq!(scan_all(hot, &early, &mut out), ROWS));
    watch.time("sweep, a snapshot keeps all", ROWS, || while hot.sweep(&[Version(1), Version(2)], ViewNo(0)).more {});
    watch.time(
        "sweep again, nothing has changed",
        ROWS,
        || {
            while hot.sweep(&[Version(1), Version(2)], ViewNo(0)).more {}
        },
    );
    watch.time("sweep of undo", ROWS, || while hot.sweep(&[Version(2)], ViewNo(0)).more {});
    assert_eq!(hot.undo_versions(), 0);
    let few: Vec<_> = keys.iter().step_by(1000).collect();
    few.iter().for_each(|key| hot.put(*key, &ROW, Rid(1), TxnId::new(Epoch(1), 4), 0));
    few.iter().for_each(|key| hot.restamp(*key, TxnId::new(Epoch(1), 4), Version(3)));
    watch.time("sweep of 1 key in 1000", few.len() as u64, || while hot.sweep(&[Version(3)], ViewNo(0)).more {});
}
