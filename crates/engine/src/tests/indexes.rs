//! Indexes as tables: an entry is there exactly when its row is, at every version, wherever either rests.

use super::*;
use basalt_types::schema::{IndexColumn, IndexDef, IndexSource, IndexState};
use std::collections::{BTreeSet, HashSet};

mod online;

fn index_of_v(f: &Fixture, name: &str, unique: bool) -> Arc<IndexDef> {
    let (id, tablet) = (f.engine.next_object_id(), f.engine.next_tablet_id());
    Arc::new(IndexDef {
        id,
        name: name.into(),
        method: "btree".into(),
        columns: vec![IndexColumn {
            source: IndexSource::Column(ColumnId(2)),
            name: "v".into(),
            ty: DataType::Text,
            descending: false,
            nulls_first: false,
            opclass: None,
            collation: None,
        }],
        include: Vec::new(),
        unique,
        nulls_not_distinct: false,
        predicate: None,
        options: Vec::new(),
        constraint: None,
        state: IndexState::Valid,
        entries: IndexDef::entries_table(id, catalog::PUBLIC, name, tablet, Vec::new()),
    })
}

/// Over `id`, with `v` in its entries.
fn covering_index(f: &Fixture, name: &str, unique: bool) -> Arc<IndexDef> {
    let index = index_of_v(f, name, unique);
    let of_id = IndexColumn {
        source: IndexSource::Column(ColumnId(1)),
        name: "id".into(),
        ty: DataType::Int8,
        ..index.columns[0].clone()
    };
    let entries = IndexDef::entries_table(index.id, catalog::PUBLIC, name, index.tablet(), vec![DataType::Text]);
    Arc::new(IndexDef { columns: vec![of_id], include: vec![ColumnId(2)], entries, ..(*index).clone() })
}

async fn create_index(f: &Fixture, name: &str, unique: bool) -> Result<()> {
    let index = index_of_v(f, name, unique);
    fill_index(f, index).await
}

/// Declares an index and fills it.
async fn fill_index(f: &Fixture, index: Arc<IndexDef>) -> Result<()> {
    let table = f.table();
    let mut txn = f.begin();
    txn.lock_table(table.id, TableLock::Share, WaitPolicy::Wait(None)).await?;
    txn.edit_catalog(vec![CatalogEdit::PutIndex { table: table.id, index: index.clone() }])?;
    txn.build_index(&table, &index).await?;
    txn.commit().await.map(|_| ())
}

type Place = (TabletId, Key);

fn rows_with_places(read: &ReadContext, table: &Arc<TableDef>) -> BTreeSet<(String, Place)> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let spec =
        ScanSpec { table: table.clone(), columns: vec![ColumnId(2)], predicates: Vec::new(), with_identity: true };
    let mut found = BTreeSet::new();
    for mut part in read.scan(spec).unwrap().0 {
        while let Some(batch) = part.next_batch().unwrap() {
            let (text, tablets) = (batch.columns[0].as_string_view(), batch.columns[1].as_primitive::<Int64Type>());
            for i in 0..batch.rows {
                let place = (TabletId(tablets.value(i) as u32), Key::from(batch.columns[2].as_binary_view().value(i)));
                found.insert((text.value(i).to_string(), place));
            }
        }
    }
    found
}

/// Entries and rows are the same, and every row is found by its entry.
fn assert_agree(read: &ReadContext, table: &Arc<TableDef>) {
    let rows = rows_with_places(read, table);
    for index in &table.indexes {
        let mut entries = BTreeSet::new();
        let columns: Vec<ColumnId> = index.entries.live_columns().map(|column| column.id).collect();
        read.with_prefix(&index.entries, index.tablet(), &Key::default(), &columns, &mut |_, entry| {
            let place = IndexDef::base_of(&entry).unwrap();
            let Datum::Bytes(bytes) = &entry[0] else { panic!("{entry:?}") };
            let key = prefix_key(bytes, true);
            let values = index.values_of_key(&key).unwrap();
            let text = if index.is_covering() { &entry[3] } else { values[0].as_ref().unwrap() };
            let Datum::Bytes(text) = text else { panic!("{values:?}") };
            assert!(entries.insert((String::from_utf8(text.to_vec()).unwrap(), place)), "an entry came twice");
            true
        })
        .unwrap();
        let missing: Vec<_> = rows.difference(&entries).take(3).collect();
        let extra: Vec<_> = entries.difference(&rows).take(3).collect();
        assert!(missing.is_empty() && extra.is_empty(), "{}: missing {missing:?}, extra {extra:?}", index.name);
        for (text, place) in rows.iter().step_by(17).filter(|_| !index.is_covering()) {
            let values = basalt_types::schema::encode_values(&index.columns, &[Datum::text(text)]);
            assert!(read.rows_by_entry(index, &values).unwrap().contains(place), "{text}");
        }
    }
    assert_walks(read, table);
}

