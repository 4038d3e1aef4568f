//! What files say of columns: merged over files and tablets, kept, and never of other files than those of now. What some
//! rows say where files do not.

use super::*;

const ID: ColumnId = ColumnId(1);
const TEXT: ColumnId = ColumnId(2);

fn distinct(f: &Fixture, table: &TableDef, column: ColumnId) -> Option<f64> {
    f.engine.statistics_of(table).column(column).distinct
}

/// Rows of which so many texts differ.
async fn add(f: &Fixture, ids: std::ops::Range<i64>, texts: i64) {
    add_rows(f, ids, |id| row(id, &format!("text {}", id * 7919 % texts))).await;
}

async fn add_rows(f: &Fixture, ids: std::ops::Range<i64>, row: impl Fn(i64) -> Vec<Datum>) {
    let table = f.engine.catalog().table_named(catalog::PUBLIC, "t").unwrap().clone();
    let mut txn = f.begin();
    for id in ids {
        txn.insert(&table, &row(id)).await.unwrap();
    }
    txn.commit().await.unwrap();
}

#[track_caller]
fn assert_near(found: Option<f64>, expected: f64) {
    let found = found.expect("something is known");
    assert!((found / expected - 1.0).abs() < 0.1, "{found}, expected {expected}");
}

#[tokio::test]
async fn values_are_counted_over_the_files_of_all_tablets() {
    for tablets in [1, 4] {
        let f = Fixture::new();
        let table = f.create_table(tablets, true).await;
        assert_eq!(f.engine.statistics_of(&table).column(TEXT), ColumnStatistics::default());
        add(&f, 0..3_000, 3_000).await;
        assert_near(distinct(&f, &table, TEXT), 3_000.0);
        f.engine.freeze_table(table.id).unwrap();
        assert_near(distinct(&f, &table, TEXT), 3_000.0);
        // Further files, with the same values and with others.
        add(&f, 3_000..6_000, 3_000).await;
        f.engine.freeze_table(table.id).unwrap();
        assert_near(distinct(&f, &table, TEXT), 3_000.0);
        add(&f, 6_000..9_000, 1_000_003).await;
        f.engine.freeze_table(table.id).unwrap();
        assert_near(distinct(&f, &table, TEXT), 6_000.0);
        let known = f.engine.statistics_of(&table).column(ID);
        assert_eq!(known.bounds, Some((Datum::I64(0), Datum::I64(8_999))));
        assert_eq!(known.nulls, Some(0.0));
        let before = f.engine.statistics_of(&table).column(TEXT);
        let f = f.reopen();
        assert_eq!(f.engine.statistics_of(&table).column(TEXT), before);
    }
}

#[tokio::test]
async fn hot_rows_count_as_cold_ones_do_until_they_are_most() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    add(&f, 0..2_000, 1_000_003).await;
    f.engine.freeze_table(table.id).unwrap();
    add(&f, 2_000..3_000, 1_000_003).await;
    assert_near(distinct(&f, &table, TEXT), 3_000.0);
    add(&f, 3_000..4_100, 1_000_003).await;
    // Most are hot: now those are looked at.
    assert_near(distinct(&f, &table, TEXT), 4_100.0);
}

#[tokio::test]
async fn values_go_with_the_files_that_had_them() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    add(&f, 0..2_000, 1_000_003).await;
    f.engine.freeze_table(table.id).unwrap();
    assert_near(distinct(&f, &table, TEXT), 2_000.0);
    let mut txn = f.begin();
    for id in 0..1_500 {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    // Still in the file.
    assert_near(distinct(&f, &table, TEXT), 2_000.0);
    f.engine.compact_table(table.id).unwrap();
    assert_near(distinct(&f, &table, TEXT), 500.0);
}

/// Every other text is a null, the rest repeat after a hundred rows.
async fn add_nulls(f: &Fixture, ids: std::ops::Range<i64>) {
    let text = |id| if id % 2 == 0 { Datum::Null } else { Datum::text(&format!("text {}", id % 200)) };
    add_rows(f, ids, |id| vec![Datum::I64(id), text(id)]).await;
}

#[tokio::test]
async fn some_of_many_rows_that_are_hot_or_in_row_files_are_looked_at() {
    for tablets in [1, 4] {
        let f = Fixture::new();
        let table = f.create_table(tablets, true).await;
        add_nulls(&f, 0..20_000).await;
        let look = |rows: f64| {
            let known = f.engine.statistics_of(&table).column(TEXT);
            // What repeats in step with the rows does not hide.
            assert!((99.0..102.0).contains(&known.distinct.unwrap()), "{known:?}");
            assert!((0.45..0.55).contains(&known.nulls.unwrap()), "{known:?}");
            assert_near(distinct(&f, &table, ID), rows);
        };
        look(20_000.0);
        f.engine.evict_table(table.id).unwrap();
        look(20_000.0);
        add_nulls(&f, 20_000..40_000).await;
        look(40_000.0);
        f.engine.evict_table(table.id).unwrap();
        look(40_000.0);
    }
}

#[tokio::test]
async fn neighbours_that_are_alike_do_not_count_for_others() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    add_rows(&f, 0..80_000, |id| row(id, &format!("text {}", id / 10))).await;
    let is_near = || (5_000.0..13_000.0).contains(&distinct(&f, &table, TEXT).unwrap());
    assert!(is_near(), "{:?}", distinct(&f, &table, TEXT));
    f.engine.evict_table(table.id).unwrap();
    assert!(is_near(), "{:?}", distinct(&f, &table, TEXT));
}

#[tokio::test]
async fn rows_are_looked_at_anew_when_many_have_changed() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    add(&f, 0..500, 10).await;
    assert_eq!(distinct(&f, &table, TEXT), Some(10.0));
    // A few more are no reason.
    add(&f, 500..550, 1_000_003).await;
    assert_near(distinct(&f, &table, TEXT), 10.0);
    add(&f, 550..1_100, 1_000_003).await;
    assert_eq!(distinct(&f, &table, TEXT), Some(610.0));
    let mut txn = f.begin();
    for id in 0..900 {
        delete(&f, &mut txn, id).await;
    }
    txn.commit().await.unwrap();
    assert_eq!(distinct(&f, &table, TEXT), Some(200.0));
}

#[tokio::test]
async fn rows_that_are_few_do_not_speak_for_segments_without_sketches() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    add(&f, 0..2_000, 1_000_003).await;
    f.engine.freeze_table(table.id).unwrap();
    // A column that no segment knows, so that none has a sketch of it.
    let mut wide = TableDef::clone(&table);
    let mut late = ColumnDef::new(ColumnId(3), "late", DataType::Int8);
    late.missing = Datum::Null;
    wide.columns.push(late);
    let late = |f: &Fixture| f.engine.statistics_of(&wide).column(ColumnId(3));
    assert_eq!(late(&f), ColumnStatistics::default());
    add(&f, 2_000..2_100, 1_000_003).await;
    assert_eq!(late(&f), ColumnStatistics::default());
    // Most are hot: of those it is known that they have none.
    add(&f, 2_100..5_000, 1_000_003).await;
    assert!(late(&f).nulls.unwrap() > 0.99, "{:?}", late(&f));
}
