//! Freeze and compaction while writers go on: what changes in each of their steps.

use super::*;
use crate::record;
use crate::unlisted::Unlisted;
use basalt_sched::failpoint;
use std::sync::Mutex;

/// Every kind of write to rows that are marked for a view that is not there yet.
#[tokio::test]
async fn rows_written_between_a_freezes_marks_and_its_view_stay_hot() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..400, "one").await;
    let old = f.engine.read(Version::ZERO);
    let before = now(&f);
    let tablet = only_tablet(&f, &table);
    let mut written = Unlisted::new(&f.engine);
    let (entry, copied) = f
        .engine
        .write_moved(&tablet, f.engine.published(), basalt_meta::FileKind::Segment, &mut written)
        .unwrap()
        .unwrap();
    written.keep();
    let mut txn = f.begin();
    update(&f, &mut txn, 2, "after the copy").await;
    txn.commit().await.unwrap();
    let marked = f.engine.mark_rows(&tablet, &entry, &copied);

    let mut committed = f.begin();
    update(&f, &mut committed, 3, "committed").await;
    delete(&f, &mut committed, 7).await;
    delete(&f, &mut committed, 8).await;
    committed.insert(&table, &row(8, "back")).await.unwrap();
    let mut rolled_back = f.begin();
    for id in [4, 9, 10] {
        update(&f, &mut rolled_back, id, "rolled back").await;
    }
    rolled_back.rollback();
    let mark = committed.savepoint();
    update(&f, &mut committed, 11, "undone").await;
    committed.rollback_to(mark).unwrap();
    update(&f, &mut committed, 9, "written again").await;
    update(&f, &mut committed, 9, "and again").await;
    committed.commit().await.unwrap();
    f.engine.sweep(&tablet);
    let mut late = f.begin();
    update(&f, &mut late, 5, "late").await;
    delete(&f, &mut late, 12).await;
    let mut undone = f.begin();
    update(&f, &mut undone, 6, "undone").await;
    // Another switch of the view, by a load.
    let mut load = f.begin();
    let mut bulk = load.bulk_insert(&table).unwrap();
    bulk.push(&columns(1000..1200, "bulk")).await.unwrap();
    bulk.finish().await.unwrap();
    load.commit().await.unwrap();
    let mut expected = now(&f);
    assert_eq!(expected.len(), 599);
    assert_rows(&contents(&old, &table), &before);

    let moved = f.engine.switch_to_moved(&tablet, entry, &copied, marked).unwrap();
    // 2, 3, 7, 8, 9; 5, 6 and 12 are undecided.
    assert_eq!(moved, Some(392));
    assert_rows(&now(&f), &expected);
    assert_rows(&contents(&old, &table), &before);
    late.commit().await.unwrap();
    undone.rollback();
    expected.insert(5, "late".into());
    expected.remove(&12);
    assert_rows(&now(&f), &expected);
    assert_rows(&contents(&old, &table), &before);
    for (id, v) in [(4, "one"), (5, "late"), (6, "one"), (9, "and again"), (10, "one"), (11, "one")] {
        assert_eq!(expected[&id], v);
        let found = f.engine.read(Version::ZERO).get(&table, tablet.id, &key(&table, id)).unwrap();
        assert_eq!(found.map(|found| found.values), Some(row(id, v)));
    }
    let mut txn = f.begin();
    for id in [2, 4, 6, 9, 100] {
        update(&f, &mut txn, id, "two").await;
        expected.insert(id, "two".into());
    }
    txn.commit().await.unwrap();
    assert_rows(&now(&f), &expected);
    drop(old);
    let mut f = f.reopen();
    assert_rows(&now(&f), &expected);
    f.engine.compact_table(table.id).unwrap();
    assert_rows(&now(&f), &expected);
    f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn a_freeze_of_a_table_that_is_dropped_meanwhile_leaves_nothing() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..400, "one").await;
    let tablet = only_tablet(&f, &table);
    let mut written = Unlisted::new(&f.engine);
    let (entry, copied) = f
        .engine
        .write_moved(&tablet, f.engine.published(), basalt_meta::FileKind::Segment, &mut written)
        .unwrap()
        .unwrap();
    written.keep();
    let marked = f.engine.mark_rows(&tablet, &entry, &copied);
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::DropTable(table.id)]).unwrap();
    txn.commit().await.unwrap();
    let records = f.engine.log.stats().records;
    assert_eq!(f.engine.switch_to_moved(&tablet, entry, &copied, marked).unwrap(), None);
    assert_eq!(f.engine.log.stats().records, records, "nothing is said of a table that is gone");
}

