//! Arrays whose elements lie side by side, beside the arrays themselves.

use super::*;

fn taken_apart(element: PhysType, value: &Datum) -> Option<ArrayValue> {
    match value {
        Datum::Bytes(bytes) => ArrayValue::decode(element, bytes),
        _ => None,
    }
}

/// What a page tells of elements.
pub(super) fn check(segment: &Segment, chunk: &mut ChunkReader, page: usize, element: PhysType, expected: &[Datum]) {
    let arrays: Vec<Option<ArrayValue>> = expected.iter().map(|value| taken_apart(element, value)).collect();
    let Some(ty) = chunk.elements_type() else {
        assert!(chunk.elements(segment, page, None).unwrap().is_none());
        assert!(chunk.element(segment, page, 0, None).unwrap().is_none());
        assert!(chunk.counts(segment, page, None).unwrap().is_none());
        return;
    };
    assert_eq!(ty, element);
    let elements =
        |row: &u32| arrays[*row as usize].iter().flat_map(|array| array.elements.clone()).collect::<Vec<_>>();
    let all: Vec<u32> = (0..expected.len() as u32).collect();
    for step in [0, 1, 2, 5, 1001] {
        let rows: Vec<u32> = all.iter().copied().step_by(step.max(1)).collect();
        let some = (step > 0).then_some(rows.as_slice());
        for place in [0, 1, 4] {
            let expected: Vec<Datum> =
                rows.iter().map(|row| elements(row).get(place).cloned().unwrap_or(Datum::Null)).collect();
            let found = chunk.element(segment, page, place as u32, some).unwrap().unwrap();
            assert_same(element, &found.to_array(element), &expected);
        }
        let found = chunk.counts(segment, page, some).unwrap().unwrap();
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(found.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)), arrays[*row as usize].is_none());
            assert_eq!(found.values.get(at), elements(row).len() as i128);
        }
        let found = chunk.elements(segment, page, some).unwrap().unwrap();
        let lengths: Vec<u32> = rows.iter().map(|row| elements(row).len() as u32).collect();
        assert_eq!(found.counts, lengths);
        let is_null = |at: usize| found.nulls.as_ref().is_some_and(|nulls| nulls.is_null(at));
        assert!(rows.iter().enumerate().all(|(at, row)| is_null(at) == arrays[*row as usize].is_none()));
        let expected: Vec<Datum> = rows.iter().flat_map(elements).collect();
        assert_same(element, &found.values.to_array(element), &expected);
    }
}

fn column(ty: DataType) -> SegmentColumn {
    SegmentColumn::new(VALUE, &DataType::Array(Box::new(ty))).unwrap()
}

/// Writes a column of arrays, checks all of it, and tells what elements share (`None`: they do not lie side by side).
fn written(column: SegmentColumn, values: Vec<Datum>) -> Option<Option<SharedKind>> {
    let table = Table::new(values.len(), |i| i as i64, column, values);
    let files = files();
    table.write(&files, SegmentOptions::default(), 10_000, None);
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.schema(), &table.schema);
    table.check(&segment);
    segment.verify().unwrap();
    let shared = segment.shared(&segment.directory(0).unwrap().chunks[2]).unwrap();
    let elements = shared.as_ref().and_then(|shared| shared.elements());
    elements.map(|(_, shared)| shared.map(|shared| shared.kind))
}

fn ints(count: usize, from: usize) -> Datum {
    ArrayValue::plain((from..from + count).map(|value| Datum::I32((value * 31 % 1000) as i32)).collect())
        .encode(PhysType::I32)
}

fn texts(texts: impl Iterator<Item = String>) -> Datum {
    ArrayValue::plain(texts.map(|text| Datum::text(&text)).collect()).encode(PhysType::Bytes)
}

#[test]
fn elements_take_the_forms_of_columns() {
    let rows = 20_000;
    let numbers = (0..rows).map(|row| if row % 7 == 0 { Datum::Null } else { ints(row % 9, row) }).collect();
    assert_eq!(written(column(DataType::Int4), numbers), Some(None));
    let scattered = |row: usize| key_hash(&row.to_le_bytes());
    let wide = |value: usize| Datum::I64(1 << (scattered(value) % 5 * 12));
    let few = |row: usize| ArrayValue::plain((0..row % 9).map(|at| wide(row * 9 + at)).collect()).encode(PhysType::I64);
    let few = (0..rows).map(few).chain([Datum::Null]).collect();
    assert_eq!(written(column(DataType::Int8), few), Some(Some(SharedKind::Ints)));
    let word = |row: usize, at: usize| format!("word {}", scattered(row * 4 + at) % 500);
    let words = (0..rows).map(|row| texts((0..row % 4).map(|at| word(row, at))));
    assert_eq!(written(column(DataType::Text), words.collect()), Some(Some(SharedKind::Strings)));
    let long = (0..rows).map(|row| texts((0..row % 4).map(|at| format!("number {} of some", row * 4 + at))));
    assert_eq!(written(column(DataType::Text), long.collect()), Some(Some(SharedKind::Symbols)));
    let odd = (0..rows).map(|row| texts((0..row % 3).map(|at| format!("{:x}", scattered(row * 4 + at)))));
    assert!(written(column(DataType::Text), odd.collect()).is_some());
    let ascending = |row: usize| (0..row % 9).map(|at| Datum::I32((row * 10 + at * 3) as i32)).collect();
    let ascending = (0..rows).map(|row| ArrayValue::plain(ascending(row)).encode(PhysType::I32));
    assert_eq!(written(column(DataType::Int4), ascending.collect()), Some(None));
    let runs = (0..rows).map(|row| ArrayValue::plain(vec![Datum::I32(row as i32 / 50); row % 9]).encode(PhysType::I32));
    assert_eq!(written(column(DataType::Int4), runs.collect()), Some(None));
    let floats = |row: usize| (0..row % 5).map(|at| Datum::F32((row * 7 + at) as f32 / 4.0)).collect();
    let floats = (0..rows).map(|row| ArrayValue::plain(floats(row)).encode(PhysType::F32));
    assert_eq!(written(column(DataType::Float4), floats.collect()), Some(None));
    // Pages without any element, without any array, and with nulls alone.
    let odd = |row: usize| match row / 8192 {
        0 => ints(0, 0),
        1 => Datum::Null,
        2 => ArrayValue::plain(vec![Datum::Null; row % 3]).encode(PhysType::I32),
        _ => ints(row % 9, row),
    };
    assert_eq!(written(column(DataType::Int4), (0..2 * rows).map(odd).collect()), Some(None));
}

