//! Orientation: every kind of file holds the same rows, and tables change from one to another.

use super::evict::{get, kinds, mixed};
use super::*;
use basalt_meta::FileKind;

const ORIENTATIONS: [(&str, FileKind); 3] =
    [("column", FileKind::Segment), ("row", FileKind::RowFile), ("row,column", FileKind::Pair)];

pub(super) async fn orient(f: &Fixture, orientation: &str) {
    set(f, "orientation", orientation).await;
}

pub(super) async fn set(f: &Fixture, option: &str, value: &str) {
    let mut table = (*f.table()).clone();
    table.options = vec![(option.into(), value.into())];
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutTable(Arc::new(table))]).unwrap();
    txn.commit().await.unwrap();
}

async fn batch(f: &Fixture, ids: std::ops::Range<i64>, v: &str) -> Result<u64> {
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(&f.table())?;
    bulk.push(&columns(ids, v)).await?;
    let rows = bulk.finish().await?;
    txn.commit().await?;
    Ok(rows)
}

fn assert_each(f: &Fixture, expected: &BTreeMap<i64, String>) {
    let table = f.table();
    assert_rows(&now(f), expected);
    for id in (0..1000).step_by(7) {
        assert_eq!(get(f, &table, id), expected.get(&id).cloned(), "row {id}");
    }
}

#[tokio::test]
async fn rows_are_the_same_in_files_of_every_kind() {
    for (orientation, kind) in ORIENTATIONS {
        for tablets in [1, 4] {
            let mut f = Fixture::new();
            f.create_table(tablets, true).await;
            orient(&f, orientation).await;
            let mut expected = mixed(&f, &f.table()).await;
            let is_expected = |other: &FileKind| *other == kind || *other == FileKind::RowFile;
            assert!(kinds(&f).contains(&kind) && kinds(&f).iter().all(is_expected), "{:?}", kinds(&f));
            assert_each(&f, &expected);
            f = f.reopen();
            assert_each(&f, &expected);
            let twin = batch(&f, 299..500, "twin").await;
            assert!(matches!(twin, Err(Error::DuplicateKey { .. })), "{twin:?}");
            f.engine.compact_table(f.table().id).unwrap();
            assert!(kinds(&f).iter().all(|other| *other == kind), "{:?}", kinds(&f));
            assert_each(&f, &expected);
            f.engine.checkpoint().unwrap();
            f = f.reopen();
            assert_each(&f, &expected);
            let mut txn = f.begin();
            for id in [3, 303, 603, 903] {
                update(&f, &mut txn, id, "again").await;
                delete(&f, &mut txn, id + 1).await;
                expected.insert(id, "again".into());
                expected.remove(&(id + 1));
            }
            txn.commit().await.unwrap();
            assert_each(&f, &expected);
            f.engine.compact_table(f.table().id).unwrap();
            assert_each(&f, &expected);
            f.engine.shutdown().unwrap();
            f.assert_sound();
        }
    }
}

#[tokio::test]
async fn a_changed_orientation_changes_files_while_readers_go_on() {
    for keyed in [true, false] {
        let mut f = Fixture::new();
        let table = f.create_table(1, keyed).await;
        insert(&f, 0..200, "hot").await;
        f.engine.freeze_table(table.id).unwrap();
        batch(&f, 200..600, "batch").await.unwrap();
        let mut expected = now(&f);
        let tablet = table.tablets().next().unwrap();
        let changes = [ORIENTATIONS[1], ORIENTATIONS[2], ORIENTATIONS[0], ORIENTATIONS[2], ORIENTATIONS[1]];
        for (late, (orientation, kind)) in (5000..).zip(changes) {
            let old = f.engine.read(Version::ZERO);
            orient(&f, orientation).await;
            let before = f.engine.file_list();
            let rounds = (0..10).take_while(|_| {
                let tablet = f.engine.tablet(tablet).unwrap();
                f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap()
            });
            let rounds = rounds.count();
            assert!((1..=before.len()).contains(&rounds), "{rounds} merges of {} files", before.len());
            assert!(kinds(&f).iter().all(|other| *other == kind), "{:?}", kinds(&f));
            assert_rows(&contents(&old, &table), &expected);
            assert_rows(&now(&f), &expected);
            drop(old);
            f.engine.checkpoint().unwrap();
            insert(&f, late..late + 1, "after").await;
            expected.insert(late, "after".into());
            f.engine.checkpoint().unwrap();
            let store = basalt_cold::Files::new(f.engine.files.store().clone());
            let there = |kind| {
                before.iter().filter(|line| store.bytes(&basalt_cold::Files::path(line.file, kind)).is_ok()).count()
            };
            let left = there(basalt_cold::FileKind::Segment) + there(basalt_cold::FileKind::Row);
            assert_eq!(left, 0, "nothing names the files before any more");
            assert_rows(&now(&f), &expected);
            f = f.reopen();
            assert_rows(&now(&f), &expected);
        }
    }
}

