//! SERIALIZABLE: who writes and has read what was changed since is refused; nobody else is.

use super::*;

/// Where the rows lie that are read and changed.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lying {
    Hot,
    Cold,
}

/// What a transaction reads of rows 0 to 9.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Read {
    /// Row 3 by its key.
    Key,
    /// The absent row 30 by its key.
    AbsentKey,
    /// From 2 up to 5, by a walk to its end.
    Range,
    /// The first two from 2 on.
    RangeBegun,
    /// All of them.
    Scan,
    /// Those whose id is below 5.
    ScanBelow,
    /// The one whose id is 30.
    ScanFor30,
}

/// What another transaction does meanwhile.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Change {
    Update(i64),
    Delete(i64),
    Insert(i64),
    /// Rows from 20 to 219 as a file.
    Batch,
    /// An insert that is taken back by a later commit.
    InsertAndDelete(i64),
}

fn read(f: &Fixture, txn: &Txn, what: Read) {
    let table = f.table();
    let read = txn.read();
    let tablets: Vec<TabletId> = table.tablets().collect();
    let scan = |predicates: Vec<ColumnPredicate>| {
        let spec = ScanSpec { table: table.clone(), columns: vec![ColumnId(2)], predicates, with_identity: false };
        for mut part in read.scan(spec).unwrap().0 {
            while part.next_batch().unwrap().is_some() {}
        }
    };
    let compare = |op, value| ColumnPredicate::Compare { column: ColumnId(1), op, value: Datum::I64(value) };
    let walk = |to: Option<i64>, rows: usize| {
        let range =
            KeyRange { from: key(&table, 2).as_bytes().to_vec(), to: to.map(|to| key(&table, to).as_bytes().to_vec()) };
        let spec = WalkSpec {
            table: &table,
            tablets: &tablets,
            range,
            direction: Direction::Ascending,
            columns: &[ColumnId(2)],
            reading: read.reading(),
            stamped: false,
            keyed: false,
            rows_hint: 0,
            looks_max: usize::MAX,
        };
        let mut walk = f.engine.walk(spec).unwrap().expect("files are in key order");
        for _ in 0..rows {
            walk.next_row().unwrap();
        }
    };
    match what {
        Read::Key => assert!(read.get(&table, tablets[0], &key(&table, 3)).unwrap().is_some()),
        Read::AbsentKey => {
            let columns = [ColumnId(2)];
            let seen = f.engine.look(&table, tablets[0], key(&table, 30).as_bytes(), read.reading(), &columns, |_| ());
            assert_eq!(seen.unwrap(), None);
        }
        Read::Range => walk(Some(5), 4),
        Read::RangeBegun => walk(None, 2),
        Read::Scan => scan(Vec::new()),
        Read::ScanBelow => scan(vec![compare(CompareOp::Lt, 5)]),
        Read::ScanFor30 => scan(vec![compare(CompareOp::Eq, 30)]),
    }
}

async fn change(f: &Fixture, change: Change) {
    let table = f.table();
    let mut txn = f.begin();
    match change {
        Change::Update(id) => update(f, &mut txn, id, "changed").await,
        Change::Delete(id) => delete(f, &mut txn, id).await,
        Change::Insert(id) => drop(txn.insert(&table, &row(id, "new")).await.unwrap()),
        Change::Batch => {
            let mut bulk = txn.bulk_insert(&table).unwrap();
            bulk.push(&columns(20..220, "batch")).await.unwrap();
            bulk.finish().await.unwrap();
        }
        Change::InsertAndDelete(id) => {
            insert(f, [id], "new").await;
            delete(f, &mut txn, id).await;
        }
    }
    txn.commit().await.unwrap();
}

