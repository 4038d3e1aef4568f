//! Interleavings that once broke a protocol: each test is one of them.

use super::*;
use basalt_sched::failpoint;
use std::time::Duration;

/// Starts a bulk load of `ids` and finishes it, undecided.
async fn load(table: &Arc<TableDef>, txn: &mut Txn, ids: std::ops::Range<i64>, v: &str) -> Result<u64> {
    let mut bulk = txn.bulk_insert(table)?;
    bulk.push(&columns(ids, v)).await?;
    bulk.finish().await
}

#[tokio::test]
async fn rows_of_a_batch_changed_by_its_own_transaction_survive_a_restart() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..500, "old").await;
    let mut txn = f.begin();
    for id in 0..500 {
        delete(&f, &mut txn, id).await;
    }
    txn.next_statement();
    load(&table, &mut txn, 0..500, "bulk").await.unwrap();
    txn.next_statement();
    update(&f, &mut txn, 7, "changed").await;
    delete(&f, &mut txn, 8).await;
    txn.commit().await.unwrap();
    let expected = now(&f);
    assert_eq!((expected.len(), expected[&7].as_str()), (499, "changed"));
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
    assert!(f.engine.read(Version::ZERO).get(&table, tablet_of(&f, &table, 8), &key(&table, 8)).unwrap().is_none());
}

#[tokio::test]
async fn skip_locked_does_not_wait_for_an_undecided_batch() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut batch = f.begin();
    load(&table, &mut batch, 0..500, "bulk").await.unwrap();
    let mut txn = f.begin();
    let (tablet, key) = (tablet_of(&f, &table, 42), key(&table, 42));
    let outcome = txn.lock_row(&table, tablet, &key, RowLock::Update, WaitPolicy::Skip).await.unwrap();
    assert!(matches!(outcome, Locked::Skipped), "{outcome:?}");
}

#[tokio::test]
async fn a_weak_row_lock_returns_the_committed_row_under_a_writer() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "committed").await;
    for _ in 0..2 {
        let (tablet, key) = (tablet_of(&f, &table, 5), key(&table, 5));
        let mut writer = f.begin();
        let wait = WaitPolicy::Wait(None);
        let Locked::Row(current) = writer.lock_row(&table, tablet, &key, RowLock::NoKeyUpdate, wait).await.unwrap()
        else {
            panic!("row 5 is gone")
        };
        writer.update(&table, &current, &row(5, "undecided")).await.unwrap();
        let mut reader = f.begin();
        let outcome = reader.lock_row(&table, tablet, &key, RowLock::KeyShare, WaitPolicy::Fail).await.unwrap();
        let Locked::Row(seen) = outcome else { panic!("{outcome:?}") };
        assert_eq!(seen.values, row(5, "committed"));
        writer.rollback();
        f.engine.freeze_table(table.id).unwrap();
    }
}

/// Locks are free before the commit is durable. Whoever is granted one sees what its last holder has committed, of
/// whichever rows, and so does what follows in his session if he goes back.
#[tokio::test]
async fn behind_a_lock_lies_what_its_last_holder_has_committed() {
    let f = Fixture::new();
    f.create_table(1, true).await;
    insert(&f, 0..10, "0").await;
    for round in 1..=20 {
        let (isolation, session_version) = (Isolation::ReadCommitted, f.engine.published());
        let options = TxnOptions { isolation, synchronous_commit: false, session_version, session: 0 };
        let mut first = f.engine.begin(options);
        locked(&f, &mut first, 1).await.unwrap();
        update(&f, &mut first, 2, &round.to_string()).await;
        let version = first.commit().await.unwrap();
        let mut second = f.begin();
        locked(&f, &mut second, 1).await.unwrap();
        second.next_statement();
        assert_eq!(contents(&second.read(), &f.table())[&2], round.to_string());
        assert!(second.met() >= version);
    }
}

