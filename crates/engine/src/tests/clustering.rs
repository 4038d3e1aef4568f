//! Files in the order of a clustering key: the same rows as in any other, wherever they come from.

use super::evict::get;
use super::orientation::{orient, set};
use super::*;
use crate::unlisted::Unlisted;
use basalt_meta::FileKind;

/// The order of texts is not that of ids, and some are equal.
fn scattered(id: i64) -> String {
    format!("{:03}", id * 7919 % 499)
}

fn scattered_rows(ids: impl IntoIterator<Item = i64>) -> BTreeMap<i64, String> {
    ids.into_iter().map(|id| (id, scattered(id))).collect()
}

async fn insert_scattered(f: &Fixture, ids: impl IntoIterator<Item = i64>) {
    let table = f.table();
    let mut txn = f.begin();
    for id in ids {
        assert_eq!(txn.insert(&table, &row(id, &scattered(id))).await.unwrap(), Inserted::Done);
    }
    txn.commit().await.unwrap();
}

/// In so many pushes of one batch.
async fn batch_scattered(f: &Fixture, pushes: &[Vec<i64>]) -> Result<u64> {
    let mut txn = f.begin();
    let mut bulk = txn.bulk_insert(&f.table())?;
    for ids in pushes {
        let (mut id, mut text) = (ColumnBuilder::new(PhysType::I64, 0), ColumnBuilder::new(PhysType::Bytes, 0));
        for i in ids {
            assert!(id.push(&Datum::I64(*i)) && text.push(&Datum::text(&scattered(*i))));
        }
        bulk.push(&[id.finish(), text.finish()]).await?;
    }
    let rows = bulk.finish().await?;
    txn.commit().await?;
    Ok(rows)
}

/// Each file's rows as (text, id), in the order in which they lie.
fn lying(f: &Fixture) -> Vec<Vec<(String, i64)>> {
    let table = f.table();
    let value = |values: Vec<Datum>| match &values[..] {
        [Datum::I64(id), Datum::Bytes(text)] => (String::from_utf8(text.to_vec()).unwrap(), *id),
        other => panic!("{other:?}"),
    };
    let files = f.engine.tablets().into_iter().flat_map(|tablet| tablet.view().files.clone());
    let rows = |file: Arc<crate::tablet::FileEntry>| {
        (0..file.data.rows()).map(|ordinal| value(file.data.row_at(&table, ordinal).unwrap())).collect()
    };
    files.filter(|file| file.data.kind() == FileKind::Segment).map(rows).collect()
}

/// How many files there are, each of them in order of texts and then of ids.
fn assert_clustered(f: &Fixture) -> usize {
    let files = lying(f);
    for rows in &files {
        assert!(rows.is_sorted(), "{:?}", rows.iter().take(20).collect::<Vec<_>>());
    }
    files.len()
}

fn assert_found(f: &Fixture, expected: &BTreeMap<i64, String>) {
    let table = f.table();
    assert_rows(&now(f), expected);
    if table.primary_key.is_some() {
        for id in (0..1300).step_by(7) {
            assert_eq!(get(f, &table, id), expected.get(&id).cloned(), "row {id}");
        }
        assert_walks(f, expected);
    }
}

/// Walks both ways, over a part of the keys, in the order of keys.
fn assert_walks(f: &Fixture, expected: &BTreeMap<i64, String>) {
    let table = f.table();
    let (read, tablets) = (f.engine.read(Version::ZERO), table.tablets().collect::<Vec<_>>());
    for direction in [Direction::Ascending, Direction::Descending] {
        let range =
            KeyRange { from: key(&table, 40).as_bytes().to_vec(), to: Some(key(&table, 777).as_bytes().to_vec()) };
        let spec = WalkSpec {
            table: &table,
            tablets: &tablets,
            range,
            direction,
            columns: &[ColumnId(1), ColumnId(2)],
            reading: read.reading(),
            stamped: true,
            keyed: true,
            rows_hint: 0,
            looks_max: usize::MAX,
        };
        let mut walk = f.engine.walk(spec).unwrap().expect("it may look at everything");
        let mut found = Vec::new();
        while let Some(walked) = walk.next_row().unwrap() {
            assert!(walked.stamp.is_some());
            let values = values_of(&table, walked.row);
            assert_eq!(walked.key, table.key_of(&values).unwrap().as_bytes());
            found.push(values);
        }
        let mut wanted: Vec<Vec<Datum>> = expected.range(40..777).map(|(id, v)| row(*id, v)).collect();
        if direction == Direction::Descending {
            wanted.reverse();
        }
        assert!(found == wanted, "{direction:?}: {} rows instead of {}", found.len(), wanted.len());
    }
}

