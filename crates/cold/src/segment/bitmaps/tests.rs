use super::super::{KeySpec, SegmentOptions, SegmentWriter, Stamps, zone};
use super::*;
use crate::filter::int_hash;
use crate::{BlockCache, Files, Segment};
use arrow_array::ArrayRef;
use basalt_types::schema::FileIndexes;
use basalt_types::{ColumnBuilder, CompareOp, DataType, Datum, Epoch, FileId, numeric};
use object_store::memory::InMemory;
use std::sync::Arc;

const ID: FileId = FileId { epoch: Epoch(1), serial: 3 };
const ROWS: u64 = 65_536 + 9_000;

type Cell = fn(u64) -> Datum;

fn scatter(of: u64) -> u64 {
    int_hash(of as i64 + 1)
}

/// Behind a key, columns of these types and values, of which all but the last have bitmaps.
fn segment(columns: &[(DataType, Cell)], rows: u64) -> Segment {
    let key: (DataType, Cell) = (DataType::Int8, |row| Datum::I64(row as i64));
    let columns: Vec<_> = [key].into_iter().chain(columns.iter().cloned()).collect();
    let ids = (1..).zip(&columns).map(|(id, (ty, _))| SegmentColumn::new(ColumnId(id), ty).unwrap());
    let schema = SegmentSchema { columns: ids.collect(), key: KeySpec::Columns(vec![ColumnId(1)]) };
    let files = Files::new(Arc::new(InMemory::new()));
    let bitmaps = (2..columns.len() as u16).map(ColumnId).collect();
    let indexes = FileIndexes { bitmaps, filters: Vec::new() };
    let options = SegmentOptions { indexes, ..SegmentOptions::default() };
    let mut writer = SegmentWriter::create(&files, ID, schema.clone(), options).unwrap();
    for from in (0..rows).step_by(20_000) {
        let rows = from..(from + 20_000).min(rows);
        let arrays = columns.iter().zip(&schema.columns).map(|((_, cell), column)| {
            let mut builder = ColumnBuilder::new(column.ty, rows.clone().count());
            assert!(rows.clone().all(|row| builder.push(&cell(row))));
            builder.finish()
        });
        writer.push(&arrays.collect::<Vec<ArrayRef>>(), Stamps::Uniform).unwrap();
    }
    writer.finish().unwrap();
    let segment = Segment::open(&files, ID, &Arc::new(BlockCache::new(0, 64 << 20))).unwrap();
    segment.verify().unwrap();
    segment
}

/// What a predicate says of a value, by the order of zone maps.
fn holds(column: &SegmentColumn, predicate: &ColumnPredicate, value: &Datum) -> bool {
    let order = |to: &Datum| {
        let (value, to) = (zone::comparable_datum(column.order, value)?, zone::comparable_datum(column.order, to)?);
        zone::compare(&value, &to)
    };
    match predicate {
        ColumnPredicate::IsNull { .. } => value.is_null(),
        ColumnPredicate::IsNotNull { .. } => !value.is_null(),
        ColumnPredicate::In { values, .. } => values.iter().any(|to| order(to) == Some(Ordering::Equal)),
        ColumnPredicate::Among { values, .. } => {
            let int = match value {
                Datum::I16(value) => i64::from(*value),
                Datum::I32(value) => i64::from(*value),
                Datum::I64(value) => *value,
                _ => return false,
            };
            values.contains(&int)
        }
        ColumnPredicate::Compare { op, value: to, .. } => order(to).is_some_and(|order| op.holds(order)),
    }
}

