//! Lookups by key over many overlapping files, with and without entries in a locator.

use super::*;
use std::time::Duration;

const FILES: i64 = 20;

/// A row per id and file: file by file, each over the whole range.
async fn overlapping(f: &Fixture, table: &TableDef, rows: i64) {
    for file in 0..FILES {
        insert(f, (0..rows).map(|i| i * FILES + file), "first").await;
        f.engine.freeze_table(table.id).unwrap();
    }
}

/// What lookups of every id find.
fn looked_up(f: &Fixture, read: &ReadContext, ids: impl Iterator<Item = i64>) -> BTreeMap<i64, String> {
    let table = f.table();
    let found = |id: i64| {
        let row = read.get(&table, tablet_of(f, &table, id), &key(&table, id)).unwrap()?;
        assert_eq!(row.values[0], Datum::I64(id));
        match &row.values[1] {
            Datum::Bytes(text) => Some((id, String::from_utf8(text.to_vec()).unwrap())),
            other => panic!("{other:?}"),
        }
    };
    ids.filter_map(found).collect()
}

fn assert_lookups(f: &Fixture, reads: &[&ReadContext]) {
    for read in reads {
        assert_rows(&looked_up(f, read, -50..6000), &contents(read, &f.table()));
    }
}

/// Changes rows wherever they are: updates, deletes, rows that come back, keys that move.
async fn churn(f: &Fixture, round: i64) {
    let mut txn = f.begin();
    for id in (round..400).step_by(11) {
        if let Locked::Row(_) = locked(f, &mut txn, id).await.unwrap() {
            match id % 4 {
                0 => delete(f, &mut txn, id).await,
                1 => {
                    let Locked::Row(current) = locked(f, &mut txn, id).await.unwrap() else {
                        panic!("row {id} is gone")
                    };
                    let moved = row(id + 1000 * round, "moved");
                    assert_eq!(txn.update(&f.table(), &current, &moved).await.unwrap(), Inserted::Done);
                }
                _ => update(f, &mut txn, id, &format!("round {round}")).await,
            }
        } else {
            assert_eq!(txn.insert(&f.table(), &row(id, "back")).await.unwrap(), Inserted::Done);
        }
        txn.next_statement();
    }
    txn.commit().await.unwrap();
}

#[tokio::test]
async fn lookups_find_at_every_snapshot_what_scans_find() {
    let mut f = Fixture::new();
    let table = f.create_table(1, true).await;
    overlapping(&f, &table, 20).await;
    assert_eq!(f.engine.stats().locator_entries, 19 * 20, "all files but one need entries");
    let first = f.engine.read(Version::ZERO);
    let mut reads = vec![];
    for round in 1..6 {
        churn(&f, round).await;
        reads.push(f.engine.read(Version::ZERO));
        if round % 2 == 0 {
            f.engine.freeze_table(table.id).unwrap();
        }
        assert_lookups(&f, &[&first]);
        assert_lookups(&f, &reads.iter().collect::<Vec<_>>());
    }
    let files = f.engine.stats().files;
    f.engine.compact_table(table.id).unwrap();
    assert!(f.engine.stats().files < files);
    assert_lookups(&f, &[&first, &reads[0], &reads[4], &f.engine.read(Version::ZERO)]);
    drop((first, reads));
    f.engine.freeze_table(table.id).unwrap();
    // In another order those that come for them overlap in their keys, too.
    if clustered_by().is_none() {
        assert_eq!(f.engine.stats().locator_entries, 0, "files that are gone give up their entries");
    }

    overlapping_again(&f, &table).await;
    f = f.reopen();
    assert_eq!(f.engine.stats().locator_entries, 0, "nothing is kept over a restart");
    let expected = now(&f);
    assert_lookups(&f, &[&f.engine.read(Version::ZERO)]);
    f.engine.freeze_table(table.id).unwrap();
    assert!(f.engine.stats().locator_entries > 0);
    assert_rows(&now(&f), &expected);
    assert_lookups(&f, &[&f.engine.read(Version::ZERO)]);
}

/// Rewrites every eighth row again and again, so that one key has rows in many files.
async fn overlapping_again(f: &Fixture, table: &TableDef) {
    for round in 0..8 {
        let ids: Vec<i64> = now(f).into_keys().step_by(8).collect();
        let mut txn = f.begin();
        for id in ids {
            update(f, &mut txn, id, &format!("again {round}")).await;
        }
        txn.commit().await.unwrap();
        f.engine.freeze_table(table.id).unwrap();
    }
}

