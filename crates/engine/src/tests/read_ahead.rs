//! What the disk is told of parts of a scan before anybody reads them.

use super::*;
use basalt_sched::os::File;
use basalt_sched::os::hooked::{Hooks, hooked};
use parking_lot::Mutex;

/// Rows of a file, which is a row group. More files than a scan cuts into parts.
const FILE_ROWS: i64 = 16_384;
const FILES: i64 = 18;

/// Counts the bytes of segments that it is told of.
struct Telling {
    told: Arc<Mutex<u64>>,
}

impl Hooks for Telling {
    fn will_read(&self, _: &dyn File, _: u64, bytes: u64) {
        *self.told.lock() += bytes;
    }
}

/// 128 characters that say nothing of those of other rows.
fn noise(id: i64) -> String {
    let mut state = id as u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as u8 % 64 + b'0'
    };
    (0..128).map(|_| next() as char).collect()
}

#[tokio::test]
async fn the_disk_is_told_of_what_will_be_read_and_of_nothing_that_filters_rule_out() {
    let (dir, told) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(0)));
    let open = || {
        let os = Os { fs: hooked(Telling { told: told.clone() }), ..Os::real() };
        Engine::open(os, EngineConfig { segment_rows: FILE_ROWS as u64, ..config(&dir) }, &|_| {}).unwrap()
    };
    let mut f = Fixture { engine: open(), dir: tempfile::tempdir().unwrap() };
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(&table).unwrap();
    for file in 0..FILES {
        let (mut id, mut text) = (ColumnBuilder::new(PhysType::I64, 0), ColumnBuilder::new(PhysType::Bytes, 0));
        for i in file * FILE_ROWS..(file + 1) * FILE_ROWS {
            assert!(id.push(&Datum::I64(i)) && text.push(&Datum::text(&noise(i))));
        }
        bulk.push(&[id.finish(), text.finish()]).await.unwrap();
    }
    bulk.finish().await.unwrap();
    txn.commit().await.unwrap();
    f.engine.checkpoint().unwrap();
    let bytes = f.engine.table_bytes(&table);
    let equal =
        |id: i64| ColumnPredicate::Compare { column: ColumnId(2), op: CompareOp::Eq, value: Datum::text(&noise(id)) };
    for (predicates, least, most) in [
        (Vec::new(), bytes * 9 / 10, bytes),
        // One of the files has it, and filters of few others are wrong.
        (vec![equal(5)], 0, bytes / 6),
        (vec![equal(-1)], 0, bytes / 6),
    ] {
        // With nothing in memory.
        drop(f.engine);
        f.engine = open();
        let read = f.engine.read(Version::ZERO);
        let spec = ScanSpec { table: table.clone(), columns: vec![ColumnId(2)], predicates, with_identity: false };
        let (parts, _) = read.scan(spec).unwrap();
        assert!(parts.len() as i64 == FILES, "{} parts", parts.len());
        *told.lock() = 0;
        for mut part in parts {
            part.ahead().into_iter().for_each(Ahead::will_read);
            while part.next_block().unwrap().is_some() {}
        }
        let told = *told.lock();
        assert!((least..=most).contains(&told), "{told} of {bytes}, not {least} to {most}");
    }
}