/// Walks in both directions give the keys of ranges in order, each once.
fn assert_walks(read: &ReadContext, table: &Arc<TableDef>) {
    let rows: Vec<(String, Place)> = rows_with_places(read, table).into_iter().collect();
    let mut keys: Vec<&Key> = rows.iter().map(|(_, (_, key))| key).collect();
    keys.sort();
    let known: HashSet<(&str, &Key)> = rows.iter().map(|(text, (_, key))| (text.as_str(), key)).collect();
    let bounds: Vec<&Key> = keys.iter().copied().step_by(keys.len() / 5 + 1).collect();
    let mut ranges = vec![KeyRange::default()];
    for from in &bounds {
        ranges.push(KeyRange { from: from.as_bytes().to_vec(), to: None });
        ranges.push(KeyRange { from: Vec::new(), to: Some(from.as_bytes().to_vec()) });
        for to in &bounds {
            ranges.push(KeyRange { from: from.as_bytes().to_vec(), to: Some(to.as_bytes().to_vec()) });
        }
    }
    let tablets: Vec<TabletId> = table.tablets().collect();
    for (at, range) in ranges.into_iter().enumerate() {
        for direction in [Direction::Ascending, Direction::Descending] {
            let within = |key: &&&Key| {
                key.as_bytes() >= &range.from[..] && range.to.as_ref().is_none_or(|to| key.as_bytes() < &to[..])
            };
            let mut expected: Vec<Key> = keys.iter().filter(within).map(|key| (*key).clone()).collect();
            if direction == Direction::Descending {
                expected.reverse();
            }
            let walk = |keyed| {
                let spec = WalkSpec {
                    table,
                    tablets: &tablets,
                    range: range.clone(),
                    direction,
                    columns: &[ColumnId(2)],
                    reading: read.reading(),
                    stamped: false,
                    keyed,
                    rows_hint: at % 40,
                    looks_max: usize::MAX,
                };
                let mut walk = read.engine().walk(spec).unwrap().expect("files are in key order");
                let mut found = Vec::new();
                while let Some(WalkedRow { key, row, .. }) = walk.next_row().unwrap() {
                    let Datum::Bytes(text) = &values_of(table, row)[1] else { panic!("texts are bytes") };
                    found.push((String::from_utf8(text.to_vec()).unwrap(), Key::from(key)));
                }
                found
            };
            let found = walk(true);
            for (text, key) in &found {
                assert!(known.contains(&(text.as_str(), key)), "{text}");
            }
            let (texts, keys): (Vec<String>, Vec<Key>) = found.into_iter().unzip();
            assert_eq!(keys, expected, "{range:?} {direction:?}");
            let found: Vec<String> = walk(false).into_iter().map(|(text, _)| text).collect();
            assert_eq!(found, texts, "{range:?} {direction:?}");
        }
    }
}

use basalt_types::schema::prefix_key;

/// A small generator: the sequence of changes is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

async fn change_some(f: &Fixture, txn: &mut Txn, random: &mut Random, count: u64) {
    let table = f.table();
    for _ in 0..count {
        let places: Vec<Place> = rows_with_places(&txn.read(), &table).into_iter().map(|(_, place)| place).collect();
        txn.next_statement();
        let pick = random.below(places.len().max(1) as u64) as usize;
        match (random.below(6), places.get(pick)) {
            (0 | 1, _) | (_, None) => {
                let id = 1_000_000 + random.below(1_000_000) as i64;
                txn.insert(&table, &row(id, &format!("new {id}"))).await.unwrap();
            }
            (2, Some((tablet, key))) => {
                let current = lock(txn, &table, *tablet, key).await;
                txn.delete(&table, &current).await.unwrap();
            }
            (3, Some((tablet, key))) => {
                // The row moves to another key, or keeps its hidden one; its indexed value stays.
                let current = lock(txn, &table, *tablet, key).await;
                let mut values = current.values.clone();
                values[0] = Datum::I64(2_000_000 + random.below(1_000_000) as i64);
                txn.update(&table, &current, &values).await.unwrap();
            }
            (_, Some((tablet, key))) => {
                let current = lock(txn, &table, *tablet, key).await;
                let mut values = current.values.clone();
                values[1] = Datum::text(&format!("changed {}", random.below(1_000_000_000)));
                txn.update(&table, &current, &values).await.unwrap();
            }
        }
        txn.next_statement();
    }
}

