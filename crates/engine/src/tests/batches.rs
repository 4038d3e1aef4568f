//! Writers of a key that an undecided batch brings, too.

use super::*;
use std::time::Duration;

/// A batch of 200 rows from `first` on, in a task of its own.
pub(super) fn start_batch(f: &Fixture, table: &Arc<TableDef>, first: i64) -> tokio::task::JoinHandle<Result<Version>> {
    let (mut txn, table) = (f.begin(), table.clone());
    tokio::spawn(async move {
        let mut bulk = txn.bulk_insert(&table)?;
        bulk.push(&columns(first..first + 200, "batch")).await?;
        bulk.finish().await?;
        txn.commit().await
    })
}

/// Waits until the batch's file is in the view and its check waits for a lock.
pub(super) async fn checking(f: &Fixture, files: u64, waits: u64) {
    while f.engine.stats().files < files || f.engine.stats().lock_waiters < waits {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn assert_refused(batch: Result<Version>) {
    assert!(matches!(batch, Err(Error::DuplicateKey { .. })), "{batch:?}");
}

/// Ten rows, and a transaction that holds the locks of 5 and 6.
async fn with_locks(f: &Fixture) -> (Arc<TableDef>, Txn, [CurrentRow; 2]) {
    let table = f.create_table(1, true).await;
    insert(f, 0..10, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let mut writer = f.begin();
    let mut rows = Vec::new();
    for id in [5, 6] {
        let Locked::Row(current) = locked(f, &mut writer, id).await.unwrap() else { panic!("row {id} is gone") };
        rows.push(current);
    }
    (table, writer, rows.try_into().expect("two rows"))
}

#[tokio::test]
async fn a_cold_row_changed_under_a_batch_is_there_once() {
    let f = Fixture::new();
    let (table, mut writer, [five, six]) = with_locks(&f).await;
    let batch = start_batch(&f, &table, 5);
    checking(&f, 2, 1).await;
    writer.update(&table, &five, &row(5, "two")).await.unwrap();
    writer.delete(&table, &six).await.unwrap();
    writer.commit().await.unwrap();
    // 6 was gone when the batch looked, 5 was not.
    assert_refused(batch.await.unwrap());
    let expected = now(&f);
    assert_eq!((expected.len(), expected[&5].as_str(), expected.get(&6)), (9, "two", None));
    let six = || f.engine.read(Version::ZERO).get(&table, tablet_of(&f, &table, 6), &key(&table, 6)).unwrap();
    assert!(six().is_none());
    f.engine.checkpoint().unwrap();
    let f = f.reopen();
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn a_row_that_moves_and_changes_under_a_batch_is_there_once() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    let mut writer = f.begin();
    let Locked::Row(current) = locked(&f, &mut writer, 5).await.unwrap() else { panic!("row 5 is gone") };
    let batch = start_batch(&f, &table, 5);
    checking(&f, 1, 1).await;
    f.engine.evict_table(table.id).unwrap();
    writer.update(&table, &current, &row(5, "two")).await.unwrap();
    writer.commit().await.unwrap();
    assert_refused(batch.await.unwrap());
    let found = now(&f);
    assert_eq!((found.len(), found[&5].as_str()), (10, "two"));
}

#[tokio::test]
async fn a_key_changed_under_a_batch_is_left_once() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let mut holder = f.begin();
    assert_eq!(holder.insert(&table, &row(2000, "holder")).await.unwrap(), Inserted::Done);
    let mut writer = f.begin();
    let (tablet, five) = (tablet_of(&f, &table, 5), key(&table, 5));
    let updated = tokio::spawn({
        let table = table.clone();
        async move {
            let wait = WaitPolicy::Wait(None);
            let Locked::Row(current) = writer.lock_row(&table, tablet, &five, RowLock::Update, wait).await? else {
                panic!("row 5 is gone")
            };
            // Waits for the holder of 2000, with the lock of 5.
            writer.update(&table, &current, &row(2000, "two")).await?;
            writer.commit().await
        }
    });
    checking(&f, 1, 1).await;
    let batch = start_batch(&f, &table, 5);
    checking(&f, 2, 2).await;
    holder.rollback();
    updated.await.unwrap().unwrap();
    assert_refused(batch.await.unwrap());
    let found = now(&f);
    assert_eq!((found.len(), found.get(&5), found[&2000].as_str()), (10, None, "two"));
}

/// Whoever is granted a key's lock before the batch that brings the key asks for it waits for the batch without it.
#[tokio::test]
async fn a_batch_and_a_writer_of_its_key_are_no_deadlock() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut holder = f.begin();
    for id in [5, 6] {
        assert_eq!(holder.insert(&table, &row(id, "holder")).await.unwrap(), Inserted::Done);
    }
    let mut writer = f.begin();
    let inserted = tokio::spawn({
        let table = table.clone();
        async move { writer.insert(&table, &row(6, "writer")).await }
    });
    checking(&f, 0, 1).await;
    let batch = start_batch(&f, &table, 5);
    checking(&f, 1, 2).await;
    // The batch gets the lock of 5, the writer that of 6.
    holder.rollback();
    batch.await.unwrap().unwrap();
    assert_eq!(inserted.await.unwrap().unwrap(), duplicate(&f, &table, 6));
    assert_eq!(now(&f).len(), 200);
}

/// Whoever has a lock that a batch waits for does not wait for the batch when he comes back to the row.
#[tokio::test]
async fn a_row_that_is_locked_is_locked_again_under_a_batch() {
    let f = Fixture::new();
    let (table, mut writer, _) = with_locks(&f).await;
    assert_eq!(writer.insert(&table, &row(7, "taken")).await.unwrap(), duplicate(&f, &table, 7));
    assert_eq!(writer.insert(&table, &row(150, "two")).await.unwrap(), Inserted::Done);
    let batch = start_batch(&f, &table, 5);
    checking(&f, 2, 1).await;
    for id in [5, 6, 150] {
        let Locked::Row(current) = locked(&f, &mut writer, id).await.unwrap() else { panic!("row {id} is gone") };
        writer.delete(&table, &current).await.unwrap();
        assert_eq!(writer.insert(&table, &row(id, "three")).await.unwrap(), Inserted::Done);
        assert_eq!(writer.insert(&table, &row(id, "twice")).await.unwrap(), duplicate(&f, &table, id));
    }
    assert!(!batch.is_finished());
    writer.commit().await.unwrap();
    assert_refused(batch.await.unwrap());
    let found = now(&f);
    assert_eq!((found.len(), found[&5].as_str(), found[&150].as_str()), (11, "three", "three"));
}

/// A row that was locked while it was hot, moves, and is changed later, is there once.
#[tokio::test]
async fn a_locked_row_that_moves_under_a_batch_is_there_once() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, [6], "hot").await;
    let mut holder = f.begin();
    assert_eq!(holder.insert(&table, &row(5, "holder")).await.unwrap(), Inserted::Done);
    let batch = start_batch(&f, &table, 5);
    checking(&f, 1, 1).await;
    let mut writer = f.begin();
    assert!(matches!(locked(&f, &mut writer, 6).await.unwrap(), Locked::Row(_)));
    f.engine.evict_table(table.id).unwrap();
    let Locked::Row(current) = locked(&f, &mut writer, 6).await.unwrap() else { panic!("row 6 is gone") };
    writer.update(&table, &current, &row(6, "changed")).await.unwrap();
    holder.rollback();
    // The batch waits for the writer.
    checking(&f, 1, 1).await;
    writer.commit().await.unwrap();
    assert_refused(batch.await.unwrap());
    assert_eq!(now(&f).into_iter().collect::<Vec<_>>(), [(6, "changed".to_string())]);
}

