//! Changes of many rows by marks and private files, beside everything else (`txn/large.rs`).

use super::*;
use crate::locks::Object;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

/// A row as a search finds it.
struct Found {
    tablet: TabletId,
    key: Key,
    stamp: Stamp,
    id: i64,
}

fn find(read: &ReadContext, table: &Arc<TableDef>) -> Vec<Found> {
    let columns = vec![ColumnId(1)];
    let spec = ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: true };
    let mut found = Vec::new();
    for mut part in read.scan(spec).unwrap().0 {
        while let Some(batch) = part.next_batch().unwrap() {
            let number = |at: usize, row| batch.columns[at].as_primitive::<Int64Type>().value(row);
            for row in 0..batch.rows {
                found.push(Found {
                    tablet: TabletId(number(1, row) as u32),
                    key: Key::from(batch.columns[2].as_binary_view().value(row)),
                    stamp: Stamp::from_raw(number(3, row) as u64),
                    id: number(0, row),
                });
            }
        }
    }
    found
}

/// What a statement does to all rows that it has found: those that can be are changed together, the others one by one.
/// How many were.
async fn change(txn: &mut Txn, table: &Arc<TableDef>, found: &[Found], new: Option<&str>) -> Result<usize> {
    let mut update = LargeUpdate::new(table);
    let mut large = 0;
    for found in found.chunk_by(|a, b| a.tablet == b.tablet) {
        let rows: Vec<FoundRow> =
            found.iter().map(|row| FoundRow { key: row.key.as_bytes(), stamp: row.stamp }).collect();
        let done = txn.delete_resting(found[0].tablet, &rows).await?;
        let (done, left): (Vec<_>, Vec<_>) = found.iter().zip(done).partition(|(_, done)| *done);
        large += done.len();
        if let Some(v) = new {
            let mut id = ColumnBuilder::new(PhysType::I64, 0);
            let mut text = ColumnBuilder::new(PhysType::Bytes, 0);
            assert!(done.iter().all(|(row, _)| id.push(&Datum::I64(row.id)) && text.push(&Datum::text(v))));
            let keys = done.iter().map(|(row, _)| row.key.as_bytes());
            update.push(txn, found[0].tablet, keys, vec![id.finish(), text.finish()]).await?;
        }
        for (found, _) in left {
            let wait = WaitPolicy::Wait(None);
            let locked = txn.lock_row(table, found.tablet, &found.key, RowLock::Update, wait).await?;
            let Some(current) = locked.row() else { continue };
            match new {
                Some(v) => drop(txn.update(table, &current, &row(found.id, v)).await?),
                None => txn.delete(table, &current).await?,
            }
        }
    }
    update.finish(txn).await?;
    Ok(large)
}

async fn change_all(txn: &mut Txn, table: &Arc<TableDef>, new: Option<&str>) -> Result<usize> {
    txn.next_statement();
    let found = find(&txn.read(), table);
    change(txn, table, &found, new).await
}

/// 0..3000 in files of a freeze, 3000..5000 in those of a batch, 5000..5050 hot.
async fn filled(f: &Fixture, tablets: u32, keyed: bool) -> Arc<TableDef> {
    let table = f.create_table(tablets, keyed).await;
    insert(f, 0..3000, "one").await;
    f.engine.freeze_table(table.id).unwrap();
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(&table).unwrap();
    bulk.push(&columns(3000..5000, "one")).await.unwrap();
    bulk.finish().await.unwrap();
    txn.commit().await.unwrap();
    insert(f, 5000..5050, "one").await;
    table
}

/// What a power cut would leave of it now, were everything written durable.
fn crashed(f: &Fixture) -> Fixture {
    fn copy(from: &std::path::Path, to: &std::path::Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &to.join(entry.file_name())),
                false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    copy(f.dir.path(), dir.path());
    let engine = Engine::open(Os::real(), config(&dir), &|_| {}).unwrap();
    Fixture { dir, engine }
}

const KINDS: [(u32, bool); 3] = [(1, true), (4, true), (1, false)];

fn all(rows: std::ops::Range<i64>, v: &str) -> BTreeMap<i64, String> {
    rows.map(|id| (id, v.to_string())).collect()
}