/// Compares what bitmaps choose with what the predicates say of each row. Whether they knew.
fn check(segment: &Segment, cells: &[Cell], predicates: &[ColumnPredicate]) -> usize {
    let columns: Vec<ColumnId> = predicates.iter().map(ColumnPredicate::column).collect();
    let expected: Vec<u32> = (0..segment.rows())
        .filter(|row| {
            predicates.iter().all(|predicate| {
                let at = usize::from(predicate.column().0) - 1;
                holds(&segment.schema().columns[at], predicate, &cells[at - 1](u64::from(*row)))
            })
        })
        .collect();
    match segment.chosen(predicates, &columns).unwrap() {
        Some(chosen) => {
            assert_eq!(
                chosen.rows.set_indices().map(|row| row as u32).collect::<Vec<u32>>(),
                expected,
                "{predicates:?}"
            );
            assert_eq!(chosen.count, expected.len(), "{predicates:?}");
            assert!(chosen.told.iter().all(|told| *told), "{predicates:?}");
            1
        }
        None => {
            let most = segment.rows() as usize / 600;
            assert!(
                expected.len() > most || columns.len() > 1,
                "{} rows are not chosen: {predicates:?}",
                expected.len()
            );
            0
        }
    }
}

fn compare(column: u16, op: CompareOp, value: Datum) -> ColumnPredicate {
    ColumnPredicate::Compare { column: ColumnId(column), op, value }
}

const OPS: [CompareOp; 5] = [CompareOp::Eq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

/// All comparisons of a column with some of its values and some between them.
fn check_type(ty: DataType, cell: Cell) {
    let segment = segment(&[(ty, cell), (DataType::Int4, |_| Datum::I32(0))], ROWS);
    let mut known = 0;
    for row in [0, 1, 2, 3, 77, 40_000, 65_535, 65_536, ROWS - 1, ROWS + 5] {
        let value = cell(row);
        if value.is_null() {
            continue;
        }
        for op in OPS {
            known += check(&segment, &[cell], &[compare(2, op, value.clone())]);
        }
        let others: Vec<Datum> = (row..row + 40).map(cell).collect();
        known += check(&segment, &[cell], &[ColumnPredicate::In { column: ColumnId(2), values: others.clone() }]);
        let range = [compare(2, CompareOp::GtEq, value.clone()), compare(2, CompareOp::Lt, others[1].clone())];
        if !others[1].is_null() {
            known += check(&segment, &[cell], &range);
        }
    }
    assert!(known >= 3, "{known}");
    check(&segment, &[cell], &[ColumnPredicate::IsNull { column: ColumnId(2) }]);
    check(&segment, &[cell], &[ColumnPredicate::IsNotNull { column: ColumnId(2) }]);
}

#[test]
fn integers() {
    check_type(DataType::Int4, |row| match row % 11 {
        3 => Datum::Null,
        _ => Datum::I32((scatter(row) % 500) as i32 - 250),
    });
    check_type(DataType::Int8, |row| Datum::I64(scatter(row) as i64));
    check_type(DataType::Int2, |row| Datum::I16((scatter(row) % 900) as i16 - 400));
}

#[test]
fn clustered_and_very_frequent_values() {
    check_type(DataType::Int4, |row| Datum::I32((row / 3_000) as i32));
    check_type(DataType::Int4, |row| {
        Datum::I32(if scatter(row).is_multiple_of(10) { (row % 1000) as i32 } else { -7 })
    });
}

#[test]
fn booleans_floats_and_wide_numbers() {
    let truth: Cell = |row| if row % 50 == 0 { Datum::Null } else { Datum::Bool(row % 400 == 1) };
    let segment = segment(&[(DataType::Bool, truth), (DataType::Int4, |_| Datum::I32(0))], ROWS);
    assert_eq!(check(&segment, &[truth], &[compare(2, CompareOp::Eq, Datum::Bool(true))]), 1);
    check_type(DataType::Float8, |row| {
        Datum::F64(match scatter(row) % 700 {
            0 => f64::NAN,
            1 => -f64::NAN,
            2 => 0.0,
            3 => -0.0,
            4 => f64::INFINITY,
            5 => f64::NEG_INFINITY,
            other => (other as f64 - 350.0) / 3.0,
        })
    });
    check_type(DataType::Float4, |row| match row % 70 {
        0 => Datum::F32(f32::NAN),
        1 => Datum::F32(-0.0),
        other => Datum::F32(other as f32 / 7.0 - 3.0),
    });
    let wide = DataType::Numeric(Some((30, 4)));
    check_type(wide, |row| Datum::I128(i128::from(scatter(row) as i64) * 1_000_003 % 100_000_000_000_000_000_000_007));
}

#[test]
fn texts_and_other_bytes() {
    check_type(DataType::Text, |row| match row % 13 {
        0 => Datum::Null,
        _ => Datum::text(&format!("page/{}", scatter(row) % 3_000)),
    });
    check_type(DataType::Bpchar(Some(8)), |row| match scatter(row) % 200 {
        odd @ 0..6 => Datum::text(["a", "a  ", "a\t", "b ", "", "  "][odd as usize]),
        other => Datum::text(&format!("{}{}", other % 90, " ".repeat((row % 3) as usize))),
    });
    check_type(DataType::Uuid, |row| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&scatter(row % 5_000).to_be_bytes());
        Datum::Fixed16(bytes)
    });
    check_type(DataType::Numeric(None), |row| {
        let digits = vec![1 + (scatter(row) % 90) as u16];
        let parts =
            numeric::Parts { class: numeric::CLASS_POSITIVE, weight: 0, digits, display_scale: (row % 3) as u16 };
        let mut bytes = Vec::new();
        numeric::encode(&parts, &mut bytes);
        Datum::Bytes(bytes.as_slice().into())
    });
}