#[tokio::test]
async fn rows_lie_in_order_wherever_they_come_from() {
    for (tablets, keyed) in [(1, true), (3, true), (1, false)] {
        let mut f = Fixture::new();
        let table = f.create_table(tablets, keyed).await;
        set(&f, "clustering_key", "v").await;
        // From hot, by a batch that comes in key order, by one that does not, and by way of a row file.
        insert_scattered(&f, 0..300).await;
        f.engine.freeze_table(table.id).unwrap();
        batch_scattered(&f, &[(300..600).collect()]).await.unwrap();
        batch_scattered(&f, &[(600..750).rev().collect(), (750..900).collect()]).await.unwrap();
        insert_scattered(&f, 900..1200).await;
        f.engine.evict_table(table.id).unwrap();
        let mut expected = scattered_rows(0..1200);
        assert!(assert_clustered(&f) >= 3);
        assert_found(&f, &expected);
        if keyed {
            let mut txn = f.begin();
            for id in (0..1200).step_by(60) {
                update(&f, &mut txn, id, "changed").await;
                delete(&f, &mut txn, id + 1).await;
                expected.insert(id, "changed".into());
                expected.remove(&(id + 1));
            }
            txn.commit().await.unwrap();
        }
        f = f.reopen();
        assert_found(&f, &expected);
        let old = f.engine.read(Version::ZERO);
        f.engine.compact_table(table.id).unwrap();
        assert_clustered(&f);
        assert!(lying(&f).iter().map(Vec::len).sum::<usize>() >= expected.len());
        assert_found(&f, &expected);
        assert_rows(&contents(&old, &table), &expected);
        drop(old);
        // Merged once more, of files that are in order: what they have together is in order from the first to the last.
        f.engine.compact_table(table.id).unwrap();
        if tablets == 1 {
            let all: Vec<(String, i64)> = lying(&f).into_iter().flatten().collect();
            assert!(all.is_sorted() && all.len() == expected.len(), "{} of {}", all.len(), expected.len());
        }
        assert_found(&f, &expected);
        f.engine.checkpoint().unwrap();
        f = f.reopen();
        assert_found(&f, &expected);
        f.engine.shutdown().unwrap();
        f.assert_sound();
    }
}

/// What writers change between the marks of a move and its view stays in hot: by its key, wherever its copy lies.
#[tokio::test]
async fn rows_written_while_others_move_into_another_order_stay() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    set(&f, "clustering_key", "v").await;
    insert_scattered(&f, 0..400).await;
    let mut expected = scattered_rows(0..400);
    let tablet = f.engine.tablet(table.tablets().next().unwrap()).unwrap();
    let mut written = Unlisted::new(&f.engine);
    let moved = f.engine.write_moved(&tablet, f.engine.published(), FileKind::Segment, &mut written);
    let (entry, copied) = moved.unwrap().unwrap();
    written.keep();
    let mut txn = f.begin();
    for id in [1, 17, 255] {
        update(&f, &mut txn, id, "before the marks").await;
        expected.insert(id, "before the marks".into());
    }
    txn.commit().await.unwrap();
    let marked = f.engine.mark_rows(&tablet, &entry, &copied);
    let (mut changed, mut undecided) = (f.begin(), f.begin());
    for id in [2, 18, 256, 399] {
        update(&f, &mut changed, id, "behind the marks").await;
        expected.insert(id, "behind the marks".into());
        delete(&f, &mut changed, id + 100 * i64::from(id < 300)).await;
        expected.remove(&(id + 100 * i64::from(id < 300)));
    }
    changed.commit().await.unwrap();
    update(&f, &mut undecided, 5, "undecided").await;
    let moved = f.engine.switch_to_moved(&tablet, entry, &copied, marked).unwrap();
    assert_eq!(moved, Some(400 - 3 - 7 - 1));
    assert_found(&f, &expected);
    undecided.rollback();
    assert_found(&f, &expected);
    let f = f.reopen();
    assert_found(&f, &expected);
    f.engine.compact_table(table.id).unwrap();
    assert_found(&f, &expected);
    assert_clustered(&f);
}

