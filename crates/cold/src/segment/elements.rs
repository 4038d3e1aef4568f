//! Columns of arrays whose elements lie side by side, as a column of their own (Krypton section 6): how many each row has,
//! with restarts, so that where a row's elements are costs a bounded sum; then which of them are null, and their values.
//!
//! `elements varint | spans | page of elements`. Arrays of several dimensions, or with other lower bounds, have no such form:
//! one of them in a chunk, and all rest as strings.

use super::chunk::{ALL_NULL, HAS_NULLS, Texts, int_dictionary, put_fixed16, put_wide, string_dictionary};
use super::page::{Page, PageValues};
use super::values::{Values, fill_nulls, float_bits};
use super::vectors;
use crate::encoding::dictionary::{self, SharedKind};
use crate::encoding::spans::{self, Spans};
use crate::encoding::{Damage, Decoded, bytes, floats, ints, take_varint};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryViewArray};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, ScalarBuffer};
use basalt_types::array::Resting;
use basalt_types::row::{self, Field};
use basalt_types::vector::Vector;
use basalt_types::{Datum, PhysType, text, varint};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a chunk that are taken apart: each takes eight bytes meanwhile, or more.
const ELEMENTS_MAX: usize = 1 << 23;

/// Arrays of a chunk taken apart.
pub(super) struct Apart<'a> {
    element: PhysType,
    /// Where each row's elements begin, and where the last one's end.
    starts: Vec<usize>,
    values: Values<'a>,
    /// `None` if no element is null.
    valid: Option<BooleanBuffer>,
}

impl<'a> Apart<'a> {
    /// `None` if they have no such form. Rows without an array have no elements.
    pub fn of(arrays: &[&'a [u8]], valid: Option<&BooleanBuffer>, element: PhysType) -> Option<Apart<'a>> {
        let mut starts = Vec::with_capacity(arrays.len() + 1);
        let mut nulls = Vec::new();
        let mut count = 0;
        let mut sink = Sink::new(element);
        for (row, bytes) in arrays.iter().enumerate() {
            starts.push(count);
            if valid.is_some_and(|valid| !valid.value(row)) {
                continue;
            }
            let array = Resting::new(bytes).filter(Resting::is_plain)?;
            (count + array.count() <= ELEMENTS_MAX).then_some(())?;
            array.each(element, |field| {
                match field {
                    Field::Null => {
                        nulls.push(count);
                        sink.push_null();
                    }
                    Field::Value(bytes) => sink.push(bytes)?,
                }
                count += 1;
                Some(())
            })?;
        }
        starts.push(count);
        let valid = (!nulls.is_empty()).then(|| {
            let mut valid = BooleanBufferBuilder::new(count);
            valid.append_n(count, true);
            nulls.iter().for_each(|at| valid.set_bit(*at, false));
            valid.finish()
        });
        let mut values = sink.0;
        if let Some(valid) = &valid {
            match &mut values {
                Values::Ints(values) => fill_nulls(values, valid),
                Values::Wide(values) => fill_nulls(values, valid),
                Values::Fixed16(values) => fill_nulls(values, valid),
                Values::Strings(values) => fill_nulls(values, valid),
            }
        }
        Some(Apart { element, starts, values, valid })
    }

    /// How its elements are encoded, and what all pages of the chunk share.
    pub fn encoder(self, texts: &mut Texts) -> (Encoder<'a>, Vec<u8>) {
        let Apart { element, starts, values, valid } = self;
        let mut block = Vec::new();
        let (kind, form) = match values {
            Values::Ints(values) => {
                let floats = float_bits(element).map(|bits| floats::Encoder::new(bits, &values));
                let encode = |values: &[i64], out: &mut Vec<u8>| put_ints(floats.as_ref(), values, out);
                match int_dictionary(element, &values, encode) {
                    Some((dictionary, codes)) => {
                        dictionary::encode_ints(&dictionary, &mut block);
                        (Some(SharedKind::Ints), Form::Ints(codes, None))
                    }
                    None => (None, Form::Ints(values, floats)),
                }
            }
            Values::Wide(values) => (None, Form::Wide(values)),
            Values::Fixed16(values) => (None, Form::Fixed16(values)),
            Values::Strings(values) => match string_dictionary(&values, 2) {
                Some((dictionary, codes)) => {
                    dictionary::encode_strings(&dictionary, &mut block);
                    (Some(SharedKind::Strings), Form::Ints(codes, None))
                }
                None => match texts.table_for(&values) {
                    Some(table) => {
                        block.extend_from_slice(table);
                        (Some(SharedKind::Symbols), Form::Symbols(values))
                    }
                    None => (None, Form::Strings(values)),
                },
            },
        };
        let mut shared = vec![element as u8, kind.map_or(0, |kind| kind as u8)];
        shared.append(&mut block);
        (Encoder { starts, form, valid }, shared)
    }
}

/// Elements as they are found.
struct Sink<'a>(Values<'a>, PhysType);

impl<'a> Sink<'a> {
    fn new(element: PhysType) -> Sink<'a> {
        let values = match element {
            PhysType::I128 => Values::Wide(Vec::new()),
            PhysType::Fixed16 => Values::Fixed16(Vec::new()),
            PhysType::Bytes => Values::Strings(Vec::new()),
            _ => Values::Ints(Vec::new()),
        };
        Sink(values, element)
    }

