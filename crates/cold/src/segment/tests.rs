mod arrays;

use super::*;
use crate::encoding::dictionary::SharedKind;
use crate::frame::{SECTION_PAGE_BYTES, Section};
use crate::{BlockCache, Error, Files, key_hash};
use arrow_array::{Array, ArrayRef};
use basalt_types::array::{ArrayValue, Dimension};
use basalt_types::automaton::{Automaton, Part};
use basalt_types::span::Span;
use basalt_types::{ColumnBuilder, ColumnPredicate, CompareOp, Datum, Epoch, Rid, batch::datum_at, key, numeric};
use object_store::memory::InMemory;
use object_store::path::Path;
use proptest::prelude::*;

const ID: FileId = FileId { epoch: Epoch(2), serial: 7 };

fn files() -> Files {
    Files::new(Arc::new(InMemory::new()))
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(1 << 20, 8 << 20))
}

fn array(ty: PhysType, values: &[Datum]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(ty, values.len());
    assert!(values.iter().all(|value| builder.push(value)));
    builder.finish()
}

fn datums(ty: PhysType, array: &ArrayRef) -> Vec<Datum> {
    (0..array.len()).map(|i| datum_at(ty, array, i)).collect()
}

/// Bit-exact equality: NaN equals itself.
fn same(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::F32(a), Datum::F32(b)) => a.to_bits() == b.to_bits(),
        (Datum::F64(a), Datum::F64(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn assert_same(ty: PhysType, array: &ArrayRef, expected: &[Datum]) {
    assert_eq!(*array.data_type(), ty.to_arrow());
    let got = datums(ty, array);
    assert_eq!(got.len(), expected.len());
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!(same(got, expected), "row {i}: {got:?}, expected {expected:?}");
    }
}

/// A file with a key of Int8 and Text and one value column, from rows of datums.
struct Table {
    schema: SegmentSchema,
    columns: Vec<Vec<Datum>>,
}

const NUMBER: ColumnId = ColumnId(3);
const NAME: ColumnId = ColumnId(1);
const VALUE: ColumnId = ColumnId(9);
const ABSENT: ColumnId = ColumnId(400);

impl Table {
    fn new(rows: usize, number: impl Fn(usize) -> i64, value: SegmentColumn, values: Vec<Datum>) -> Table {
        let columns = vec![
            SegmentColumn::new(NUMBER, &DataType::Int8).unwrap(),
            SegmentColumn::new(NAME, &DataType::Text).unwrap(),
            value,
        ];
        let numbers = (0..rows).map(|i| Datum::I64(number(i))).collect();
        let names = (0..rows).map(|i| Datum::text(&format!("name {:03}", i % 7))).collect();
        let schema = SegmentSchema { columns, key: KeySpec::Columns(vec![NUMBER, NAME]) };
        Table { schema, columns: vec![numbers, names, values] }
    }

    fn ints(rows: usize, number: impl Fn(usize) -> i64) -> Table {
        let values = (0..rows).map(|i| if i % 5 == 1 { Datum::Null } else { Datum::I32((i * 31 % 1000) as i32) });
        Table::new(rows, number, SegmentColumn::new(VALUE, &DataType::Int4).unwrap(), values.collect())
    }

    fn rows(&self) -> usize {
        self.columns[0].len()
    }

    fn arrays(&self) -> Vec<ArrayRef> {
        self.columns.iter().zip(&self.schema.columns).map(|(values, column)| array(column.ty, values)).collect()
    }

    fn key(&self, row: usize) -> Vec<u8> {
        let mut out = Vec::new();
        key::encode_column(&DataType::Int8, &self.columns[0][row], &mut out);
        key::encode_column(&DataType::Text, &self.columns[1][row], &mut out);
        out
    }

    fn write(&self, files: &Files, options: SegmentOptions, step: usize, versions: Option<&[Version]>) -> SegmentMeta {
        let mut writer = SegmentWriter::create(files, ID, self.schema.clone(), options).unwrap();
        let arrays = self.arrays();
        for start in (0..self.rows()).step_by(step) {
            let rows = step.min(self.rows() - start);
            let piece: Vec<ArrayRef> = arrays.iter().map(|array| array.slice(start, rows)).collect();
            let stamps = versions.map_or(Stamps::Uniform, |versions| Stamps::Versions(&versions[start..start + rows]));
            writer.push(&piece, stamps).unwrap();
        }
        writer.finish().unwrap()
    }

    fn check(&self, segment: &Segment) {
        for (at, column) in self.schema.columns.iter().enumerate() {
            for (index, group) in segment.row_groups().iter().enumerate() {
                let read = segment.read(index, &[column.id, ABSENT], 0..group.rows).unwrap();
                let first = group.first_ordinal as usize;
                let expected = &self.columns[at][first..first + group.rows as usize];
                assert_same(column.ty, read[0].as_ref().unwrap(), expected);
                assert!(read[1].is_none());
                self.check_pages(segment, index, column, expected);
                let part = group.rows / 3..group.rows / 3 * 2;
                let read = segment.read(index, &[column.id], part.clone()).unwrap();
                assert_same(column.ty, read[0].as_ref().unwrap(), &expected[part.start as usize..part.end as usize]);
            }
            for step in [1, 3, 1001] {
                let ordinals: Vec<u32> = (0..self.rows() as u32).step_by(step).collect();
                let expected: Vec<Datum> = ordinals.iter().map(|i| self.columns[at][*i as usize].clone()).collect();
                let read = segment.read_at(&ordinals, &[column.id]).unwrap();
                assert_same(column.ty, read[0].as_ref().unwrap(), &expected);
            }
            for row in (0..self.rows()).step_by(1 + self.rows() / 50) {
                let read = segment.row_at(row as u32, &[column.id, ABSENT]).unwrap();
                assert!(same(read[0].as_ref().unwrap(), &self.columns[at][row]) && read[1].is_none());
            }
        }
    }

    /// Every second page of a column, whole and some of its rows.
    fn check_pages(&self, segment: &Segment, row_group: usize, column: &SegmentColumn, expected: &[Datum]) {
        assert!(segment.chunk(row_group, ABSENT, std::slice::from_ref(&(0..1))).unwrap().is_none());
        let rows = expected.len() as u32;
        let wanted: Vec<_> =
            (0..rows).step_by(2 * PAGE_ROWS as usize).map(|start| start..rows.min(start + PAGE_ROWS)).collect();
        let mut chunk = segment.chunk(row_group, column.id, &wanted).unwrap().unwrap();
        for page in wanted {
            let index = (page.start / PAGE_ROWS) as usize;
            let expected = &expected[page.start as usize..page.end as usize];
            assert_same(column.ty, &chunk.vector(segment, index, None).unwrap().to_array(column.ty), expected);
            for step in [1, 3, 1001] {
                let rows: Vec<u32> = (0..expected.len() as u32).step_by(step).collect();
                let chosen: Vec<Datum> = rows.iter().map(|row| expected[*row as usize].clone()).collect();
                assert_same(
                    column.ty,
                    &chunk.vector(segment, index, Some(&rows)).unwrap().to_array(column.ty),
                    &chosen,
                );
            }
            check_spans(segment, &mut chunk, index, expected);
            check_search(segment, &mut chunk, index, expected);
            if let Some(element) = column.elements {
                arrays::check(segment, &mut chunk, index, element, expected);
            }
        }
    }
}

/// What a page tells about spans without decoding anything.
fn check_spans(segment: &Segment, chunk: &mut ChunkReader, page: usize, expected: &[Datum]) {
    let int = |datum: &Datum| match datum {
        Datum::I16(value) => Some(i128::from(*value)),
        Datum::I32(value) => Some(i128::from(*value)),
        Datum::I64(value) => Some(i128::from(*value)),
        Datum::I128(value) => Some(*value),
        _ => None,
    };
    let some: Vec<i128> = expected.iter().filter_map(int).step_by(1 + expected.len() / 3).collect();
    for (low, high) in some.iter().flat_map(|low| some.iter().map(move |high| (*low, *high))) {
        for inside in [true, false] {
            let span = Span { low, high, inside };
            let mut mask = vec![1; expected.len()];
            if chunk.test(segment, page, span, &mut mask).unwrap() {
                let passes = expected.iter().map(|value| int(value).is_some_and(|value| span.contains(value)));
                assert!(passes.eq(mask.iter().map(|mask| *mask == 1)), "{span:?}");
            }
        }
    }
}

/// What a page tells about sets of texts without decoding any.
fn check_search(segment: &Segment, chunk: &mut ChunkReader, page: usize, expected: &[Datum]) {
    let text = |datum: &Datum| match datum {
        Datum::Bytes(bytes) => Some(bytes.to_vec()),
        _ => None,
    };
    let some: Vec<Vec<u8>> = expected.iter().filter_map(text).step_by(1 + expected.len() / 3).collect();
    for bytes in &some {
        let bytes = &bytes[..bytes.len().min(24)];
        let (front, back) = bytes.split_at(bytes.len() / 2);
        let middle = &bytes[bytes.len() / 3..bytes.len() - bytes.len() / 3];
        let patterns: [&[Part]; 5] = [
            &[Part::Bytes(bytes)],
            &[Part::Bytes(front), Part::Any],
            &[Part::Any, Part::Bytes(back)],
            &[Part::Any, Part::Bytes(middle), Part::Any],
            &[Part::Any, Part::Bytes(front), Part::Any, Part::Bytes(back), Part::Any],
        ];
        for parts in patterns {
            let automaton = Arc::new(Automaton::new(parts).unwrap());
            for negated in [false, true] {
                let mut mask: Vec<u8> = (0..expected.len()).map(|row| u8::from(row % 7 != 5)).collect();
                if chunk.search(segment, page, (&automaton, negated), &mut mask).unwrap() {
                    let passes = expected.iter().enumerate().map(|(row, value)| {
                        let found = text(value).map(|text| automaton.matches(&text));
                        row % 7 != 5 && found.is_some_and(|found| found != negated)
                    });
                    assert!(passes.eq(mask.iter().map(|mask| *mask == 1)), "{parts:?}, negated {negated}");
                }
            }
        }
    }
}

#[test]
fn compressed_texts_are_searched_as_they_rest() {
    let words = ["special ", "requests ", "sleep ", "furiously ", "quick ", "ß", ""];
    let text = |row: usize| match row % 9 {
        4 => Datum::Null,
        _ => {
            let words = (0..row % 11).map(|word| words[(row / 11 + word * row) % words.len()]);
            Datum::text(&format!("{}{row}", words.collect::<String>()))
        }
    };
    let column = SegmentColumn::new(VALUE, &DataType::Text).unwrap();
    let table = Table::new(30_000, |row| row as i64, column, (0..30_000).map(text).collect());
    let files = files();
    table.write(&files, SegmentOptions::default(), 30_000, None);
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.directory(0).unwrap().chunks[2].shared.map(|(kind, _)| kind), Some(SharedKind::Symbols));
    table.check(&segment);
    // They are, and not decoded after all.
    let automaton = Arc::new(Automaton::new(&[Part::Any, Part::Bytes(b"requests"), Part::Any]).unwrap());
    let mut chunk = segment.chunk(0, VALUE, std::slice::from_ref(&(0..PAGE_ROWS))).unwrap().unwrap();
    assert!(chunk.search(&segment, 0, (&automaton, false), &mut [1; PAGE_ROWS as usize]).unwrap());
}

