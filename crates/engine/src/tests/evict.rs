//! Eviction: row files are full citizens of a tablet, and hot memory stays in its bounds.

use super::*;
use basalt_meta::FileKind;

pub(super) fn kinds(f: &Fixture) -> Vec<FileKind> {
    f.engine.file_list().iter().map(|file| file.kind).collect()
}

pub(super) fn get(f: &Fixture, table: &Arc<TableDef>, id: i64) -> Option<String> {
    let found = f.engine.read(Version::ZERO).get(table, tablet_of(f, table, id), &key(table, id)).unwrap();
    found.map(|found| match &found.values[1] {
        Datum::Bytes(text) => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    })
}

/// Hot rows, a row file, a segment and a batch's file, with changes and deletions in each.
pub(super) async fn mixed(f: &Fixture, table: &Arc<TableDef>) -> BTreeMap<i64, String> {
    insert(f, 0..300, "frozen").await;
    f.engine.freeze_table(table.id).unwrap();
    insert(f, 300..600, "evicted").await;
    f.engine.evict_table(table.id).unwrap();
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(table).unwrap();
    bulk.push(&columns(600..900, "bulk")).await.unwrap();
    bulk.finish().await.unwrap();
    txn.commit().await.unwrap();
    insert(f, 900..1000, "hot").await;
    let mut txn = f.begin();
    for id in (0..1000).step_by(50) {
        update(f, &mut txn, id, "changed").await;
        delete(f, &mut txn, id + 1).await;
    }
    txn.commit().await.unwrap();
    let mut expected: BTreeMap<i64, String> = BTreeMap::new();
    for (ids, v) in [(0..300, "frozen"), (300..600, "evicted"), (600..900, "bulk"), (900..1000, "hot")] {
        expected.extend(ids.map(|id| (id, v.to_string())));
    }
    for id in (0..1000).step_by(50) {
        expected.insert(id, "changed".into());
        expected.remove(&(id + 1));
    }
    expected
}

#[tokio::test]
async fn evicted_rows_are_found_changed_and_deleted_like_all_others() {
    for tablets in [1, 4] {
        let mut f = Fixture::new();
        let table = f.create_table(tablets, true).await;
        let mut expected = mixed(&f, &table).await;
        assert!(kinds(&f).contains(&FileKind::RowFile) && kinds(&f).contains(&FileKind::Segment));
        for round in 0..4 {
            assert_rows(&now(&f), &expected);
            for id in (0..1000).step_by(25) {
                assert_eq!(get(&f, &table, id), expected.get(&id).cloned(), "row {id}");
                assert_eq!(get(&f, &table, id + 1), expected.get(&(id + 1)).cloned(), "row {}", id + 1);
            }
            let mut txn = f.begin();
            for id in [2, 302, 602, 902] {
                let id = id + round;
                assert!(matches!(txn.insert(&table, &row(id, "twin")).await.unwrap(), Inserted::Duplicate { .. }));
                update(&f, &mut txn, id, &format!("round {round}")).await;
                expected.insert(id, format!("round {round}"));
                delete(&f, &mut txn, id + 10).await;
                expected.remove(&(id + 10));
            }
            assert_eq!(txn.insert(&table, &row(5000 + round, "new")).await.unwrap(), Inserted::Done);
            expected.insert(5000 + round, "new".into());
            txn.commit().await.unwrap();
            assert_rows(&now(&f), &expected);
            match round {
                0 => f.engine.evict_table(table.id).unwrap(),
                1 => f.engine.checkpoint().unwrap(),
                2 => f.engine.freeze_table(table.id).unwrap(),
                _ => {}
            }
            f = f.reopen();
        }
        f.engine.compact_table(table.id).unwrap();
        assert!(kinds(&f).iter().all(|kind| *kind == FileKind::Segment), "{:?}", kinds(&f));
        assert_rows(&now(&f), &expected);
        f = f.reopen();
        assert_rows(&now(&f), &expected);
    }
}

#[tokio::test]
async fn a_table_without_a_key_is_evicted_and_merged_too() {
    let mut f = Fixture::new();
    let table = f.create_table(1, false).await;
    insert(&f, 0..500, "one").await;
    f.engine.evict_table(table.id).unwrap();
    insert(&f, 500..600, "two").await;
    let expected = now(&f);
    assert_eq!((expected.len(), f.engine.stats().hot_rows), (600, 100));
    f = f.reopen();
    assert_rows(&now(&f), &expected);
    f.engine.evict_table(table.id).unwrap();
    assert_eq!(kinds(&f), [FileKind::RowFile; 2]);
    f.engine.compact_table(table.id).unwrap();
    assert_eq!(kinds(&f), [FileKind::Segment]);
    assert_rows(&now(&f), &expected);
    insert(&f, 600..601, "three").await;
    assert_eq!(now(&f).len(), 601, "row ids go on behind those of files");
}