    fn push_null(&mut self) {
        match &mut self.0 {
            Values::Ints(values) => values.push(0),
            Values::Wide(values) => values.push(0),
            Values::Fixed16(values) => values.push([0; 16]),
            Values::Strings(values) => values.push(&[]),
        }
    }

    /// `None` if the bytes are damaged.
    #[inline]
    fn push(&mut self, bytes: &'a [u8]) -> Option<()> {
        match &mut self.0 {
            Values::Ints(values) => values.push(match self.1 {
                PhysType::Bool => i64::from(*bytes.first().filter(|byte| **byte < 2)?),
                PhysType::I16 => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
                PhysType::I32 | PhysType::F32 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
                _ => i64::from_le_bytes(bytes.try_into().ok()?),
            }),
            Values::Wide(values) => values.push(i128::from_le_bytes(bytes.try_into().ok()?)),
            Values::Fixed16(values) => values.push(bytes.try_into().ok()?),
            Values::Strings(values) => values.push(bytes),
        }
        Some(())
    }
}

fn put_ints(floats: Option<&floats::Encoder>, values: &[i64], out: &mut Vec<u8>) {
    match floats {
        Some(floats) => floats.encode(values, out),
        None => ints::encode(values, out),
    }
}

/// Encodes pages of elements.
pub(super) struct Encoder<'a> {
    starts: Vec<usize>,
    form: Form<'a>,
    valid: Option<BooleanBuffer>,
}

enum Form<'a> {
    /// Integers, codes among them, or floats by their bits.
    Ints(Vec<i64>, Option<floats::Encoder>),
    Wide(Vec<i128>),
    Fixed16(Vec<[u8; 16]>),
    Strings(Vec<&'a [u8]>),
    Symbols(Vec<&'a [u8]>),
}

impl Encoder<'_> {
    /// How many elements some rows have.
    pub fn count(&self, rows: &Range<usize>) -> usize {
        self.starts[rows.end] - self.starts[rows.start]
    }

    /// Appends the values of a page of these rows.
    pub fn encode(&self, rows: Range<usize>, texts: &Texts, out: &mut Vec<u8>) {
        let elements = self.starts[rows.start]..self.starts[rows.end];
        varint::put(out, elements.len() as u64);
        let lengths = self.starts[rows.start..=rows.end].windows(2).map(|pair| (pair[1] - pair[0]) as i64);
        spans::encode(&lengths.collect::<Vec<i64>>(), out);
        let valid = self.valid.as_ref().map(|valid| valid.slice(elements.start, elements.len()));
        match valid.map(|valid| (valid.count_set_bits(), valid)) {
            _ if elements.is_empty() => return out.push(ALL_NULL),
            Some((0, _)) => return out.push(ALL_NULL),
            Some((set, valid)) if set < elements.len() => {
                out.push(HAS_NULLS);
                out.extend_from_slice(&valid.sliced()[..elements.len().div_ceil(8)]);
            }
            _ => out.push(0),
        }
        match &self.form {
            Form::Ints(values, floats) => put_ints(floats.as_ref(), &values[elements], out),
            Form::Wide(values) => put_wide(&values[elements], out),
            Form::Fixed16(values) => put_fixed16(&values[elements], out),
            Form::Strings(values) => bytes::encode(&values[elements], out),
            Form::Symbols(values) => texts.compress(&values[elements], out),
        }
    }
}