/// A weak lock beside an update looks for the row that the update has not replaced yet: in hot, then in files. If the
/// update commits in between, it must not be taken for a deletion.
#[tokio::test]
async fn a_row_whose_update_commits_while_it_is_locked_weakly_is_there() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let (tablet, key) = (tablet_of(&f, &table, 5), key(&table, 5));
    let mut writer = f.begin();
    let mode = RowLock::NoKeyUpdate;
    let current = writer.lock_row(&table, tablet, &key, mode, WaitPolicy::Fail).await.unwrap().row().unwrap();
    writer.update(&table, &current, &row(5, "two")).await.unwrap();
    failpoint::call_at("get-from-files", move || {
        let commit = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(writer.commit()).unwrap();
        };
        std::thread::spawn(commit).join().unwrap();
    });
    let mut reader = f.begin();
    let outcome = reader.lock_row(&table, tablet, &key, RowLock::KeyShare, WaitPolicy::Fail).await.unwrap();
    assert!(matches!(&outcome, Locked::Row(seen) if seen.values == row(5, "one")), "{outcome:?}");
    reader.commit().await.unwrap();
    assert_eq!(now(&f)[&5], "two");
}

#[tokio::test]
async fn files_with_dead_rows_that_an_old_reader_needs_are_not_rewritten_for_ever() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    load(&table, &mut txn, 0..2000, "bulk").await.unwrap();
    txn.commit().await.unwrap();
    f.engine.compact_table(table.id).unwrap();
    let old = f.engine.read(Version::ZERO);
    let mut txn = f.begin();
    for id in (0..2000).step_by(2) {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    let tablet = f.engine.tablet(table.tablets().next().unwrap()).unwrap();
    assert!(!f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap(), "nothing can be dropped yet");
    assert_eq!(contents(&old, &table).len(), 2000);
    drop(old);
    assert!(f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap());
    while f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap() {}
    assert_eq!(now(&f).len(), 1000);
}

#[tokio::test]
async fn an_open_writer_does_not_make_every_round_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { checkpoint_log_bytes: 64 << 10, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    let mut open = f.begin();
    open.insert(&table, &row(-1, "open")).await.unwrap();
    insert(&f, 0..2000, &"x".repeat(64)).await;
    assert!(f.engine.checkpoint_is_due());
    f.engine.checkpoint().unwrap();
    insert(&f, 5000..5001, "little").await;
    assert!(!f.engine.checkpoint_is_due(), "next to nothing was logged since the last one");
}

/// Every start begins a log file. A process that is killed again and again must not fill the disk with them.
#[tokio::test]
async fn log_files_of_many_starts_are_given_up() {
    let config = |dir: &tempfile::TempDir| EngineConfig { checkpoint_log_bytes: 8 << 20, ..config(dir) };
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(Os::real(), config(&dir), &|_| {}).unwrap();
    let mut f = Fixture { dir, engine };
    f.create_table(1, true).await;
    let mut most = 0;
    for start in 0..40 {
        let Fixture { dir, engine } = f;
        drop(engine);
        let engine = Engine::open(Os::real(), config(&dir), &|_| {}).unwrap();
        f = Fixture { dir, engine };
        insert(&f, start..start + 1, "one").await;
        if f.engine.checkpoint_is_due() {
            f.engine.checkpoint().unwrap();
        }
        most = most.max(f.engine.os().fs.list(&f.dir.path().join("log")).unwrap().len());
    }
    assert!(most <= 24, "{most} files of 1 MiB, though a checkpoint is due after 8");
}

#[tokio::test]
async fn files_of_a_load_that_was_cancelled_are_removed() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let files = || f.engine.os().fs.list(&f.dir.path().join("files")).unwrap().len();
    for _ in 0..20 {
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table).unwrap();
        bulk.push(&columns(0..5000, "bulk")).await.unwrap();
        // The future is dropped while it waits for the encoder.
        let _ = tokio::time::timeout(Duration::ZERO, bulk.finish()).await;
        txn.rollback();
    }
    for _ in 0..500 {
        f.engine.collect_files();
        if files() == 0 {
            return;
        }
        f.engine.os().clock.sleep(Duration::from_millis(10));
    }
    panic!("{} files are left", files());
}