#[test]
fn several_columns_together() {
    let cells: [Cell; 2] =
        [|row| Datum::I32((scatter(row) % 90) as i32), |row| Datum::text(&format!("v{}", scatter(row ^ 1 << 40) % 90))];
    let segment =
        segment(&[(DataType::Int4, cells[0]), (DataType::Text, cells[1]), (DataType::Int4, |_| Datum::I32(0))], ROWS);
    // Each of them alone wants more than one row in 128.
    let (number, text) = (compare(2, CompareOp::Eq, Datum::I32(1)), compare(3, CompareOp::Eq, Datum::text("v2")));
    assert_eq!(check(&segment, &cells, &[number.clone(), text]), 1);
    assert!(segment.chosen(std::slice::from_ref(&number), &[ColumnId(2)]).unwrap().is_none());
    // Columns that are not asked about, are unknown or have no bitmaps say nothing.
    let rare = compare(2, CompareOp::Eq, Datum::I32(99));
    assert!(segment.chosen(std::slice::from_ref(&rare), &[]).unwrap().is_none());
    let none = [compare(4, CompareOp::Eq, Datum::I32(9)), compare(99, CompareOp::Eq, Datum::I32(9))];
    assert!(segment.chosen(&none, &[ColumnId(4), ColumnId(99)]).unwrap().is_none());
    assert_eq!(segment.chosen(&[rare], &[ColumnId(2)]).unwrap().map(|chosen| chosen.count), Some(0));
}

#[test]
fn keys_of_joins_and_lists() {
    let cell: Cell = |row| Datum::I32((scatter(row) % 10_000) as i32);
    let segment = segment(&[(DataType::Int4, cell), (DataType::Int4, |_| Datum::I32(0))], ROWS);
    let among = |values: Vec<i64>| ColumnPredicate::Among { column: ColumnId(2), values: values.into() };
    assert_eq!(check(&segment, &[cell], &[among(vec![-5, 17, 18, 9_999, 1 << 40])]), 1);
    let both = [among((0..100).collect()), compare(2, CompareOp::Gt, Datum::I32(90))];
    assert_eq!(check(&segment, &[cell], &both), 1);
    assert_eq!(check(&segment, &[cell], &[among(vec![3, 4]), among(vec![4, 5])]), 1);
    let null = ColumnPredicate::In { column: ColumnId(2), values: vec![Datum::Null, Datum::I32(5)] };
    assert_eq!(check(&segment, &[cell], &[null]), 1);
    // Longer ones are left alone, as is what says nothing of values.
    let unequal = [among(vec![3, 4]), compare(2, CompareOp::NotEq, Datum::I32(3)), among((0..5_000).collect())];
    let chosen = segment.chosen(&unequal, &[ColumnId(2)]).unwrap().unwrap();
    assert_eq!(*chosen.told, [true, false, false]);
    let long = among((0..=1024).collect());
    assert!(segment.chosen(&[long], &[ColumnId(2)]).unwrap().is_none());
}