#[tokio::test]
async fn many_rows_are_changed_without_locks_and_survive_a_restart() {
    for (tablets, keyed) in KINDS {
        for new in [None, Some("two")] {
            let mut f = Fixture::new();
            let table = filled(&f, tablets, keyed).await;
            let old = f.engine.read(Version::ZERO);
            let before = all(0..5050, "one");
            let after = new.map_or_else(BTreeMap::new, |v| all(0..5050, v));
            let mut txn = f.begin();
            assert_eq!(change_all(&mut txn, &table, new).await.unwrap(), 5000);
            // The table's, the transaction's, and those of hot rows.
            assert!(f.engine.locks.held_count() < 60, "{} locks", f.engine.locks.held_count());
            assert_rows(&contents(&txn.read(), &table), &before);
            txn.next_statement();
            assert_rows(&contents(&txn.read(), &table), &after);
            assert_rows(&now(&f), &before);
            // In the middle: what is undecided comes by the log.
            f.engine.checkpoint().unwrap();
            f.engine.freeze_table(table.id).unwrap();
            f.engine.compact_table(table.id).unwrap();
            assert_rows(&now(&f), &before);
            txn.commit().await.unwrap();
            assert_rows(&now(&f), &after);
            assert_rows(&contents(&old, &table), &before);
            drop(old);
            f = f.reopen();
            assert_rows(&now(&f), &after);
            f.engine.checkpoint().unwrap();
            f = f.reopen();
            assert_rows(&now(&f), &after);
            f.engine.compact_table(table.id).unwrap();
            assert_rows(&now(&f), &after);
            assert_eq!(
                f.engine.file_list().iter().map(|file| file.rows - file.deleted).sum::<u64>(),
                after.len() as u64
            );
            f.engine.shutdown().unwrap();
            f.assert_sound();
        }
    }
}

#[tokio::test]
async fn what_is_not_committed_leaves_nothing() {
    for (tablets, keyed) in KINDS {
        for new in [None, Some("two")] {
            let f = Fixture::new();
            let table = filled(&f, tablets, keyed).await;
            let before = all(0..5050, "one");
            let files = f.engine.stats().files;
            let mut txn = f.begin();
            change_all(&mut txn, &table, new).await.unwrap();
            txn.rollback();
            assert_rows(&now(&f), &before);
            assert!(f.engine.file_list().iter().all(|file| file.deleted == 0));
            assert_eq!(f.engine.stats().files, files);
            // And what a crash cuts off.
            let mut txn = f.begin();
            change_all(&mut txn, &table, new).await.unwrap();
            f.engine.checkpoint().unwrap();
            insert(&f, 6000..6001, "late").await;
            let after = crashed(&f);
            let mut expected = before.clone();
            expected.insert(6000, "late".into());
            assert_rows(&now(&after), &expected);
            drop(txn);
        }
    }
}

#[tokio::test]
async fn a_savepoint_takes_marks_and_files_back() {
    for (tablets, keyed) in KINDS {
        let f = Fixture::new();
        let table = filled(&f, tablets, keyed).await;
        let mut txn = f.begin();
        txn.next_statement();
        let found = find(&txn.read(), &table);
        let (first, second): (Vec<_>, Vec<_>) = found.into_iter().partition(|row| row.id < 1000);
        change(&mut txn, &table, &first, Some("two")).await.unwrap();
        // Within one statement and of the same files.
        let mark = txn.savepoint();
        change(&mut txn, &table, &second, None).await.unwrap();
        change_all(&mut txn, &table, Some("three")).await.unwrap();
        txn.rollback_to(mark).unwrap();
        let mut expected = all(0..5050, "one");
        expected.extend(all(0..1000, "two"));
        txn.next_statement();
        assert_rows(&contents(&txn.read(), &table), &expected);
        // New versions are changed again, and a key that was deleted comes back.
        change_all(&mut txn, &table, Some("four")).await.unwrap();
        let mark = txn.savepoint();
        change_all(&mut txn, &table, None).await.unwrap();
        txn.rollback_to(mark).unwrap();
        if keyed {
            delete(&f, &mut txn, 7).await;
            change_all(&mut txn, &table, None).await.unwrap();
            txn.next_statement();
            for id in [7, 8] {
                assert_eq!(txn.insert(&table, &row(id, "back")).await.unwrap(), Inserted::Done);
            }
            expected = all(7..9, "back");
        } else {
            expected = all(0..5050, "four");
        }
        txn.next_statement();
        assert_rows(&contents(&txn.read(), &table), &expected);
        txn.commit().await.unwrap();
        assert_rows(&now(&f), &expected);
        let f = f.reopen();
        assert_rows(&now(&f), &expected);
    }
}

