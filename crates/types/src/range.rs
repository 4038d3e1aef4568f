//! Values of range and multirange types (manual 8.17), which rest as bytes that compare as the values do.
//!
//! ```text
//! range      = 00                                 empty
//!            | 01 lower upper
//! lower      = 00                                 no bound
//!            | 01 key (00 inclusive | 01 exclusive)
//! upper      = 01 key (00 exclusive | 01 inclusive)
//!            | 02                                 no bound
//! multirange = range … 00                         ascending, none empty
//! ```
//!
//! `key` is the bound as [`crate::key`] encodes it. Behind a range or multirange of numerics come the display
//! scales of its bounds in order, each u16 BE, which are no part of the value.

use crate::{DataType, Datum, key, numeric, varint};
use serde::{Deserialize, Serialize};

/// What ranges are over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum RangeKind {
    Int4,
    Int8,
    Numeric,
    Date,
    Timestamp,
    TimestampTz,
}

impl RangeKind {
    pub const ALL: [RangeKind; 6] = {
        use RangeKind::*;
        [Int4, Int8, Numeric, Date, Timestamp, TimestampTz]
    };

    /// The type of bounds.
    pub fn subtype(self) -> DataType {
        match self {
            RangeKind::Int4 => DataType::Int4,
            RangeKind::Int8 => DataType::Int8,
            RangeKind::Numeric => DataType::Numeric(None),
            RangeKind::Date => DataType::Date,
            RangeKind::Timestamp => DataType::Timestamp,
            RangeKind::TimestampTz => DataType::TimestampTz,
        }
    }

    /// `pg_type.typname` of the range type.
    pub fn range_name(self) -> &'static str {
        match self {
            RangeKind::Int4 => "int4range",
            RangeKind::Int8 => "int8range",
            RangeKind::Numeric => "numrange",
            RangeKind::Date => "daterange",
            RangeKind::Timestamp => "tsrange",
            RangeKind::TimestampTz => "tstzrange",
        }
    }

    /// `pg_type.typname` of the multirange type.
    pub fn multirange_name(self) -> &'static str {
        match self {
            RangeKind::Int4 => "int4multirange",
            RangeKind::Int8 => "int8multirange",
            RangeKind::Numeric => "nummultirange",
            RangeKind::Date => "datemultirange",
            RangeKind::Timestamp => "tsmultirange",
            RangeKind::TimestampTz => "tstzmultirange",
        }
    }

    /// Oids of the range type, its arrays, the multirange type and its arrays.
    pub(crate) fn oids(self) -> [u32; 4] {
        match self {
            RangeKind::Int4 => [3904, 3905, 4451, 6150],
            RangeKind::Int8 => [3926, 3927, 4536, 6157],
            RangeKind::Numeric => [3906, 3907, 4532, 6151],
            RangeKind::Date => [3912, 3913, 4535, 6155],
            RangeKind::Timestamp => [3908, 3909, 4533, 6152],
            RangeKind::TimestampTz => [3910, 3911, 4534, 6153],
        }
    }

    /// Whether between two values there are only so many others.
    pub fn is_discrete(self) -> bool {
        matches!(self, RangeKind::Int4 | RangeKind::Int8 | RangeKind::Date)
    }
}

/// One end of a range.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// `None`: there is no bound.
    pub value: Option<Datum>,
    /// False where there is no bound.
    pub inclusive: bool,
    pub is_lower: bool,
}

/// A range that is not empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    pub lower: Bound,
    pub upper: Bound,
}

/// `None` is the empty range.
pub type RangeValue = Option<Span>;

const EMPTY: u8 = 0;
const SPAN: u8 = 1;
const CLOSED: u8 = 0;
const NO_LOWER: u8 = 0;
const BOUNDED: u8 = 1;
const NO_UPPER: u8 = 2;

/// The stored form of a range.
///
/// # Panics
/// If a bound is not of the subtype's physical form.
pub fn encode_range(kind: RangeKind, range: &RangeValue) -> Datum {
    let mut out = Vec::new();
    let mut scales = Vec::new();
    match range {
        None => out.push(EMPTY),
        Some(span) => put_span(kind, span, &mut out, &mut scales),
    }
    out.append(&mut scales);
    Datum::Bytes(out.into())
}

/// The stored form of a multirange, whose ranges are ascending and apart.
///
/// # Panics
/// As [`encode_range`].
pub fn encode_multirange(kind: RangeKind, spans: &[Span]) -> Datum {
    let mut out = Vec::new();
    let mut scales = Vec::new();
    spans.iter().for_each(|span| put_span(kind, span, &mut out, &mut scales));
    out.push(CLOSED);
    out.append(&mut scales);
    Datum::Bytes(out.into())
}

/// `None` if the bytes are damaged.
pub fn decode_range(kind: RangeKind, bytes: &[u8]) -> Option<RangeValue> {
    let mut rest = bytes;
    let mut range = take_range(kind, &mut rest)?;
    if let Some(span) = &mut range {
        take_scales(kind, std::slice::from_mut(span), &mut rest)?;
    }
    rest.is_empty().then_some(range)
}