#[tokio::test]
async fn files_of_rows_are_closed_by_their_bytes_and_left_alone() {
    for (orientation, kind) in &ORIENTATIONS[1..] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig { row_file_bytes_max: 32 << 10, segment_rows: 1 << 20, ..config(&dir) };
        let f = Fixture { engine: Engine::open(Os::real(), config, &|_| {}).unwrap(), dir };
        let table = f.create_table(1, true).await;
        orient(&f, orientation).await;
        let wide = "x".repeat(100);
        for start in 0..8 {
            batch(&f, start * 1000..(start + 1) * 1000, &wide).await.unwrap();
        }
        let tablet = f.engine.tablet(table.tablets().next().unwrap()).unwrap();
        let merges = (0..100).take_while(|_| f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap()).count();
        assert!(merges < 20, "{orientation}: {merges} merges");
        let files = f.engine.file_list();
        assert!(files.len() >= 4 && files.iter().all(|file| file.kind == *kind), "{orientation}: {files:?}");
        assert_eq!(now(&f).len(), 8000);
    }
}

#[tokio::test]
async fn a_batch_into_row_files_is_seen_when_it_commits_and_not_before() {
    for (orientation, kind) in ORIENTATIONS {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        orient(&f, orientation).await;
        let before = f.engine.read(Version::ZERO);
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&f.table()).unwrap();
        bulk.push(&columns(0..500, "batch")).await.unwrap();
        bulk.finish().await.unwrap();
        assert_eq!(kinds(&f), [kind]);
        assert_eq!((now(&f).len(), get(&f, &table, 5)), (0, None));
        txn.next_statement();
        assert_eq!(contents(&txn.read(), &table).len(), 500, "its writer sees it");
        txn.commit().await.unwrap();
        assert_eq!((contents(&before, &table).len(), now(&f).len()), (0, 500));
        assert_eq!(get(&f, &table, 5).as_deref(), Some("batch"));
        assert_eq!(before.get(&table, tablet_of(&f, &table, 5), &key(&table, 5)).unwrap().map(|row| row.rid), None);
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&f.table()).unwrap();
        bulk.push(&columns(1000..1500, "given up")).await.unwrap();
        bulk.finish().await.unwrap();
        txn.rollback();
        assert_eq!(now(&f).len(), 500);
        // The version of the batch is that of its rows in all files that they come to.
        let middle = f.engine.read(Version::ZERO);
        batch(&f, 2000..2500, "later").await.unwrap();
        f.engine.compact_table(table.id).unwrap();
        assert_eq!(kinds(&f), [kind]);
        assert_eq!((contents(&before, &table).len(), contents(&middle, &table).len(), now(&f).len()), (0, 500, 1000));
        assert_rows(&contents(&middle, &table), &(0..500).map(|id| (id, "batch".to_string())).collect());
    }
}

#[tokio::test]
async fn columns_that_come_and_go_are_read_in_files_of_every_kind() {
    for (orientation, _) in ORIENTATIONS {
        let mut f = Fixture::new();
        let table = f.create_table(1, true).await;
        orient(&f, orientation).await;
        batch(&f, 0..300, "batch").await.unwrap();
        let mut wider = (*f.table()).clone();
        let mut third = ColumnDef::new(ColumnId(3), "w", DataType::Int4);
        third.missing = Datum::I32(77);
        wider.columns.push(third);
        wider.columns[1].dropped = true;
        let wider = Arc::new(wider);
        let mut txn = f.begin();
        txn.edit_catalog(vec![CatalogEdit::PutTable(wider.clone())]).unwrap();
        txn.commit().await.unwrap();
        for round in 0..3 {
            let found = f.engine.read(Version::ZERO).get(&wider, tablet_of(&f, &table, 9), &key(&table, 9)).unwrap();
            assert_eq!(found.unwrap().values[2], Datum::I32(77), "{orientation}, round {round}");
            let spec = ScanSpec {
                table: wider.clone(),
                columns: vec![ColumnId(3)],
                predicates: Vec::new(),
                with_identity: false,
            };
            let mut rows = 0;
            for mut part in f.engine.read(Version::ZERO).scan(spec).unwrap().0 {
                while let Some(batch) = part.next_batch().unwrap() {
                    use arrow_array::cast::AsArray;
                    let values = batch.columns[0].as_primitive::<arrow_array::types::Int32Type>();
                    assert!(values.values().iter().all(|value| *value == 77));
                    rows += batch.rows;
                }
            }
            assert_eq!(rows, 300);
            if round > 0 {
                // Whoever looks by an older catalog, and will have to throw it away, leaves others what the file has.
                let (mut older, mut other) = ((*wider).clone(), (*wider).clone());
                older.columns[1].dropped = false;
                other.columns[2].missing = Datum::I32(0);
                let (read, tablet, key) = (f.engine.read(Version::ZERO), tablet_of(&f, &table, 9), key(&table, 9));
                let (engine, both) = (&f.engine, [ColumnId(2), ColumnId(3)]);
                for _ in 0..3 {
                    engine.look(&older, tablet, key.as_bytes(), read.reading(), &both, |_| ()).unwrap();
                }
                let third = engine.look(&other, tablet, key.as_bytes(), read.reading(), &both[1..], |row| match row {
                    SeenRow::Encoded(bytes) => crate::rows::decode(&other, bytes).unwrap()[2].clone(),
                    SeenRow::Values(values) => values[2].clone(),
                });
                assert_eq!(third.unwrap(), Some(Datum::I32(77)), "{orientation}, round {round}");
            }
            match round {
                0 => {
                    let mut txn = f.begin();
                    delete(&f, &mut txn, 1).await;
                    txn.commit().await.unwrap();
                    let mut txn = f.begin();
                    let row = [Datum::I64(1), Datum::Null, Datum::I32(77)];
                    assert_eq!(txn.insert(&wider, &row).await.unwrap(), Inserted::Done);
                    txn.commit().await.unwrap();
                    f.engine.compact_table(table.id).unwrap();
                }
                _ => f = f.reopen(),
            }
        }
    }
}