#[tokio::test]
async fn two_rows_of_a_key_in_one_batch_are_found_however_far_apart() {
    let twins: [(&str, Vec<Vec<i64>>); 4] = [
        ("side by side in the batch", vec![(0..200).chain([199]).collect()]),
        ("at both ends", vec![(0..400).chain([0]).collect()]),
        ("in two pushes", vec![(0..300).collect(), (250..500).rev().collect()]),
        // More than one file has room for.
        ("in two files", vec![(0..1500).collect(), (1500..2600).chain([3]).collect()]),
    ];
    for (what, pushes) in twins {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        set(&f, "clustering_key", "v").await;
        let outcome = batch_scattered(&f, &pushes).await;
        assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "{what}: {outcome:?}");
        assert_eq!(now(&f).len(), 0, "{what}");
        // Not the keys of rows that are there, either.
        assert_eq!(batch_scattered(&f, &[(0..300).collect()]).await.unwrap(), 300);
        f.engine.compact_table(table.id).unwrap();
        let outcome = batch_scattered(&f, &[(299..500).rev().collect()]).await;
        assert!(matches!(outcome, Err(Error::DuplicateKey { .. })), "{what}: {outcome:?}");
        assert_found(&f, &scattered_rows(0..300));
    }
}

#[tokio::test]
async fn another_order_is_brought_about_while_readers_go_on() {
    for keyed in [true, false] {
        let mut f = Fixture::new();
        let table = f.create_table(1, keyed).await;
        orient(&f, "column").await;
        insert_scattered(&f, 0..300).await;
        f.engine.freeze_table(table.id).unwrap();
        batch_scattered(&f, &[(300..900).collect()]).await.unwrap();
        let expected = scattered_rows(0..900);
        let tablet = table.tablets().next().unwrap();
        let ordered = |f: &Fixture, by_text: bool| {
            lying(f).iter().all(|rows| match by_text {
                true => rows.is_sorted(),
                false => rows.is_sorted_by_key(|(_, id)| *id),
            })
        };
        assert!(ordered(&f, false) && !ordered(&f, true));
        for (value, by_text) in [("v", true), ("id", false), ("v,id", true), ("", false)] {
            let old = f.engine.read(Version::ZERO);
            match value {
                "" => orient(&f, "column").await,
                _ => set(&f, "clustering_key", value).await,
            }
            assert_found(&f, &expected);
            let merge = || {
                let tablet = f.engine.tablet(tablet).unwrap();
                f.engine.compact_if_worth(&tablet, f.engine.published()).unwrap()
            };
            let rounds = (0..20).take_while(|_| merge()).count();
            assert!((1..20).contains(&rounds), "{value}: {rounds} merges");
            assert!(ordered(&f, by_text), "{value}");
            assert_rows(&contents(&old, &table), &expected);
            drop(old);
            f = f.reopen();
            assert_found(&f, &expected);
        }
        f.engine.shutdown().unwrap();
        f.assert_sound();
    }
}

/// Rows are marked while their files are sorted anew, and in the large way.
#[tokio::test]
async fn marks_follow_rows_into_another_order() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    orient(&f, "column").await;
    insert_scattered(&f, 0..900).await;
    f.engine.freeze_table(table.id).unwrap();
    let mut expected = scattered_rows(0..900);
    let mut undecided = f.begin();
    for id in (3..900).step_by(90) {
        update(&f, &mut undecided, id, "undecided").await;
    }
    let mut txn = f.begin();
    for id in (0..900).step_by(45) {
        delete(&f, &mut txn, id).await;
        expected.remove(&id);
    }
    let old = f.engine.read(Version::ZERO);
    txn.commit().await.unwrap();
    set(&f, "clustering_key", "v").await;
    f.engine.compact_table(table.id).unwrap();
    assert_clustered(&f);
    assert_found(&f, &expected);
    assert_rows(&contents(&old, &table), &scattered_rows(0..900));
    drop(old);
    undecided.commit().await.unwrap();
    expected.extend((3..900).step_by(90).map(|id| (id, "undecided".to_string())));
    assert_found(&f, &expected);
    let f = f.reopen();
    assert_found(&f, &expected);
}