/// The arrays of a page, taken apart.
pub(super) struct Elements<'a> {
    pub element: PhysType,
    spans: Spans<'a>,
    /// Its rows are elements.
    pub page: Box<Page<'a>>,
}

impl<'a> Elements<'a> {
    pub fn parse(
        input: &mut &'a [u8],
        rows: usize,
        element: PhysType,
        shared: Option<&'a dictionary::Shared>,
    ) -> Decoded<Elements<'a>> {
        let count = take_varint(input, "number of elements")?;
        if count > ELEMENTS_MAX as u64 {
            return Err(Damage("more elements than a chunk may have"));
        }
        let spans = Spans::parse(input, rows)?;
        let page = Page::parse(std::mem::take(input), element, count as usize, shared)?;
        Ok(Elements { element, spans, page: Box::new(page) })
    }

    /// How many elements each row has.
    pub fn counts(&self) -> Decoded<Vec<u32>> {
        self.spans.all(self.page.rows)
    }

    /// How many elements some rows have together.
    pub fn count_of(&self, rows: &[u32]) -> usize {
        rows.iter().map(|row| self.spans.lengths.get(*row as usize) as u64 as usize).fold(0, usize::saturating_add)
    }

    /// Appends the array of one row, as it rests by itself.
    pub fn put(&self, row: usize, out: &mut Vec<u8>) -> Decoded<()> {
        let range = self.spans.range(row).filter(|range| range.end <= self.page.rows);
        let places = range.ok_or(Damage("elements beyond their page"))?;
        let from = places.start;
        row::put_header(places.len(), |place| self.page.is_null(from + place), out);
        let valued = places.clone().filter(|place| !self.page.is_null(*place));
        let width = self.element.fixed_width().unwrap_or(0).min(size_of::<i64>());
        let mut put_int = |value: i64| out.extend_from_slice(&value.to_le_bytes()[..width]);
        match &self.page.values {
            PageValues::None => {}
            PageValues::Ints(ints) => {
                let mut values = Vec::with_capacity(places.len());
                ints.get_range(places, &mut values);
                valued.for_each(|place| put_int(values[place - from]));
            }
            PageValues::IntCodes(codes, shared) => {
                let (dictionary, mut values) = (shared.ints()?, Vec::with_capacity(places.len()));
                codes.get_range(places, &mut values);
                for place in valued {
                    put_int(dictionary.get(shared.index(values[place - from])?));
                }
            }
            PageValues::Floats(floats) if self.element == PhysType::F32 => {
                valued.for_each(|place| put_int(floats.get::<i32>(place).into()));
            }
            PageValues::Floats(floats) => valued.for_each(|place| put_int(floats.get(place))),
            PageValues::Strings(strings) => {
                for place in valued {
                    varint::put_slice(out, &strings.get(place)?);
                }
            }
            PageValues::StringCodes(codes, shared) => {
                let (dictionary, mut values) = (shared.strings()?, Vec::with_capacity(places.len()));
                codes.get_range(places, &mut values);
                for place in valued {
                    varint::put_slice(out, &dictionary.get(shared.index(values[place - from])?)?);
                }
            }
            PageValues::Narrow(..) | PageValues::Sixteen(_) | PageValues::SixteenConstant(_) => {
                for place in valued {
                    match self.page.get(self.element, place)? {
                        Datum::I128(value) => out.extend_from_slice(&value.to_le_bytes()),
                        Datum::Fixed16(value) => out.extend_from_slice(&value),
                        _ => return Err(Damage("elements of another type")),
                    }
                }
            }
            PageValues::Elements(_) => return Err(Damage("arrays as elements of arrays")),
        }
        Ok(())
    }

    /// All arrays as they rest by themselves, in one buffer, and a view of each into it, as buffer number `buffer`.
    pub fn decode(&self, buffer: u32, views: &mut Vec<u128>) -> Decoded<Vec<u8>> {
        let counts = self.counts()?;
        let values = match &self.page.values {
            PageValues::StringCodes(codes, shared) => {
                let mut all = Vec::<u32>::with_capacity(self.page.rows);
                codes.decode(&mut all)?;
                let dictionary = shared.dictionary()?;
                if all.iter().any(|code| *code as usize >= dictionary.len()) {
                    return Err(Damage("a code beyond its dictionary"));
                }
                Bodies::Codes(all, dictionary)
            }
            _ => Bodies::Values(vectors::flat(self.element, &self.page, None)?),
        };
        let bodies = values.ready(self.element)?;
        let nulls = vectors::nulls(&self.page).filter(|nulls| nulls.null_count() > 0);
        let mut out = Vec::with_capacity(counts.len() * 3 + bodies.bytes(self.page.rows));
        views.reserve(counts.len());
        let mut at = 0;
        for count in counts {
            let (begin, elements) = (out.len(), at..at + count as usize);
            at = elements.end;
            match &nulls {
                None => {
                    row::put_header(elements.len(), |_| false, &mut out);
                    bodies.put(elements, &mut out);
                }
                Some(nulls) => {
                    let from = elements.start;
                    row::put_header(elements.len(), |place| nulls.is_null(from + place), &mut out);
                    let of_array = nulls.slice(from, elements.len());
                    of_array.valid_slices().for_each(|(start, end)| bodies.put(from + start..from + end, &mut out));
                }
            }
            let begin_at = u32::try_from(begin).map_err(|_| Damage("arrays beyond their page"))?;
            views.push(text::view(&out[begin..], buffer, begin_at));
        }
        Ok(out)
    }
}