async fn lock(txn: &mut Txn, table: &Arc<TableDef>, tablet: TabletId, key: &Key) -> CurrentRow {
    let locked = txn.lock_row(table, tablet, key, RowLock::Update, WaitPolicy::Wait(None)).await.unwrap();
    locked.row().unwrap()
}

async fn batch(f: &Fixture, txn: &mut Txn, ids: std::ops::Range<i64>) -> Result<u64> {
    let table = f.table();
    let mut bulk = txn.bulk_insert(&table)?;
    let text: Vec<String> = ids.clone().map(|id| format!("batch {id}")).collect();
    let ids: arrow_array::Int64Array = ids.collect();
    let v = arrow_array::BinaryViewArray::from_iter_values(text.iter().map(String::as_bytes));
    bulk.push(&[Arc::new(ids), Arc::new(v)]).await?;
    bulk.finish().await
}

#[tokio::test]
async fn entries_and_rows_agree_at_every_version() {
    for (seed, tablets, keyed) in [(1, 1, true), (2, 3, true), (3, 1, false), (4, 2, false)] {
        let mut f = Fixture::new();
        f.create_table(tablets, keyed).await;
        let mut random = Random(seed);
        let mut txn = f.begin();
        batch(&f, &mut txn, 0..250).await.unwrap();
        txn.commit().await.unwrap();
        create_index(&f, "unique", true).await.unwrap();
        create_index(&f, "plain", false).await.unwrap();
        fill_index(&f, covering_index(&f, "covering", false)).await.unwrap();
        fill_index(&f, covering_index(&f, "covering_unique", keyed)).await.unwrap();
        // As it was made before entries had included values.
        let before = IndexDef { include: vec![ColumnId(1)], ..(*index_of_v(&f, "before", false)).clone() };
        fill_index(&f, Arc::new(before)).await.unwrap();
        let mut kept: Vec<ReadContext> = Vec::new();
        for round in 0..24 {
            let mut txn = f.begin();
            change_some(&f, &mut txn, &mut random, 6).await;
            let savepoint = txn.savepoint();
            change_some(&f, &mut txn, &mut random, 4).await;
            if round % 3 == 0 {
                let first = 10_000 + round * 1000;
                let rows = if round % 2 == 0 { 150 } else { 20 };
                batch(&f, &mut txn, first..first + rows).await.unwrap();
            }
            if round % 2 == 0 {
                txn.rollback_to(savepoint).unwrap();
                change_some(&f, &mut txn, &mut random, 2).await;
            }
            txn.next_statement();
            assert_agree(&txn.read(), &f.table());
            match round % 5 {
                4 => txn.rollback(),
                _ => drop(txn.commit().await.unwrap()),
            }
            assert_agree(&f.engine.read(Version::ZERO), &f.table());
            kept.push(f.engine.read(Version::ZERO));
            match round % 6 {
                1 => f.engine.freeze_table(f.table().id).unwrap(),
                3 => f.engine.evict_table(f.table().id).unwrap(),
                5 => f.engine.compact_table(f.table().id).unwrap(),
                _ => {}
            }
            kept.iter().for_each(|read| assert_agree(read, &f.table()));
            if round % 8 == 7 {
                kept.clear();
                if round % 16 == 7 {
                    f.engine.checkpoint().unwrap();
                }
                f = f.reopen();
                assert_agree(&f.engine.read(Version::ZERO), &f.table());
            }
        }
    }
}