/// Runs `first` while a transaction is undecided that has changed all rows; waits until it waits.
async fn beside<T: Send + 'static>(
    f: &Arc<Fixture>,
    new: Option<&str>,
    commits: bool,
    first: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut txn = f.begin();
    change_all(&mut txn, &f.table(), new).await.unwrap();
    let waiting = tokio::spawn(first);
    while f.engine.stats().lock_waiters == 0 {
        assert!(!waiting.is_finished(), "does not wait");
        tokio::task::yield_now().await;
    }
    match commits {
        true => drop(txn.commit().await.unwrap()),
        false => txn.rollback(),
    }
    waiting.await.unwrap()
}

#[tokio::test]
async fn who_wants_a_marked_row_waits_for_its_transaction_and_looks_again() {
    for (new, commits, repeatable_read) in [
        (None, true, false),
        (None, true, true),
        (None, false, true),
        (Some("two"), true, false),
        (Some("two"), true, true),
        (Some("two"), false, false),
    ] {
        let f = Arc::new(Fixture::new());
        filled(&f, 1, true).await;
        let mut other = f.begin_at(repeatable_read);
        let on = f.clone();
        let outcome = beside(&f, new, commits, async move { locked(&on, &mut other, 42).await }).await;
        match (outcome, new, commits, repeatable_read) {
            (Err(Error::Serialization(_)), _, true, true) => {}
            (Ok(Locked::Gone), None, true, false) => {}
            (Ok(Locked::Row(current)), Some(v), true, false) => assert_eq!(current.values, row(42, v)),
            (Ok(Locked::Row(current)), _, false, _) => assert_eq!(current.values, row(42, "one")),
            other => panic!("{other:?}"),
        }
        // A key that is being deleted is not free.
        let on = f.clone();
        let mut other = f.begin();
        if !commits {
            let outcome =
                beside(&f, new, commits, async move { other.insert(&on.table(), &row(42, "new")).await }).await;
            assert_eq!(outcome.unwrap(), duplicate_of(&f, 42));
        }
    }
}

fn duplicate_of(f: &Fixture, id: i64) -> Inserted {
    let table = f.table();
    Inserted::Duplicate { tablet: tablet_of(f, &table, id), key: key(&table, id), index: None }
}

#[tokio::test]
async fn who_will_not_wait_for_a_marked_row_is_told_so() {
    let f = Fixture::new();
    let table = filled(&f, 1, true).await;
    let mut txn = f.begin();
    change_all(&mut txn, &table, None).await.unwrap();
    let mut other = f.begin();
    let (tablet, key) = (tablet_of(&f, &table, 42), key(&table, 42));
    for (wait, expected) in [(WaitPolicy::Skip, true), (WaitPolicy::Fail, false)] {
        match other.lock_row(&table, tablet, &key, RowLock::KeyShare, wait).await {
            Ok(Locked::Skipped) => assert!(expected),
            Err(Error::LockNotAvailable(_)) => assert!(!expected),
            other => panic!("{other:?}"),
        }
    }
    let wait = WaitPolicy::Wait(Some(Duration::from_millis(5)));
    let outcome = other.lock_row(&table, tablet, &key, RowLock::Update, wait).await;
    assert!(matches!(outcome, Err(Error::LockTimeout(_))), "{outcome:?}");
    // He has kept nothing that the large one may want.
    assert!(!f.engine.locks.holds(other.owner, &Object::row(tablet, &key)));
}

