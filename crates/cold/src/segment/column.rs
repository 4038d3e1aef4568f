//! Collects decoded pages, or chosen rows of pages, into one Arrow array in stored form.

use super::page::{Page, PageValues, Validity};
use crate::encoding::dictionary::Shared;
use crate::encoding::floats::Bits;
use crate::encoding::ints::Ints;
use crate::encoding::linear::Word;
use crate::encoding::{Damage, Decoded};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array,
};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, ScalarBuffer};
use basalt_types::PhysType;
use std::sync::Arc;

enum Data {
    /// Booleans and i16.
    Narrow(Vec<i16>),
    /// i32 and f32 by its bits.
    Int(Vec<i32>),
    /// i64 and f64 by its bits.
    Long(Vec<i64>),
    Wide(Vec<i128>),
    Fixed16(Vec<[u8; 16]>),
    Strings(StringData),
}

/// Each view shows bytes of the buffer that it names, or of `loose`, which will be the next: the views of an array without
/// a second look.
#[derive(Default)]
struct StringData {
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    /// The decoded dictionary of the chunk at hand: views into one of the buffers.
    dictionary: Option<Vec<u128>>,
    /// Strings taken one by one, which become the next buffer.
    loose: Vec<u8>,
}

pub(super) struct ColumnDecoder {
    ty: PhysType,
    data: Data,
    rows: usize,
    /// Made when the first null comes.
    valid: Option<BooleanBufferBuilder>,
}

impl ColumnDecoder {
    pub fn new(ty: PhysType, capacity: usize) -> ColumnDecoder {
        let data = match ty {
            PhysType::Bool | PhysType::I16 => Data::Narrow(Vec::with_capacity(capacity)),
            PhysType::I32 | PhysType::F32 => Data::Int(Vec::with_capacity(capacity)),
            PhysType::I64 | PhysType::F64 => Data::Long(Vec::with_capacity(capacity)),
            PhysType::I128 => Data::Wide(Vec::with_capacity(capacity)),
            PhysType::Fixed16 => Data::Fixed16(Vec::with_capacity(capacity)),
            PhysType::Bytes => {
                Data::Strings(StringData { views: Vec::with_capacity(capacity), ..StringData::default() })
            }
        };
        ColumnDecoder { ty, data, rows: 0, valid: None }
    }

    /// Forgets the dictionary: pages of another chunk follow.
    pub fn next_chunk(&mut self) {
        if let Data::Strings(strings) = &mut self.data {
            strings.dictionary = None;
        }
    }

    /// Appends all rows of a page.
    pub fn append_page(&mut self, page: &Page<'_>) -> Decoded<()> {
        match &mut self.data {
            Data::Narrow(out) => decode_ints(page, out)?,
            Data::Int(out) => decode_words(page, out)?,
            Data::Long(out) => decode_words(page, out)?,
            Data::Wide(out) => decode_wide(page, out)?,
            Data::Fixed16(out) => decode_fixed16(page, out)?,
            Data::Strings(strings) => strings.decode(page)?,
        }
        match page.validity {
            Validity::NoNulls => self.append_valid(page.rows),
            Validity::AllNull => self.nulls().append_n(page.rows, false),
            Validity::Bits(bits) => {
                let bits = BooleanBuffer::new(Buffer::from(bits), 0, page.rows);
                self.nulls().append_buffer(&bits);
            }
        }
        self.rows += page.rows;
        Ok(())
    }

    /// Appends some rows of a page.
    pub fn append_rows(&mut self, page: &Page<'_>, rows: &[u32]) -> Decoded<()> {
        match &mut self.data {
            Data::Narrow(out) => pick_ints(page, rows, out)?,
            Data::Int(out) => pick_words(page, rows, out)?,
            Data::Long(out) => pick_words(page, rows, out)?,
            Data::Wide(out) => {
                let mut all = Vec::new();
                decode_wide(page, &mut all)?;
                out.extend(rows.iter().map(|row| all[*row as usize]));
            }
            Data::Fixed16(out) => {
                let mut all = Vec::new();
                decode_fixed16(page, &mut all)?;
                out.extend(rows.iter().map(|row| all[*row as usize]));
            }
            Data::Strings(strings) => strings.pick(page, rows)?,
        }
        if matches!(page.validity, Validity::NoNulls) {
            self.append_valid(rows.len());
        } else {
            let valid = self.nulls();
            rows.iter().for_each(|row| valid.append(!page.is_null(*row as usize)));
        }
        self.rows += rows.len();
        Ok(())
    }

    fn append_valid(&mut self, rows: usize) {
        if let Some(valid) = &mut self.valid {
            valid.append_n(rows, true);
        }
    }

    fn nulls(&mut self) -> &mut BooleanBufferBuilder {
        let rows = self.rows;
        self.valid.get_or_insert_with(|| {
            let mut valid = BooleanBufferBuilder::new(rows);
            valid.append_n(rows, true);
            valid
        })
    }

