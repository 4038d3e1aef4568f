//! Columns of a block as bytes, and back: light enough to be written by every row that does not fit.
//!
//! A column is its kind, its nulls and its values. Integers are their distances from the least one, in as many bytes as
//! the greatest distance needs; texts of a dictionary are those entries that rows have, and a code of 1, 2 or 4 bytes per
//! row; other texts are their lengths and bytes. Whoever reads is told how many rows there are. Nothing of it outlives
//! the process, so there are no versions.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use basalt_types::vector::{Codes, IntValues, Ints, Vector};
use std::sync::Arc;

const INTS: u8 = 0;
const CODES: u8 = 1;
const TEXTS: u8 = 2;
const BOOLS: u8 = 3;
const FLOATS: u8 = 4;
const DOUBLES: u8 = 5;
const FIXED: u8 = 6;

pub(crate) fn encode(columns: &[Vector], rows: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(columns.iter().map(super::bytes_of).sum::<usize>() / 2 + 64 * columns.len());
    for column in columns {
        assert_eq!(column.len(), rows, "a block's columns are of one length");
        match column {
            Vector::Ints(ints) => put_ints(ints, &mut out),
            Vector::Codes(codes) => put_codes(codes, &mut out),
            Vector::Flat(values) => put_flat(values, &mut out),
        }
    }
    out
}

fn put_kind(kind: u8, nulls: Option<&NullBuffer>, out: &mut Vec<u8>) {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    out.extend([kind, u8::from(nulls.is_some())]);
    nulls.into_iter().for_each(|nulls| put_bits(nulls.inner(), out));
}

fn put_bits(bits: &BooleanBuffer, out: &mut Vec<u8>) {
    out.extend_from_slice(bits.sliced().as_slice());
}

/// Numbers in the fewest of 0, 1, 2, 4 and 8 bytes that hold all.
fn put_numbers(numbers: impl Iterator<Item = u64>, greatest: u64, out: &mut Vec<u8>) {
    let width = width_of(greatest);
    out.push(width);
    match width {
        0 => {}
        1 => out.extend(numbers.map(|number| number as u8)),
        2 => out.extend(numbers.flat_map(|number| (number as u16).to_le_bytes())),
        4 => out.extend(numbers.flat_map(|number| (number as u32).to_le_bytes())),
        _ => out.extend(numbers.flat_map(u64::to_le_bytes)),
    }
}

