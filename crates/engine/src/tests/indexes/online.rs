//! Indexes that are built and dropped beside writers.

use super::*;
use basalt_types::schema::IndexDef;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

const WAIT: WaitPolicy = WaitPolicy::Wait(None);

/// Expressions and conditions that these tests know: the text in capitals; texts that end with an even digit.
fn know_expressions(f: &Fixture) {
    f.engine.set_index_values(Box::new(|_, index, row| {
        let Datum::Bytes(text) = &row[1] else { panic!("{row:?}") };
        let is_even = text.last().is_some_and(|last| last.is_ascii_digit() && last % 2 == 0);
        if index.predicate.is_some() && !is_even {
            return Ok(None);
        }
        let is_plain = matches!(index.columns[0].source, IndexSource::Column(_));
        let value = if is_plain { text.to_vec() } else { text.to_ascii_uppercase() };
        Ok(Some(vec![Datum::Bytes(value.as_slice().into())]))
    }));
}

fn kinds(f: &Fixture) -> [IndexDef; 4] {
    let of = |name, unique| IndexDef::clone(&index_of_v(f, name, unique));
    let mut capitals = of("capitals", false);
    capitals.columns[0].source = IndexSource::Expression("upper(v)".into());
    let partial = IndexDef { predicate: Some("even".into()), ..of("partial", true) };
    [of("unique", true), of("plain", false), partial, capitals]
}

async fn others_end(txn: &mut Txn, table: ObjectId, mode: TableLock) {
    txn.wait_for_lockers(table, mode, WAIT).await.unwrap();
}

fn put(txn: &mut Txn, table: ObjectId, index: &IndexDef, state: IndexState) {
    let index = Arc::new(IndexDef { state, ..index.clone() });
    txn.edit_catalog(vec![CatalogEdit::PutIndex { table, index }]).unwrap();
}

/// As CREATE INDEX CONCURRENTLY does.
async fn build(f: &Fixture, index: &IndexDef) -> Result<()> {
    let mut txn = f.begin();
    let table = f.table().id;
    txn.lock_table(table, TableLock::ShareUpdateExclusive, WAIT).await?;
    for state in [IndexState::DeleteOnly, IndexState::WriteOnly] {
        put(&mut txn, table, index, state);
        txn.commit_and_chain()?;
        others_end(&mut txn, table, TableLock::Share).await;
    }
    let of = f.table();
    let known = of.index(index.id).unwrap().clone();
    txn.bring_entries(&of, &known).await?;
    put(&mut txn, table, index, IndexState::Valid);
    txn.commit().await.map(|_| ())
}

/// As DROP INDEX CONCURRENTLY does.
async fn retire(f: &Fixture, index: &IndexDef) {
    let mut txn = f.begin();
    let table = f.table().id;
    txn.lock_table(table, TableLock::ShareUpdateExclusive, WAIT).await.unwrap();
    let steps = [
        (IndexState::WriteOnly, TableLock::AccessExclusive),
        (IndexState::DeleteOnly, TableLock::Share),
        (IndexState::Dead, TableLock::Share),
    ];
    for (state, ended) in steps {
        put(&mut txn, table, index, state);
        txn.commit_and_chain().unwrap();
        others_end(&mut txn, table, ended).await;
    }
    txn.edit_catalog(vec![CatalogEdit::DropIndex { table, index: index.id }]).unwrap();
    txn.commit().await.unwrap();
}

/// Every row has exactly its entry, and every entry its row.
fn assert_exact(read: &ReadContext, table: &Arc<TableDef>, index: &Arc<IndexDef>) {
    let mut expected = BTreeSet::new();
    for (text, (tablet, key)) in rows_with_places(read, table) {
        let row = [Datum::Null, Datum::text(&text)];
        if let Some(values) = read.engine().index_values(table, index, &row).unwrap() {
            expected.insert((index.entry(&values, &row, tablet, &key).bytes, (tablet, key)));
        }
    }
    let mut found = BTreeSet::new();
    let columns: Vec<ColumnId> = index.entries.live_columns().map(|column| column.id).collect();
    read.with_prefix(&index.entries, index.tablet(), &Key::default(), &columns, &mut |_, entry| {
        let Datum::Bytes(bytes) = &entry[0] else { panic!("{entry:?}") };
        found.insert((bytes.to_vec(), IndexDef::base_of(&entry).unwrap()))
    })
    .unwrap();
    let missing: Vec<_> = expected.difference(&found).take(3).collect();
    let extra: Vec<_> = found.difference(&expected).take(3).collect();
    assert!(missing.is_empty() && extra.is_empty(), "{}: missing {missing:?}, extra {extra:?}", index.name);
}