#[test]
fn arrays_that_are_not_plain_and_few_different_ones_stay_whole() {
    let rows = 20_000;
    let with = |odd: ArrayValue| {
        (0..rows).map(|row| if row == 12_345 { odd.encode(PhysType::I32) } else { ints(row % 9, row) }).collect()
    };
    let shape = |dimensions: Vec<Dimension>| ArrayValue { dimensions, elements: vec![Datum::I32(1), Datum::I32(2)] };
    let [lower, square] = [
        vec![Dimension { lower: 0, length: 2 }],
        vec![Dimension { lower: 1, length: 1 }, Dimension { lower: 1, length: 2 }],
    ];
    assert_eq!(written(column(DataType::Int4), with(shape(lower))), None);
    assert_eq!(written(column(DataType::Int4), with(shape(square))), None);
    assert_eq!(written(column(DataType::Int4), (0..rows).map(|row| ints(row % 4, row % 5)).collect()), None);
    // The bytes of arrays of another type of elements are no arrays of these.
    let damaged = (0..rows).map(|row| texts(std::iter::once(format!("{row}")))).collect();
    assert_eq!(written(column(DataType::Uuid), damaged), None);
}

#[test]
fn arrays_that_repeat_are_an_entry_each_where_that_is_smaller() {
    let rows = 20_000;
    let odd =
        |row: usize| if row == 7 { Dimension { lower: 0, length: 60 } } else { Dimension { lower: 1, length: 60 } };
    let scattered = |row: usize, at: usize| Datum::F64(key_hash(&(row * 60 + at).to_le_bytes()) as f64 / 1e9);
    // The first thousand are all different.
    let wide = |row: usize| (0..60).map(|at| scattered(row % 1000, at)).collect::<Vec<Datum>>();
    let whole = (0..rows).map(|row| ArrayValue::plain(wide(row)).encode(PhysType::F64)).collect();
    assert_eq!(written(column(DataType::Float8), whole), None);
    let array = |row: usize| ArrayValue { dimensions: vec![odd(row)], elements: wide(row) }.encode(PhysType::F64);
    let table = Table::new(rows, |i| i as i64, column(DataType::Float8), (0..rows).map(array).collect());
    let bytes = table.write(&files(), SegmentOptions::default(), 10_000, None).bytes;
    assert!(bytes < 2_000_000, "{bytes} bytes for 1,001 different arrays of 480");
}

#[test]
fn pages_of_elements_that_are_damaged_are_no_panic() {
    use crate::encoding::dictionary::Shared;
    use crate::segment::chunk::Texts;
    use crate::segment::elements::{Apart, Elements};
    for ty in [PhysType::I32, PhysType::F64, PhysType::Bytes, PhysType::Fixed16, PhysType::I128, PhysType::Bool] {
        let value = |at: usize| match ty {
            PhysType::I32 => Datum::I32(at as i32 * 7),
            PhysType::F64 => Datum::F64(at as f64 / 4.0),
            PhysType::Bytes => Datum::text(&format!("text {}", at % 9)),
            PhysType::Fixed16 => Datum::Fixed16([at as u8; 16]),
            PhysType::I128 => Datum::I128(at as i128),
            _ => Datum::Bool(at.is_multiple_of(3)),
        };
        let arrays: Vec<Datum> =
            (0..40).map(|row| ArrayValue::plain((0..row % 5).map(|at| value(row + at)).collect()).encode(ty)).collect();
        let bytes: Vec<&[u8]> =
            arrays.iter().map(|array| if let Datum::Bytes(bytes) = array { &bytes[..] } else { &[] }).collect();
        let mut texts = Texts::default();
        let (encoder, shared) = Apart::of(&bytes, None, ty).unwrap().encoder(&mut texts);
        let mut page = Vec::new();
        encoder.encode(0..40, &texts, &mut page);
        let shared = Shared::parse(SharedKind::Elements, shared.into()).unwrap();
        let read = |page: &[u8]| {
            let (ty, shared) = shared.elements().unwrap();
            let elements = Elements::parse(&mut &page[..], 40, ty, shared).ok()?;
            let mut views = Vec::new();
            for row in 0..40 {
                elements.put(row, &mut Vec::new()).ok()?;
            }
            elements.decode(0, &mut views).ok()
        };
        assert_eq!(read(&page), Some(bytes.concat()));
        for at in 0..page.len() {
            assert_ne!(read(&page[..at]), Some(bytes.concat()));
            for bit in [1, 16, 128] {
                let mut damaged = page.clone();
                damaged[at] ^= bit;
                drop(read(&damaged));
            }
        }
    }
}