#[test]
fn rows_come_back_from_scans_lookups_and_single_reads() {
    let rows = 150_000;
    let table = Table::ints(rows, |i| i as i64);
    let (files, cache) = (files(), cache());
    let meta = table.write(&files, SegmentOptions::default(), 40_000, None);
    let segment = Segment::open(&files, ID, &cache).unwrap();
    assert_eq!(segment.meta(), &meta);
    assert_eq!((meta.rows as usize, meta.stamp_range), (rows, None));
    assert_eq!(meta.key_range, Some((Key::from(&table.key(0)[..]), Key::from(&table.key(rows - 1)[..]))));
    assert_eq!(segment.stamps(1).unwrap(), RowStamps::Uniform);
    table.check(&segment);
    segment.verify().unwrap();
    assert!(segment.read(2, &[NUMBER], 0..65_536).is_err());
    assert!(segment.read_at(&[150_000], &[NUMBER]).is_err());
    assert!(segment.row_at(150_000, &[NUMBER]).is_err());
    assert!(cache.stats(crate::BlockKind::Column).hits > 0);
}

fn check_find(table: &Table, segment: &Segment, rows: impl Iterator<Item = usize>) {
    for row in rows {
        let key = table.key(row);
        assert!(segment.may_contain(key_hash(&key)).unwrap());
        let found = segment.find(&key).unwrap();
        assert!(found.contains(&(row as u32)), "row {row}: {found:?}");
        assert!(found.is_sorted() && found.iter().all(|other| table.key(*other as usize) == key));
        assert_eq!(segment.key_at(row as u32).unwrap().as_bytes(), key);
    }
}