#[tokio::test]
async fn a_row_that_another_has_locked_is_waited_for() {
    for new in [None, Some("two")] {
        let f = Arc::new(Fixture::new());
        let table = filled(&f, 1, true).await;
        let mut writer = f.begin();
        let Locked::Row(current) = locked(&f, &mut writer, 42).await.unwrap() else { panic!("row 42 is gone") };
        let mut txn = f.begin();
        let large = tokio::spawn({
            let table = table.clone();
            async move {
                let changed = change_all(&mut txn, &table, new).await;
                (txn, changed)
            }
        });
        while f.engine.stats().lock_waiters == 0 {
            assert!(!large.is_finished(), "does not wait");
            tokio::task::yield_now().await;
        }
        writer.update(&table, &current, &row(42, "writer")).await.unwrap();
        writer.commit().await.unwrap();
        let (txn, changed) = large.await.unwrap();
        assert_eq!(changed.unwrap(), 4999);
        txn.commit().await.unwrap();
        assert_rows(&now(&f), &new.map_or_else(BTreeMap::new, |v| all(0..5050, v)));
    }
}

/// The large one wants a row of a writer who wants one of its own: the younger ends.
#[tokio::test]
async fn a_cycle_through_marks_is_a_deadlock() {
    let f = Arc::new(Fixture::new());
    let table = filled(&f, 1, true).await;
    let mut txn = f.begin();
    let mut writer = f.begin();
    update(&f, &mut writer, 4999, "writer").await;
    let large = tokio::spawn({
        let table = table.clone();
        async move { change_all(&mut txn, &table, None).await.map(|_| txn) }
    });
    while f.engine.stats().lock_waiters == 0 {
        assert!(!large.is_finished(), "does not wait");
        tokio::task::yield_now().await;
    }
    let outcome = locked(&f, &mut writer, 1).await;
    assert!(matches!(outcome, Err(Error::Deadlock(_))), "{outcome:?}");
    writer.rollback();
    large.await.unwrap().unwrap().commit().await.unwrap();
    assert!(now(&f).is_empty());
}

#[tokio::test]
async fn two_large_changes_of_the_same_rows_come_one_after_the_other() {
    for (first, second, commits) in
        [(None, Some("two"), true), (Some("two"), None, false), (Some("two"), Some("three"), true)]
    {
        let f = Arc::new(Fixture::new());
        let table = filled(&f, 1, true).await;
        let mut other = f.begin();
        let outcome = beside(&f, first, commits, async move {
            change_all(&mut other, &table, second).await.unwrap();
            other.commit().await.unwrap();
        });
        outcome.await;
        let expected = match (first, second, commits) {
            (None, _, true) | (_, None, _) => BTreeMap::new(),
            (_, Some(v), _) => all(0..5050, v),
        };
        assert_rows(&now(&f), &expected);
    }
}

/// Rows that a search has found in hot, and that a move takes into a file before they are marked.
#[tokio::test]
async fn rows_that_moved_since_they_were_found_are_marked_where_they_are() {
    for evicts in [false, true] {
        let f = Fixture::new();
        let table = filled(&f, 1, true).await;
        let mut txn = f.begin();
        txn.next_statement();
        let found = find(&txn.read(), &table);
        match evicts {
            true => f.engine.evict_table(table.id).unwrap(),
            false => f.engine.freeze_table(table.id).unwrap(),
        }
        assert_eq!(change(&mut txn, &table, &found, Some("two")).await.unwrap(), 5050);
        txn.commit().await.unwrap();
        assert_rows(&now(&f), &all(0..5050, "two"));
        let f = f.reopen();
        assert_rows(&now(&f), &all(0..5050, "two"));
    }
}

#[tokio::test]
async fn rows_that_changed_since_they_were_found_are_looked_at_again() {
    let f = Fixture::new();
    let table = filled(&f, 1, true).await;
    let mut txn = f.begin();
    txn.next_statement();
    let found = find(&txn.read(), &table);
    let mut other = f.begin();
    for id in 100..110 {
        delete(&f, &mut other, id).await;
        update(&f, &mut other, id + 100, "other").await;
    }
    other.commit().await.unwrap();
    // Changed, and at rest again with another stamp.
    f.engine.freeze_table(table.id).unwrap();
    assert_eq!(change(&mut txn, &table, &found, Some("two")).await.unwrap(), 5030);
    txn.commit().await.unwrap();
    let expected: BTreeMap<_, _> = all(0..5050, "two").into_iter().filter(|(id, _)| !(100..110).contains(id)).collect();
    assert_rows(&now(&f), &expected);
}