#[tokio::test]
async fn wide_rows_fit_the_log_whatever_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { bulk_rows_min: 10_000, memory_bytes_max: 4 << 30, ..config(&dir) };
    let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
    let f = Fixture { dir, engine };
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    load(&table, &mut txn, 0..700, &"x".repeat(100_000)).await.unwrap();
    txn.commit().await.unwrap();
    assert_eq!(now(&f).len(), 700);
}

#[tokio::test]
async fn a_batch_brings_back_keys_that_were_deleted_in_hot() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..500, "old").await;
    let mut txn = f.begin();
    for id in 0..500 {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    let mut txn = f.begin();
    load(&table, &mut txn, 0..500, "bulk").await.unwrap();
    txn.commit().await.unwrap();
    let tablet = tablet_of(&f, &table, 42);
    let found = f.engine.read(Version::ZERO).get(&table, tablet, &key(&table, 42)).unwrap();
    assert_eq!(found.map(|found| found.values), Some(row(42, "bulk")));
    let mut txn = f.begin();
    assert!(matches!(txn.insert(&table, &row(42, "twin")).await.unwrap(), Inserted::Duplicate { .. }));
    update(&f, &mut txn, 42, "changed").await;
    delete(&f, &mut txn, 43).await;
    txn.commit().await.unwrap();
    let expected = now(&f);
    assert_eq!((expected.len(), expected[&42].as_str()), (499, "changed"));
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn a_key_changed_there_and_back_and_deleted_is_gone() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, [1], "one").await;
    let mut waiting = f.begin();
    let mut txn = f.begin();
    for (from, to) in [(1, 2), (2, 1)] {
        let Locked::Row(current) = locked(&f, &mut txn, from).await.unwrap() else { panic!("row {from} is gone") };
        assert_eq!(txn.update(&table, &current, &row(to, "one")).await.unwrap(), Inserted::Done);
    }
    delete(&f, &mut txn, 1).await;
    txn.commit().await.unwrap();
    assert!(matches!(locked(&f, &mut waiting, 1).await.unwrap(), Locked::Gone));
}

#[tokio::test]
async fn a_batch_misses_no_row_that_changes_behind_its_check() {
    // File by file the even keys come first.
    for (merged, deleted, changed) in [(false, 8, 7), (true, 7, 8)] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        insert(&f, (0..500).step_by(2), "even").await;
        f.engine.freeze_table(table.id).unwrap();
        insert(&f, (1..500).step_by(2), "odd").await;
        f.engine.freeze_table(table.id).unwrap();
        // The batch is listed and waits for the writer of a key that it has.
        let mut other = f.begin();
        assert_eq!(other.insert(&table, &row(1000, "other")).await.unwrap(), Inserted::Done);
        let batch = tokio::spawn({
            let (mut txn, table) = (f.begin(), table.clone());
            async move {
                let mut bulk = txn.bulk_insert(&table)?;
                bulk.push(&columns(7..9, "bulk")).await?;
                bulk.push(&columns(1000..1200, "bulk")).await?;
                bulk.finish().await?;
                txn.commit().await
            }
        });
        let until = async |holds: &dyn Fn(&EngineStats) -> bool| {
            while !holds(&f.engine.stats()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        until(&|stats| stats.files == 3 && stats.lock_waiters == 1).await;
        if merged {
            f.engine.compact_table(table.id).unwrap();
            assert_eq!(f.engine.stats().files, 2);
        }
        // One writer deletes a row, has the batch wait at it, and another changes the other one behind its back.
        let (mut deleter, mut changer) = (f.begin(), f.begin());
        delete(&f, &mut deleter, deleted).await;
        other.rollback();
        tokio::time::sleep(Duration::from_millis(20)).await;
        until(&|stats| stats.lock_waiters == 1).await;
        update(&f, &mut changer, changed, "changed").await;
        changer.commit().await.unwrap();
        f.engine.evict_table(table.id).unwrap();
        deleter.commit().await.unwrap();
        let refused = batch.await.unwrap();
        assert!(matches!(&refused, Err(Error::DuplicateKey { .. })), "{refused:?}");
        let found = now(&f);
        assert_eq!((found.len(), found.get(&deleted), found[&changed].as_str()), (499, None, "changed"));
    }
}

#[tokio::test]
async fn an_edit_does_not_bring_tablets_of_dropped_tables_back() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let setting = |value: &str| CatalogEdit::SetSetting { name: "a".into(), value: Some(value.into()) };
    let mut stale = f.begin();
    stale.edit_catalog(vec![setting("one")]).unwrap();
    let mut other = f.begin();
    other.edit_catalog(vec![CatalogEdit::DropTable(table.id)]).unwrap();
    other.commit().await.unwrap();
    stale.edit_catalog(vec![setting("two")]).unwrap();
    assert!(stale.catalog().table(table.id).is_none());
    let tablet = table.tablets().next().unwrap();
    assert!(f.engine.tablet(tablet).is_err());
    stale.commit().await.unwrap();
    assert!(f.engine.tablet(tablet).is_err());
    assert_eq!(f.engine.catalog().settings["a"], "two");
}