fn width_of(greatest: u64) -> u8 {
    match greatest {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Of integers whose distances take more than 8 bytes.
const WIDE: u8 = 16;

fn put_ints(ints: &Ints, out: &mut Vec<u8>) {
    put_kind(INTS, ints.nulls.as_ref(), out);
    // Its bounds may be those of many more rows.
    let Ints { min, max, .. } = Ints::measured(ints.values.clone(), None);
    out.extend(min.to_le_bytes());
    out.extend(max.to_le_bytes());
    let Some(span) = max.checked_sub(min).and_then(|span| u64::try_from(span).ok()) else {
        out.push(WIDE);
        return (0..ints.values.len()).for_each(|row| out.extend(ints.values.get(row).to_le_bytes()));
    };
    match &ints.values {
        IntValues::I32(values) => {
            put_numbers(values.iter().map(|value| (i64::from(*value) - min as i64) as u64), span, out);
        }
        IntValues::I64(values) => {
            put_numbers(values.iter().map(|value| value.wrapping_sub(min as i64) as u64), span, out)
        }
        IntValues::I128(values) => put_numbers(values.iter().map(|value| (value - min) as u64), span, out),
    }
}

fn put_codes(codes: &Codes, out: &mut Vec<u8>) {
    const UNUSED: u32 = u32::MAX;
    put_kind(CODES, codes.nulls.as_ref(), out);
    if codes.dictionary.is_empty() || codes.codes.is_empty() {
        out.extend(0u32.to_le_bytes());
        return;
    }
    let mut used = vec![UNUSED; codes.dictionary.len()];
    codes.codes.iter().for_each(|code| used[*code as usize] = 0);
    let mut entries: Vec<&[u8]> = Vec::new();
    for (code, used) in used.iter_mut().enumerate().filter(|(_, used)| **used != UNUSED) {
        *used = entries.len() as u32;
        entries.push(codes.dictionary.value(code));
    }
    out.extend((entries.len() as u32).to_le_bytes());
    put_texts(&entries, out);
    let greatest = entries.len().saturating_sub(1) as u64;
    put_numbers(codes.codes.iter().map(|code| u64::from(used[*code as usize])), greatest, out);
}

fn put_texts(texts: &[&[u8]], out: &mut Vec<u8>) {
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0) as u64;
    put_numbers(texts.iter().map(|text| text.len() as u64), longest, out);
    texts.iter().for_each(|text| out.extend_from_slice(text));
}

fn put_flat(values: &ArrayRef, out: &mut Vec<u8>) {
    match values.data_type() {
        ArrowType::BinaryView => {
            put_kind(TEXTS, values.nulls(), out);
            let texts: Vec<&[u8]> = values.as_binary_view().iter().map(Option::unwrap_or_default).collect();
            put_texts(&texts, out);
        }
        ArrowType::Boolean => {
            put_kind(BOOLS, values.nulls(), out);
            put_bits(values.as_boolean().values(), out);
        }
        ArrowType::Float32 => {
            put_kind(FLOATS, values.nulls(), out);
            out.extend(values.as_primitive::<Float32Type>().values().iter().flat_map(|value| value.to_le_bytes()));
        }
        ArrowType::Float64 => {
            put_kind(DOUBLES, values.nulls(), out);
            out.extend(values.as_primitive::<Float64Type>().values().iter().flat_map(|value| value.to_le_bytes()));
        }
        ArrowType::FixedSizeBinary(FIXED_BYTES) => {
            put_kind(FIXED, values.nulls(), out);
            let values = values.as_fixed_size_binary();
            (0..values.len()).for_each(|row| out.extend_from_slice(values.value(row)));
        }
        _ => match Vector::measured(values.clone()) {
            Vector::Ints(ints) => put_ints(&ints, out),
            _ => panic!("{} is no stored form", values.data_type()),
        },
    }
}

/// Of values of a fixed size there is one size.
const FIXED_BYTES: i32 = 16;

/// `None` if the bytes are not what was written.
pub(crate) fn decode(bytes: &[u8], rows: usize) -> Option<Vec<Vector>> {
    let mut reader = Reader { bytes, rows };
    let mut columns = Vec::new();
    while !reader.bytes.is_empty() {
        columns.push(reader.column()?);
    }
    Some(columns)
}

struct Reader<'b> {
    bytes: &'b [u8],
    rows: usize,
}

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn each<const N: usize, T>(&mut self, count: usize, of: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let (chunks, _) = self.take(count.checked_mul(N)?)?.as_chunks::<N>();
        Some(chunks.iter().map(|chunk| of(*chunk)).collect())
    }

    /// Numbers as `of` makes values of them.
    fn numbers<T: Clone>(&mut self, count: usize, of: impl Fn(u64) -> T) -> Option<Vec<T>> {
        match self.array::<1>()?[0] {
            0 => Some(vec![of(0); count]),
            1 => self.each(count, |[byte]| of(u64::from(byte))),
            2 => self.each(count, |bytes| of(u64::from(u16::from_le_bytes(bytes)))),
            4 => self.each(count, |bytes| of(u64::from(u32::from_le_bytes(bytes)))),
            8 => self.each(count, |bytes| of(u64::from_le_bytes(bytes))),
            _ => None,
        }
    }

    fn bits(&mut self) -> Option<BooleanBuffer> {
        let bytes = self.take(self.rows.div_ceil(8))?;
        Some(BooleanBuffer::new(Buffer::from_slice_ref(bytes), 0, self.rows))
    }

    fn column(&mut self) -> Option<Vector> {
        let [kind, has_nulls] = self.array()?;
        let nulls = if has_nulls == 1 { Some(NullBuffer::new(self.bits()?)) } else { None };
        let rows = self.rows;
        Some(match kind {
            INTS => Vector::Ints(self.ints(nulls)?),
            CODES => Vector::Codes(self.codes(nulls)?),
            TEXTS => Vector::Flat(Arc::new(self.texts(rows, nulls)?)),
            BOOLS => Vector::Flat(Arc::new(BooleanArray::new(self.bits()?, nulls))),
            FLOATS => {
                let values = self.each(rows, f32::from_le_bytes)?;
                Vector::Flat(Arc::new(Float32Array::new(values.into(), nulls)))
            }
            DOUBLES => {
                let values = self.each(rows, f64::from_le_bytes)?;
                Vector::Flat(Arc::new(Float64Array::new(values.into(), nulls)))
            }
            FIXED => {
                let values = self.take(rows.checked_mul(FIXED_BYTES as usize)?)?.to_vec();
                Vector::Flat(Arc::new(FixedSizeBinaryArray::try_new(FIXED_BYTES, values.into(), nulls).ok()?))
            }
            _ => return None,
        })
    }

    fn ints(&mut self, nulls: Option<NullBuffer>) -> Option<Ints> {
        let (min, max) = (i128::from_le_bytes(self.array()?), i128::from_le_bytes(self.array()?));
        let rows = self.rows;
        let values = if self.bytes.first() == Some(&WIDE) {
            self.take(1)?;
            IntValues::I128(self.each(rows, i128::from_le_bytes)?.into())
        } else if let (Ok(least), Ok(_)) = (i32::try_from(min), i32::try_from(max)) {
            IntValues::I32(self.numbers(rows, |number| least.wrapping_add(number as i32))?.into())
        } else if let (Ok(least), Ok(_)) = (i64::try_from(min), i64::try_from(max)) {
            IntValues::I64(self.numbers(rows, |number| least.wrapping_add(number as i64))?.into())
        } else {
            IntValues::I128(self.numbers(rows, |number| min.wrapping_add(i128::from(number)))?.into())
        };
        Some(Ints { values, nulls, min, max })
    }

    fn codes(&mut self, nulls: Option<NullBuffer>) -> Option<Codes> {
        let entries = u32::from_le_bytes(self.array()?);
        if entries == 0 {
            let dictionary = Arc::new(BinaryViewArray::from_iter_values(std::iter::empty::<&[u8]>()));
            return Some(Codes { codes: vec![0; self.rows].into(), nulls, dictionary });
        }
        let dictionary = Arc::new(self.texts(entries as usize, None)?);
        let codes: ScalarBuffer<u32> = self.numbers(self.rows, |code| code as u32)?.into();
        codes.iter().all(|code| *code < entries).then_some(Codes { codes, nulls, dictionary })
    }

    fn texts(&mut self, count: usize, nulls: Option<NullBuffer>) -> Option<BinaryViewArray> {
        let lengths = self.numbers(count, |length| length as usize)?;
        let all = self.take(lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length))?)?;
        u32::try_from(all.len()).ok()?;
        let mut from = 0;
        let view = |length: &usize| {
            let view = basalt_types::text::view(&all[from..from + length], 0, from as u32);
            from += length;
            view
        };
        let views: Vec<u128> = lengths.iter().map(view).collect();
        BinaryViewArray::try_new(views.into(), vec![Buffer::from_slice_ref(all)], nulls).ok()
    }
}
