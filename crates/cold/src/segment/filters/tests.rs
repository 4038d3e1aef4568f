use super::super::{KeySpec, SegmentOptions, SegmentSchema, SegmentWriter, Stamps};
use crate::{BlockCache, Files, Segment, SegmentColumn, SegmentMeta};
use arrow_array::ArrayRef;
use basalt_types::numeric::{self, CLASS_POSITIVE, Parts};
use basalt_types::{ColumnBuilder, ColumnId, ColumnPredicate, CompareOp, DataType, Datum, Epoch, FileId, PhysType};
use object_store::memory::InMemory;
use std::sync::Arc;

const ID: FileId = FileId { epoch: Epoch(1), serial: 3 };
const ROWS: u64 = 3 * 65_536 - 5_000;

type Cell = Box<dyn Fn(u64) -> Datum>;

fn scatter(of: u64) -> u64 {
    super::int_hash(of as i64 + 1)
}

/// Behind a key, columns of these types and values, and one of bytes that nobody can compress.
fn segment(columns: Vec<(DataType, Cell)>, rows: u64) -> (Segment, SegmentMeta) {
    let padding: Cell = Box::new(|row| {
        let words = (0..16).flat_map(|word| scatter(row * 64 + word).to_le_bytes());
        Datum::Bytes(words.collect::<Vec<u8>>().as_slice().into())
    });
    let key: (DataType, Cell) = (DataType::Int8, Box::new(|row| Datum::I64(row as i64)));
    let columns: Vec<_> = [key].into_iter().chain(columns).chain([(DataType::Bytea, padding)]).collect();
    let ids = (1..).zip(&columns).map(|(id, (ty, _))| SegmentColumn::new(ColumnId(id), ty).unwrap());
    let schema = SegmentSchema { columns: ids.collect(), key: KeySpec::Columns(vec![ColumnId(1)]) };
    let files = Files::new(Arc::new(InMemory::new()));
    let mut writer = SegmentWriter::create(&files, ID, schema.clone(), SegmentOptions::default()).unwrap();
    for from in (0..rows).step_by(20_000) {
        let rows = from..(from + 20_000).min(rows);
        let arrays = columns.iter().zip(&schema.columns).map(|((_, cell), column)| {
            let mut builder = ColumnBuilder::new(column.ty, rows.clone().count());
            assert!(rows.clone().all(|row| builder.push(&cell(row))));
            builder.finish()
        });
        writer.push(&arrays.collect::<Vec<ArrayRef>>(), Stamps::Uniform).unwrap();
    }
    let meta = writer.finish().unwrap();
    let segment = Segment::open(&files, ID, &Arc::new(BlockCache::new(0, 64 << 20))).unwrap();
    segment.verify().unwrap();
    (segment, meta)
}

/// Which row groups a search for values passes by.
fn passed_by(segment: &Segment, column: u16, values: &[Datum]) -> Vec<bool> {
    let column = ColumnId(column);
    let predicate = match values {
        [value] => ColumnPredicate::Compare { column, op: CompareOp::Eq, value: value.clone() },
        values => ColumnPredicate::In { column, values: values.to_vec() },
    };
    let groups = 0..segment.row_groups().len();
    groups.map(|group| segment.filtered_out(group, std::slice::from_ref(&predicate)).unwrap()).collect()
}

fn uuid(row: u64) -> Datum {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&scatter(row).to_be_bytes());
    bytes[8..].copy_from_slice(&scatter(row ^ 1 << 40).to_be_bytes());
    Datum::Fixed16(bytes)
}

#[test]
fn a_value_is_looked_for_where_it_is_and_hardly_anywhere_else() {
    let (segment, _) = segment(vec![(DataType::Uuid, Box::new(uuid))], ROWS);
    let mut needless = 0;
    for row in (0..ROWS).step_by(997) {
        let passed_by = passed_by(&segment, 2, &[uuid(row)]);
        assert!(!passed_by[(row / 65_536) as usize], "row {row} is not found");
        needless += passed_by.iter().filter(|passed_by| !**passed_by).count() - 1;
    }
    assert!(needless * 50 < ROWS.div_ceil(997) as usize * 2, "{needless} row groups are read for nothing");
    assert_eq!(passed_by(&segment, 2, &[uuid(ROWS + 1), uuid(ROWS + 2)]), [true; 3]);
    assert_eq!(passed_by(&segment, 2, &[uuid(ROWS + 1), uuid(5)]), [false, true, true]);
    // Other comparisons are no business of filters.
    let unequal = ColumnPredicate::Compare { column: ColumnId(2), op: CompareOp::NotEq, value: uuid(ROWS + 1) };
    assert!(!segment.filtered_out(0, &[unequal]).unwrap());
}

