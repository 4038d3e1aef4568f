//! Walks over one file whose keys nobody asks for: the same rows as with them, wherever they lie.

use super::orientation::orient;
use super::*;

/// Ids of rows in a range, as a walk with these demands brings them.
fn walked(f: &Fixture, (from, to): (i64, Option<i64>), direction: Direction, hint: usize, keyed: bool) -> Vec<i64> {
    let (table, read) = (f.table(), f.engine.read(Version::ZERO));
    let tablets: Vec<TabletId> = table.tablets().collect();
    let bytes = |id| key(&table, id).as_bytes().to_vec();
    let spec = WalkSpec {
        table: &table,
        tablets: &tablets,
        range: KeyRange { from: bytes(from), to: to.map(bytes) },
        direction,
        columns: &[ColumnId(1)],
        reading: read.reading(),
        stamped: false,
        keyed,
        rows_hint: hint,
        looks_max: usize::MAX,
    };
    // In another order they have no ends of ranges to tell.
    let sorted = f.engine.tablets().iter().all(|tablet| tablet.view().files.iter().all(|file| file.data.is_sorted()));
    let mut walk = f.engine.walk(spec).unwrap().expect("it may look at everything");
    let mut ids = Vec::new();
    while let Some(WalkedRow { key: found, row, .. }) = walk.next_row().unwrap() {
        let Datum::I64(id) = values_of(&table, row)[0] else { panic!("ids are integers") };
        assert_eq!(found, if keyed { key(&table, id).as_bytes().to_vec() } else { Vec::new() });
        ids.push(id);
        assert_eq!(walk.leaves_keys(), sorted && !keyed, "the file is the only place with rows");
    }
    ids
}

#[tokio::test]
async fn rows_whose_keys_nobody_asks_for_are_those_of_the_range() {
    for orientation in ["column", "row", "row,column"] {
        rows_of_the_range(orientation).await;
    }
}

async fn rows_of_the_range(orientation: &str) {
    let f = Fixture::new();
    f.create_table(1, true).await;
    orient(&f, orientation).await;
    insert(&f, (0..400).map(|id| 2 * id), "a").await;
    f.engine.freeze_table(f.table().id).unwrap();
    // At the ends of chunks, a whole chunk, and at both ends of the file.
    let gone = |id: i64| [0, 6, 8, 30, 62, 798].contains(&id) || (100..160).contains(&id);
    let mut txn = f.begin();
    for id in (0..800).step_by(2).filter(|id| gone(*id)) {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    // Hot has nothing of its own: marks are the file's.
    assert_eq!(f.engine.stats().hot_rows, 0);
    for from in [0, 1, 5, 6, 7, 98, 99, 130, 161, 700, 797, 798, 799, 1000] {
        for to in [Some(0), Some(6), Some(7), Some(9), Some(40), Some(102), Some(159), Some(161), Some(799), None] {
            let ids = (0..800).step_by(2).filter(|id| !gone(*id) && *id >= from && to.is_none_or(|to| *id < to));
            let mut expected: Vec<i64> = ids.collect();
            for direction in [Direction::Ascending, Direction::Descending] {
                for hint in [0, 1, 4, 7, 10, 64, 5000] {
                    for keyed in [true, false] {
                        let found = walked(&f, (from, to), direction, hint, keyed);
                        assert_eq!(found, expected, "{from}..{to:?} {direction:?}, {hint} rows, keyed {keyed}");
                    }
                }
                expected.reverse();
            }
        }
    }
}

#[tokio::test]
async fn rows_beside_others_come_in_order_whoever_asks_for_keys() {
    for orientation in ["column", "row", "row,column"] {
        rows_beside_others(orientation).await;
    }
}

async fn rows_beside_others(orientation: &str) {
    let f = Fixture::new();
    f.create_table(1, true).await;
    orient(&f, orientation).await;
    for part in 0..3 {
        insert(&f, (0..60).map(|id| 3 * id + part), "a").await;
        if part < 2 {
            f.engine.freeze_table(f.table().id).unwrap();
        }
    }
    let (table, read) = (f.table(), f.engine.read(Version::ZERO));
    let tablets: Vec<TabletId> = table.tablets().collect();
    for direction in [Direction::Ascending, Direction::Descending] {
        let spec = WalkSpec {
            table: &table,
            tablets: &tablets,
            range: KeyRange {
                from: key(&table, 10).as_bytes().to_vec(),
                to: Some(key(&table, 170).as_bytes().to_vec()),
            },
            direction,
            columns: &[ColumnId(1)],
            reading: read.reading(),
            stamped: false,
            keyed: false,
            rows_hint: 5,
            looks_max: usize::MAX,
        };
        let mut walk = f.engine.walk(spec).unwrap().expect("it may look at everything");
        let mut ids = Vec::new();
        while let Some(WalkedRow { row, .. }) = walk.next_row().unwrap() {
            let Datum::I64(id) = values_of(&table, row)[0] else { panic!("ids are integers") };
            ids.push(id);
        }
        let mut expected: Vec<i64> = (10..170).collect();
        if direction == Direction::Descending {
            expected.reverse();
        }
        assert_eq!(ids, expected, "{orientation}, {direction:?}");
    }
}