#[test]
fn keys_are_found_in_sorted_and_unsorted_files_and_absent_ones_are_not() {
    for (sorted, rows, filter) in [(true, 70_000, true), (false, 70_000, true), (true, 1, false), (false, 300, false)] {
        let scatter = |i: usize| (i as i64 * 7_919) % 1_000_003;
        // Equal keys: the same number comes 3 times, the names differ only inside of 7 rows.
        let table = if sorted { Table::ints(rows, |i| i as i64 / 21 * 2) } else { Table::ints(rows, scatter) };
        let mut sorted_rows = table;
        if sorted {
            let mut order: Vec<usize> = (0..rows).collect();
            order.sort_by_key(|row| sorted_rows.key(*row));
            for column in &mut sorted_rows.columns {
                *column = order.iter().map(|row| column[*row].clone()).collect();
            }
        }
        let files = files();
        sorted_rows.write(&files, SegmentOptions { sorted, filter, ..SegmentOptions::default() }, 9_000, None);
        let segment = Segment::open(&files, ID, &cache()).unwrap();
        check_find(&sorted_rows, &segment, (0..rows).step_by(1 + rows / 300));
        check_find(&sorted_rows, &segment, 0..rows.min(300));
        let mut absent = Vec::new();
        key::encode_column(&DataType::Int8, &Datum::I64(5), &mut absent);
        key::encode_column(&DataType::Text, &Datum::text("nobody"), &mut absent);
        assert_eq!(segment.find(&absent).unwrap(), Vec::<u32>::new());
        assert_eq!(segment.find(b"").unwrap(), Vec::<u32>::new());
        assert_eq!(segment.find(&[0xff; 40]).unwrap(), Vec::<u32>::new());
        if sorted {
            for row in (0..rows).step_by(1 + rows / 100) {
                let bound = segment.lower_bound(&sorted_rows.key(row)).unwrap() as usize;
                assert!(bound <= row && sorted_rows.key(bound) == sorted_rows.key(row));
                assert!(bound == 0 || sorted_rows.key(bound - 1) < sorted_rows.key(row));
            }
            assert_eq!(segment.lower_bound(&[0xff; 9]).unwrap() as usize, rows);
        }
        let keys = segment.keys(0..rows as u32).unwrap();
        assert!(keys.iter().enumerate().all(|(row, key)| key == sorted_rows.key(row)));
        segment.verify().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Keys of several integers: their first columns are the same in many rows, and any part of a key may be asked for.
    #[test]
    fn bounds_of_keys_of_integers_are_those_of_their_bytes(
        mut rows in prop::collection::vec((0i16..3, -4i32..5, 0i64..60, 0u8..3), 1..1500),
        probes in prop::collection::vec((-1i16..4, -6i32..7, -2i64..62, 0u8..4, 0usize..17), 60),
    ) {
        type Row = (i16, i32, i64, u8);
        let key = |(a, b, c, d): Row| {
            let mut out = Vec::new();
            key::encode_column(&DataType::Int2, &Datum::I16(a), &mut out);
            key::encode_column(&DataType::Int4, &Datum::I32(b), &mut out);
            key::encode_column(&DataType::Int8, &Datum::I64(c), &mut out);
            key::encode_column(&DataType::Text, &Datum::text(&"x".repeat(d.into())), &mut out);
            out
        };
        rows.sort_unstable();
        let types = [DataType::Int2, DataType::Int4, DataType::Int8, DataType::Text];
        let ids: Vec<ColumnId> = (1..).map(ColumnId).take(types.len()).collect();
        let columns = ids.iter().zip(&types).map(|(id, ty)| SegmentColumn::new(*id, ty).unwrap()).collect();
        let schema = SegmentSchema { columns, key: KeySpec::Columns(ids) };
        let arrays = [
            array(PhysType::I16, &rows.iter().map(|row| Datum::I16(row.0)).collect::<Vec<_>>()),
            array(PhysType::I32, &rows.iter().map(|row| Datum::I32(row.1)).collect::<Vec<_>>()),
            array(PhysType::I64, &rows.iter().map(|row| Datum::I64(row.2)).collect::<Vec<_>>()),
            array(PhysType::Bytes, &rows.iter().map(|row| Datum::text(&"x".repeat(row.3.into()))).collect::<Vec<_>>()),
        ];
        let files = files();
        let options = SegmentOptions { sorted: true, filter: false, ..SegmentOptions::default() };
        let mut writer = SegmentWriter::create(&files, ID, schema, options).unwrap();
        writer.push(&arrays, Stamps::Uniform).unwrap();
        writer.finish().unwrap();
        let segment = Segment::open(&files, ID, &cache()).unwrap();
        let keys: Vec<Vec<u8>> = rows.iter().map(|row| key(*row)).collect();
        for (a, b, c, d, cut) in probes {
            let whole = key((a, b, c, d));
            for probe in [&whole[..], &whole[..cut.min(whole.len())], &[&whole[..], &[0]].concat()] {
                let bound = keys.partition_point(|key| &key[..] < probe);
                prop_assert_eq!(segment.lower_bound(probe).unwrap() as usize, bound);
                let end = keys.partition_point(|key| &key[..] <= probe);
                prop_assert_eq!(segment.find(probe).unwrap(), (bound as u32..end as u32).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_table_without_key_is_found_by_its_hidden_row_id() {
    let schema = SegmentSchema { columns: vec![SegmentColumn::hidden_key()], key: KeySpec::Hidden };
    let files = files();
    let mut writer = SegmentWriter::create(&files, ID, schema, SegmentOptions::default()).unwrap();
    let rids: Vec<Datum> = (0..1000).map(|i| Datum::I64(i * 3)).collect();
    writer.push(&[array(PhysType::I64, &rids)], Stamps::Uniform).unwrap();
    writer.finish().unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.find(Key::hidden(Rid(300)).as_bytes()).unwrap(), [100]);
    assert_eq!(segment.find(Key::hidden(Rid(301)).as_bytes()).unwrap(), Vec::<u32>::new());
    assert_eq!(segment.key_at(5).unwrap().as_hidden(), Some(Rid(15)));
}

#[test]
fn versions_of_rows_come_back_and_constant_ones_cost_nothing() {
    let rows = 80_000;
    let table = Table::ints(rows, |i| i as i64);
    let files = files();
    let uniform = table.write(&files, SegmentOptions::default(), rows, None).bytes;
    let constant = table.write(&files, SegmentOptions::default(), rows, Some(&vec![Version(44); rows]));
    assert!(constant.bytes < uniform + 1_000, "{} after {uniform}", constant.bytes);
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.stamps(0).unwrap(), RowStamps::Same(Version(44)));
    assert_eq!(segment.stamp_at(79_999).unwrap(), Some(Version(44)));
    let versions: Vec<Version> = (0..rows as u64).map(|i| Version(100 + i % 9)).collect();
    let meta = table.write(&files, SegmentOptions::default(), 7_000, Some(&versions));
    assert_eq!(meta.stamp_range, Some((Version(100), Version(108))));
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.stamps(1).unwrap(), RowStamps::Each(versions[65_536..].into()));
    assert_eq!(segment.stamp_at(70_001).unwrap(), Some(versions[70_001]));
    table.check(&segment);
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let table = Table::ints(100, |i| 100 - i as i64);
    let files = files();
    let create = || SegmentWriter::create(&files, ID, table.schema.clone(), SegmentOptions::default()).unwrap();
    let arrays = table.arrays();
    assert!(matches!(create().push(&arrays, Stamps::Uniform), Err(Error::OutOfOrder { .. })));
    assert!(matches!(create().push(&arrays[..2], Stamps::Uniform), Err(Error::SchemaMismatch { .. })));
    let swapped = [arrays[1].clone(), arrays[0].clone(), arrays[2].clone()];
    assert!(matches!(create().push(&swapped, Stamps::Uniform), Err(Error::SchemaMismatch { .. })));
    let null_key = [array(PhysType::I64, &vec![Datum::Null; 100]), arrays[1].clone(), arrays[2].clone()];
    assert!(matches!(create().push(&null_key, Stamps::Uniform), Err(Error::SchemaMismatch { .. })));
    assert_eq!(files.list().unwrap(), []);
}

#[test]
fn an_empty_file_is_a_file() {
    let table = Table::ints(0, |i| i as i64);
    let files = files();
    for sorted in [true, false] {
        let meta = table.write(&files, SegmentOptions { sorted, ..SegmentOptions::default() }, 1, None);
        assert_eq!((meta.rows, meta.key_range), (0, None));
        let segment = Segment::open(&files, ID, &cache()).unwrap();
        assert_eq!(segment.find(b"x").unwrap(), Vec::<u32>::new());
        assert!(segment.row_groups().is_empty() && !segment.may_contain(1).unwrap());
        segment.verify().unwrap();
    }
}

#[test]
fn damage_is_an_error_or_harmless_never_a_wrong_answer() {
    let values = |i: usize| Datum::text(&format!("some text that repeats {}", i % 40));
    let value = SegmentColumn::new(VALUE, &DataType::Text).unwrap();
    let table = Table::new(300, |i| i as i64 / 7, value, (0..300).map(values).collect());
    let versions: Vec<Version> = (0..300).map(|i| Version(i % 7)).collect();
    for sorted in [true, false] {
        let files = files();
        table.write(&files, SegmentOptions { sorted, ..SegmentOptions::default() }, 300, Some(&versions));
        let path = Files::path(ID, crate::FileKind::Segment);
        let bytes = files.read(&path, 0..files.bytes(&path).unwrap()).unwrap();
        let read = |damaged: Vec<u8>| {
            files.put(&Path::from(path.as_ref()), damaged).unwrap();
            let segment = Segment::open(&files, ID, &cache())?;
            let ids: Vec<ColumnId> = table.schema.columns.iter().map(|column| column.id).collect();
            let columns = segment.read(0, &ids, 0..300)?;
            for (column, (array, values)) in table.schema.columns.iter().zip(columns.iter().zip(&table.columns)) {
                assert_same(column.ty, array.as_ref().unwrap(), values);
                let mut chunk = segment.chunk(0, column.id, std::slice::from_ref(&(0..300)))?.unwrap();
                assert_same(column.ty, &chunk.vector(&segment, 0, None)?.to_array(column.ty), values);
            }
            assert_eq!(segment.stamps(0)?, RowStamps::Each(versions.as_slice().into()));
            for row in [0, 131, 299] {
                assert!(segment.find(&table.key(row))?.contains(&(row as u32)));
            }
            segment.verify()
        };
        read(bytes.to_vec()).unwrap();
        for cut in 0..bytes.len() {
            assert!(read(bytes[..cut].to_vec()).is_err(), "cut at {cut}");
        }
        let mut harmless = 0;
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (at % 8);
            harmless += usize::from(read(flipped).is_ok());
        }
        assert_eq!(harmless, 8, "the magic at the start alone is not read");
    }
}

#[test]
fn a_reader_skips_sections_of_kinds_that_it_does_not_know() {
    let table = Table::ints(70_000, |i| i as i64);
    let (files, path) = (files(), Files::path(ID, crate::FileKind::Segment));
    table.write(&files, SegmentOptions::default(), 70_000, None);
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    let mut layout = segment.layout.clone();
    let sections = layout.sections.len();
    let end_of_sections = layout.sections.iter().map(|section| section.offset + section.bytes).max().unwrap();
    // The same file with a secondary index on a column, between and behind the sections that it has.
    let mut sink = files.create(ID, crate::FileKind::Segment).unwrap();
    sink.write(&files.read(&path, 0..end_of_sections).unwrap()).unwrap();
    let index = vec![0xab; 100_000];
    for (at, kind) in [(0, 4242), (2, 17), (sections + 2, u16::MAX)] {
        let mut section = Section::write(&mut sink, kind, SECTION_PAGE_BYTES, &index, vec![1, 2, 3]).unwrap();
        section.column = VALUE.0;
        layout.sections.insert(at, section);
    }
    crate::frame::finish(sink, &layout.encode(), super::layout::MAGIC).unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.layout.sections.len(), sections + 3);
    table.check(&segment);
    segment.verify().unwrap();
    // What it does not understand it still knows to be damaged.
    let mut bytes = files.read(&path, 0..files.bytes(&path).unwrap()).unwrap().to_vec();
    bytes[end_of_sections as usize + 50_000] ^= 1;
    files.put(&path, bytes).unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    table.check(&segment);
    assert!(matches!(segment.verify(), Err(Error::Checksum { .. })));
}

fn value_of(ty: DataType) -> BoxedStrategy<Datum> {
    let phys = ty.phys().unwrap();
    match phys {
        PhysType::Bool => any::<bool>().prop_map(Datum::Bool).boxed(),
        PhysType::I16 => prop_oneof![any::<i16>(), 0i16..5].prop_map(Datum::I16).boxed(),
        PhysType::I32 => prop_oneof![any::<i32>(), -3i32..3].prop_map(Datum::I32).boxed(),
        PhysType::I64 => prop_oneof![any::<i64>(), 0i64..50, Just(i64::MIN)].prop_map(Datum::I64).boxed(),
        PhysType::I128 => prop_oneof![any::<i128>(), 0i128..50].prop_map(Datum::I128).boxed(),
        PhysType::F32 => prop_oneof![any::<f32>(), Just(f32::NAN), Just(-0.0)].prop_map(Datum::F32).boxed(),
        PhysType::F64 => prop_oneof![any::<f64>(), Just(f64::NAN), Just(0.0), Just(-0.0)].prop_map(Datum::F64).boxed(),
        PhysType::Bytes => match ty {
            DataType::Array(element) => array_of(*element),
            DataType::Numeric(_) => any::<(i16, u8, u16)>()
                .prop_map(|(weight, digit, scale)| {
                    let digits = vec![u16::from(digit) + 1];
                    let class = basalt_types::numeric::CLASS_POSITIVE;
                    let parts =
                        basalt_types::numeric::Parts { class, weight: weight % 3, digits, display_scale: scale % 3 };
                    let mut out = Vec::new();
                    basalt_types::numeric::encode(&parts, &mut out);
                    Datum::Bytes(out.into())
                })
                .boxed(),
            DataType::Bpchar(_) => "[ab]{0,2} {0,3}".prop_map(|text| Datum::text(&text)).boxed(),
            _ => prop_oneof![
                "[a-c]{0,3}".prop_map(|text| Datum::text(&text)),
                prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| Datum::Bytes(bytes.into())),
                prop::collection::vec(Just(0xffu8), 30..40).prop_map(|bytes| Datum::Bytes(bytes.into())),
            ]
            .boxed(),
        },
        PhysType::Fixed16 => prop_oneof![any::<[u8; 16]>(), Just([7; 16])].prop_map(Datum::Fixed16).boxed(),
    }
}

