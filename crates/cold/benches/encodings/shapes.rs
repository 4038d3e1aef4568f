//! Columns that lead to each encoding, and a table of the widths and values of TPC-H's lineitem.

use arrow_array::{ArrayRef, BinaryViewArray, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array};
use basalt_cold::{ROW_GROUP_ROWS, SegmentColumn};
use basalt_types::{ColumnId, DataType, PhysType};
use std::sync::Arc;

const INT_ROW_GROUPS: u64 = 64;
const LARGE_ROW_GROUPS: u64 = 512;
const TEXT_ROW_GROUPS: u64 = 8;
const LINEITEM_ROW_GROUPS: u64 = 32;
const WORDS: [&str; 12] = [
    "carefully",
    "final",
    "deposits",
    "sleep",
    "quickly",
    "among",
    "the",
    "furious",
    "accounts",
    "regular",
    "express",
    "ideas",
];

/// A column of one encoding.
pub struct Shape {
    pub name: String,
    ty: DataType,
    row_groups: u64,
    values: Values,
}

enum Values {
    Ints(Box<dyn Fn(u64) -> i64>),
    Floats(fn(u64) -> f64),
    Texts(fn(u64) -> String),
}

/// A number without order that follows from another (the finalizer of MurmurHash3).
pub fn scatter(of: u64) -> u64 {
    let mut bits = of.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

fn sentence(row: u64) -> String {
    let words = (0..3 + scatter(row) % 4).map(|word| WORDS[(scatter(row * 8 + word) % 12) as usize]);
    words.collect::<Vec<_>>().join(" ")
}

fn ints(name: &str, ty: DataType, value: impl Fn(u64) -> i64 + 'static) -> Shape {
    Shape { name: name.into(), ty, row_groups: INT_ROW_GROUPS, values: Values::Ints(Box::new(value)) }
}

fn packed(width: u32, ty: DataType) -> Shape {
    ints(&format!("packed in {width}"), ty, move |row| (scatter(row) >> (64 - width)) as i64)
}

fn floats(name: &str, ty: DataType, value: fn(u64) -> f64) -> Shape {
    Shape { name: name.into(), ty, row_groups: INT_ROW_GROUPS, values: Values::Floats(value) }
}

/// From 0 to 1, with all bits that a double has for it.
fn fraction(row: u64) -> f64 {
    (scatter(row) >> 11) as f64 / (1u64 << 53) as f64
}

fn texts(name: &str, value: fn(u64) -> String) -> Shape {
    Shape { name: name.into(), ty: DataType::Text, row_groups: TEXT_ROW_GROUPS, values: Values::Texts(value) }
}

pub fn all() -> Vec<Shape> {
    let mut shapes = vec![
        ints("constant", DataType::Int8, |_| 7),
        ints("runs of 100", DataType::Int8, |row| (scatter(row / 100) >> 34) as i64),
    ];
    shapes.extend([1, 4, 7, 8, 12, 16, 20, 24, 31].map(|width| packed(width, DataType::Int4)));
    shapes.extend(
        [12, 33, 52]
            .map(|width| packed(width, DataType::Int8))
            .map(|shape| Shape { name: format!("{} of int8", shape.name), ..shape }),
    );
    shapes.extend([
        ints("packed hundreds", DataType::Int4, |row| (scatter(row) >> 48) as i64 * 100),
        ints("delta", DataType::Int8, |row| (row * 16 + scatter(row) % 16) as i64),
        ints("dictionary of int8", DataType::Int8, |row| scatter(scatter(row) % 200) as i64),
        ints("numeric(38)", DataType::Numeric(Some((38, 2))), |row| (scatter(row) >> 40) as i64),
        floats("float8 of cents", DataType::Float8, |row| (scatter(row) >> 44) as f64 / 100.0),
        floats("float8 with outliers", DataType::Float8, |row| match row % 100 {
            7 => fraction(row),
            _ => (scatter(row) >> 50) as f64 / 1000.0,
        }),
        floats("float8, cut (RD)", DataType::Float8, |row| fraction(row) * 360.0 - 180.0),
        floats("float8, any bits", DataType::Float8, |row| f64::from_bits(scatter(row))),
        floats("float4, positive", DataType::Float4, fraction),
        floats("float4 of tenths", DataType::Float4, |row| (scatter(row) >> 52) as f64 / 10.0),
        floats("float4, cut (RD)", DataType::Float4, |row| fraction(row) * 360.0 - 180.0),
        texts("codes of texts", |row| WORDS[(scatter(row) % 12) as usize].into()),
        texts("symbols (FSST)", |row| format!("{} {:x}", sentence(row), scatter(row) >> 40)),
        texts("blocks (zstd)", |row| format!("{} {:x}", sentence(row), scatter(row) >> 40)),
        texts("plain texts", |row| format!("{:016x}", scatter(row))),
    ]);
    shapes
}

impl Shape {
    /// One of [`all`], with more rows than fit any processor's cache.
    pub fn large(name: &str) -> Shape {
        let shape = all().into_iter().find(|shape| shape.name == name).expect("one of all shapes");
        Shape { row_groups: LARGE_ROW_GROUPS, ..shape }
    }

    pub fn is_compressed(&self) -> bool {
        self.name.contains("zstd")
    }

    pub fn column(&self) -> [SegmentColumn; 1] {
        [column(1, &self.ty)]
    }

    /// Row group by row group.
    pub fn chunks(&self) -> impl Iterator<Item = Vec<ArrayRef>> {
        let rows = u64::from(ROW_GROUP_ROWS);
        (0..self.row_groups).map(move |group| vec![self.array(group * rows..(group + 1) * rows)])
    }

    fn array(&self, rows: std::ops::Range<u64>) -> ArrayRef {
        match &self.values {
            Values::Ints(value) => int_array(&self.ty, rows.map(value)),
            Values::Floats(value) if self.ty == DataType::Float4 => {
                Arc::new(Float32Array::from_iter_values(rows.map(|row| value(row) as f32)))
            }
            Values::Floats(value) => Arc::new(Float64Array::from_iter_values(rows.map(value))),
            Values::Texts(value) => Arc::new(BinaryViewArray::from_iter_values(rows.map(value))),
        }
    }

    /// Of values without a trace of how they rested: codes count as codes, texts as their bytes.
    pub fn decoded_bytes(&self) -> u64 {
        let rows = self.row_groups * u64::from(ROW_GROUP_ROWS);
        match (&self.values, self.ty.phys()) {
            (Values::Texts(_), _) if self.name.starts_with("codes") => rows * 4,
            (Values::Texts(value), _) => (0..rows).map(|row| value(row).len() as u64).sum(),
            (_, Some(PhysType::I32 | PhysType::F32)) => rows * 4,
            (_, Some(PhysType::I128)) => rows * 16,
            _ => rows * 8,
        }
    }
}

fn int_array(ty: &DataType, values: impl Iterator<Item = i64>) -> ArrayRef {
    match ty.phys() {
        Some(PhysType::I32) => Arc::new(Int32Array::from_iter_values(values.map(|value| value as i32))),
        Some(PhysType::I128) => {
            let wide = Decimal128Array::from_iter_values(values.map(i128::from));
            Arc::new(wide.with_precision_and_scale(38, 0).expect("38 digits"))
        }
        _ => Arc::new(Int64Array::from_iter_values(values)),
    }
}

fn column(id: u16, ty: &DataType) -> SegmentColumn {
    SegmentColumn::new(ColumnId(id), ty).expect("a type that columns have")
}

/// Sixteen columns with values as TPC-H's lineitem has them.
pub fn lineitem() -> (Vec<SegmentColumn>, impl Iterator<Item = Vec<ArrayRef>>) {
    const CENTS: DataType = DataType::Numeric(Some((15, 2)));
    let below = |seed: u64, limit: u64| move |row: u64| (scatter(row * 16 + seed) % limit) as i64;
    let shapes = [
        ints("orderkey", DataType::Int8, |row| (row / 4) as i64),
        ints("partkey", DataType::Int4, below(1, 200_000)),
        ints("suppkey", DataType::Int4, below(2, 10_000)),
        ints("linenumber", DataType::Int4, |row| (row % 4) as i64 + 1),
        ints("quantity", CENTS, |row| (scatter(row * 16 + 3) % 50) as i64 * 100),
        ints("extendedprice", CENTS, below(4, 10_000_000)),
        ints("discount", CENTS, below(5, 11)),
        ints("tax", CENTS, below(6, 9)),
        texts("returnflag", |row| ["A", "N", "R"][(scatter(row * 16 + 7) % 3) as usize].into()),
        texts("linestatus", |row| ["F", "O"][(scatter(row * 16 + 8) % 2) as usize].into()),
        ints("shipdate", DataType::Date, below(9, 2_526)),
        ints("commitdate", DataType::Date, below(10, 2_466)),
        ints("receiptdate", DataType::Date, below(11, 2_554)),
        texts("shipinstruct", |row| WORDS[(scatter(row * 16 + 12) % 4) as usize].into()),
        texts("shipmode", |row| WORDS[(scatter(row * 16 + 13) % 7) as usize].into()),
        texts("comment", sentence),
    ];
    let rows = u64::from(ROW_GROUP_ROWS);
    let columns = (1..).zip(&shapes).map(|(id, shape)| column(id, &shape.ty)).collect();
    let chunk = move |group: u64| shapes.iter().map(|shape| shape.array(group * rows..(group + 1) * rows)).collect();
    (columns, (0..LINEITEM_ROW_GROUPS).map(chunk))
}