fn is_refused(what: Read, change: Change) -> bool {
    let (met, appears) = match change {
        Change::Update(id) | Change::Delete(id) => (vec![id], vec![]),
        Change::Insert(id) => (vec![], vec![id]),
        // Whether 30 is one of them is not looked at closer than by the bounds of the file, nor what a scan is for.
        Change::Batch if what == Read::ScanBelow => return true,
        Change::Batch => (vec![], (20..220).collect()),
        // By its key it was changed; a scan finds what it found.
        Change::InsertAndDelete(id) if matches!(what, Read::AbsentKey | Read::Range) => (vec![], vec![id]),
        Change::InsertAndDelete(_) => (vec![], vec![]),
    };
    let reads = |id: &i64| match what {
        Read::Key => *id == 3,
        Read::AbsentKey | Read::ScanFor30 => *id == 30,
        Read::Range => (2..5).contains(id),
        Read::RangeBegun => (2..4).contains(id),
        Read::Scan => true,
        Read::ScanBelow => *id < 5,
    };
    met.iter().chain(&appears).any(reads)
}

#[tokio::test]
async fn who_writes_is_refused_if_what_he_read_was_changed() {
    let reads =
        [Read::Key, Read::AbsentKey, Read::Range, Read::RangeBegun, Read::Scan, Read::ScanBelow, Read::ScanFor30];
    let changes = [
        Change::Update(3),
        Change::Update(4),
        Change::Update(7),
        Change::Delete(3),
        Change::Delete(8),
        Change::Insert(30),
        Change::Insert(31),
        Change::Batch,
        Change::InsertAndDelete(30),
    ];
    for lying in [Lying::Hot, Lying::Cold] {
        for what in reads {
            for other in changes {
                let f = Fixture::new();
                let table = f.create_table(1, true).await;
                insert(&f, 0..10, "one").await;
                if lying == Lying::Cold {
                    f.engine.freeze_table(table.id).unwrap();
                }
                let mut txn = f.begin_with(Isolation::Serializable);
                txn.next_statement();
                read(&f, &txn, what);
                change(&f, other).await;
                if lying == Lying::Cold {
                    f.engine.freeze_table(table.id).unwrap();
                }
                txn.next_statement();
                txn.insert(&table, &row(1000, "mine")).await.unwrap();
                let committed = txn.commit().await;
                let refused = matches!(committed, Err(Error::Dependencies));
                assert_eq!(refused, is_refused(what, other), "{lying:?} {what:?} {other:?}: {committed:?}");
                assert_eq!(now(&f).contains_key(&1000), !refused, "{lying:?} {what:?} {other:?}");
            }
        }
    }
}

#[tokio::test]
async fn of_two_that_read_what_the_other_writes_one_commits() {
    let f = Fixture::new();
    f.create_table(4, true).await;
    insert(&f, 0..2, "on call").await;
    let mut doctors = [f.begin_with(Isolation::Serializable), f.begin_with(Isolation::Serializable)];
    for (id, txn) in doctors.iter_mut().enumerate() {
        txn.next_statement();
        assert_eq!(contents(&txn.read(), &f.table()).len(), 2);
        delete(&f, txn, id as i64).await;
    }
    let [one, other] = doctors;
    one.commit().await.unwrap();
    assert!(matches!(other.commit().await, Err(Error::Dependencies)));
    assert_eq!(now(&f).into_keys().collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn who_only_reads_is_never_refused() {
    let f = Fixture::new();
    f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    let mut txn = f.begin_with(Isolation::Serializable);
    txn.next_statement();
    read(&f, &txn, Read::Scan);
    change(&f, Change::Update(3)).await;
    txn.next_statement();
    assert_eq!(contents(&txn.read(), &f.table())[&3], "one");
    txn.commit().await.unwrap();
}

/// What it has read cannot be compared with what is gone.
#[tokio::test]
async fn who_has_read_at_a_snapshot_that_is_too_old_cannot_write() {
    let f = Fixture::configured(|config| EngineConfig { snapshot_age_max: Some(Duration::ZERO), ..config });
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    let mut txn = f.begin_with(Isolation::Serializable);
    txn.next_statement();
    read(&f, &txn, Read::ScanBelow);
    txn.insert(&table, &row(50, "mine")).await.unwrap();
    change(&f, Change::Delete(3)).await;
    f.engine.tablets().iter().for_each(|tablet| f.engine.sweep(tablet));
    let refused = txn.commit().await;
    assert!(matches!(refused, Err(Error::SnapshotTooOld | Error::Dependencies)), "{refused:?}");
}

#[tokio::test]
async fn own_changes_and_earlier_ones_refuse_nobody() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    change(&f, Change::Update(3)).await;
    let mut txn = f.begin_with(Isolation::Serializable);
    txn.next_statement();
    read(&f, &txn, Read::Scan);
    update(&f, &mut txn, 3, "mine").await;
    txn.insert(&table, &row(50, "mine")).await.unwrap();
    txn.next_statement();
    read(&f, &txn, Read::Scan);
    txn.commit().await.unwrap();
    // Nobody runs: nothing is kept.
    change(&f, Change::Update(4)).await;
    assert!(f.engine.recent.is_empty());
}

#[tokio::test]
async fn many_commits_are_looked_at_before_the_turn() {
    for met in [false, true] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        insert(&f, 0..200, "one").await;
        let mut txn = f.begin_with(Isolation::Serializable);
        txn.next_statement();
        read(&f, &txn, Read::Key);
        for id in (100..200).chain(met.then_some(3)).chain(50..60) {
            change(&f, Change::Update(id)).await;
        }
        txn.insert(&table, &row(1000, "mine")).await.unwrap();
        let committed = txn.commit().await;
        assert_eq!(matches!(committed, Err(Error::Dependencies)), met, "{committed:?}");
    }
}

