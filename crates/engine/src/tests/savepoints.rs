//! Going back to a savepoint gives back the locks that were taken since
//! (`docs/decisions/0034-savepoints-and-locks.md`).

use super::batches::{checking, start_batch};
use super::*;

/// Locks a row if nobody is in the way.
async fn try_locked(f: &Fixture, txn: &mut Txn, id: i64, mode: RowLock) -> Result<Locked> {
    let table = f.table();
    let (tablet, key) = (tablet_of(f, &table, id), key(&table, id));
    txn.next_statement();
    txn.lock_row(&table, tablet, &key, mode, WaitPolicy::Fail).await
}

fn is_refused(locked: &Result<Locked>) -> bool {
    matches!(locked, Err(Error::LockNotAvailable(_)))
}

#[tokio::test]
async fn others_change_what_was_given_back_before_and_after_its_owner() {
    for cold in [false, true] {
        let f = Fixture::new();
        let table = f.create_table(2, true).await;
        insert(&f, 0..10, "old").await;
        if cold {
            f.engine.freeze_table(table.id).unwrap();
        }
        let (mut first, mut second) = (f.begin(), f.begin());
        update(&f, &mut first, 0, "first").await;
        let savepoint = first.savepoint();
        first.next_statement();
        update(&f, &mut first, 1, "undone").await;
        delete(&f, &mut first, 2).await;
        first.insert(&table, &row(20, "undone")).await.unwrap();
        for id in [0, 1, 2, 20] {
            assert!(is_refused(&try_locked(&f, &mut second, id, RowLock::Update).await), "row {id}");
        }
        first.rollback_to(savepoint).unwrap();
        assert!(is_refused(&try_locked(&f, &mut second, 0, RowLock::Update).await));
        second.next_statement();
        update(&f, &mut second, 1, "second").await;
        delete(&f, &mut second, 2).await;
        assert_eq!(second.insert(&table, &row(20, "second")).await.unwrap(), Inserted::Done);
        assert!(is_refused(&try_locked(&f, &mut first, 1, RowLock::KeyShare).await));
        second.commit().await.unwrap();
        first.next_statement();
        update(&f, &mut first, 1, "first at last").await;
        assert_eq!(first.insert(&table, &row(2, "first at last")).await.unwrap(), Inserted::Done);
        assert!(matches!(first.insert(&table, &row(20, "x")).await.unwrap(), Inserted::Duplicate { .. }));
        first.commit().await.unwrap();
        let mut expected: BTreeMap<i64, String> = (3..10).map(|id| (id, "old".into())).collect();
        expected.extend([(0, "first".into()), (1, "first at last".into())]);
        expected.extend([(2, "first at last".into()), (20, "second".into())]);
        assert_rows(&now(&f), &expected);
        let f = f.reopen();
        assert_rows(&now(&f), &expected);
    }
}

/// What the log has of a transaction that took back a change of a row, which another then changed and committed first.
#[tokio::test]
async fn replay_leaves_out_what_was_undone_before_others_came() {
    for committed in [true, false] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        insert(&f, 0..3, "old").await;
        let (mut first, mut second) = (f.begin(), f.begin());
        let savepoint = first.savepoint();
        update(&f, &mut first, 1, "undone").await;
        first.rollback_to(savepoint).unwrap();
        update(&f, &mut second, 1, "second").await;
        first.insert(&table, &row(7, "first")).await.unwrap();
        match committed {
            true => drop(second.commit().await.unwrap()),
            false => second.rollback(),
        }
        first.commit().await.unwrap();
        let expected = now(&f);
        assert_eq!(expected[&1], if committed { "second" } else { "old" });
        assert_rows(&now(&f.reopen()), &expected);
    }
}

#[tokio::test]
async fn a_statement_that_begins_again_keeps_its_locks() {
    let f = Fixture::new();
    f.create_table(1, true).await;
    insert(&f, 0..3, "old").await;
    let (mut first, mut second) = (f.begin(), f.begin());
    let position = first.position();
    update(&f, &mut first, 1, "undone").await;
    first.undo_to(position).unwrap();
    assert!(is_refused(&try_locked(&f, &mut second, 1, RowLock::Update).await));
}

#[tokio::test]
async fn tables_are_given_back_and_locked_anew() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let (mut first, mut second) = (f.begin(), f.begin());
    assert!(first.try_lock_table(table.id, TableLock::AccessShare).unwrap());
    let savepoint = first.savepoint();
    assert!(first.try_lock_table(table.id, TableLock::RowExclusive).unwrap());
    assert!(!second.try_lock_table(table.id, TableLock::Share).unwrap());
    first.rollback_to(savepoint).unwrap();
    assert!(second.try_lock_table(table.id, TableLock::Share).unwrap());
    // It knows that it has the lock no more.
    assert!(!first.try_lock_table(table.id, TableLock::RowExclusive).unwrap());
    second.rollback();
    assert!(first.try_lock_table(table.id, TableLock::RowExclusive).unwrap());
}