#[tokio::test]
async fn a_key_in_a_located_file_is_a_duplicate_until_its_row_is_deleted() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    overlapping(&f, &table, 10).await;
    for id in 0..200 {
        let mut txn = f.begin();
        let duplicate = Inserted::Duplicate { tablet: tablet_of(&f, &table, id), key: key(&table, id), index: None };
        assert_eq!(txn.insert(&table, &row(id, "twice")).await.unwrap(), duplicate);
        delete(&f, &mut txn, id).await;
        txn.next_statement();
        assert_eq!(txn.insert(&table, &row(id, "again")).await.unwrap(), Inserted::Done);
        match id % 2 {
            0 => drop(txn.commit().await.unwrap()),
            _ => drop(txn),
        }
    }
    let expected = (0..200).map(|id| (id, if id % 2 == 0 { "again" } else { "first" }.to_string())).collect();
    assert_rows(&now(&f), &expected);
    assert_lookups(&f, &[&f.engine.read(Version::ZERO)]);
}

#[tokio::test]
async fn files_of_an_undecided_batch_may_have_entries_and_leave_with_it() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    overlapping(&f, &table, 20).await;
    let entries = f.engine.stats().locator_entries;
    let mut batch = f.begin();
    let mut bulk = batch.bulk_insert(&table).unwrap();
    bulk.push(&columns(-40..0, "bulk")).await.unwrap();
    bulk.push(&columns(400..500, "bulk")).await.unwrap();
    bulk.finish().await.unwrap();
    f.engine.freeze_table(table.id).unwrap();
    assert_eq!(f.engine.stats().locator_entries, entries + 20, "the batch's file is the heaviest run now");
    let mut txn = f.begin();
    let (tablet, bulk_key) = (tablet_of(&f, &table, -7), key(&table, -7));
    let outcome = txn.lock_row(&table, tablet, &bulk_key, RowLock::Update, WaitPolicy::Skip).await.unwrap();
    assert!(matches!(outcome, Locked::Skipped), "{outcome:?}");
    assert_eq!(looked_up(&f, &f.engine.read(Version::ZERO), -40..0), BTreeMap::new());
    drop(batch);
    let outcome = txn.lock_row(&table, tablet, &bulk_key, RowLock::Update, WaitPolicy::Skip).await.unwrap();
    assert!(matches!(outcome, Locked::Gone), "{outcome:?}");
    drop(txn);
    f.engine.freeze_table(table.id).unwrap();
    assert_lookups(&f, &[&f.engine.read(Version::ZERO)]);
}

#[tokio::test]
async fn without_memory_for_entries_lookups_find_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { locator_bytes_max: 0, ..config(&dir) };
    let f = Fixture { engine: Engine::open(Os::real(), config, &|_| {}).unwrap(), dir };
    let table = f.create_table(1, true).await;
    overlapping(&f, &table, 20).await;
    let first = f.engine.read(Version::ZERO);
    churn(&f, 1).await;
    f.engine.freeze_table(table.id).unwrap();
    assert_lookups(&f, &[&first, &f.engine.read(Version::ZERO)]);
    assert_eq!((f.engine.stats().locator_entries, f.engine.stats().locator_bytes), (0, 0));
}

#[tokio::test]
async fn the_background_fills_locators_and_dropped_tables_give_their_memory_back() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    overlapping(&f, &table, 20).await;
    let Fixture { dir, engine } = f;
    drop(engine);
    let config = EngineConfig { background: true, freeze_rows_min: 1 << 40, segment_rows: 1, ..config(&dir) };
    let f = Fixture { engine: Engine::open(Os::real(), config, &|_| {}).unwrap(), dir };
    wait_until(|| f.engine.stats().locator_entries == 19 * 20).await;
    assert_lookups(&f, &[&f.engine.read(Version::ZERO)]);
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::DropTable(table.id)]).unwrap();
    txn.commit().await.unwrap();
    wait_until(|| f.engine.stats().locator_bytes == 0).await;
    f.engine.shutdown().unwrap();
}

async fn wait_until(reached: impl Fn() -> bool) {
    for _ in 0..1000 {
        if reached() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not reached within 20 s");
}

#[tokio::test]
async fn a_batch_is_checked_against_many_overlapping_files() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    overlapping(&f, &table, 200).await;
    let mut txn = f.begin();
    for id in (1000..1200).chain(2000..2200).filter(|id| *id != 2100) {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    let load = async |ids: std::ops::Range<i64>| {
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table)?;
        bulk.push(&columns(ids, "batch")).await?;
        bulk.finish().await?;
        txn.commit().await
    };
    load(1000..1200).await.unwrap();
    let error = load(2000..2200).await.unwrap_err();
    assert!(matches!(&error, Error::DuplicateKey { key: found, .. } if *found == key(&table, 2100)), "{error}");
    let error = load(1100..1300).await.unwrap_err();
    assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
    assert_eq!(now(&f).len(), 4000 - 199);
    assert_lookups(&f, &[&f.engine.read(Version::ZERO)]);
}