#[tokio::test]
async fn compression_rules_new_files_and_compaction_writes_the_others_anew() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let text = |id: i64| format!("row {id} and words that come again, ").repeat(id as usize % 40);
    let expected: BTreeMap<i64, String> = (0..800).map(|id| (id, text(id))).collect();
    let bytes = || f.engine.table_bytes(&f.table());
    let mut sizes = Vec::new();
    for (method, ids) in [("none", 0..400), ("zstd", 400..800)] {
        set(&f, "compression", method).await;
        let mut txn = f.begin();
        for id in ids {
            txn.insert(&table, &row(id, &text(id))).await.unwrap();
        }
        txn.commit().await.unwrap();
        f.engine.freeze_table(table.id).unwrap();
        sizes.push(bytes());
    }
    assert_rows(&now(&f), &expected);
    // The second file holds as many rows as the first.
    assert!((sizes[1] - sizes[0]) * 2 < sizes[0], "{sizes:?}");
    f.engine.compact_table(table.id).unwrap();
    assert!(bytes() < sizes[0], "{} of {sizes:?}", bytes());
    // One file that is as it should be is left alone, and one that is not is not.
    let compressed = bytes();
    f.engine.compact_table(table.id).unwrap();
    assert_eq!(bytes(), compressed);
    set(&f, "compression", "none").await;
    f.engine.compact_table(table.id).unwrap();
    assert!(bytes() > compressed, "{} of {compressed}", bytes());
    assert_rows(&now(&f), &expected);
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
    f.engine.shutdown().unwrap();
    f.assert_sound();
}

/// What would go into row files is waited for longer than what becomes columns, as long as there is room.
#[tokio::test]
async fn rows_of_row_tables_stay_hot_for_longer() {
    let with_memory = async |memory_bytes_max: u64| {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(Os::real(), EngineConfig { memory_bytes_max, ..config(&dir) }, &|_| {}).unwrap();
        let f = Fixture { dir, engine };
        f.create_table(1, true).await;
        insert(&f, 0..2000, "hot").await;
        let hot_bytes = f.engine.weigh();
        (f, hot_bytes)
    };
    let (plenty, hot_bytes) = with_memory(1 << 30).await;
    // Of what makes rows leave, 0.62 and 0.83.
    let (some, _) = with_memory(hot_bytes * 16 / 3).await;
    let (short, _) = with_memory(hot_bytes * 4).await;
    for (f, times) in [(plenty, 30.0..=30.0), (some, 10.0..=20.0), (short, 1.0..=1.0)] {
        let cool_after = f.engine.config.cool_after;
        for (orientation, times) in [("column", 1.0..=1.0), ("row", times), ("row,column", 1.0..=1.0)] {
            orient(&f, orientation).await;
            let tablet = only_tablet(&f, &f.table());
            let patience = f.engine.patience(&tablet).as_secs_f64() / cool_after.as_secs_f64();
            assert!(times.contains(&patience), "{orientation}: {patience} times, not {times:?}");
        }
    }
}

/// How many of 2,000 rows of a file have to be dead before it is rewritten.
#[tokio::test]
async fn segments_are_rewritten_when_a_quarter_is_dead_and_row_files_when_half_is() {
    for (orientation, _) in ORIENTATIONS {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        orient(&f, orientation).await;
        batch(&f, 0..2000, "bulk").await.unwrap();
        f.engine.compact_table(table.id).unwrap();
        let tablet = only_tablet(&f, &table);
        let (mut dead, mut is_rewritten) = (0, false);
        while !is_rewritten && dead < 2000 {
            let mut txn = f.begin();
            for id in dead..dead + 250 {
                delete(&f, &mut txn, id).await;
            }
            txn.commit().await.unwrap();
            dead += 250;
            is_rewritten = f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap();
        }
        let expected = if orientation == "row" { 1000 } else { 500 };
        assert_eq!((is_rewritten, dead), (true, expected), "{orientation}");
    }
}