/// The same table, empty, in tablets of its own.
fn truncated(f: &Fixture, table: &TableDef) -> Arc<TableDef> {
    let mut table = table.clone();
    for tablet in table.partitions.iter_mut().flat_map(|partition| &mut partition.tablets) {
        *tablet = f.engine.next_tablet_id();
    }
    Arc::new(table)
}

#[tokio::test]
async fn tablets_that_come_and_go_in_one_transaction_leave_nothing() {
    let f = Fixture::new();
    let table = f.create_table(2, true).await;
    let before = f.engine.stats();
    let mut txn = f.begin();
    for first in [0, 1000] {
        let table = truncated(&f, &table);
        txn.edit_catalog(vec![CatalogEdit::PutTable(table.clone())]).unwrap();
        txn.next_statement();
        assert_eq!(txn.insert(&table, &row(first, "alone")).await.unwrap(), Inserted::Done);
        let mut bulk = txn.bulk_insert(&table).unwrap();
        bulk.push(&columns(first + 1..first + 500, "batch")).await.unwrap();
        bulk.finish().await.unwrap();
    }
    txn.commit().await.unwrap();
    let stats = f.engine.stats();
    assert_eq!((stats.tablets, stats.hot_rows + stats.cold_rows), (before.tablets, 500));
    assert!(now(&f).keys().copied().eq(1000..1500));

    let mut txn = f.begin();
    let emptied = truncated(&f, &f.table());
    txn.edit_catalog(vec![CatalogEdit::PutTable(emptied.clone())]).unwrap();
    txn.next_statement();
    assert_eq!(txn.insert(&emptied, &row(1, "gone")).await.unwrap(), Inserted::Done);
    txn.edit_catalog(vec![CatalogEdit::DropTable(table.id)]).unwrap();
    txn.commit().await.unwrap();
    let stats = f.engine.stats();
    assert_eq!((stats.tablets, stats.hot_bytes, stats.files), (before.tablets - 2, 0, 0));
    let f = f.reopen();
    assert_eq!(f.engine.stats().tablets, before.tablets - 2);
    f.engine.shutdown().unwrap();
    f.assert_sound();
}

#[tokio::test]
async fn a_batch_of_wide_rows_goes_to_files_before_it_fills_memory() {
    for ascending in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig { bulk_rows_min: 10_000, segment_rows: 1 << 20, ..config(&dir) };
        let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
        let f = Fixture { dir, engine };
        let table = f.create_table(1, true).await;
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table).unwrap();
        let wide = "x".repeat(200_000);
        for i in 0..60 {
            let first = if ascending { i } else { 60 - i } * 10;
            bulk.push(&columns(first..first + 10, &wide)).await.unwrap();
        }
        assert_eq!(bulk.finish().await.unwrap(), 600);
        txn.commit().await.unwrap();
        let stats = f.engine.stats();
        assert_eq!((stats.hot_rows, stats.cold_rows), (0, 600), "600 rows are few, but 120 MB");
        // 64 MiB each; behind what came in order before the first that did not, a quarter of the memory each, sorted.
        assert_eq!(stats.files, if ascending { 2 } else { 8 });
    }
}