/// A merge raises stamps up to the oldest snapshot. What was found is known all the same, and what came later is told apart.
#[tokio::test]
async fn rows_that_were_merged_since_they_were_found_are_marked() {
    for (repeatable_read, keyed) in [(false, true), (true, true), (false, false)] {
        let f = Fixture::configured(|config| EngineConfig { segment_rows: 1 << 20, ..config });
        let table = filled(&f, 1, keyed).await;
        // Below the snapshot: deleted, and there again.
        if keyed {
            for back in [false, true] {
                let mut other = f.begin();
                for id in 20..30 {
                    match back {
                        false => delete(&f, &mut other, id).await,
                        true => drop(other.insert(&table, &row(id, "again")).await.unwrap()),
                    }
                }
                other.commit().await.unwrap();
            }
        }
        let mut txn = f.begin_at(repeatable_read);
        if keyed {
            update(&f, &mut txn, 40, "own").await;
        }
        txn.next_statement();
        let found = find(&txn.read(), &table);
        // Above it: changed; deleted; deleted, and there again.
        let changed = if keyed { 100..130 } else { 0..0 };
        let mut other = f.begin();
        for id in changed.clone() {
            match id % 3 {
                0 => update(&f, &mut other, id, "other").await,
                _ => delete(&f, &mut other, id).await,
            }
        }
        other.commit().await.unwrap();
        insert(&f, changed.clone().filter(|id| id % 3 == 1), "other").await;
        f.engine.compact_table(table.id).unwrap();
        assert_eq!(f.engine.file_list().len(), 1);
        let tablet = f.engine.tablet(found[0].tablet).unwrap();
        let view = tablet.view();
        let stamps: Vec<Stamp> =
            (0..view.files[0].data.rows()).map(|at| view.files[0].stamp_of(at).unwrap().0).collect();
        drop(view);
        assert!(found.iter().filter(|row| row.id < 20).all(|row| !stamps.contains(&row.stamp)));
        let (found, apart): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|row| !changed.contains(&row.id) && row.stamp.as_txn().is_none());
        assert_eq!(apart.len(), if keyed { 31 } else { 0 });
        let rows: Vec<FoundRow> =
            apart.iter().map(|row| FoundRow { key: row.key.as_bytes(), stamp: row.stamp }).collect();
        assert!(!txn.delete_resting(tablet.id, &rows).await.unwrap().contains(&true));
        assert_eq!(change(&mut txn, &table, &found, Some("two")).await.unwrap(), found.len());
        for row in apart {
            let (seen, wait) = (Some(row.stamp), WaitPolicy::Wait(None));
            let locked = txn.lock_seen_row(&table, row.tablet, &row.key, seen, RowLock::Update, wait).await;
            match (locked, row.id, repeatable_read) {
                (Ok(Locked::Row(current)), 40, _) => assert!(current.stamp == row.stamp && current.values.is_empty()),
                (Err(Error::Serialization(_)), _, true) => {}
                (Ok(Locked::Gone), id, false) => assert_eq!(id % 3, 2),
                (Ok(Locked::Row(current)), id, false) => {
                    assert!(id % 3 != 2 && current.stamp != row.stamp && current.values[1] == Datum::text("other"));
                }
                other => panic!("{other:?}"),
            }
        }
        txn.commit().await.unwrap();
        let mut expected = all(0..5050, "two");
        if keyed {
            expected.insert(40, "own".into());
            expected.extend(all(100..130, "other"));
            expected.retain(|id, _| !(100..130).contains(id) || id % 3 != 2);
        }
        assert_rows(&now(&f), &expected);
        let f = f.reopen();
        assert_rows(&now(&f), &expected);
    }
}