/// `None` if the bytes are damaged.
pub fn decode_multirange(kind: RangeKind, bytes: &[u8]) -> Option<Vec<Span>> {
    let mut rest = bytes;
    let mut spans = take_spans(kind, &mut rest)?;
    take_scales(kind, &mut spans, &mut rest)?;
    rest.is_empty().then_some(spans)
}

/// The bytes of a stored range that its value depends on: all but display scales. They are no prefix of
/// those of another range. All bytes where they are damaged.
pub fn range_key(kind: RangeKind, bytes: &[u8]) -> &[u8] {
    if kind != RangeKind::Numeric {
        return bytes;
    }
    let mut rest = bytes;
    match take_range(kind, &mut rest) {
        Some(_) => &bytes[..bytes.len() - rest.len()],
        None => bytes,
    }
}

/// As [`range_key`], of a multirange.
pub fn multirange_key(kind: RangeKind, bytes: &[u8]) -> &[u8] {
    if kind != RangeKind::Numeric {
        return bytes;
    }
    let mut rest = bytes;
    match take_spans(kind, &mut rest) {
        Some(_) => &bytes[..bytes.len() - rest.len()],
        None => bytes,
    }
}

/// Takes a range's key off the front, as a range.
pub(crate) fn take_range_key(kind: RangeKind, input: &mut &[u8]) -> Option<Datum> {
    let mut range = take_range(kind, input)?;
    if let Some(span) = &mut range {
        restore_numerics(kind, std::slice::from_mut(span))?;
    }
    Some(encode_range(kind, &range))
}

/// As [`take_range_key`], of a multirange.
pub(crate) fn take_multirange_key(kind: RangeKind, input: &mut &[u8]) -> Option<Datum> {
    let mut spans = take_spans(kind, input)?;
    restore_numerics(kind, &mut spans)?;
    Some(encode_multirange(kind, &spans))
}

fn put_span(kind: RangeKind, span: &Span, out: &mut Vec<u8>, scales: &mut Vec<u8>) {
    out.push(SPAN);
    for bound in [&span.lower, &span.upper] {
        match &bound.value {
            None => out.push(if bound.is_lower { NO_LOWER } else { NO_UPPER }),
            Some(value) => {
                out.push(BOUNDED);
                key::encode_column(&kind.subtype(), value, out);
                out.push(u8::from(bound.inclusive != bound.is_lower));
                if let (RangeKind::Numeric, Datum::Bytes(bytes)) = (kind, value) {
                    scales.extend_from_slice(&bytes[numeric::key_bytes(bytes).len()..]);
                }
            }
        }
    }
}

fn take_range(kind: RangeKind, input: &mut &[u8]) -> Option<RangeValue> {
    match varint::take_bytes(input, 1)?[0] {
        EMPTY => Some(None),
        SPAN => {
            let lower = take_bound(kind, true, input)?;
            Some(Some(Span { lower, upper: take_bound(kind, false, input)? }))
        }
        _ => None,
    }
}

fn take_spans(kind: RangeKind, input: &mut &[u8]) -> Option<Vec<Span>> {
    let mut spans = Vec::new();
    while let Some(span) = take_range(kind, input)? {
        spans.push(span);
    }
    Some(spans)
}

/// A bound; one of numerics without its display scale.
fn take_bound(kind: RangeKind, is_lower: bool, input: &mut &[u8]) -> Option<Bound> {
    match (varint::take_bytes(input, 1)?[0], is_lower) {
        (NO_LOWER, true) | (NO_UPPER, false) => Some(Bound { value: None, inclusive: false, is_lower }),
        (BOUNDED, _) => {
            let value = match kind {
                RangeKind::Numeric => Datum::Bytes(key::take_escaped(input)?.into()),
                _ => key::take_column(&kind.subtype(), input)?,
            };
            let inclusive = (varint::take_bytes(input, 1)?[0] == 1) != is_lower;
            Some(Bound { value: Some(value), inclusive, is_lower })
        }
        _ => None,
    }
}

fn bounds(spans: &mut [Span]) -> impl Iterator<Item = &mut Datum> {
    spans.iter_mut().flat_map(|span| [&mut span.lower, &mut span.upper]).filter_map(|bound| bound.value.as_mut())
}

fn take_scales(kind: RangeKind, spans: &mut [Span], input: &mut &[u8]) -> Option<()> {
    if kind != RangeKind::Numeric {
        return Some(());
    }
    for value in bounds(spans) {
        let Datum::Bytes(key) = value else { return None };
        let scale = varint::take_bytes(input, 2)?;
        *value = Datum::Bytes([key, scale].concat().into());
    }
    Some(())
}

/// Numerics without display scales get those of their digits.
fn restore_numerics(kind: RangeKind, spans: &mut [Span]) -> Option<()> {
    if kind == RangeKind::Numeric {
        for value in bounds(spans) {
            let Datum::Bytes(key) = value else { return None };
            *value = key::numeric_of_key(key.to_vec())?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