/// Nulls come last, and a column that a file lacks is what it was added with.
#[tokio::test]
async fn nulls_and_columns_that_files_lack_have_their_place() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    set(&f, "clustering_key", "v").await;
    let mut txn = f.begin();
    for id in 0..300 {
        let v = if id % 3 == 0 { Datum::Null } else { Datum::text(&scattered(id)) };
        txn.insert(&f.table(), &[Datum::I64(id), v]).await.unwrap();
    }
    txn.commit().await.unwrap();
    f.engine.freeze_table(table.id).unwrap();
    let texts = |f: &Fixture| -> Vec<Option<Datum>> {
        let tablet = f.engine.tablets().into_iter().find(|tablet| !tablet.view().files.is_empty()).unwrap();
        let file = tablet.view().files[0].clone();
        let text = |ordinal| file.data.row_at(&f.table(), ordinal).unwrap()[1].clone();
        (0..file.data.rows()).map(|ordinal| Some(text(ordinal)).filter(|text| !text.is_null())).collect()
    };
    let found = texts(&f);
    assert!(found[..200].iter().all(Option::is_some) && found[200..].iter().all(Option::is_none));
    let mut wider = (*f.table()).clone();
    let mut third = ColumnDef::new(ColumnId(3), "w", DataType::Int4);
    third.missing = Datum::I32(77);
    wider.columns.push(third);
    wider.options = vec![("clustering_key".into(), "w, v".into())];
    let mut txn = f.begin();
    txn.edit_catalog(vec![CatalogEdit::PutTable(Arc::new(wider.clone()))]).unwrap();
    txn.insert(&Arc::new(wider.clone()), &[Datum::I64(1000), Datum::text("first"), Datum::I32(-5)]).await.unwrap();
    txn.commit().await.unwrap();
    f.engine.compact_table(table.id).unwrap();
    f.engine.compact_table(table.id).unwrap();
    let found = texts(&f);
    assert_eq!(found[0], Some(Datum::text("first")));
    assert_eq!(found[1..], texts(&f)[1..]);
    assert!(found[1..201].is_sorted_by_key(|text| format!("{text:?}")), "{:?}", &found[..20]);
}

/// Rows are looked for where their keys are, and files of rows stay in the order of keys.
#[tokio::test]
async fn files_for_reads_by_key_stay_in_the_order_of_keys() {
    for orientation in ["row", "row,column"] {
        let f = Fixture::new();
        let table = f.create_table(1, true).await;
        let mut changed = (*table).clone();
        changed.options = vec![("clustering_key".into(), "v".into()), ("orientation".into(), orientation.into())];
        let mut txn = f.begin();
        txn.edit_catalog(vec![CatalogEdit::PutTable(Arc::new(changed))]).unwrap();
        txn.commit().await.unwrap();
        insert_scattered(&f, 0..300).await;
        f.engine.freeze_table(table.id).unwrap();
        batch_scattered(&f, &[(300..900).rev().collect()]).await.unwrap();
        let files = f.engine.tablets().into_iter().flat_map(|tablet| tablet.view().files.clone());
        assert!(files.into_iter().all(|file| file.data.is_sorted()), "{orientation}");
        assert_found(&f, &scattered_rows(0..900));
        // And from one to the other.
        set(&f, "clustering_key", "v").await;
        f.engine.compact_table(table.id).unwrap();
        assert!(assert_clustered(&f) > 0);
        assert_found(&f, &scattered_rows(0..900));
    }
}

/// A walk that may look at little does not read a whole file for a few rows.
#[tokio::test]
async fn walks_over_large_unsorted_files_are_refused() {
    let f = Fixture::new();
    let table = f.create_table(1, true).await;
    set(&f, "clustering_key", "v").await;
    insert_scattered(&f, 0..900).await;
    f.engine.freeze_table(table.id).unwrap();
    let (table, read) = (f.table(), f.engine.read(Version::ZERO));
    let tablets: Vec<TabletId> = table.tablets().collect();
    let spec = |looks_max| WalkSpec {
        table: &table,
        tablets: &tablets,
        range: KeyRange { from: key(&table, 5).as_bytes().to_vec(), to: None },
        direction: Direction::Ascending,
        columns: &[ColumnId(1)],
        reading: read.reading(),
        stamped: false,
        keyed: false,
        rows_hint: 0,
        looks_max,
    };
    assert!(f.engine.walk(spec(800)).unwrap().is_none());
    assert!(f.engine.walk(spec(10_000)).unwrap().is_some());
}