/// Who locks a row that was merged since he found it need not look at it again.
#[tokio::test]
async fn a_row_that_was_merged_since_it_was_found_is_as_it_was() {
    let f = Fixture::new();
    let table = filled(&f, 1, true).await;
    let mut txn = f.begin();
    txn.next_statement();
    let found = find(&txn.read(), &table);
    f.engine.compact_table(table.id).unwrap();
    for row in found.iter().filter(|row| row.id % 500 == 0) {
        let (seen, wait) = (Some(row.stamp), WaitPolicy::Wait(None));
        let locked = txn.lock_seen_row(&table, row.tablet, &row.key, seen, RowLock::NoKeyUpdate, wait).await.unwrap();
        let Locked::Row(current) = locked else { panic!("row {} is gone", row.id) };
        assert_eq!((current.stamp, current.values.len()), (row.stamp, 0));
        txn.update(&table, &current, &super::row(row.id, "two")).await.unwrap();
    }
    txn.commit().await.unwrap();
    let expected: BTreeMap<i64, String> =
        (0..5050).map(|id| (id, if id % 500 == 0 { "two".into() } else { "one".into() })).collect();
    assert_rows(&now(&f), &expected);
}

/// A file with marks keeps its places; a merge that had begun is put off.
#[tokio::test]
async fn a_merge_leaves_files_alone_that_a_large_change_has_marked() {
    let f = Fixture::new();
    let table = filled(&f, 1, true).await;
    let before: Vec<FileId> = f.engine.file_list().iter().map(|file| file.file).collect();
    let mut other = f.begin();
    for id in 0..600 {
        delete(&f, &mut other, id).await;
    }
    other.commit().await.unwrap();
    let mut txn = f.begin();
    change_all(&mut txn, &table, None).await.unwrap();
    f.engine.compact_table(table.id).unwrap();
    let listed = |f: &Fixture| f.engine.file_list().iter().map(|file| file.file).collect::<Vec<_>>();
    assert!(before.iter().all(|id| listed(&f).contains(id)), "{before:?} are not all in {:?}", listed(&f));
    // Decided, but still needed by an older snapshot.
    let old = f.engine.read(Version::ZERO);
    let expected = now(&f);
    txn.commit().await.unwrap();
    f.engine.compact_table(table.id).unwrap();
    assert!(before.iter().all(|id| listed(&f).contains(id)));
    assert_rows(&contents(&old, &table), &expected);
    drop(old);
    f.engine.compact_table(table.id).unwrap();
    assert!(listed(&f).is_empty() && now(&f).is_empty());
    let f = f.reopen();
    assert!(now(&f).is_empty());
}

/// Merges would be put off by the marks that come; what is dead may go.
#[tokio::test]
async fn merges_wait_while_a_large_change_is_under_way() {
    let f = Fixture::configured(|config| EngineConfig { segment_rows: 1 << 20, ..config });
    let table = f.create_table(1, true).await;
    for part in 0..5 {
        insert(&f, part * 2000..(part + 1) * 2000, "one").await;
        f.engine.freeze_table(table.id).unwrap();
    }
    let tablet = f.engine.tablet(tablet_of(&f, &table, 0)).unwrap();
    let merges = || f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap();
    let files = || f.engine.file_list().len();
    let mut other = f.begin();
    for id in 0..2000 {
        delete(&f, &mut other, id).await;
    }
    other.commit().await.unwrap();
    let (first, second) = (f.engine.begin_large_change(&table).unwrap(), f.engine.begin_large_change(&table).unwrap());
    assert!(merges());
    assert_eq!(files(), 4);
    drop(first);
    assert!(!merges());
    assert_eq!(files(), 4);
    drop(second);
    assert!(merges());
    assert_eq!(files(), 1);
    assert_rows(&now(&f), &all(2000..10_000, "one"));
}

/// Hot rows leave if they are many in all tablets together, or take much of the memory.
#[tokio::test]
async fn hot_rows_leave_before_a_large_change() {
    for (rows, width, min, leave) in
        [(2000, 10, 1500, true), (2000, 10, 2500, false), (300, 20_000, 16_384, true), (300, 20_000, 200, true)]
    {
        let f =
            Fixture::configured(|config| EngineConfig { large_changes_min: min, memory_bytes_max: 32 << 20, ..config });
        let table = f.create_table(4, true).await;
        insert(&f, 0..rows, &"x".repeat(width)).await;
        let begun = f.engine.begin_large_change(&table).unwrap();
        let hot: usize = table.tablets().map(|id| f.engine.tablet(id).unwrap().hot.rows()).sum();
        assert_eq!(hot, if leave { 0 } else { rows as usize }, "{rows} rows of {width} bytes");
        drop(begun);
        assert_rows(&now(&f), &all(0..rows, &"x".repeat(width)));
    }
}