/// The last row of the batch, as the only thing that a transaction writes.
async fn write_batch(txn: &mut Txn, table: &Arc<TableDef>) {
    let mut bulk = txn.bulk_insert(table).unwrap();
    bulk.push(&columns(2000..2200, "batch")).await.unwrap();
    bulk.finish().await.unwrap();
}

#[tokio::test]
async fn who_writes_a_batch_alone_is_looked_at_from_its_snapshot_on() {
    for refused in [false, true] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        insert(&f, 0..10, "one").await;
        // Somebody runs, so that what comes before the snapshot is noted; something was forgotten once.
        let older = f.begin_with(Isolation::Serializable);
        change(&f, Change::Update(4)).await;
        f.engine.recent.forget_all();
        change(&f, Change::Update(3)).await;
        let mut txn = f.begin_with(Isolation::Serializable);
        txn.next_statement();
        read(&f, &txn, Read::Key);
        if refused {
            change(&f, Change::Update(3)).await;
        }
        write_batch(&mut txn, &table).await;
        let committed = txn.commit().await;
        assert_eq!(matches!(committed, Err(Error::Dependencies)), refused, "{committed:?}");
        drop(older);
    }
}

#[tokio::test]
async fn columns_that_were_not_read_refuse_nobody() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..10, "one").await;
    let mut txn = f.begin_with(Isolation::Serializable);
    txn.next_statement();
    let predicates = vec![ColumnPredicate::Compare { column: ColumnId(1), op: CompareOp::Lt, value: Datum::I64(5) }];
    let spec = ScanSpec { table: table.clone(), columns: vec![ColumnId(1)], predicates, with_identity: false };
    for mut part in txn.read().scan(spec).unwrap().0 {
        while part.next_batch().unwrap().is_some() {}
    }
    change(&f, Change::Update(3)).await;
    txn.insert(&table, &row(1000, "mine")).await.unwrap();
    txn.commit().await.unwrap();
}

#[tokio::test]
async fn who_would_need_changes_that_are_forgotten_is_refused() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut txn = f.begin_with(Isolation::Serializable);
    txn.next_statement();
    read(&f, &txn, Read::AbsentKey);
    insert(&f, [7], "one").await;
    f.engine.recent.forget_all();
    let mut later = f.begin_with(Isolation::Serializable);
    later.next_statement();
    read(&f, &later, Read::AbsentKey);
    for (txn, id, refused) in [(txn, 1000, true), (later, 1001, false)] {
        let mut txn = txn;
        txn.insert(&table, &row(id, "mine")).await.unwrap();
        assert_eq!(matches!(txn.commit().await, Err(Error::Dependencies)), refused, "{id}");
    }
}