/// What a statement that writes does first: it locks the table, and binds again if the catalog has changed.
async fn bound(engine: &Arc<Engine>, txn: &mut Txn) -> Result<Arc<TableDef>> {
    loop {
        let catalog = engine.catalog();
        let table = catalog.tables.values().find(|table| table.name == "t").unwrap().clone();
        txn.lock_table(table.id, TableLock::RowExclusive, WAIT).await?;
        if engine.catalog().version == catalog.version {
            return Ok(table);
        }
    }
}

struct Writers {
    engine: Arc<Engine>,
    /// Texts are never given twice.
    next: AtomicI64,
    stopped: AtomicBool,
    committed: AtomicI64,
}

impl Writers {
    fn text(&self) -> String {
        format!("Text {}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    async fn run(self: Arc<Self>, seed: u64) {
        let mut random = Random(seed);
        while !self.stopped.load(Ordering::Relaxed) {
            let options = TxnOptions {
                isolation: Isolation::ReadCommitted,
                synchronous_commit: false,
                session_version: Version::ZERO,
                session: 0,
            };
            let mut txn = self.engine.begin(options);
            let changed = self.change(&mut txn, &mut random).await;
            match changed {
                Ok(()) if random.below(4) > 0 => {
                    txn.commit().await.unwrap();
                    self.committed.fetch_add(1, Ordering::Relaxed);
                }
                Ok(()) | Err(Error::Deadlock(_) | Error::DuplicateKey { .. }) => txn.rollback(),
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }

    async fn change(&self, txn: &mut Txn, random: &mut Random) -> Result<()> {
        for _ in 0..1 + random.below(5) {
            let savepoint = txn.savepoint();
            txn.next_statement();
            let table = bound(&self.engine, txn).await?;
            self.change_one(txn, random, &table).await?;
            if random.below(4) == 0 {
                txn.rollback_to(savepoint)?;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn change_one(&self, txn: &mut Txn, random: &mut Random, table: &Arc<TableDef>) -> Result<()> {
        let id = random.below(600) as i64;
        let what = random.below(24);
        if what == 0 {
            let first = 10_000 + self.next.fetch_add(1000, Ordering::Relaxed);
            let count = if random.below(8) == 0 { 150 } else { 10 };
            let texts: Vec<String> = (0..count).map(|_| self.text()).collect();
            let mut bulk = txn.bulk_insert(table)?;
            let ids = arrow_array::Int64Array::from_iter_values(first..first + count);
            let v = arrow_array::BinaryViewArray::from_iter_values(texts.iter().map(String::as_bytes));
            bulk.push(&[Arc::new(ids), Arc::new(v)]).await?;
            return bulk.finish().await.map(|_| ());
        }
        if what < 8 {
            return txn.insert(table, &row(id, &self.text())).await.map(|_| ());
        }
        let mut values = row(id, "");
        let (tablet, key) = (self.engine.route_row(table, &values), super::super::key(table, id));
        let mode = if what < 15 { RowLock::Update } else { RowLock::NoKeyUpdate };
        let Some(current) = txn.lock_row(table, tablet, &key, mode, WAIT).await?.row() else {
            return Ok(());
        };
        values = current.values.clone();
        match what {
            8..12 => return txn.delete(table, &current).await,
            12..15 => values[0] = Datum::I64(random.below(600) as i64),
            // Nothing changes.
            15..18 => {}
            _ => values[1] = Datum::text(&self.text()),
        }
        txn.update(table, &current, &values).await.map(|_| ())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_row_has_its_entry_when_writers_go_on_beside_the_build() {
    for tablets in [1, 3] {
        let f = Fixture::new();
        know_expressions(&f);
        f.create_table(tablets, true).await;
        let mut txn = f.begin();
        batch(&f, &mut txn, 0..500).await.unwrap();
        batch(&f, &mut txn, 1000..3000).await.unwrap();
        txn.commit().await.unwrap();
        f.engine.freeze_table(f.table().id).unwrap();
        let (engine, zero) = (f.engine.clone(), AtomicI64::new(0));
        let writers =
            Arc::new(Writers { engine, next: zero, stopped: AtomicBool::new(false), committed: AtomicI64::new(0) });
        let tasks: Vec<_> = (0..4).map(|seed| tokio::spawn(writers.clone().run(seed))).collect();
        let (engine, table, moved) = (f.engine.clone(), f.table().id, writers.clone());
        let mover = std::thread::spawn(move || {
            for round in 0.. {
                let done = match round % 4 {
                    _ if moved.stopped.load(Ordering::Relaxed) => break,
                    0 => engine.freeze_table(table),
                    1 => engine.evict_table(table),
                    2 => engine.compact_table(table),
                    _ => engine.checkpoint(),
                };
                // An index that has been dropped meanwhile.
                assert!(matches!(done, Ok(()) | Err(Error::TableGone(_))), "{done:?}");
                std::thread::park_timeout(Duration::from_millis(5));
            }
        });
        for _ in 0..2 {
            let made = kinds(&f);
            for index in &made {
                build(&f, index).await.unwrap();
                let (read, table) = (f.engine.read(f.engine.catalog().committed), f.table());
                table.indexes.iter().for_each(|index| assert_exact(&read, &table, index));
            }
            for index in &made {
                retire(&f, index).await;
            }
        }
        let last = kinds(&f);
        for index in &last {
            build(&f, index).await.unwrap();
        }
        writers.stopped.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
        mover.join().unwrap();
        assert!(writers.committed.load(Ordering::Relaxed) > 100, "hardly anybody wrote");
        drop(writers);
        let check = |f: &Fixture| {
            let (read, table) = (f.engine.read(f.engine.order.take_turn().last()), f.table());
            table.indexes.iter().for_each(|index| assert_exact(&read, &table, index));
        };
        check(&f);
        let f = f.reopen();
        know_expressions(&f);
        check(&f);
    }
}

/// A build up to where the rows are brought in.
async fn build_up_to_rows(f: &Fixture, index: &IndexDef) -> Txn {
    let mut txn = f.begin();
    let table = f.table().id;
    txn.lock_table(table, TableLock::ShareUpdateExclusive, WAIT).await.unwrap();
    put(&mut txn, table, index, IndexState::WriteOnly);
    txn.commit_and_chain().unwrap();
    txn
}

#[tokio::test]
async fn a_value_that_two_have_is_refused_to_whoever_comes_second() {
    for first in ["writer", "writer that gives up", "builder"] {
        let f = Fixture::new();
        f.create_table(1, true).await;
        insert(&f, [1], "x").await;
        let mut txn = build_up_to_rows(&f, &index_of_v(&f, "unique", true)).await;
        let table = f.table();
        let index = table.indexes[0].clone();
        let mut writer = f.begin();
        if first == "builder" {
            txn.bring_entries(&table, &index).await.unwrap();
            let taken = writer.insert(&table, &row(2, "x")).await.unwrap();
            assert!(matches!(taken, Inserted::Duplicate { index: Some(_), .. }), "{taken:?}");
            continue;
        }
        // The row that is there has not been brought in: it refuses nobody.
        assert_eq!(writer.insert(&table, &row(2, "x")).await.unwrap(), Inserted::Done);
        let outcome = {
            let bring = txn.bring_entries(&table, &index);
            tokio::pin!(bring);
            for _ in 0..100 {
                assert!(futures::poll!(&mut bring).is_pending(), "it has to wait for the other's value");
            }
            match first {
                "writer" => drop(writer.commit().await.unwrap()),
                _ => writer.rollback(),
            }
            bring.await
        };
        match first {
            "writer" => assert!(matches!(outcome, Err(Error::DuplicateKey { table, .. }) if table == index.id)),
            _ => outcome.unwrap(),
        }
    }
}

#[tokio::test]
async fn rows_that_are_not_brought_in_change_and_go_like_others() {
    let f = Fixture::new();
    f.create_table(1, true).await;
    insert(&f, 1..=4, "x").await;
    // Twins have one entry; it is the row's to which it leads.
    let mut txn = build_up_to_rows(&f, &index_of_v(&f, "unique", true)).await;
    let table = f.table();
    let index = table.indexes[0].clone();
    let mut writer = f.begin();
    update(&f, &mut writer, 1, "y").await;
    update(&f, &mut writer, 1, "x").await;
    delete(&f, &mut writer, 2).await;
    let current = locked(&f, &mut writer, 3).await.unwrap().row().unwrap();
    assert!(matches!(writer.update(&table, &current, &row(30, "x")).await.unwrap(), Inserted::Duplicate { .. }));
    writer.next_statement();
    let savepoint = writer.savepoint();
    delete(&f, &mut writer, 3).await;
    update(&f, &mut writer, 4, "z").await;
    writer.rollback_to(savepoint).unwrap();
    delete(&f, &mut writer, 3).await;
    update(&f, &mut writer, 4, "w").await;
    writer.commit().await.unwrap();
    txn.bring_entries(&table, &index).await.unwrap();
    assert_exact(&f.engine.read(Version::ZERO), &table, &index);
    drop(txn);
    let f = f.reopen();
    assert_exact(&f.engine.read(Version::ZERO), &f.table(), &f.table().indexes[0]);
    let rows = now(&f);
    assert_eq!((rows.len(), rows[&1].as_str(), rows[&4].as_str()), (2, "x", "w"));
}

#[tokio::test]
async fn a_build_waits_for_a_row_without_holding_another() {
    let f = Fixture::new();
    f.create_table(1, true).await;
    insert(&f, 1..=300, "x").await;
    let mut txn = build_up_to_rows(&f, &index_of_v(&f, "plain", false)).await;
    let table = f.table();
    let index = table.indexes[0].clone();
    let mut writer = f.begin();
    let (tablet, key) = (tablet_of(&f, &table, 150), super::super::key(&table, 150));
    let current = writer.lock_row(&table, tablet, &key, RowLock::NoKeyUpdate, WAIT).await.unwrap().row().unwrap();
    writer.update(&table, &current, &row(150, "y")).await.unwrap();
    writer.next_statement();
    let bring = txn.bring_entries(&table, &index);
    tokio::pin!(bring);
    for _ in 0..100 {
        assert!(futures::poll!(&mut bring).is_pending());
    }
    for id in (1..=300).filter(|id| *id != 150) {
        update(&f, &mut writer, id, "z").await;
    }
    writer.commit().await.unwrap();
    bring.await.unwrap();
    assert_exact(&f.engine.read(Version::ZERO), &table, &index);
}

#[tokio::test]
async fn who_wrote_by_an_earlier_catalog_is_waited_for() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut writer = f.begin();
    writer.lock_table(table.id, TableLock::RowExclusive, WAIT).await.unwrap();
    let mut reader = f.begin();
    reader.lock_table(table.id, TableLock::AccessShare, WAIT).await.unwrap();
    let mut txn = f.begin();
    txn.lock_table(table.id, TableLock::ShareUpdateExclusive, WAIT).await.unwrap();
    {
        let wait = txn.wait_for_lockers(table.id, TableLock::Share, WAIT);
        tokio::pin!(wait);
        assert!(futures::poll!(&mut wait).is_pending());
        // Whoever comes later is none of them.
        let mut later = f.begin();
        later.lock_table(table.id, TableLock::RowExclusive, WaitPolicy::Fail).await.unwrap();
        writer.rollback();
        wait.await.unwrap();
    }
    // One that wants what the waiting one has closes a circle.
    let mut writer = f.begin();
    writer.lock_table(table.id, TableLock::RowExclusive, WAIT).await.unwrap();
    let wait = txn.wait_for_lockers(table.id, TableLock::Share, WAIT);
    tokio::pin!(wait);
    assert!(futures::poll!(&mut wait).is_pending());
    let refused = writer.lock_table(table.id, TableLock::ShareRowExclusive, WAIT).await;
    assert!(matches!(refused, Err(Error::Deadlock(_))), "{refused:?}");
    let mut limited = f.begin();
    let all = limited.wait_for_lockers(table.id, TableLock::AccessExclusive, WaitPolicy::Wait(Some(Duration::ZERO)));
    assert!(matches!(all.await, Err(Error::LockTimeout(_))));
    drop((reader, writer));
    wait.await.unwrap();
}