/// A batch of a key whose row is being deleted waits, and is refused if the row stays.
#[tokio::test]
async fn a_batch_waits_for_marks_on_its_keys() {
    for commits in [true, false] {
        let f = Arc::new(Fixture::new());
        let table = filled(&f, 1, true).await;
        let mut batch = f.begin();
        let outcome = beside(&f, None, commits, async move {
            let mut bulk = batch.bulk_insert(&table)?;
            bulk.push(&columns(100..400, "batch")).await?;
            bulk.finish().await?;
            batch.commit().await
        })
        .await;
        assert_eq!(outcome.is_ok(), commits, "{outcome:?}");
        let expected = if commits { all(100..400, "batch") } else { all(0..5050, "one") };
        assert_rows(&now(&f), &expected);
    }
}

/// It waits for one transaction's mark, and by the time it looks again another one has marked the row.
#[tokio::test]
async fn a_batch_waits_for_each_who_marks_its_keys() {
    // Many keys, of which those behind the first are met with the second mark; and one.
    for (commits, keys) in [(true, 100..400), (false, 100..400), (true, -200..1), (false, -200..1)] {
        let f = Fixture::new();
        let table = filled(&f, 1, true).await;
        let (mut first, mut second) = (f.begin(), f.begin());
        change_all(&mut first, &table, None).await.unwrap();
        let mut batch = f.begin();
        let loaded = tokio::spawn({
            let (table, keys) = (table.clone(), keys.clone());
            async move {
                let mut bulk = batch.bulk_insert(&table)?;
                bulk.push(&columns(keys, "batch")).await?;
                bulk.finish().await?;
                batch.commit().await
            }
        });
        while f.engine.stats().lock_waiters == 0 {
            tokio::task::yield_now().await;
        }
        second.next_statement();
        let found = find(&second.read(), &table);
        let (found, hot): (Vec<_>, Vec<_>) = found.into_iter().partition(|row| row.id < 5000);
        assert_eq!(hot.len(), 50);
        // One thread: the batch does not run in between.
        first.rollback();
        assert_eq!(second.mark_now(&found), 5000);
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert!(!loaded.is_finished(), "the batch does not wait for who may bring its keys back");
        match commits {
            true => drop(second.commit().await.unwrap()),
            false => second.rollback(),
        }
        assert_eq!(loaded.await.unwrap().is_ok(), commits);
        let mut expected = if commits { all(keys, "batch") } else { all(0..5000, "one") };
        expected.extend(all(5000..5050, "one"));
        assert_rows(&now(&f), &expected);
    }
}

impl Txn {
    /// Without letting anybody else run.
    fn mark_now(&mut self, found: &[Found]) -> usize {
        let tablet = self.tablet(found[0].tablet).unwrap();
        let rows: Vec<FoundRow> =
            found.iter().map(|row| FoundRow { key: row.key.as_bytes(), stamp: row.stamp }).collect();
        let mut done = vec![false; rows.len()];
        self.mark_resting(&tablet, &rows, &mut done).unwrap();
        done.into_iter().filter(|done| *done).count()
    }
}

#[tokio::test]
async fn who_has_read_what_a_large_change_changed_is_refused() {
    for new in [None, Some("two")] {
        for reads in [true, false] {
            let f = Fixture::new();
            let table = filled(&f, 1, true).await;
            let mut txn = f.begin_with(Isolation::Serializable);
            txn.next_statement();
            let tablet = tablet_of(&f, &table, 42);
            // Within the marked rows, or beyond.
            let id = if reads { 42 } else { 70_000 };
            txn.read().get(&table, tablet, &key(&table, id)).unwrap();
            let mut large = f.begin_with(Isolation::Serializable);
            change_all(&mut large, &table, new).await.unwrap();
            large.commit().await.unwrap();
            assert_eq!(txn.insert(&table, &row(60_000, "x")).await.unwrap(), Inserted::Done);
            let outcome = txn.commit().await;
            assert_eq!(matches!(outcome, Err(Error::Dependencies)), reads, "{outcome:?}");
        }
        // The other way round.
        let f = Fixture::new();
        let table = filled(&f, 1, true).await;
        let mut large = f.begin_with(Isolation::Serializable);
        change_all(&mut large, &table, new).await.unwrap();
        insert(&f, [60_000], "x").await;
        assert!(matches!(large.commit().await, Err(Error::Dependencies)));
        assert_eq!(now(&f).len(), 5051);
    }
}