/// Whoever changes rows that are there does not wait for a batch that brings their keys, too.
#[tokio::test]
async fn rows_are_changed_while_a_batch_waits_to_be_refused() {
    let f = Fixture::new();
    let (table, mut writer, [five, _]) = with_locks(&f).await;
    writer.update(&table, &five, &row(5, "two")).await.unwrap();
    let batch = start_batch(&f, &table, 5);
    checking(&f, 2, 1).await;
    for id in [7, 8, 9] {
        let Locked::Row(current) = locked(&f, &mut writer, id).await.unwrap() else { panic!("row {id} is gone") };
        match id {
            7 => assert_eq!(writer.update(&table, &current, &row(7, "two")).await.unwrap(), Inserted::Done),
            8 => writer.delete(&table, &current).await.unwrap(),
            _ => assert_eq!(writer.insert(&table, &row(9, "twice")).await.unwrap(), duplicate(&f, &table, 9)),
        }
    }
    assert!(!batch.is_finished());
    writer.commit().await.unwrap();
    assert_refused(batch.await.unwrap());
    let found = now(&f);
    assert_eq!((found.len(), found[&7].as_str(), found.get(&8)), (9, "two", None));
}

/// Batches of the same keys: the one that holds a key's lock, having deleted its row, does not wait for the other.
#[tokio::test]
async fn rows_are_deleted_and_loaded_again_beside_a_batch() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 5..205, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let mut writer = f.begin();
    for id in 5..205 {
        delete(&f, &mut writer, id).await;
    }
    let batch = start_batch(&f, &table, 5);
    checking(&f, 2, 1).await;
    let mut bulk = writer.bulk_insert(&table).unwrap();
    bulk.push(&columns(5..205, "again")).await.unwrap();
    bulk.finish().await.unwrap();
    let Locked::Row(current) = locked(&f, &mut writer, 100).await.unwrap() else { panic!("row 100 is gone") };
    assert_eq!(current.values, row(100, "again"));
    writer.commit().await.unwrap();
    assert_refused(batch.await.unwrap());
    let found = now(&f);
    assert!(found.len() == 200 && found.values().all(|v| v == "again"));
}

