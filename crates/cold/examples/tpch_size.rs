//! Measures segments on TPC-H: bytes per column, seconds of encoding and of decoding, time of lookups; and
//! compares what is read with what was written.
//!
//!     cargo run --release -p basalt-cold --example tpch_size -- DIR-WITH-PARQUET OUTPUT-DIR [TABLE…]
#![allow(clippy::disallowed_methods)]

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::DataType as ArrowType;
use basalt_cold::{
    BlockCache, Files, KeySpec, LocalStore, Segment, SegmentColumn, SegmentOptions, SegmentSchema, SegmentWriter,
    Stamps,
};
use basalt_sched::os::real::RealFs;
use basalt_types::{ColumnId, DataType, Epoch, FileId};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Key columns. The generator orders partsupp by its first key column only.
const TABLES: [(&str, &[u16]); 8] = [
    ("region", &[1]),
    ("nation", &[1]),
    ("supplier", &[1]),
    ("customer", &[1]),
    ("part", &[1]),
    ("partsupp", &[1]),
    ("orders", &[1]),
    ("lineitem", &[1, 4]),
];

fn sql_type(ty: &ArrowType) -> DataType {
    match ty {
        ArrowType::Int64 => DataType::Int8,
        ArrowType::Int32 => DataType::Int4,
        ArrowType::Date32 => DataType::Date,
        ArrowType::Decimal128(p, s) => DataType::Numeric(Some((u16::from(*p), i16::from(*s)))),
        _ => DataType::Text,
    }
}

fn stored(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        ArrowType::Int64 => Arc::new(array.as_primitive::<Int64Type>().clone()),
        ArrowType::Int32 => Arc::new(array.as_primitive::<Int32Type>().clone()),
        ArrowType::Date32 => {
            let days: Int32Array = array.as_primitive::<Date32Type>().reinterpret_cast();
            Arc::new(days)
        }
        ArrowType::Decimal128(..) => {
            let narrow: Int64Array = array.as_primitive::<Decimal128Type>().unary(|value| value as i64);
            Arc::new(narrow)
        }
        ArrowType::Utf8View => Arc::new(array.as_string_view().clone().to_binary_view()),
        ArrowType::Utf8 => {
            let mut builder = arrow_array::builder::BinaryViewBuilder::new();
            array.as_string::<i32>().iter().for_each(|value| builder.append_option(value));
            Arc::new(builder.finish())
        }
        other => panic!("no TPC-H column is {other}"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (input, output) = (Path::new(&args[1]), Path::new(&args[2]));
    let store = LocalStore::open(Arc::new(RealFs), output).expect("output directory");
    let files = Files::new(Arc::new(store));
    let mut total = 0;
    for (serial, (table, key)) in TABLES.iter().enumerate() {
        if args.len() > 3 && !args[3..].iter().any(|wanted| wanted == table) {
            continue;
        }
        total += measure(&files, input, table, key, serial as u32);
    }
    println!("total {total} bytes");
}

fn measure(files: &Files, input: &Path, table: &str, key: &[u16], serial: u32) -> u64 {
    let file = File::open(input.join(format!("{table}.parquet"))).expect("table");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).expect("parquet");
    let reader = reader.with_batch_size(65_536).build().expect("parquet");
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.expect("batch")).collect();
    let fields = batches[0].schema();
    let columns = fields.fields().iter().zip(1..);
    let schema = SegmentSchema {
        columns: columns
            .map(|(field, id)| SegmentColumn::new(ColumnId(id), &sql_type(field.data_type())).expect("storable"))
            .collect(),
        key: KeySpec::Columns(key.iter().map(|id| ColumnId(*id)).collect()),
    };
    let prepared: Vec<Vec<ArrayRef>> =
        batches.iter().map(|batch| batch.columns().iter().map(stored).collect()).collect();
    drop(batches);
    let id = FileId { epoch: Epoch(1), serial };
    let start = Instant::now();
    let options = SegmentOptions { filter: false, ..SegmentOptions::default() };
    let mut writer = SegmentWriter::create(files, id, schema.clone(), options).expect("create");
    prepared.iter().for_each(|columns| writer.push(columns, Stamps::Uniform).expect("push"));
    let meta = writer.finish().expect("finish");
    let wrote = start.elapsed();

    let cache = Arc::new(BlockCache::new(0, 4 << 30));
    let segment = Segment::open(files, id, &cache).expect("open");
    println!(
        "{table}: {} rows, {} bytes, written in {:.3} s ({:.3} s per million rows)",
        meta.rows,
        meta.bytes,
        wrote.as_secs_f64(),
        wrote.as_secs_f64() / f64::from(meta.rows) * 1e6
    );
    for (field, column) in fields.fields().iter().zip(&schema.columns) {
        let mut times = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            for (index, group) in segment.row_groups().iter().enumerate() {
                std::hint::black_box(segment.read(index, &[column.id], 0..group.rows).expect("read"));
            }
            times.push(start.elapsed());
        }
        let bytes = segment.column_bytes(column.id).expect("bytes");
        let nanos = times.iter().min().expect("three").as_nanos() as f64 / f64::from(meta.rows);
        println!(
            "    {:16} {bytes:>11} bytes {:7.2} bits/row {nanos:6.2} ns/row",
            field.name(),
            bytes as f64 * 8.0 / f64::from(meta.rows)
        );
    }
    for (index, (columns, group)) in prepared.iter().zip(segment.row_groups()).enumerate() {
        let ids: Vec<ColumnId> = schema.columns.iter().map(|column| column.id).collect();
        let read = segment.read(index, &ids, 0..group.rows).expect("read");
        assert!(read.iter().flatten().eq(columns), "row group {index} of {table} differs from what was written");
    }
    measure_lookups(&segment);
    meta.bytes
}

/// Point reads in scattered order, everything in the cache.
fn measure_lookups(segment: &Segment) {
    let columns: Vec<ColumnId> = segment.schema().columns.iter().map(|column| column.id).collect();
    let ordinals = (0..20_000u64).map(|i| (i * 0x9e37_79b9 % u64::from(segment.rows())) as u32);
    let keys: Vec<_> = ordinals.map(|ordinal| (ordinal, segment.key_at(ordinal).expect("key"))).collect();
    let start = Instant::now();
    for (_, key) in &keys {
        assert!(!segment.find(key.as_bytes()).expect("find").is_empty());
    }
    let found = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    let start = Instant::now();
    for (ordinal, _) in &keys {
        std::hint::black_box(segment.row_at(*ordinal, &columns).expect("row"));
    }
    let read = start.elapsed().as_nanos() as f64 / keys.len() as f64;
    println!("    a key found in {found:.0} ns, a row of all columns read in {read:.0} ns");
}