    pub fn finish(self) -> Decoded<ArrayRef> {
        let rows = self.rows;
        let nulls = self.valid.map(|mut valid| NullBuffer::new(valid.finish()));
        Ok(match (self.data, self.ty) {
            (Data::Narrow(values), PhysType::Bool) => {
                Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(rows, |i| values[i] != 0), nulls))
            }
            (Data::Narrow(values), _) => Arc::new(Int16Array::new(values.into(), nulls)),
            (Data::Int(values), PhysType::F32) => {
                Arc::new(Float32Array::new(ScalarBuffer::new(Buffer::from_vec(values), 0, rows), nulls))
            }
            (Data::Int(values), _) => Arc::new(Int32Array::new(values.into(), nulls)),
            (Data::Long(values), PhysType::F64) => {
                Arc::new(Float64Array::new(ScalarBuffer::new(Buffer::from_vec(values), 0, rows), nulls))
            }
            (Data::Long(values), _) => Arc::new(Int64Array::new(values.into(), nulls)),
            (Data::Wide(values), _) => {
                let array = Decimal128Array::new(values.into(), nulls);
                Arc::new(array.with_precision_and_scale(38, 0).expect("38 digits fit"))
            }
            (Data::Fixed16(values), _) => {
                let array = FixedSizeBinaryArray::try_new(16, Buffer::from(values.into_flattened()), nulls);
                Arc::new(array.map_err(|_| Damage("16-byte values"))?)
            }
            (Data::Strings(mut strings), _) => {
                strings.seal();
                assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == strings.views.len()), "a bit for each row");
                #[allow(unsafe_code)]
                // SAFETY: each view was made of bytes where it says that they lie ([`StringData`]), and lengths agree.
                let array = unsafe { BinaryViewArray::new_unchecked(strings.views.into(), strings.buffers, nulls) };
                Arc::new(array)
            }
        })
    }
}

pub(super) fn decode_ints<T: Word>(page: &Page<'_>, out: &mut Vec<T>) -> Decoded<()> {
    match &page.values {
        PageValues::Ints(ints) => ints.decode(out),
        PageValues::IntCodes(codes, shared) => {
            let dictionary = int_dictionary::<T>(shared)?;
            let mut all = Vec::<u32>::with_capacity(page.rows);
            codes.decode(&mut all)?;
            for code in all {
                out.push(*dictionary.get(code as usize).ok_or(Damage("a code beyond its dictionary"))?);
            }
            Ok(())
        }
        _ => fill(page, out),
    }
}

/// Integers, or floats by their bits.
fn decode_words<T: Bits>(page: &Page<'_>, out: &mut Vec<T>) -> Decoded<()> {
    match &page.values {
        PageValues::Floats(floats) => floats.decode(out),
        _ => decode_ints(page, out),
    }
}

fn pick_words<T: Bits>(page: &Page<'_>, rows: &[u32], out: &mut Vec<T>) -> Decoded<()> {
    match &page.values {
        PageValues::Floats(floats) => floats.pick(rows, page.rows, out),
        _ => pick_ints(page, rows, out),
    }
}

/// Chosen rows cost a lookup each, or, if there are many, the decoding of the page.
pub(super) fn pick_ints<T: Word>(page: &Page<'_>, rows: &[u32], out: &mut Vec<T>) -> Decoded<()> {
    match &page.values {
        PageValues::Ints(ints) => pick(ints, page.rows, rows, out)?,
        _ => {
            let mut all: Vec<T> = Vec::new();
            decode_ints(page, &mut all)?;
            out.extend(rows.iter().map(|row| all[*row as usize]));
        }
    }
    Ok(())
}

/// Appends integers at some rows, which ascend, of so many.
fn pick<T: Word>(ints: &Ints<'_>, count: usize, rows: &[u32], out: &mut Vec<T>) -> Decoded<()> {
    match ints {
        Ints::Frame(frame) if rows.len() < count => frame.pick(rows, out),
        // In the other forms what lies before a value is gone through.
        _ if rows.len() * 256 < count => {
            out.extend(rows.iter().map(|row| T::from_u64(ints.get(*row as usize) as u64)));
        }
        _ => {
            let mut all: Vec<T> = Vec::with_capacity(count);
            ints.decode(&mut all)?;
            out.extend(rows.iter().map(|row| all[*row as usize]));
        }
    }
    Ok(())
}

fn int_dictionary<T: Word>(shared: &Shared) -> Decoded<Vec<T>> {
    let mut dictionary = Vec::with_capacity(shared.count);
    shared.ints()?.decode(&mut dictionary)?;
    Ok(dictionary)
}

/// Pages of nulls alone hold no values.
fn fill<T: Copy + Default>(page: &Page<'_>, out: &mut Vec<T>) -> Decoded<()> {
    match page.values {
        PageValues::None => {
            out.resize(out.len() + page.rows, T::default());
            Ok(())
        }
        _ => Err(Damage("a page of another type")),
    }
}

fn decode_wide(page: &Page<'_>, out: &mut Vec<i128>) -> Decoded<()> {
    match &page.values {
        PageValues::Narrow(base, distances) => {
            let mut all = Vec::<i64>::with_capacity(page.rows);
            distances.decode(&mut all)?;
            out.extend(all.into_iter().map(|distance| base.wrapping_add(i128::from(distance))));
            Ok(())
        }
        PageValues::Sixteen(values) => {
            out.extend(values.iter().map(|value| i128::from_le_bytes(*value)));
            Ok(())
        }
        PageValues::SixteenConstant(value) => {
            out.resize(out.len() + page.rows, i128::from_le_bytes(*value));
            Ok(())
        }
        _ => fill(page, out),
    }
}