#[test]
fn equal_values_of_other_bytes_are_found() {
    let number = |row: u64, zeros: usize| {
        let mut bytes = Vec::new();
        let digits = [1 + scatter(row) % 9998, 1 + (scatter(row) >> 20) % 9998, 1 + (scatter(row) >> 40) % 9998];
        let digits = digits.iter().map(|digit| *digit as u16).collect();
        let parts = Parts { class: CLASS_POSITIVE, weight: 2, digits, display_scale: zeros as u16 };
        numeric::encode(&parts, &mut bytes);
        Datum::Bytes(bytes.as_slice().into())
    };
    let padded = |row: u64, blanks: usize| Datum::text(&format!("{:x}{}", scatter(row), " ".repeat(blanks)));
    let columns: Vec<(DataType, Cell)> = vec![
        (DataType::Numeric(None), Box::new(move |row| number(row, (row % 3) as usize))),
        (DataType::Bpchar(None), Box::new(move |row| padded(row, (row % 4) as usize))),
    ];
    let (segment, _) = segment(columns, ROWS);
    for row in (0..ROWS).step_by(9_973) {
        let group = (row / 65_536) as usize;
        assert!(!passed_by(&segment, 2, &[number(row, 4)])[group] && !passed_by(&segment, 3, &[padded(row, 5)])[group]);
    }
    assert!(passed_by(&segment, 2, &[number(ROWS + 9, 0)]).contains(&true));
    assert!(passed_by(&segment, 3, &[padded(ROWS + 9, 0)]).contains(&true));
}

#[test]
fn integers_with_nulls_are_found() {
    let value = |row: u64| if row % 7 == 3 { Datum::Null } else { Datum::I32(scatter(row) as i32) };
    let wide = |row: u64| Datum::I128(i128::from(scatter(row)) << 40);
    let columns: Vec<(DataType, Cell)> =
        vec![(DataType::Int4, Box::new(value)), (DataType::Numeric(Some((38, 0))), Box::new(wide))];
    let (segment, _) = segment(columns, ROWS);
    for row in (0..ROWS).step_by(9_973).filter(|row| row % 7 != 3) {
        let group = (row / 65_536) as usize;
        assert!(!passed_by(&segment, 2, &[value(row)])[group] && !passed_by(&segment, 3, &[wide(row)])[group]);
    }
    assert!(passed_by(&segment, 2, &[value(ROWS + 8)]).contains(&true));
    assert!(passed_by(&segment, 3, &[wide(ROWS + 8)]).contains(&true));
    let among = |values: &[i64]| ColumnPredicate::Among { column: ColumnId(2), values: values.into() };
    let ints: Vec<i64> = (0..3).map(|of| i64::from(scatter(ROWS + of) as i32)).collect();
    let mut absent = [ints.as_slice(), &[i64::MIN, 1 << 40]].concat();
    absent.sort_unstable();
    assert!((0..3).any(|group| segment.filtered_out(group, &[among(&absent)]).unwrap()));
    absent.extend((0..3).map(|group| i64::from(scatter(group * 65_536) as i32)));
    absent.sort_unstable();
    assert!((0..3).all(|group| !segment.filtered_out(group, &[among(&absent)]).unwrap()));
    // Of another type than the column's nothing is known.
    assert_eq!(passed_by(&segment, 2, &[Datum::I64(1 << 40)]), [false; 3]);
}

#[test]
fn columns_that_would_not_profit_have_no_filter() {
    let columns: Vec<(DataType, Cell)> = vec![
        (DataType::Int4, Box::new(|row| Datum::I32(row as i32 * 7))),
        (DataType::Int4, Box::new(|row| Datum::I32((scatter(row) % 10_000) as i32))),
        (DataType::Text, Box::new(|row| Datum::text(["a", "b", "c"][(scatter(row) % 3) as usize]))),
        (DataType::Float8, Box::new(|row| Datum::F64(scatter(row) as f64))),
        // In order but within row groups.
        (
            DataType::Int8,
            Box::new(|row| {
                Datum::I64((row / 65_536 * 65_536 + scatter(row) % 65_536) as i64 * 1000 + row as i64 % 1000)
            }),
        ),
    ];
    let (segment, _) = segment(columns, ROWS);
    let filtered: Vec<usize> = segment.column_filters.iter().map(|filter| filter.at).collect();
    assert_eq!(filtered, [6], "that of the bytes alone");
}

#[test]
fn filters_take_a_fiftieth_of_a_file() {
    let text = |row| Datum::text(&format!("{:016x}", scatter(row)));
    let columns: Vec<(DataType, Cell)> = vec![
        (DataType::Uuid, Box::new(uuid)),
        (DataType::Text, Box::new(text)),
        (DataType::Int8, Box::new(|row| Datum::I64(scatter(row) as i64))),
    ];
    let (segment, meta) = segment(columns, ROWS);
    let sections = segment.layout.sections.iter().filter(|section| section.kind == super::SECTION_COLUMN_FILTERS);
    let bytes: u64 = sections.map(|section| section.bytes).sum();
    assert!(bytes > 0 && bytes * 50 <= meta.bytes, "{bytes} of {} bytes", meta.bytes);
    assert_eq!(PhysType::Fixed16, segment.chunk_type(1));
}

#[test]
fn a_small_file_has_none() {
    let (segment, _) = segment(vec![(DataType::Uuid, Box::new(uuid))], 9_000);
    assert!(segment.column_filters.is_empty());
    assert_eq!(passed_by(&segment, 2, &[uuid(10_000)]), [false]);
}