/// Most arrays are plain ones.
fn array_of(element: DataType) -> BoxedStrategy<Datum> {
    let phys = element.phys().unwrap();
    let value = prop_oneof![1 => Just(Datum::Null), 4 => value_of(element)];
    let elements = prop_oneof![Just(0usize..1), Just(1..2), Just(0..5), Just(0..300)];
    (elements.prop_flat_map(move |count| prop::collection::vec(value.clone(), count)), 0u32..100)
        .prop_map(move |(elements, form)| {
            let plain = ArrayValue::plain(elements);
            let dimensions = match (plain.elements.len() as u32, form) {
                (1.., 0) => vec![Dimension { lower: -3, length: plain.elements.len() as u32 }],
                (1.., 1) => {
                    vec![Dimension { lower: 1, length: 1 }, Dimension { lower: 1, length: plain.elements.len() as u32 }]
                }
                _ => plain.dimensions,
            };
            ArrayValue { dimensions, elements: plain.elements }.encode(phys)
        })
        .boxed()
}

fn any_type() -> impl Strategy<Value = DataType> {
    use DataType::*;
    prop::sample::select(vec![
        Bool,
        Int2,
        Int4,
        Int8,
        Numeric(Some((30, 2))),
        Float4,
        Float8,
        Text,
        Bytea,
        Numeric(None),
        Bpchar(Some(5)),
        Uuid,
        Interval,
        Jsonb,
        Array(Box::new(Int4)),
        Array(Box::new(Text)),
        Array(Box::new(Float8)),
        Array(Box::new(Bool)),
        Array(Box::new(Uuid)),
        Array(Box::new(Numeric(Some((30, 2))))),
    ])
}

