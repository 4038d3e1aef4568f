//! What scans leave of hot rows for those that follow is what these would find themselves.

use super::*;

/// Whether something is kept of the only tablet.
fn keeps(f: &Fixture) -> bool {
    let id = f.table().tablets().next().unwrap();
    f.engine.tablet(id).unwrap().mirror.keeps()
}

#[tokio::test]
async fn rows_that_nobody_changes_are_kept_and_no_others() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    insert(&f, 0..20_000, "one").await;
    let mut expected: BTreeMap<i64, String> = (0..20_000).map(|id| (id, "one".into())).collect();
    let old = f.engine.read(Version::ZERO);
    assert!(!keeps(&f));
    assert_rows(&now(&f), &expected);
    assert!(keeps(&f));
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