/// A definition that was taken back is nobody's: others make theirs from the committed one.
#[tokio::test]
async fn a_table_is_altered_by_another_when_an_edit_was_undone() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..3, "old").await;
    let named = |name: &str| CatalogEdit::PutTable(Arc::new(TableDef { name: name.into(), ..(*table).clone() }));
    let (mut first, mut second) = (f.begin(), f.begin());
    let savepoint = first.savepoint();
    first.lock_table(table.id, TableLock::AccessExclusive, WaitPolicy::Fail).await.unwrap();
    first.edit_catalog(vec![named("undone")]).unwrap();
    first.rollback_to(savepoint).unwrap();
    second.lock_table(table.id, TableLock::AccessExclusive, WaitPolicy::Fail).await.unwrap();
    second.edit_catalog(vec![named("second")]).unwrap();
    second.commit().await.unwrap();
    first.lock_table(table.id, TableLock::AccessExclusive, WaitPolicy::Fail).await.unwrap();
    // Made from what is no longer so.
    assert!(matches!(first.edit_catalog(vec![named("first")]), Err(Error::Catalog(_))));
    assert_eq!(first.catalog().table(table.id).unwrap().name, "second");
    first.commit().await.unwrap();
}

/// A batch waits for a key that another has inserted; he takes that back, and goes on.
#[tokio::test]
async fn a_batch_goes_on_when_its_key_is_given_back() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut first = f.begin();
    first.insert(&table, &row(1000, "first")).await.unwrap();
    let savepoint = first.savepoint();
    first.insert(&table, &row(150, "undone")).await.unwrap();
    let batch = start_batch(&f, &table, 100);
    checking(&f, 1, 1).await;
    first.rollback_to(savepoint).unwrap();
    batch.await.unwrap().unwrap();
    first.next_statement();
    assert!(matches!(first.insert(&table, &row(150, "late")).await.unwrap(), Inserted::Duplicate { .. }));
    first.commit().await.unwrap();
    assert_eq!(now(&f).len(), 201);
    assert_eq!(now(&f.reopen()).len(), 201);
}

/// A batch is granted a key that is given back, and then waits for the owner, who has a batch before it: not with the
/// key in its hands, for the owner may want it again.
#[tokio::test]
async fn a_batch_does_not_wait_with_a_key_that_was_given_back() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut first = f.begin();
    let mut bulk = first.bulk_insert(&table).unwrap();
    bulk.push(&columns(100..300, "first")).await.unwrap();
    bulk.finish().await.unwrap();
    first.next_statement();
    let savepoint = first.savepoint();
    update(&f, &mut first, 150, "undone").await;
    let batch = start_batch(&f, &table, 150);
    checking(&f, 2, 1).await;
    first.rollback_to(savepoint).unwrap();
    // For the end of the other one.
    checking(&f, 2, 1).await;
    first.next_statement();
    update(&f, &mut first, 150, "again").await;
    first.commit().await.unwrap();
    assert!(matches!(batch.await.unwrap(), Err(Error::DuplicateKey { .. })));
    assert_eq!(now(&f)[&150], "again");
}

/// What was seen under locks is noted nowhere else.
#[tokio::test]
async fn a_serializable_transaction_keeps_its_locks() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..3, "old").await;
    let (mut first, mut second) = (f.begin_with(Isolation::Serializable), f.begin());
    first.next_statement();
    let savepoint = first.savepoint();
    assert!(first.try_lock_table(table.id, TableLock::RowExclusive).unwrap());
    update(&f, &mut first, 1, "undone").await;
    first.rollback_to(savepoint).unwrap();
    assert!(is_refused(&try_locked(&f, &mut second, 1, RowLock::Update).await));
    assert!(!second.try_lock_table(table.id, TableLock::Share).unwrap());
    assert!(first.try_lock_table(table.id, TableLock::RowExclusive).unwrap());
}

/// Two that each have seen that there is no row of the other's keys, by a batch that they took back.
#[tokio::test]
async fn keys_of_a_batch_that_was_taken_back_count_as_read() {
    for taken_back in [true, false] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        let (mut first, mut second) = (f.begin_with(Isolation::Serializable), f.begin_with(Isolation::Serializable));
        for (txn, keys) in [(&mut first, 100..300), (&mut second, 500..700)] {
            txn.next_statement();
            let savepoint = txn.savepoint();
            if taken_back {
                let mut bulk = txn.bulk_insert(&table).unwrap();
                bulk.push(&columns(keys, "batch")).await.unwrap();
                bulk.finish().await.unwrap();
            }
            txn.rollback_to(savepoint).unwrap();
        }
        first.insert(&table, &row(600, "first")).await.unwrap();
        second.insert(&table, &row(200, "second")).await.unwrap();
        first.commit().await.unwrap();
        let second = second.commit().await;
        assert_eq!(matches!(second, Err(Error::Dependencies)), taken_back, "{second:?}");
    }
}