/// Writers add one to rows, one by one and all at once, beside moves; nothing is lost, here or after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_change_is_lost_between_large_changes_and_single_rows() {
    const ROWS: i64 = 600;
    let f = Arc::new(Fixture::configured(|config| EngineConfig { segment_rows: 100, ..config }));
    let table = f.create_table(1, true).await;
    insert(&f, 0..ROWS, "0").await;
    f.engine.freeze_table(table.id).unwrap();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = |stop: &std::sync::atomic::AtomicBool| stop.load(std::sync::atomic::Ordering::Relaxed);
    let mover = std::thread::spawn({
        let (f, stop, table) = (f.clone(), stop.clone(), table.clone());
        move || {
            while !stopped(&stop) {
                f.engine.freeze_table(table.id).unwrap();
                f.engine.compact_table(table.id).unwrap();
                f.engine.checkpoint().unwrap();
            }
        }
    });
    let singles: Vec<_> = (0..3)
        .map(|writer| {
            let (f, table) = (f.clone(), table.clone());
            tokio::spawn(async move {
                let mut added = 0u64;
                for round in 0..300i64 {
                    let mut txn = f.begin();
                    let id = (round * 7 + writer * 211) % ROWS;
                    let Locked::Row(current) = locked(&f, &mut txn, id).await.unwrap() else { panic!("row {id}") };
                    let Datum::Bytes(text) = &current.values[1] else { panic!("no text") };
                    let value: i64 = std::str::from_utf8(text).unwrap().parse().unwrap();
                    txn.update(&table, &current, &row(id, &(value + 1).to_string())).await.unwrap();
                    match round % 5 {
                        0 => txn.rollback(),
                        _ => {
                            txn.commit().await.unwrap();
                            added += 1;
                        }
                    }
                }
                added
            })
        })
        .collect();
    let mut large_added = 0u64;
    let mut large_rows = 0;
    for round in 0..25 {
        let mut txn = f.begin();
        txn.next_statement();
        let read = txn.read();
        let values = contents_of_batches(&read, &table);
        let found = find(&read, &table);
        drop(read);
        let mut update = LargeUpdate::new(&table);
        let tablet = found[0].tablet;
        let rows: Vec<FoundRow> =
            found.iter().map(|row| FoundRow { key: row.key.as_bytes(), stamp: row.stamp }).collect();
        let done = txn.delete_resting(tablet, &rows).await.unwrap();
        let marked: Vec<&Found> = found.iter().zip(done).filter(|(_, done)| *done).map(|(row, _)| row).collect();
        let mut id = ColumnBuilder::new(PhysType::I64, 0);
        let mut text = ColumnBuilder::new(PhysType::Bytes, 0);
        for row in &marked {
            let value: i64 = values[&row.id].parse().unwrap();
            assert!(id.push(&Datum::I64(row.id)) && text.push(&Datum::text(&(value + 1).to_string())));
        }
        if !marked.is_empty() {
            let keys = marked.iter().map(|row| row.key.as_bytes());
            update.push(&txn, tablet, keys, vec![id.finish(), text.finish()]).await.unwrap();
        }
        update.finish(&mut txn).await.unwrap();
        match round % 4 {
            0 => txn.rollback(),
            _ => {
                txn.commit().await.unwrap();
                large_added += marked.len() as u64;
                large_rows += marked.len();
            }
        }
    }
    let mut added = large_added;
    for single in singles {
        added += single.await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    mover.join().unwrap();
    assert!(large_rows > 1000, "only {large_rows} rows were changed together");
    let sum = |f: &Fixture| now(f).values().map(|v| v.parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!((sum(&f), now(&f).len() as i64), (added, ROWS));
    let f = Arc::into_inner(f).expect("nobody else has it").reopen();
    assert_eq!((sum(&f), now(&f).len() as i64), (added, ROWS));
}
