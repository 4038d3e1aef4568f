//! Writers of a key that an undecided batch brings, too.

use super::*;
use std::time::Duration;

/// A batch of 200 rows from `first` on, in a task of its own.
fn start_batch(f: &Fixture, table: &Arc<TableDef>, first: i64) -> tokio::task::JoinHandle<Result<Version>> {
    let (mut txn, table) = (f.begin(), table.clone());
    tokio::spawn(async move {
        let mut bulk = txn.bulk_insert(&table)?;
        bulk.push(&columns(first..first + 200, "batch")).await?;
        bulk.finish().await?;
        txn.commit().await
    })
}

/// Waits until the batch's file is in the view and its check waits for a lock.
async fn checking(f: &Fixture, files: u64, waits: u64) {
    while f.engine.stats().files < files || f.engine.stats().lock_waits < waits {
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

fn duplicate(f: &Fixture, table: &Arc<TableDef>, id: i64) -> Inserted {
    Inserted::Duplicate { tablet: tablet_of(f, table, id), key: key(table, id) }
}

/// Files as a view lists them, while a commit decides those of one of two batches.
#[test]
fn a_moved_file_comes_before_the_undecided_while_others_are_decided() {
    use crate::tablet::{EntryStamps, FileEntry};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let f = Fixture::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let table = runtime.block_on(async {
        let table = f.create_table(1, true).await;
        insert(&f, 0..10, "one").await;
        f.engine.freeze_table(table.id).unwrap();
        table
    });
    let tablet = only_tablet(&f, &table);
    let data = tablet.view().files[0].data.clone();
    let (first, second) = (TxnId::new(Epoch(1), 999), TxnId::new(Epoch(1), 1000));
    let entry = |stamp: Stamp| {
        let stamps = EntryStamps::Uniform { stamp: AtomicU64::new(stamp.raw()), seq: 1 };
        Arc::new(FileEntry { data: data.clone(), deletes: basalt_cold::DeleteMap::new(), stamps, bytes: 1 })
    };
    let deciding: Vec<_> = (0..12).map(|_| entry(Stamp::txn(first))).collect();
    let moved = entry(Stamp::version(Version(2)));
    let mut files: Vec<_> = (0..4).map(|_| entry(Stamp::version(Version(1)))).collect();
    files.extend(deciding.iter().flat_map(|file| [entry(Stamp::txn(second)), file.clone()]));
    files.push(moved.clone());
    let (go, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut wrong = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                if go.swap(false, Ordering::AcqRel) {
                    deciding.iter().for_each(|file| file.restamp(Version(3)));
                }
            }
        });
        for round in 0..200_000 {
            for file in &deciding {
                let EntryStamps::Uniform { stamp, .. } = &file.stamps else { panic!("made so") };
                stamp.store(Stamp::txn(first).raw(), Ordering::Release);
            }
            go.store(true, Ordering::Release);
            (0..round % 100).for_each(|_| std::hint::spin_loop());
            {
                let _latch = tablet.latch.write();
                tablet.switch_view(files.clone());
            }
            let view = tablet.view();
            let before = view.files.iter().take_while(|file| !Arc::ptr_eq(file, &moved));
            wrong += usize::from(before.into_iter().any(|file| file.undecided() == Some(second)));
            while go.load(Ordering::Acquire) || deciding[11].undecided().is_some() {
                std::hint::spin_loop();
            }
        }
        stop.store(true, Ordering::Release);
    });
    assert_eq!(wrong, 0);
}