/// Few wide rows make a file: what writes one must not hold as many of them as of narrow ones.
#[tokio::test]
async fn files_of_wide_rows_end_early_and_stay_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { row_group_bytes_max: 100_000, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    let tablet = only_tablet(&f, &table);
    let wide = "w".repeat(2000);
    // A batch, rows that freeze, and rows of another batch in between.
    for (first, frozen) in [(0, false), (10_000, true), (5_000, false)] {
        let mut txn = f.begin();
        if frozen {
            for id in first..first + 400 {
                assert_eq!(txn.insert(&table, &row(id, &wide)).await.unwrap(), Inserted::Done);
            }
        } else {
            let mut bulk = txn.bulk_insert(&table).unwrap();
            for chunk in 0..20 {
                bulk.push(&columns(first + 20 * chunk..first + 20 * (chunk + 1), &wide)).await.unwrap();
            }
            bulk.finish().await.unwrap();
        }
        txn.commit().await.unwrap();
        f.engine.freeze_table(table.id).unwrap();
    }
    let before = now(&f);
    assert_eq!(before.len(), 1200);
    let files =
        || tablet.view().files.iter().map(|file| (file.data.rows(), file.data.is_wide(u64::MAX))).collect::<Vec<_>>();
    let loaded = files();
    // Bulk loads by block, freezes by what hot gives at a time.
    assert!(loaded.len() > 14 && loaded.iter().filter(|(_, wide)| *wide).all(|(rows, _)| *rows < 500), "{loaded:?}");
    // Merging ends: full files stay.
    let mut merges = 0;
    while f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap() {
        merges += 1;
        assert!(merges < 5, "{:?}", files());
    }
    assert!(files().iter().filter(|(_, wide)| !wide).count() < 4, "{:?}", files());
    f.engine.compact_table(table.id).unwrap();
    assert!(files().len() > 5, "{:?}", files());
    assert_rows(&now(&f), &before);
    let f = f.reopen();
    assert_rows(&now(&f), &before);
}

/// A version per mark once made the record as long as the deletions were many, and 64 MiB is its limit.
#[tokio::test]
async fn a_merge_logs_at_most_a_bit_per_row_however_much_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { segment_rows: 100_000, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(&table).unwrap();
    bulk.push(&columns(0..20_000, "bulk")).await.unwrap();
    bulk.finish().await.unwrap();
    txn.commit().await.unwrap();
    let old = f.engine.read(Version::ZERO);
    let before = contents(&old, &table);
    for ids in [0..10_000, 10_000..20_000] {
        let mut txn = f.begin();
        for id in ids.filter(|id| id % 3 > 0) {
            delete(&f, &mut txn, id).await;
        }
        txn.commit().await.unwrap();
    }
    let expected = now(&f);
    let logged = f.engine.log.stats().payload_bytes;
    f.engine.compact_table(table.id).unwrap();
    let record = f.engine.log.stats().payload_bytes - logged;
    // One roaring container covers 65,536 rows in at most 8 KiB.
    assert!(record < 9000, "{record} bytes");
    assert_rows(&now(&f), &expected);
    assert_rows(&contents(&old, &table), &before);
    drop(old);
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn marks_that_come_go_and_are_decided_around_a_merge_are_carried() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    for first in [0, 500] {
        insert(&f, first..first + 500, "one").await;
        f.engine.freeze_table(table.id).unwrap();
    }
    let (mut late, mut undone) = (f.begin(), f.begin());
    for id in [3, 503] {
        delete(&f, &mut late, id).await;
        update(&f, &mut undone, id + 1, "undone").await;
    }
    f.engine.compact_table(table.id).unwrap();
    assert_eq!(f.engine.file_list().iter().map(|file| file.deleted).sum::<u64>(), 4);
    late.commit().await.unwrap();
    undone.rollback();
    let expected = now(&f);
    assert_eq!(expected.len(), 998);
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn a_merge_waits_for_a_transaction_that_deletes_very_much() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { segment_rows: 1 << 20, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    // Four files of a size: worth merging.
    for file in 0..4 {
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table).unwrap();
        bulk.push(&columns(20_000 * file..20_000 * (file + 1), "bulk")).await.unwrap();
        bulk.finish().await.unwrap();
        txn.commit().await.unwrap();
    }
    let mut deleting = f.begin();
    for id in 0..17_000 {
        delete(&f, &mut deleting, id).await;
    }
    let tablet = only_tablet(&f, &table);
    let undecided: u64 = tablet.view().files.iter().map(|file| file.deletes.undecided_count()).sum();
    assert_eq!(undecided, 17_000);
    assert!(!f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap());
    deleting.rollback();
    assert!(f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap());
    assert_eq!((tablet.view().files.len(), now(&f).len()), (1, 80_000));
}

/// The commit record of the largest freeze that is all exceptions.
#[test]
fn a_freeze_record_of_a_million_exceptions_fits_the_log() {
    let file = basalt_meta::FileInfo {
        id: FileId { epoch: Epoch(1), serial: 1 },
        kind: basalt_meta::FileKind::Segment,
        rows: 1 << 20,
        bytes: 1 << 30,
        stamps: basalt_meta::FileStamps::PerRow,
    };
    let stayed = (0..1 << 20).collect();
    let edit = record::FileEdit::Freeze { tablet: TabletId(1), file, stayed };
    assert!(record::file_edits(&[edit]).len() < 2 << 20);
}

