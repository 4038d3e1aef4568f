//! What scans leave of hot rows for those that follow is what these would find themselves.

use super::*;

/// How many stripes of the only tablet are kept.
fn kept(f: &Fixture) -> usize {
    let id = f.table().tablets().next().unwrap();
    f.engine.tablet(id).unwrap().mirror.kept()
}

#[tokio::test]
async fn rows_that_nobody_changes_are_kept_and_no_others() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..20_000, "one").await;
    let mut expected: BTreeMap<i64, String> = (0..20_000).map(|id| (id, "one".into())).collect();
    let old = f.engine.read(Version::ZERO);
    assert_eq!(kept(&f), 0);
    assert_rows(&now(&f), &expected);
    let all = kept(&f);
    assert!(all > 2, "{all}");
    for round in 0..3 {
        let mut txn = f.begin();
        update(&f, &mut txn, 7, &format!("changed {round}")).await;
        delete(&f, &mut txn, 100 + round).await;
        txn.insert(&table, &row(30_000 + round, "new")).await.unwrap();
        // Undecided: of three scans none keeps what it finds, or gives what others left.
        assert_rows(&now(&f), &expected);
        let mut own = expected.clone();
        own.insert(7, format!("changed {round}"));
        own.remove(&(100 + round));
        own.insert(30_000 + round, "new".into());
        txn.next_statement();
        assert_rows(&contents(&txn.read(), &table), &own);
        match round {
            1 => txn.rollback(),
            _ => {
                txn.commit().await.unwrap();
                expected = own;
            }
        }
        assert_rows(&now(&f), &expected);
        // Who reads at an earlier snapshot is not served by what later ones leave.
        assert_rows(&contents(&old, &table), &(0..20_000).map(|id| (id, "one".into())).collect());
        assert_rows(&now(&f), &expected);
    }
    f.engine.freeze_table(table.id).unwrap();
    assert_rows(&now(&f), &expected);
    assert_rows(&contents(&old, &table), &(0..20_000).map(|id| (id, "one".into())).collect());
    drop(old);
    insert(&f, 40_000..40_300, "hot").await;
    expected.extend((40_000..40_300).map(|id| (id, "hot".into())));
    assert_rows(&now(&f), &expected);
}

#[tokio::test]
async fn a_change_costs_its_own_stripe_alone() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..50_000, "one").await;
    let mut expected: BTreeMap<i64, String> = (0..50_000).map(|id| (id, "one".into())).collect();
    let scan = |f: &Fixture| contents_of_blocks(&f.engine.read(Version::ZERO), &table);
    assert_rows(&scan(&f), &expected);
    assert_rows(&scan(&f), &expected);
    let all = kept(&f);
    assert!(all >= 6, "{all}");
    for id in [3, 20_000, 49_999] {
        let mut txn = f.begin();
        update(&f, &mut txn, id, "changed").await;
        txn.commit().await.unwrap();
        expected.insert(id, "changed".into());
        assert_rows(&scan(&f), &expected);
        assert_eq!(kept(&f), all - 1);
        assert_rows(&scan(&f), &expected);
        assert_eq!(kept(&f), all);
    }
    // Sweeping changes no answer.
    f.engine.sweep(&f.engine.tablet(table.tablets().next().unwrap()).unwrap());
    assert_rows(&scan(&f), &expected);
    assert_eq!(kept(&f), all);
    // What has come at the end is cut, the others stay.
    insert(&f, 50_000..90_000, "more").await;
    expected.extend((50_000..90_000).map(|id| (id, "more".into())));
    assert_rows(&scan(&f), &expected);
    assert_eq!(kept(&f), all - 1);
    assert_rows(&scan(&f), &expected);
    assert!(kept(&f) >= all + 4, "{}", kept(&f));
}

/// A column that a transaction adds is filled in as it says. If it goes, the next one may be of its place, and not of its
/// values.
#[tokio::test]
async fn columns_of_a_definition_that_was_rolled_back_are_not_kept() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..20_000, "one").await;
    let wider = |name: &str, missing: i64| {
        let mut wider = (*f.table()).clone();
        let id = ColumnId::from_position(2);
        wider.columns.push(ColumnDef { missing: Datum::I64(missing), ..ColumnDef::new(id, name, DataType::Int8) });
        Arc::new(wider)
    };
    let sum = |read: &ReadContext, table: &Arc<TableDef>| {
        let columns = vec![ColumnId::from_position(2)];
        let spec = ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: false };
        let mut sum = 0;
        for mut part in read.scan(spec).unwrap().0 {
            while let Some(mut block) = part.next_block().unwrap() {
                let values = block.vector(0).unwrap().to_array(PhysType::I64);
                let values: &arrow_array::Int64Array = arrow_array::cast::AsArray::as_primitive(&values);
                sum += values.values().iter().sum::<i64>();
            }
        }
        sum
    };
    for _ in 0..3 {
        assert_eq!(contents_of_blocks(&f.engine.read(Version::ZERO), &table).len(), 20_000);
    }
    assert!(kept(&f) > 2);
    let mut txn = f.begin();
    let lost = wider("lost", 5);
    txn.edit_catalog(vec![CatalogEdit::PutTable(lost.clone())]).unwrap();
    for _ in 0..3 {
        txn.next_statement();
        assert_eq!(sum(&txn.read(), &lost), 100_000);
    }
    txn.rollback();
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutTable(wider("stays", 7))]).unwrap();
    txn.commit().await.unwrap();
    let table = f.table();
    for _ in 0..3 {
        assert_eq!(sum(&f.engine.read(Version::ZERO), &table), 140_000);
    }
}