#[test]
fn columns_without_values() {
    let cell: Cell = |_| Datum::Null;
    let segment = segment(&[(DataType::Text, cell), (DataType::Int4, |_| Datum::I32(0))], 100);
    assert_eq!(check(&segment, &[cell], &[compare(2, CompareOp::GtEq, Datum::text(""))]), 1);
    check(&segment, &[cell], &[ColumnPredicate::IsNull { column: ColumnId(2) }]);
    assert!(segment.has(&FileIndexes { bitmaps: vec![ColumnId(2), ColumnId(77)], filters: Vec::new() }));
    assert!(!segment.has(&FileIndexes { bitmaps: vec![ColumnId(3)], filters: Vec::new() }));
    assert!(!segment.has(&FileIndexes { bitmaps: Vec::new(), filters: vec![ColumnId(2)] }));
}

/// Values of one row, of a few and of many, in several pages.
#[test]
fn every_form_of_a_list_is_read() {
    let cell: Cell = |row| match row {
        0..20_000 => Datum::I64(1_000_000 + row as i64),
        20_000..30_000 => Datum::I64(2_000_000 + (row % 3_000) as i64),
        _ => Datum::I64(3_000_000 + (scatter(row) % 100) as i64),
    };
    let segment = segment(&[(DataType::Int8, cell), (DataType::Int4, |_| Datum::I32(0))], ROWS);
    for value in [1_000_000, 1_004_095, 1_004_096, 1_019_999, 2_000_000, 2_002_999, 3_000_000, 3_000_039, 5, 9_000_000]
    {
        assert_eq!(check(&segment, &[cell], &[compare(2, CompareOp::Eq, Datum::I64(value))]), 1, "{value}");
        for wide in [1, 700, 5_000] {
            let range =
                [compare(2, CompareOp::GtEq, Datum::I64(value)), compare(2, CompareOp::Lt, Datum::I64(value + wide))];
            check(&segment, &[cell], &range);
        }
    }
    assert_eq!(check(&segment, &[cell], &[compare(2, CompareOp::Lt, Datum::I64(1_000_500))]), 1);
}

#[test]
fn damage_is_refused_and_breaks_nothing() {
    const ROWS: u32 = 100_000;
    let mut rng = 7u64;
    let few: Vec<u32> = (0..40).map(|row| row * 2_000 + 7).collect();
    let many: Vec<u32> = (0..9_000).chain(50_000..50_003).collect();
    let mut lists = Vec::new();
    let mut ends = Vec::new();
    for rows in [&few[..1], &few, &many, &[3, 4]] {
        build::put_rows(rows, &mut lists);
        ends.push(lists.len() as i64);
    }
    assert_eq!(lists[ends[1] as usize], ROARING, "a run is smaller so");
    let mut good = Vec::new();
    crate::encoding::ints::encode(&ends, &mut good);
    good.append(&mut lists);
    let read = |bytes: &[u8]| {
        let mut found = RowSet::new(ROWS);
        let lists = Lists::parse(bytes, 4)?;
        (0..4).try_for_each(|value| add_list(lists.bytes(value..value + 1)?, &mut found))?;
        Ok(found)
    };
    let found: Decoded<RowSet> = read(&good);
    assert_eq!(found.unwrap().count, 1 + 40 + 9_003 + 2);
    assert!(read(&good[..good.len() - 1]).is_err(), "a list that is cut off");
    for at in 0..good.len() {
        for _ in 0..8 {
            let mut bytes = good.clone();
            rng = int_hash(rng as i64 + 1);
            bytes[at] ^= (rng as u8).max(1);
            // Nothing panics.
            let _ = read(&bytes);
        }
    }
    assert!(RowSet::new(9).add([4, 9].into_iter()).is_err());
    assert!(RowSet::new(10).add([4, 9].into_iter()).is_ok());
}