/// A type, and a column of values that repeats a random sample so often that several pages are filled.
fn any_column() -> impl Strategy<Value = (DataType, Vec<Datum>)> {
    (any_type(), prop::sample::select(vec![0u32, 3, 10]), 1usize..20_000).prop_flat_map(|(ty, nulls, rows)| {
        let value = prop_oneof![nulls => Just(Datum::Null), 10 - nulls.min(9) => value_of(ty.clone())];
        let sample = prop::collection::vec(value, 1..200);
        (sample, any::<u64>()).prop_map(move |(sample, seed)| {
            let pick = |i: usize| match seed % 3 {
                0 => i % sample.len(),
                1 => i / 700 % sample.len(),
                _ => (i as u64).wrapping_mul(seed | 1) as usize / 8 % sample.len(),
            };
            (ty.clone(), (0..rows).map(|i| sample[pick(i)].clone()).collect())
        })
    })
}

/// What SQL says of a comparison, by the key encoding, which is tested on its own.
fn satisfies(ty: &DataType, value: &Datum, op: CompareOp, constant: &Datum) -> bool {
    if value.is_null() {
        return false;
    }
    let encoded = |value: &Datum| {
        let mut out = Vec::new();
        key::encode_column(ty, value, &mut out);
        out
    };
    let order = encoded(value).cmp(&encoded(constant));
    op.holds(order)
}