#[tokio::test]
async fn few_cool_rows_among_many_hot_ones_are_not_worth_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { freeze_rows_min: 500, cool_after: std::time::Duration::ZERO, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    let tablet = only_tablet(&f, &table);
    insert(&f, (0..4000).step_by(10), "cool").await;
    let cool = f.engine.published();
    insert(&f, (0..4000).filter(|id| id % 10 > 0), "warm").await;
    assert_eq!(tablet.hot.count_settled(cool, usize::MAX), 400);
    assert_eq!(tablet.hot.count_settled(cool, 100).min(100), 100);
    let now = std::time::Duration::ZERO;
    assert!(!f.engine.has_cooled(&tablet, cool, now, now));
    assert!(f.engine.has_cooled(&tablet, f.engine.published(), now, now));
    let mut txn = f.begin();
    for id in 0..3600 {
        update(&f, &mut txn, id, "hot again").await;
    }
    txn.commit().await.unwrap();
    assert!(!f.engine.has_cooled(&tablet, Version(f.engine.published().0 - 1), now, now));
}

/// An open scan pins its view; what was moved since stays in memory for it.
#[tokio::test]
async fn an_old_reader_does_not_hold_writers_up() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { background: true, memory_bytes_max: 8 << 20, locator_bytes_max: 0, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "old").await;
    let old = f.engine.read(Version::ZERO);
    let spec =
        ScanSpec { table: table.clone(), columns: vec![ColumnId(1)], predicates: Vec::new(), with_identity: false };
    let (parts, _) = old.scan(spec).unwrap();
    let wide = "x".repeat(1000);
    let load = async {
        for first in (10..4510).step_by(50) {
            insert(&f, first..first + 50, &wide).await;
        }
    };
    let done = tokio::time::timeout(std::time::Duration::from_secs(30), load).await;
    assert!(done.is_ok(), "writers wait for a reader: {} bytes, kept {}", f.engine.hot_bytes(), f.engine.kept_bytes());
    assert!(f.engine.hot_bytes() > (8 << 20) / 100 * 45, "with what the reader keeps, more than writers may have");
    drop(parts);
    f.engine.shutdown().unwrap();
}

/// Pieces of an input follow the width of its rows: here from a few rows to whole files.
#[tokio::test]
async fn a_merge_of_rows_of_all_widths_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { memory_bytes_max: 8 << 20, segment_rows: 1 << 20, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    for file in 0..4 {
        for (from, width) in [(0, 1), (1500, 3000), (1600, 10), (4000, 300)] {
            let ids = (from..from + 800).map(|i| i * 4 + file).filter(|id| id % 7 > 0 || file > 0);
            insert(&f, ids.filter(|id| from != 1500 || *id < 6400), &"x".repeat(width)).await;
        }
        match file % 2 {
            0 => f.engine.freeze_table(table.id).unwrap(),
            _ => f.engine.evict_table(table.id).unwrap(),
        }
    }
    let mut txn = f.begin();
    for id in (0..9600).step_by(31) {
        if let Locked::Row(current) = locked(&f, &mut txn, id).await.unwrap() {
            txn.delete(&table, &current).await.unwrap();
        }
    }
    txn.commit().await.unwrap();
    let before = now(&f);
    assert!(f.engine.stats().files == 4 && before.len() > 8000);
    f.engine.compact_table(table.id).unwrap();
    assert_eq!(f.engine.stats().files, 1);
    assert_rows(&now(&f), &before);
    assert_rows(&now(&f.reopen()), &before);
}

/// Marks of an open transaction go from merge to merge. Its commit gives a version to those in the last file: a reader
/// whose view is of the files before, and whose snapshot has the commit, must not take it for one that was rolled back.
#[tokio::test]
async fn marks_that_merges_have_carried_on_count_for_readers_of_the_views_in_between() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..400, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let mut txn = f.begin();
    update(&f, &mut txn, 3, "two").await;
    delete(&f, &mut txn, 5).await;
    f.engine.compact_table(table.id).unwrap();
    let reader = Arc::new(Mutex::new(None));
    failpoint::call_at("commit-appended", {
        let (engine, table, reader) = (f.engine.clone(), table.clone(), reader.clone());
        move || {
            let last = engine.order.take_turn().last();
            engine.log.flush_soon();
            while engine.published() < last {
                std::thread::yield_now();
            }
            let read = engine.read(Version::ZERO);
            *reader.lock().unwrap() = Some(scan(&read, &table).unwrap());
            engine.compact_table(table.id).unwrap();
        }
    });
    txn.commit().await.unwrap();
    let parts = reader.lock().unwrap().take().expect("it was called");
    let mut expected: BTreeMap<i64, String> = (0..400).map(|id| (id, "one".to_string())).collect();
    expected.insert(3, "two".into());
    expected.remove(&5);
    assert_rows(&contents_of_parts(parts), &expected);
    assert_rows(&now(&f), &expected);
    assert_rows(&now(&f.reopen()), &expected);
}