/// Elements of a page as they were decoded.
enum Bodies {
    Values(ArrayRef),
    Codes(Vec<u32>, Arc<BinaryViewArray>),
}

/// The same as rows hold them.
enum Ready<'v> {
    /// Side by side, of a width.
    Fixed(Cow<'v, [u8]>, usize),
    Texts(&'v BinaryViewArray),
    Codes(&'v [u32], &'v BinaryViewArray),
}

impl Bodies {
    fn ready(&self, element: PhysType) -> Decoded<Ready<'_>> {
        let values = match self {
            Bodies::Codes(codes, dictionary) => return Ok(Ready::Codes(codes, dictionary)),
            Bodies::Values(values) => values,
        };
        let fixed = match element {
            PhysType::Bool => values.as_boolean().values().iter().map(u8::from).collect::<Vec<u8>>().into(),
            PhysType::I16 => little(values.as_primitive::<Int16Type>().values(), i16::to_le_bytes),
            PhysType::I32 => little(values.as_primitive::<Int32Type>().values(), i32::to_le_bytes),
            PhysType::I64 => little(values.as_primitive::<Int64Type>().values(), i64::to_le_bytes),
            PhysType::F32 => little(values.as_primitive::<Float32Type>().values(), f32::to_le_bytes),
            PhysType::F64 => little(values.as_primitive::<Float64Type>().values(), f64::to_le_bytes),
            PhysType::I128 => little(values.as_primitive::<Decimal128Type>().values(), i128::to_le_bytes),
            PhysType::Fixed16 => Cow::Borrowed(values.as_fixed_size_binary().value_data()),
            PhysType::Bytes => return Ok(Ready::Texts(values.as_binary_view())),
        };
        let width = element.fixed_width().ok_or(Damage("elements without a width"))?;
        Ok(Ready::Fixed(fixed, width))
    }
}