fn check_pruning(ty: &DataType, segment: &Segment, values: &[Datum], constants: &[Datum]) {
    use CompareOp::*;
    let mut predicates = vec![
        (ColumnPredicate::IsNull { column: VALUE }, values.iter().map(Datum::is_null).collect::<Vec<_>>()),
        (ColumnPredicate::IsNotNull { column: VALUE }, values.iter().map(|value| !value.is_null()).collect()),
    ];
    for constant in constants.iter().filter(|constant| !constant.is_null()) {
        for op in [Eq, NotEq, Lt, LtEq, Gt, GtEq] {
            let matches = values.iter().map(|value| satisfies(ty, value, op, constant)).collect();
            predicates.push((ColumnPredicate::Compare { column: VALUE, op, value: constant.clone() }, matches));
        }
    }
    let several: Vec<Datum> = constants.iter().filter(|constant| !constant.is_null()).cloned().collect();
    let is_one = |value: &Datum| several.iter().any(|one| satisfies(ty, value, Eq, one));
    let in_matches: Vec<bool> = values.iter().map(is_one).collect();
    let integer = |value: &Datum| match value {
        Datum::I16(value) => Some(i64::from(*value)),
        Datum::I32(value) => Some(i64::from(*value)),
        Datum::I64(value) => Some(*value),
        _ => None,
    };
    if let Some(mut among) = several.iter().map(integer).collect::<Option<Vec<i64>>>() {
        among.sort_unstable();
        predicates.push((ColumnPredicate::Among { column: VALUE, values: among.into() }, in_matches.clone()));
    }
    predicates.push((ColumnPredicate::In { column: VALUE, values: several }, in_matches));
    for (predicate, matches) in predicates {
        let predicates = [predicate];
        let any = matches.contains(&true);
        assert!(!(any && segment.prune_file(&predicates)), "{predicates:?} pruned the file");
        assert!(!(any && segment.prune(0, &predicates)), "{predicates:?} pruned the row group");
        let surviving = segment.surviving(0, &predicates).unwrap();
        for (row, _) in matches.iter().enumerate().filter(|(_, matches)| **matches) {
            assert!(surviving.iter().any(|range| range.contains(&(row as u32))), "{predicates:?} lost row {row}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn columns_of_every_type_round_trip_and_pruning_drops_no_match(
        (ty, values) in any_column(),
        step in 1usize..20_000,
        probe in any::<prop::sample::Index>(),
    ) {
        let column = SegmentColumn::new(VALUE, &ty).unwrap();
        let table = Table::new(values.len(), |i| i as i64, column, values.clone());
        let files = files();
        table.write(&files, SegmentOptions::default(), step.max(values.len() / 10), None);
        let segment = Segment::open(&files, ID, &cache()).unwrap();
        table.check(&segment);
        let constants = [values[0].clone(), values[probe.index(values.len())].clone()];
        if !matches!(ty, DataType::Jsonb | DataType::Array(_)) {
            check_pruning(&ty, &segment, &values, &constants);
        }
    }
}

#[test]
fn zone_maps_do_prune() {
    let table = Table::ints(100_000, |i| i as i64);
    let files = files();
    table.write(&files, SegmentOptions::default(), 100_000, None);
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    let at_least = |value| [ColumnPredicate::Compare { column: NUMBER, op: CompareOp::GtEq, value: Datum::I64(value) }];
    assert!(segment.prune_file(&at_least(100_000)) && !segment.prune_file(&at_least(99_999)));
    assert!(segment.prune(0, &at_least(65_536)) && !segment.prune(1, &at_least(65_536)));
    let surviving = segment.surviving(0, &at_least(8192 * 5)).unwrap();
    assert_eq!((surviving.len(), &surviving[0]), (1, &(8192 * 5..65_536)));
    let among = |values: &[i64]| [ColumnPredicate::Among { column: NUMBER, values: values.into() }];
    assert!(segment.prune_file(&among(&[])) && segment.prune_file(&among(&[-1, 100_000])));
    assert!(segment.prune(0, &among(&[-1, 65_536])) && !segment.prune(1, &among(&[-1, 65_536])));
    assert_eq!(
        segment.surviving(0, &among(&[8192 * 2, 8192 * 3 - 1, 65_535])).unwrap(),
        [16_384..24_576, 57_344..65_536]
    );
    let constant =
        Table::new(9, |i| i as i64, SegmentColumn::new(VALUE, &DataType::Bool).unwrap(), vec![Datum::Bool(true); 9]);
    constant.write(&files, SegmentOptions::default(), 9, None);
    let constant = Segment::open(&files, ID, &cache()).unwrap();
    let differs = |value| [ColumnPredicate::Compare { column: VALUE, op: CompareOp::NotEq, value: Datum::Bool(value) }];
    assert!(constant.prune_file(&differs(true)) && !constant.prune_file(&differs(false)));
    let absent = [ColumnPredicate::IsNull { column: ABSENT }];
    assert!(!segment.prune_file(&absent) && !segment.prune(0, &absent));
    assert_eq!(segment.zone_map(NUMBER).unwrap().max, Some(Datum::I64(99_999)));
    assert_eq!(segment.zone_map(VALUE).unwrap().nulls, 20_000);
    assert_eq!(segment.row_group_zone_map(1, NUMBER).unwrap().min, Some(Datum::I64(65_536)));
    assert!(segment.zone_map(ABSENT).is_none());
}

/// One column of each type and form, with nulls; two full blocks of packed values and a rest.
fn fixture() -> (SegmentSchema, Vec<Vec<Datum>>, Vec<Version>) {
    let rows = 2_500i64;
    let column = |id: u16, ty: &DataType| SegmentColumn::new(ColumnId(id), ty).unwrap();
    let words = ["basalt", "lava", "columns of cooled rock", ""];
    let text = move |i: i64| format!("row {} of {}", i * 7919 % 9973, words[(i * i % 4) as usize]);
    let fixed = |i: i64| Datum::Fixed16((i128::from(i) * 0x1234_5678_9abc_def1).to_le_bytes());
    type Cell = Box<dyn Fn(i64) -> Datum>;
    let columns: Vec<(DataType, Cell)> = vec![
        (DataType::Int8, Box::new(|i| Datum::I64(i * 3 + i % 2))),
        (DataType::Bool, Box::new(|i| if i % 11 == 0 { Datum::Null } else { Datum::Bool(i % 3 == 0) })),
        (DataType::Int2, Box::new(|i| Datum::I16((i % 700) as i16 - 350))),
        (DataType::Int4, Box::new(|i| if i < 900 { Datum::Null } else { Datum::I32((i / 900) as i32) })),
        (DataType::Int8, Box::new(|i| Datum::I64(i.wrapping_mul(0x09e3_779b_97f4_a7c1)))),
        (DataType::Int8, Box::new(|i| Datum::I64([i64::MIN, 5, i64::MAX][(i % 3) as usize]))),
        (DataType::Numeric(Some((38, 2))), Box::new(|i| Datum::I128(i128::from(i % 100) - 50))),
        (DataType::Numeric(Some((38, 2))), Box::new(|i| Datum::I128(i128::from(i) << (i % 90)))),
        (DataType::Float4, Box::new(|i| Datum::F32(i as f32 / 8.0))),
        (DataType::Float8, Box::new(|i| Datum::F64(if i % 5 == 0 { -0.0 } else { i as f64 / 3.0 }))),
        (DataType::Text, Box::new(move |i| Datum::text(&text(i)))),
        (DataType::Text, Box::new(move |i| Datum::text(words[(i % 4) as usize]))),
        (DataType::Uuid, Box::new(fixed)),
    ];
    let ids = columns.iter().zip(1..).map(|((ty, _), id)| column(id, ty)).collect();
    let schema = SegmentSchema { columns: ids, key: KeySpec::Columns(vec![ColumnId(1)]) };
    let values = columns.iter().map(|(_, cell)| (0..rows).map(cell).collect()).collect();
    (schema, values, (0..rows as u64).map(|i| Version(i / 300)).collect())
}

#[test]
fn files_of_format_1_are_read() {
    let (schema, columns, versions) = fixture();
    let files = files();
    files
        .put(&Files::path(ID, crate::FileKind::Segment), include_bytes!("../../fixtures/segment-1.seg").to_vec())
        .unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.schema(), &schema);
    assert_eq!(segment.stamps(0).unwrap(), RowStamps::Each(versions.into()));
    let table = Table { schema, columns };
    table.check(&segment);
    for row in (0..table.rows()).step_by(51) {
        let mut key = Vec::new();
        key::encode_column(&DataType::Int8, &table.columns[0][row], &mut key);
        assert_eq!(segment.find(&key).unwrap(), [row as u32]);
    }
    segment.verify().unwrap();
}

/// Floats in all their forms; a full block of packed values and a rest.
fn floats() -> (SegmentSchema, Vec<Vec<Datum>>) {
    let fraction = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
    let odd = |i: u64| f64::from_bits([1 << 63, 0x7ff0_0000_0000_0001, 0xfff0 << 48, 3][(i / 97 % 4) as usize]);
    type Cell = Box<dyn Fn(u64) -> Datum>;
    let columns: Vec<(DataType, Cell)> = vec![
        (DataType::Int8, Box::new(|i| Datum::I64(i as i64))),
        (DataType::Float8, Box::new(|i| Datum::F64((i * 7919 % 9973) as f64 / 100.0))),
        (DataType::Float8, Box::new(move |i| Datum::F64(if i % 97 == 5 { odd(i) } else { (i * 25) as f64 / 1e3 }))),
        (DataType::Float8, Box::new(move |i| if i % 13 == 0 { Datum::Null } else { Datum::F64(fraction(i) - 0.5) })),
        (DataType::Float4, Box::new(|i| Datum::F32((i * 7919 % 997) as f32 / 10.0))),
        (DataType::Float4, Box::new(move |i| Datum::F32(fraction(i) as f32))),
    ];
    let column = |id: u16, ty: &DataType| SegmentColumn::new(ColumnId(id), ty).unwrap();
    let ids = columns.iter().zip(1..).map(|((ty, _), id)| column(id, ty)).collect();
    let schema = SegmentSchema { columns: ids, key: KeySpec::Columns(vec![ColumnId(1)]) };
    (schema, columns.iter().map(|(_, cell)| (0..1_500).map(cell).collect()).collect())
}

#[test]
fn files_with_decimals_and_cut_floats_are_read() {
    let (schema, columns) = floats();
    let (files, path) = (files(), Files::path(ID, crate::FileKind::Segment));
    files.put(&path, include_bytes!("../../fixtures/segment-1-floats.seg").to_vec()).unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!(segment.schema(), &schema);
    Table { schema, columns }.check(&segment);
    segment.verify().unwrap();
    let forms: Vec<u8> = (1..6)
        .map(|chunk| {
            let page = segment.directory(0).unwrap().chunks[chunk].pages[0].extent;
            let validity = if chunk == 3 { 1_500usize.div_ceil(8) } else { 0 };
            segment.file.read_checked(page).unwrap()[1 + validity]
        })
        .collect();
    assert_eq!(forms, [3, 3, 4, 3, 4]);
}

#[test]
fn bounds_of_long_strings_lie_outside_of_them() {
    let long = |tail: &str| format!("{}{tail}", "x".repeat(40)).into_bytes();
    let all_ones = vec![0xff; 50];
    for (values, probes) in [
        (vec![long("a"), long("m")], vec![long("a"), long("b"), long("m")]),
        (vec![b"a".to_vec(), all_ones.clone()], vec![b"a".to_vec(), all_ones.clone()]),
        (vec![[&all_ones[..20], &long("q")].concat()], vec![[&all_ones[..20], &long("q")].concat()]),
    ] {
        let datum = |bytes: &Vec<u8>| Datum::Bytes(bytes.as_slice().into());
        let values: Vec<Datum> = values.iter().map(datum).collect();
        let column = SegmentColumn::new(VALUE, &DataType::Bytea).unwrap();
        let table = Table::new(values.len(), |i| i as i64, column, values.clone());
        let files = files();
        table.write(&files, SegmentOptions::default(), 10, None);
        let segment = Segment::open(&files, ID, &cache()).unwrap();
        let probes: Vec<Datum> = probes.iter().map(datum).collect();
        check_pruning(&DataType::Bytea, &segment, &values, &probes);
        let beyond = Datum::Bytes(b"y".as_slice().into());
        let predicate = [ColumnPredicate::Compare { column: VALUE, op: CompareOp::Eq, value: beyond }];
        assert_eq!(segment.prune_file(&predicate), values[0] == datum(&long("a")) || values.len() == 1);
    }
}

#[test]
fn files_know_how_many_values_their_columns_have() {
    let (files, rows) = (files(), 150_000usize);
    let column = |id: u16, ty: &DataType| SegmentColumn::new(ColumnId(id), ty).unwrap();
    type Cell = Box<dyn Fn(usize) -> Datum>;
    let one_and_a_half = |display_scale: u16| {
        let class = numeric::CLASS_POSITIVE;
        let mut encoded = Vec::new();
        numeric::encode(&numeric::Parts { class, weight: 0, digits: vec![1, 5_000], display_scale }, &mut encoded);
        Datum::Bytes(encoded.as_slice().into())
    };
    let (plain, scaled) = (one_and_a_half(1), one_and_a_half(3));
    let mixed = move |i: usize| match i % 3 {
        0 => plain.clone(),
        1 => scaled.clone(),
        _ => Datum::Null,
    };
    // The first row group is null, and pages of the next.
    let seldom = |i: usize| if i < 90_000 { Datum::Null } else { Datum::I64((i % 40) as i64) };
    let columns: Vec<(DataType, f64, Cell)> = vec![
        (DataType::Int8, f64::NAN, Box::new(|i| Datum::I64(i as i64))),
        (DataType::Bool, 2.0, Box::new(|i| Datum::Bool(i % 3 == 0))),
        (DataType::Int4, 200.0, Box::new(|i| Datum::I32((i * 31 % 200) as i32 * 1_000_000))),
        (DataType::Int4, 3_000.0, Box::new(|i| Datum::I32((i * 31 % 3_000) as i32))),
        (DataType::Int8, 40.0, Box::new(seldom)),
        (DataType::Text, 4.0, Box::new(|i| Datum::text(["a", "b", "c", "d"][i / 40 % 4]))),
        (DataType::Text, 150_000.0, Box::new(|i| Datum::text(&format!("{:x}", i.wrapping_mul(0x9e37_79b9))))),
        (DataType::Text, 1.0, Box::new(|_| Datum::text("all the same"))),
        (DataType::Bpchar(None), 1.0, Box::new(|i| Datum::text(["x", "x  "][i % 2]))),
        (DataType::Numeric(None), 1.0, Box::new(mixed)),
        (DataType::Float8, 9_973.0, Box::new(|i| Datum::F64((i * 7919 % 9973) as f64 / 7.0))),
        (DataType::Float8, 2.0, Box::new(|i| Datum::F64([0.0, -0.0, f64::NAN, -f64::NAN][i % 4]))),
        (DataType::Uuid, 1_000.0, Box::new(|i| Datum::Fixed16((i as u128 % 1_000 * 977).to_le_bytes()))),
        (DataType::Numeric(Some((38, 2))), 75_000.0, Box::new(|i| Datum::I128(i as i128 / 2 * 10_i128.pow(25)))),
        (DataType::Int4, 0.0, Box::new(|_| Datum::Null)),
        (DataType::Json, f64::NAN, Box::new(|i| Datum::text(["1", "2"][i % 2]))),
    ];
    let ids = columns.iter().zip(1..).map(|((ty, ..), id)| column(id, ty)).collect();
    let schema = SegmentSchema { columns: ids, key: KeySpec::Columns(vec![ColumnId(1)]) };
    let values: Vec<Vec<Datum>> = columns.iter().map(|(.., cell)| (0..rows).map(cell).collect()).collect();
    let table = Table { schema, columns: values };
    table.write(&files, SegmentOptions::default(), 50_000, None);
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    for ((ty, expected, _), id) in columns.iter().zip(1..) {
        let sketch = segment.sketch(ColumnId(id)).unwrap();
        let Some(estimate) = sketch.map(|sketch| sketch.estimate()) else {
            assert!(expected.is_nan(), "column {id} of {ty:?} has no sketch");
            continue;
        };
        let off = if *expected <= 256.0 { 0.0 } else { 0.1 * expected };
        assert!((estimate - expected).abs() <= off, "column {id} of {ty:?}: {estimate}, expected {expected}");
    }
    assert!(segment.sketch(ABSENT).unwrap().is_none());
    segment.verify().unwrap();
}

#[test]
fn files_with_sketches_are_read() {
    let (schema, columns, versions) = fixture();
    let (table, path) = (Table { schema, columns }, Files::path(ID, crate::FileKind::Segment));
    let files = files();
    files.put(&path, include_bytes!("../../fixtures/segment-1-sketches.seg").to_vec()).unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    assert_eq!((segment.schema(), segment.stamps(0).unwrap()), (&table.schema, RowStamps::Each(versions.into())));
    table.check(&segment);
    segment.verify().unwrap();
    let estimate = |id| segment.sketch(ColumnId(id)).unwrap().map_or(0, |sketch| sketch.estimate().round() as u64);
    // None of the key, which all rows differ in.
    let estimates: Vec<u64> = (1..=13).map(estimate).collect();
    assert_eq!(estimates, [0, 2, 677, 2, 2451, 3, 100, 2556, 2522, 1948, 2484, 4, 2533]);
    // A file from before them knows of its bounds alone.
    files.put(&path, include_bytes!("../../fixtures/segment-1.seg").to_vec()).unwrap();
    let older = Segment::open(&files, ID, &cache()).unwrap();
    let known = (1..=13).filter(|id| older.sketch(ColumnId(*id)).unwrap().is_some());
    assert_eq!(known.collect::<Vec<u16>>(), [2]);
}

/// Texts of all lengths, nulls, and some that are longer than a block.
fn letters() -> Table {
    let rows = 20_000;
    let letter = |i: usize| match i % 1_000 {
        3 => Datum::Null,
        4 => Datum::text(&format!("{i} ").repeat(5_000 + i)),
        _ => Datum::text(&format!("letter {i} of many, ").repeat(i % 30)),
    };
    let values = (0..rows).map(letter).collect();
    Table::new(rows, |i| i as i64, SegmentColumn::new(VALUE, &DataType::Text).unwrap(), values)
}

#[test]
fn texts_rest_in_blocks_of_zstd_where_that_is_asked_for() {
    let (files, table) = (files(), letters());
    let mut bytes = Vec::new();
    for zstd in [false, true] {
        table.write(&files, SegmentOptions { zstd, ..SegmentOptions::default() }, 7_000, None);
        let segment = Segment::open(&files, ID, &cache()).unwrap();
        table.check(&segment);
        segment.verify().unwrap();
        bytes.push(segment.column_bytes(VALUE).unwrap());
        let kind = |chunk: usize| segment.directory(0).unwrap().chunks[chunk].shared.map(|(kind, _)| kind);
        assert_eq!(kind(2) == Some(SharedKind::Blocks), zstd);
        // Few names, over and over: a dictionary is smaller, and scans use its codes.
        assert_eq!(kind(1), Some(SharedKind::Strings));
    }
    assert!(bytes[1] * 2 < bytes[0], "{bytes:?}");
}

#[test]
fn files_with_blocks_of_zstd_are_read() {
    let (files, path) = (files(), Files::path(ID, crate::FileKind::Segment));
    let rows = 1_500;
    let letter = |i: usize| if i % 7 == 3 { Datum::Null } else { Datum::text(&format!("letter {i}, ").repeat(i % 40)) };
    let column = SegmentColumn::new(VALUE, &DataType::Text).unwrap();
    let table = Table::new(rows, |i| i as i64, column, (0..rows).map(letter).collect());
    files.put(&path, include_bytes!("../../fixtures/segment-1-zstd.seg").to_vec()).unwrap();
    let segment = Segment::open(&files, ID, &cache()).unwrap();
    table.check(&segment);
    segment.verify().unwrap();
    assert!(matches!(segment.directory(0).unwrap().chunks[2].shared, Some((SharedKind::Blocks, _))));
}