#[tokio::test]
async fn a_batch_does_not_take_keys_of_evicted_rows() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..200, "evicted").await;
    f.engine.evict_table(table.id).unwrap();
    let mut txn = f.begin();
    let outcome = async {
        let mut bulk = txn.bulk_insert(&table)?;
        bulk.push(&columns(150..400, "bulk")).await?;
        bulk.finish().await
    }
    .await;
    assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "{outcome:?}");
    txn.rollback();
    let mut txn = f.begin();
    for id in 150..200 {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(&table).unwrap();
    bulk.push(&columns(150..400, "bulk")).await.unwrap();
    bulk.finish().await.unwrap();
    txn.commit().await.unwrap();
    assert_eq!((now(&f).len(), now(&f)[&160].as_str()), (400, "bulk"));
}

#[tokio::test]
async fn an_old_snapshot_sees_its_rows_through_evictions_and_merges() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..300, "one").await;
    let old = f.engine.read(Version::ZERO);
    let before = contents(&old, &table);
    for round in 0..3 {
        let mut txn = f.begin();
        for id in (0..300).step_by(3) {
            update(&f, &mut txn, id, &format!("two {round}")).await;
        }
        delete(&f, &mut txn, 10 + round).await;
        // Undecided while its rows' neighbours move.
        let current = now(&f);
        f.engine.evict_table(table.id).unwrap();
        assert_rows(&now(&f), &current);
        txn.commit().await.unwrap();
        let current = now(&f);
        f.engine.evict_table(table.id).unwrap();
        assert_rows(&contents(&old, &table), &before);
        assert_rows(&now(&f), &current);
        if round == 1 {
            f.engine.compact_table(table.id).unwrap();
            assert_rows(&contents(&old, &table), &before);
            assert_rows(&now(&f), &current);
        }
    }
    drop(old);
    f.engine.compact_table(table.id).unwrap();
    assert_eq!(f.engine.file_list().iter().map(|file| file.rows - file.deleted).sum::<u64>(), 297);
}

#[tokio::test]
async fn a_row_changed_while_it_is_evicted_stays_hot() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..100, "one").await;
    let mut txn = f.begin();
    update(&f, &mut txn, 7, "two").await;
    f.engine.evict_table(table.id).unwrap();
    assert_eq!(f.engine.file_list()[0].rows, 99, "an undecided row is not copied");
    txn.rollback();
    assert_eq!(get(&f, &table, 7).as_deref(), Some("one"));
    // A mark on an evicted row outlives the file that carried it.
    let mut txn = f.begin();
    delete(&f, &mut txn, 8).await;
    update(&f, &mut txn, 9, "two").await;
    f.engine.compact_table(table.id).unwrap();
    txn.commit().await.unwrap();
    let f = f.reopen();
    assert_eq!((now(&f).len(), get(&f, &table, 8), get(&f, &table, 9).as_deref()), (99, None, Some("two")));
}

#[tokio::test]
async fn row_files_are_checked_offline_and_removed_when_nothing_names_them() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    mixed(&f, &table).await;
    f.engine.checkpoint().unwrap();
    let expected = now(&f);
    let listed = f.engine.file_list();
    let evicted = listed.iter().find(|file| file.kind == FileKind::RowFile).unwrap().file;
    let Fixture { dir, engine } = f;
    drop(engine);
    let report = check(&Os::real(), dir.path(), &mut |_| {}).unwrap();
    assert_eq!((report.problems, report.files), (Vec::<String>::new(), listed.len() as u64));
    let (store, _) = crate::recovery::open_files(&Os::real(), &config(&dir)).unwrap();
    let path = basalt_cold::Files::path(evicted, basalt_cold::FileKind::Row);
    let sound = store.read(&path, 0..store.bytes(&path).unwrap()).unwrap().to_vec();
    let mut damaged = sound.clone();
    damaged[100] ^= 1;
    store.put(&path, damaged).unwrap();
    let report = check(&Os::real(), dir.path(), &mut |_| {}).unwrap();
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    store.put(&path, sound).unwrap();
    let engine = Engine::open(Os::real(), config(&dir), &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    assert_rows(&now(&f), &expected);
    f.engine.compact_table(table.id).unwrap();
    f.engine.checkpoint().unwrap();
    insert(&f, 2000..2001, "late").await;
    f.engine.checkpoint().unwrap();
    assert!(store.bytes(&path).is_err(), "no view, root or record names it any more");
}

