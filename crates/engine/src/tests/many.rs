//! Several keys looked up together find what each finds alone.

use super::*;

/// The text of a row as it was seen.
fn text(table: &TableDef, row: SeenRow<'_>) -> String {
    let value = match row {
        SeenRow::Encoded(bytes) => crate::rows::decode(table, bytes).unwrap()[1].clone(),
        SeenRow::Values(values) => values[1].clone(),
    };
    let Datum::Bytes(bytes) = value else { panic!("{value:?}") };
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Alike, and as who asks neither for several nor in the row cache, which by and by has the rows.
fn assert_alike(f: &Fixture, read: &ReadContext, table: &Arc<TableDef>, ids: &[i64]) {
    let columns = [ColumnId(2)];
    for tablet in table.tablets() {
        let keys: Vec<Key> = ids.iter().map(|id| key(table, *id)).collect();
        let borrowed: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        let mut rows = SeenRows::default();
        f.engine.look_many(table, tablet, &borrowed, read.reading(), &columns, &mut rows).unwrap();
        assert_eq!(rows.keys(), ids.len());
        let mut values = vec![Datum::Null; table.columns.len()];
        for (at, (id, key)) in ids.iter().zip(&borrowed).enumerate() {
            let alone = f.engine.look(table, tablet, key, read.reading(), &columns, |row| text(table, row)).unwrap();
            let together = rows.get(at, table, &columns, &mut values).map(|row| text(table, row));
            assert_eq!(together, alone, "row {id} of {tablet}");
            let plain = read.get_columns(table, tablet, &Key::from(*key), &columns).unwrap();
            let plain = plain.map(|row| text(table, SeenRow::Values(&row.values)));
            assert_eq!(plain, alone, "row {id} of {tablet}");
        }
    }
}

#[tokio::test]
async fn together_and_alone_are_alike() {
    for (tablets, locators) in [(1, false), (1, true), (4, true)] {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(&dir);
        if !locators {
            config.locator_bytes_max = 0;
        }
        let engine = Engine::open(Os::real(), config, &|_| {}).unwrap();
        let f = Fixture { dir, engine };
        let table = f.create_table(tablets, true).await;
        let mut reads = Vec::new();
        insert(&f, (0..4000).step_by(2), "first").await;
        f.engine.freeze_table(table.id).unwrap();
        reads.push(f.engine.read(Version::ZERO));
        let mut txn = f.begin();
        for id in (0..4000).step_by(14) {
            update(&f, &mut txn, id, "second").await;
        }
        for id in (4..4000).step_by(26) {
            if id % 14 != 0 {
                delete(&f, &mut txn, id).await;
            }
        }
        txn.commit().await.unwrap();
        reads.push(f.engine.read(Version::ZERO));
        f.engine.freeze_table(table.id).unwrap();
        let mut txn = f.begin();
        let mut bulk = txn.bulk_insert(&table).unwrap();
        bulk.push(&columns(10_000..11_000, "bulk")).await.unwrap();
        bulk.finish().await.unwrap();
        txn.commit().await.unwrap();
        insert(&f, (1..2000).step_by(10), "third").await;
        let mut txn = f.begin();
        for id in (10_000..11_000).step_by(7) {
            update(&f, &mut txn, id, "fourth").await;
        }
        delete(&f, &mut txn, 10_001).await;
        txn.commit().await.unwrap();
        reads.push(f.engine.read(Version::ZERO));
        let all: Vec<i64> = (0..4100).chain(9_990..11_010).collect();
        // Views of before and of now in turn; what one has brought to the row cache is not for the other.
        for read in reads.iter().chain(&reads) {
            assert_alike(&f, read, &table, &all);
            for step in [3, 37, 999] {
                let some: Vec<i64> = all.iter().copied().step_by(step).collect();
                assert_alike(&f, read, &table, &some);
            }
            assert_alike(&f, read, &table, &[]);
            // One key twice.
            assert_alike(&f, read, &table, &[2, 2, 14, 14]);
        }
        let stats = f.engine.stats().row_cache;
        assert!(stats.hits > 10_000, "{stats:?}");
    }
}