/// Where they lie, if this machine has them in that order.
fn little<T: ArrowNativeType, const N: usize>(values: &ScalarBuffer<T>, bytes: fn(T) -> [u8; N]) -> Cow<'_, [u8]> {
    match cfg!(target_endian = "little") {
        true => Cow::Borrowed(values.inner().as_slice()),
        false => values.iter().map(|value| bytes(*value)).collect::<Vec<[u8; N]>>().into_flattened().into(),
    }
}

impl Ready<'_> {
    /// About what so many of them take.
    fn bytes(&self, count: usize) -> usize {
        let of_views =
            |texts: &BinaryViewArray| texts.views().iter().map(|view| *view as u32 as usize + 1).sum::<usize>();
        match self {
            Ready::Fixed(_, width) => count * width,
            Ready::Texts(texts) => of_views(texts),
            Ready::Codes(codes, dictionary) => of_views(dictionary) / dictionary.len().max(1) * codes.len(),
        }
    }

    #[inline]
    fn put(&self, elements: Range<usize>, out: &mut Vec<u8>) {
        match self {
            Ready::Fixed(bytes, width) => out.extend_from_slice(&bytes[elements.start * width..elements.end * width]),
            Ready::Texts(texts) => elements.for_each(|at| varint::put_slice(out, texts.value(at))),
            Ready::Codes(codes, dictionary) => {
                codes[elements].iter().for_each(|code| varint::put_slice(out, dictionary.value(*code as usize)));
            }
        }
    }
}

/// Nulls of a type.
pub(super) fn all_null(element: PhysType, rows: usize) -> Vector {
    let mut builder = basalt_types::ColumnBuilder::new(element, rows);
    (0..rows).for_each(|_| builder.push_null());
    Vector::measured(builder.finish())
}

/// Elements that are wanted, by their places in the page.
pub(super) struct Wanted {
    /// Ascending; a row without such an element has that of a row before it.
    pub places: Vec<u32>,
    pub valid: Option<BooleanBuffer>,
}

impl Wanted {
    /// The element at a place in each of some rows (`None`: in all), of arrays of these lengths. `None` if none has it.
    pub fn at(place: u32, counts: &[u32], rows: Option<&[u32]>) -> Option<Wanted> {
        let mut starts = Vec::with_capacity(counts.len());
        let mut next = 0;
        for count in counts {
            starts.push(next);
            next += count;
        }
        let all: Vec<u32>;
        let rows = match rows {
            Some(rows) => rows,
            None => {
                all = (0..counts.len() as u32).collect();
                &all
            }
        };
        let first = rows.iter().find(|row| counts[**row as usize] > place)?;
        let mut last = starts[*first as usize] + place;
        let mut missing = 0;
        let places: Vec<u32> = rows
            .iter()
            .map(|row| {
                let row = *row as usize;
                let has = counts[row] > place;
                missing += usize::from(!has);
                last = if has { starts[row] + place } else { last };
                last
            })
            .collect();
        let valid =
            (missing > 0).then(|| BooleanBuffer::collect_bool(rows.len(), |at| counts[rows[at] as usize] > place));
        Some(Wanted { places, valid })
    }

    /// All elements of some rows, which ascend.
    pub fn of(counts: &[u32], rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut places = Vec::with_capacity(rows.len() * 2);
        let mut some = Vec::with_capacity(rows.len());
        let (mut at, mut start) = (0, 0);
        for row in rows {
            let row = *row as usize;
            start += counts[at..row].iter().sum::<u32>();
            at = row;
            places.extend(start..start + counts[row]);
            some.push(counts[row]);
        }
        (some, places)
    }
}