/// A merge takes the file away whose mark a batch waits for, and the one who made the mark ends.
#[tokio::test]
async fn a_batch_that_waits_at_a_file_that_is_replaced_goes_on() {
    for commits in [false, true] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        insert(&f, 0..200, "one").await;
        f.engine.freeze_table(table.id).unwrap();
        insert(&f, 300..310, "one").await;
        f.engine.freeze_table(table.id).unwrap();
        let mut writer = f.begin();
        delete(&f, &mut writer, 5).await;
        // Not listed: the batch's own row of 5 comes first in its file.
        let batch = start_batch(&f, &table, 5);
        checking(&f, 3, 1).await;
        f.engine.compact_table(table.id).unwrap();
        match commits {
            true => drop(writer.commit().await.unwrap()),
            false => writer.rollback(),
        }
        assert_refused(tokio::time::timeout(Duration::from_secs(20), batch).await.unwrap().unwrap());
        assert_eq!(now(&f).contains_key(&5), !commits);
    }
}

/// Both are listed before either compares: the earlier one does not wait.
#[tokio::test]
async fn two_batches_that_check_at_a_time_are_no_deadlock() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut holder = f.begin();
    assert_eq!(holder.insert(&table, &row(5, "holder")).await.unwrap(), Inserted::Done);
    let earlier = start_batch(&f, &table, 5);
    checking(&f, 1, 1).await;
    let later = start_batch(&f, &table, 204);
    checking(&f, 2, 2).await;
    holder.rollback();
    earlier.await.unwrap().unwrap();
    assert_refused(later.await.unwrap());
    assert_eq!(now(&f).len(), 200);
}

/// The later of two batches waits, and is refused or goes on.
#[tokio::test]
async fn batches_with_a_key_in_common_are_no_deadlock() {
    for commits in [true, false] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        let mut first = f.begin();
        let mark = first.savepoint();
        let mut bulk = first.bulk_insert(&table).unwrap();
        bulk.push(&columns(0..200, "first")).await.unwrap();
        bulk.finish().await.unwrap();
        let second = start_batch(&f, &table, 199);
        checking(&f, 2, 1).await;
        // Looks past a batch that waits for it, but holds what it found there only as long as it is there.
        let Locked::Row(current) = locked(&f, &mut first, 199).await.unwrap() else { panic!("row 199 is gone") };
        assert_eq!(current.values, row(199, "first"));
        match commits {
            true => {
                first.commit().await.unwrap();
                assert_refused(second.await.unwrap());
            }
            false => {
                first.rollback_to(mark).unwrap();
                // Waits for the second, which waits for this transaction: one of the two is refused.
                let again = first.insert(&table, &row(199, "again")).await;
                let ended = match &again {
                    Ok(Inserted::Done) => first.commit().await.map(|_| ()),
                    _ => Err(Error::Deadlock(Vec::new())).inspect_err(|_| first.rollback()),
                };
                let second = second.await.unwrap();
                assert!(ended.is_ok() != second.is_ok(), "{again:?} {second:?}");
            }
        }
        let found = now(&f);
        assert!(found.contains_key(&199), "{} rows", found.len());
    }
}

fn duplicate(f: &Fixture, table: &Arc<TableDef>, id: i64) -> Inserted {
    Inserted::Duplicate { tablet: tablet_of(f, table, id), key: key(table, id), index: None }
}