fn decode_fixed16(page: &Page<'_>, out: &mut Vec<[u8; 16]>) -> Decoded<()> {
    match &page.values {
        PageValues::Sixteen(values) => {
            out.extend_from_slice(values);
            Ok(())
        }
        PageValues::SixteenConstant(value) => {
            out.resize(out.len() + page.rows, *value);
            Ok(())
        }
        _ => fill(page, out),
    }
}

impl StringData {
    fn add_buffer(&mut self, buffer: Vec<u8>) {
        self.buffers.push(Buffer::from_vec(buffer));
    }

    /// Turns strings taken one by one into a buffer.
    fn seal(&mut self) {
        if !self.loose.is_empty() {
            let loose = std::mem::take(&mut self.loose);
            self.add_buffer(loose);
        }
    }

    fn decode(&mut self, page: &Page<'_>) -> Decoded<()> {
        match &page.values {
            PageValues::Strings(strings) => {
                self.seal();
                let buffer = strings.decode(self.buffers.len() as u32, &mut self.views)?;
                self.add_buffer(buffer);
                Ok(())
            }
            PageValues::StringCodes(codes, shared) => {
                self.load_dictionary(shared)?;
                let dictionary = self.dictionary.as_deref().unwrap_or_default();
                let mut all = Vec::<u32>::with_capacity(page.rows);
                codes.decode(&mut all)?;
                self.views.reserve(all.len());
                for code in all {
                    let view = dictionary.get(code as usize).ok_or(Damage("a code beyond its dictionary"))?;
                    self.views.push(*view);
                }
                Ok(())
            }
            PageValues::Elements(elements) => {
                self.seal();
                let buffer = elements.decode(self.buffers.len() as u32, &mut self.views)?;
                self.add_buffer(buffer);
                Ok(())
            }
            _ => fill(page, &mut self.views),
        }
    }

    fn load_dictionary(&mut self, shared: &Shared) -> Decoded<()> {
        if self.dictionary.is_none() {
            self.seal();
            let mut views = Vec::new();
            let buffer = shared.strings()?.decode(self.buffers.len() as u32, &mut views)?;
            self.add_buffer(buffer);
            self.dictionary = Some(views);
        }
        Ok(())
    }

    /// Chosen strings are decoded one by one, or, if they are many, with all of their page.
    fn pick(&mut self, page: &Page<'_>, rows: &[u32]) -> Decoded<()> {
        match &page.values {
            PageValues::Strings(strings) if rows.len() * 4 >= page.rows => {
                self.seal();
                let mut all = Vec::new();
                let buffer = strings.decode(self.buffers.len() as u32, &mut all)?;
                self.add_buffer(buffer);
                self.views.extend(rows.iter().map(|row| all[*row as usize]));
                Ok(())
            }
            PageValues::Elements(elements) if elements.count_of(rows).saturating_mul(4) >= elements.page.rows => {
                self.seal();
                let mut all = Vec::new();
                let buffer = elements.decode(self.buffers.len() as u32, &mut all)?;
                self.add_buffer(buffer);
                self.views.extend(rows.iter().map(|row| all[*row as usize]));
                Ok(())
            }
            PageValues::Elements(elements) => {
                let mut array = Vec::new();
                rows.iter().try_for_each(|row| {
                    array.clear();
                    elements.put(*row as usize, &mut array)?;
                    self.push(&array)
                })
            }
            PageValues::Strings(strings) => {
                debug_assert!(rows.is_sorted(), "rows ascend");
                strings.visit(rows, |string| self.push(string))
            }
            PageValues::StringCodes(codes, shared) if self.dictionary.is_none() && rows.len() * 4 < shared.count => {
                let (strings, mut picked) = (shared.strings()?, Vec::<i64>::new());
                pick(codes, page.rows, rows, &mut picked)?;
                picked.into_iter().try_for_each(|code| self.push(&strings.get(shared.index(code)?)?))
            }
            PageValues::StringCodes(codes, shared) => {
                self.load_dictionary(shared)?;
                let (dictionary, mut picked) = (self.dictionary.as_deref().unwrap_or_default(), Vec::<i64>::new());
                pick(codes, page.rows, rows, &mut picked)?;
                for code in picked {
                    self.views.push(dictionary[shared.index(code)?]);
                }
                Ok(())
            }
            _ => {
                self.views.resize(self.views.len() + rows.len(), 0);
                Ok(())
            }
        }
    }

    fn push(&mut self, string: &[u8]) -> Decoded<()> {
        if self.loose.len() + string.len() > i32::MAX as usize {
            self.seal();
        }
        self.views.push(basalt_types::text::view(string, self.buffers.len() as u32, self.loose.len() as u32));
        if string.len() > 12 {
            self.loose.extend_from_slice(string);
        }
        Ok(())
    }
}