#[tokio::test]
async fn a_unique_index_refuses_twins_of_every_kind() {
    for rest in 0..4 {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        create_index(&f, "unique", true).await.unwrap();
        let mut txn = f.begin();
        batch(&f, &mut txn, 0..if rest == 0 { 20 } else { 200 }).await.unwrap();
        txn.commit().await.unwrap();
        match rest {
            1 => f.engine.freeze_table(table.id).unwrap(),
            2 => f.engine.evict_table(table.id).unwrap(),
            _ => {}
        }
        let mut txn = f.begin();
        let taken = txn.insert(&f.table(), &row(5000, "batch 7")).await.unwrap();
        let expected = (tablet_of(&f, &f.table(), 7), super::key(&f.table(), 7));
        let Inserted::Duplicate { tablet, key, index: Some(_) } = taken else { panic!("{taken:?}") };
        assert_eq!((tablet, key), expected);
        // A twin in a small batch, in a large one, and inside of one.
        for (from, to) in [(7, 8), (7, 200)] {
            let mut bulk = txn.bulk_insert(&f.table()).unwrap();
            let text: Vec<String> = (from..to).map(|id| format!("batch {id}")).collect();
            let ids: arrow_array::Int64Array = (from..to).map(|id| id + 100_000).collect();
            let v = arrow_array::BinaryViewArray::from_iter_values(text.iter().map(String::as_bytes));
            let pushed = bulk.push(&[Arc::new(ids), Arc::new(v)]).await;
            let outcome = if pushed.is_ok() { bulk.finish().await.map(|_| ()) } else { pushed };
            let index = f.table().indexes[0].id;
            assert!(matches!(outcome, Err(Error::DuplicateKey { table, .. }) if table == index), "{outcome:?}");
            txn.rollback();
            txn = f.begin();
        }
        // The value is free once its row is gone, and after its row has another.
        let current = lock(&mut txn, &f.table(), expected.0, &expected.1).await;
        txn.delete(&f.table(), &current).await.unwrap();
        txn.next_statement();
        assert_eq!(txn.insert(&f.table(), &row(5000, "batch 7")).await.unwrap(), Inserted::Done);
        txn.commit().await.unwrap();
        assert_agree(&f.engine.read(Version::ZERO), &f.table());
    }
}

#[tokio::test]
async fn of_two_writers_of_one_value_the_second_waits_for_the_first() {
    for commit in [true, false] {
        let f = Fixture::new();
        f.create_table(1, true).await;
        create_index(&f, "unique", true).await.unwrap();
        let table = f.table();
        let mut first = f.begin();
        assert_eq!(first.insert(&table, &row(1, "x")).await.unwrap(), Inserted::Done);
        let mut second = f.begin();
        let twin = row(2, "x");
        let insert = second.insert(&table, &twin);
        tokio::pin!(insert);
        assert!(futures::poll!(&mut insert).is_pending());
        match commit {
            true => drop(first.commit().await.unwrap()),
            false => first.rollback(),
        }
        assert_eq!(matches!(insert.await.unwrap(), Inserted::Duplicate { .. }), commit);
    }
}

#[tokio::test]
async fn an_index_that_cannot_be_unique_is_not_made() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    let mut txn = f.begin();
    txn.insert(&table, &row(1, "x")).await.unwrap();
    txn.insert(&table, &row(2, "x")).await.unwrap();
    txn.commit().await.unwrap();
    assert!(matches!(create_index(&f, "unique", true).await, Err(Error::DuplicateKey { .. })));
    assert!(f.table().indexes.is_empty());
    create_index(&f, "plain", false).await.unwrap();
    assert_agree(&f.engine.read(Version::ZERO), &f.table());
}

/// Its value went to a row of a batch behind a savepoint and came back: the lock is the one from before.
#[tokio::test]
async fn the_lock_of_an_entry_that_an_undone_batch_has_had_stays() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    create_index(&f, "unique", true).await.unwrap();
    let table = f.engine.catalog().table(table.id).unwrap().clone();
    let mut first = f.begin();
    first.insert(&table, &row(1, "a")).await.unwrap();
    first.next_statement();
    let savepoint = first.savepoint();
    delete(&f, &mut first, 1).await;
    first.next_statement();
    let text: Vec<String> = (2..300).map(|id| if id == 2 { "a".into() } else { format!("other {id}") }).collect();
    let ids: arrow_array::Int64Array = (2..300).map(Some).collect();
    let v = arrow_array::BinaryViewArray::from_iter_values(text.iter().map(String::as_bytes));
    let mut bulk = first.bulk_insert(&table).unwrap();
    bulk.push(&[Arc::new(ids), Arc::new(v)]).await.unwrap();
    bulk.finish().await.unwrap();
    first.next_statement();
    let current = locked(&f, &mut first, 2).await.unwrap().row().unwrap();
    assert_eq!(first.update(&table, &current, &row(1000, "a")).await.unwrap(), Inserted::Done);
    first.rollback_to(savepoint).unwrap();
    first.next_statement();
    let taken = first.insert(&table, &row(4, "a")).await.unwrap();
    assert!(matches!(taken, Inserted::Duplicate { index: Some(_), .. }), "{taken:?}");
    // Who wants the value waits for its owner.
    let mut second = f.begin();
    second.set_lock_timeout(Some(Duration::from_millis(50)));
    let outcome = second.insert(&table, &row(9, "a")).await;
    assert!(matches!(outcome, Err(Error::LockTimeout(_))), "{outcome:?}");
    first.commit().await.unwrap();
    assert_eq!(now(&f), BTreeMap::from([(1, "a".to_string())]));
}
