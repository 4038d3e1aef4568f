//! One page as read: parsed without decoding, then asked for one value or decoded into a column.
//!
//! `flags u8 | (validity, one bit per row) | values`; the form of the values follows from the column's
//! physical type and the kind of the chunk's shared block.

use super::chunk::{ALL_NULL, HAS_NULLS, SIXTEEN_CONSTANT, SIXTEEN_NARROW, SIXTEEN_PLAIN};
use super::elements::Elements;
use super::values::{float_bits, int_datum};
use crate::encoding::bytes::Strings;
use crate::encoding::dictionary::{Shared, SharedKind};
use crate::encoding::floats::Floats;
use crate::encoding::ints::Ints;
use crate::encoding::{Damage, Decoded, take, take_array};
use basalt_types::prefetch::{Ahead, prefetch};
use basalt_types::{Datum, PhysType};

pub(super) struct Page<'a> {
    pub rows: usize,
    pub validity: Validity<'a>,
    pub values: PageValues<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Validity<'a> {
    NoNulls,
    AllNull,
    /// One bit per row, set where there is a value.
    Bits(&'a [u8]),
}

pub(super) enum PageValues<'a> {
    None,
    Ints(Ints<'a>),
    IntCodes(Ints<'a>, &'a Shared),
    Floats(Floats<'a>),
    /// `base + distance`.
    Narrow(i128, Ints<'a>),
    Sixteen(&'a [[u8; 16]]),
    SixteenConstant([u8; 16]),
    Strings(Strings<'a>),
    StringCodes(Ints<'a>, &'a Shared),
    Elements(Elements<'a>),
}

impl<'a> Page<'a> {
    pub fn parse(block: &'a [u8], ty: PhysType, rows: usize, shared: Option<&'a Shared>) -> Decoded<Page<'a>> {
        let mut input = block;
        let validity = match take_array(&mut input, "flags of a page")? {
            [0] => Validity::NoNulls,
            [HAS_NULLS] => Validity::Bits(take(&mut input, rows.div_ceil(8), "validity of a page")?),
            [ALL_NULL] => Validity::AllNull,
            _ => return Err(Damage("unknown flags of a page")),
        };
        let values = match validity {
            Validity::AllNull => PageValues::None,
            _ => PageValues::parse(&mut input, ty, rows, shared)?,
        };
        if input.is_empty() { Ok(Page { rows, validity, values }) } else { Err(Damage("bytes behind a page's values")) }
    }

    /// The page whose bytes are asked of memory while this one's values are read.
    pub fn followed_by(&mut self, next: &'a [u8]) {
        let values = match &mut self.values {
            PageValues::Ints(ints) | PageValues::IntCodes(ints, _) | PageValues::StringCodes(ints, _) => Some(ints),
            _ => None,
        };
        match values {
            Some(Ints::Frame(packed) | Ints::Delta { deltas: packed, .. }) => packed.ahead = Ahead::new(next),
            Some(Ints::Runs { .. }) | None => prefetch(next),
        }
    }

    pub fn is_null(&self, row: usize) -> bool {
        match self.validity {
            Validity::NoNulls => false,
            Validity::AllNull => true,
            Validity::Bits(bits) => bits[row / 8] >> (row % 8) & 1 == 0,
        }
    }

    /// # Panics
    /// If the page has no such row.
    pub fn get(&self, ty: PhysType, row: usize) -> Decoded<Datum> {
        if self.is_null(row) {
            return Ok(Datum::Null);
        }
        Ok(match &self.values {
            PageValues::None => Datum::Null,
            PageValues::Ints(ints) => int_datum(ty, ints.get(row)),
            PageValues::IntCodes(codes, shared) => int_datum(ty, shared.ints()?.get(shared.index(codes.get(row))?)),
            PageValues::Floats(floats) if ty == PhysType::F32 => int_datum(ty, floats.get::<i32>(row).into()),
            PageValues::Floats(floats) => int_datum(ty, floats.get(row)),
            PageValues::Narrow(base, distances) => Datum::I128(base.wrapping_add(i128::from(distances.get(row)))),
            PageValues::Sixteen(values) => sixteen_datum(ty, values[row]),
            PageValues::SixteenConstant(value) => sixteen_datum(ty, *value),
            PageValues::Strings(strings) => Datum::Bytes(strings.get(row)?.into_owned().into()),
            PageValues::StringCodes(codes, shared) => {
                let index = shared.index(codes.get(row))?;
                Datum::Bytes(shared.strings()?.get(index)?.into_owned().into())
            }
            PageValues::Elements(elements) => {
                let mut array = Vec::new();
                elements.put(row, &mut array)?;
                Datum::Bytes(array.into())
            }
        })
    }
}

impl<'a> PageValues<'a> {
    fn parse(input: &mut &'a [u8], ty: PhysType, rows: usize, shared: Option<&'a Shared>) -> Decoded<PageValues<'a>> {
        let kind = shared.map(|shared| shared.kind);
        match (ty, kind) {
            (PhysType::I128 | PhysType::Fixed16, None) => PageValues::parse_sixteen(input, rows),
            (PhysType::Bytes, None) => Ok(PageValues::Strings(Strings::parse(input, rows, None)?)),
            (PhysType::Bytes, Some(SharedKind::Symbols)) => {
                let symbols = shared.and_then(|shared| shared.symbols.as_deref());
                Ok(PageValues::Strings(Strings::parse(input, rows, symbols)?))
            }
            (PhysType::Bytes, Some(SharedKind::Blocks)) => Ok(PageValues::Strings(Strings::parse_blocks(input, rows)?)),
            (PhysType::Bytes, Some(SharedKind::Strings)) => {
                let codes = Ints::parse(input, rows)?;
                Ok(shared.map_or(PageValues::None, |shared| PageValues::StringCodes(codes, shared)))
            }
            (PhysType::Bytes, Some(SharedKind::Elements)) => {
                let (element, shared) = shared.and_then(Shared::elements).ok_or(Damage("arrays without elements"))?;
                Ok(PageValues::Elements(Elements::parse(input, rows, element, shared)?))
            }
            (PhysType::Bytes | PhysType::I128 | PhysType::Fixed16, _) => Err(Damage("a shared block of another type")),
            (_, None) => match float_bits(ty) {
                Some(bits) => Ok(PageValues::Floats(Floats::parse(input, rows, bits)?)),
                None => Ok(PageValues::Ints(Ints::parse(input, rows)?)),
            },
            (_, Some(SharedKind::Ints)) => {
                let codes = Ints::parse(input, rows)?;
                Ok(shared.map_or(PageValues::None, |shared| PageValues::IntCodes(codes, shared)))
            }
            (_, Some(_)) => Err(Damage("a shared block of another type")),
        }
    }

    fn parse_sixteen(input: &mut &'a [u8], rows: usize) -> Decoded<PageValues<'a>> {
        match take_array(input, "form of 16-byte values")? {
            [SIXTEEN_PLAIN] => Ok(PageValues::Sixteen(take(input, rows * 16, "16-byte values")?.as_chunks().0)),
            [SIXTEEN_CONSTANT] => Ok(PageValues::SixteenConstant(take_array(input, "a constant")?)),
            [SIXTEEN_NARROW] => {
                let base = i128::from_le_bytes(take_array(input, "base of 16-byte values")?);
                Ok(PageValues::Narrow(base, Ints::parse(input, rows)?))
            }
            _ => Err(Damage("unknown form of 16-byte values")),
        }
    }
}

fn sixteen_datum(ty: PhysType, value: [u8; 16]) -> Datum {
    match ty {
        PhysType::I128 => Datum::I128(i128::from_le_bytes(value)),
        _ => Datum::Fixed16(value),
    }
}