#[tokio::test]
async fn row_files_become_segments_when_they_have_cooled_or_are_too_many() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let tablet = f.engine.tablet(table.tablets().next().unwrap()).unwrap();
    let files = |kind| kinds(&f).into_iter().filter(|other| *other == kind).count();
    for start in 0..3 {
        insert(&f, start * 10..(start + 1) * 10, "one").await;
        f.engine.evict_table(table.id).unwrap();
    }
    assert!(!f.engine.compact_if_worth(&tablet, Version::ZERO).unwrap(), "they are warm");
    let cool = f.engine.published();
    insert(&f, 30..40, "one").await;
    f.engine.evict_table(table.id).unwrap();
    assert!(f.engine.compact_if_worth(&tablet, cool).unwrap());
    assert_eq!((files(FileKind::RowFile), files(FileKind::Segment)), (1, 1), "the last is warm");
    assert!(!f.engine.compact_if_worth(&tablet, cool).unwrap());
    let mut txn = f.begin();
    for id in 30..40 {
        update(&f, &mut txn, id, "two").await;
    }
    txn.commit().await.unwrap();
    assert!(f.engine.compact_if_worth(&tablet, cool).unwrap(), "none of its rows is left");
    assert_eq!((files(FileKind::RowFile), files(FileKind::Segment)), (0, 1));
    for start in 10..19 {
        assert!(!f.engine.compact_if_worth(&tablet, cool).unwrap());
        insert(&f, start * 10..(start + 1) * 10, "three").await;
        f.engine.evict_table(table.id).unwrap();
    }
    assert!(f.engine.compact_if_worth(&tablet, cool).unwrap(), "nine are too many");
    assert!(files(FileKind::RowFile) <= 2);
    assert_eq!(now(&f).len(), 130);
}

fn pressed(dir: &TempDir, cool_after: std::time::Duration) -> EngineConfig {
    EngineConfig { background: true, memory_bytes_max: 8 << 20, segment_rows: 1 << 20, cool_after, ..config(dir) }
}

#[tokio::test]
async fn hot_memory_stays_bounded_and_warm_rows_are_not_frozen_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = pressed(&dir, std::time::Duration::from_secs(3600));
    let limit = config.memory_bytes_max * 45 / 100;
    let f = Fixture { engine: Engine::open(Os::real(), config, &|_| {}).unwrap(), dir };
    let table = f.create_table(1, true).await;
    let mut expected = BTreeMap::new();
    let mut largest = 0;
    for round in 0..4 {
        let v = format!("round {round} {}", "x".repeat(300));
        for start in (0..24_000).step_by(200) {
            let mut txn = f.begin();
            for id in (start..start + 200).map(|id| id * 7919 % 24_000) {
                match locked(&f, &mut txn, id).await.unwrap() {
                    Locked::Row(current) => drop(txn.update(&table, &current, &row(id, &v)).await.unwrap()),
                    _ => assert_eq!(txn.insert(&table, &row(id, &v)).await.unwrap(), Inserted::Done),
                }
                expected.insert(id, v.clone());
            }
            txn.commit().await.unwrap();
            largest = largest.max(f.engine.hot_bytes());
        }
    }
    let status = f.engine.background().status();
    assert!(status.evicted_rows > 24_000 && status.frozen_rows == 0 && status.errors == 0, "{status:?}");
    assert!(largest < limit * 3 / 2, "hot rows took {largest} bytes, writers wait above {limit}");
    assert!(kinds(&f).contains(&FileKind::RowFile));
    assert_rows(&now(&f), &expected);
    f.engine.background().stop();
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn what_pressure_evicted_cools_into_segments_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let config = pressed(&dir, std::time::Duration::from_secs(1));
    let f = Fixture { engine: Engine::open(Os::real(), config, &|_| {}).unwrap(), dir };
    f.create_table(1, true).await;
    for start in (0..12_000).step_by(200) {
        insert(&f, start..start + 200, &"x".repeat(300)).await;
    }
    let clock = f.engine.os().clock.clone();
    let until = clock.monotonic() + std::time::Duration::from_secs(30);
    while f.engine.background().status().evicted_rows == 0 || kinds(&f).contains(&FileKind::RowFile) {
        assert!(clock.monotonic() < until, "{:?} {:?}", kinds(&f), f.engine.background().status());
        clock.sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(now(&f).len(), 12_000);
}
