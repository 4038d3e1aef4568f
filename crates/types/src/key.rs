//! Keys as bytes that compare as PostgreSQL compares the values (C collation).
//!
//! Locks, log records, undo and per-file key indexes name a row by (tablet, key), never by an ordinal
//! (DESIGN 5, row identity). A table without a primary key uses its hidden row id as the key.
//!
//! Per column: integers big-endian with the sign bit flipped; floats in total order with NaN greatest and
//! -0 equal to 0; bytes escaped (`00` → `00 ff`) and closed by `00 01`, so that a prefix sorts first;
//! `jsonb` as [`crate::jsonb`] says; ranges as bytes, without display scales. Fields of composite values and elements of arrays come one after the other,
//! each behind `01`, or as `02` where it is null; `00` closes an array's elements, and its dimensions follow.

use crate::array::{ArrayValue, Dimension};
use crate::{DataType, Datum, PhysType, Rid, floats, jsonb, numeric, range};
use std::fmt;

/// An encoded key. Ordered and compared by its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Key(pub Box<[u8]>);

impl Key {
    pub fn hidden(rid: Rid) -> Key {
        Key(rid.0.to_be_bytes().into())
    }

    /// The row id in a hidden key.
    pub fn as_hidden(&self) -> Option<Rid> {
        Some(Rid(u64::from_be_bytes(self.0.as_ref().try_into().ok()?)))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Key {
        Key(bytes.into())
    }
}

impl std::borrow::Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Appends one column to a key. The value must be of `ty` and not null: primary keys have no nulls.
///
/// # Panics
/// If the value is not of the type's physical form.
pub fn encode_column(ty: &DataType, value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null => panic!("a key column is null"),
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::I16(value) => out.extend((*value as u16 ^ 1 << 15).to_be_bytes()),
        Datum::I32(value) => out.extend((*value as u32 ^ 1 << 31).to_be_bytes()),
        Datum::I64(value) => out.extend((*value as u64 ^ 1 << 63).to_be_bytes()),
        Datum::I128(value) => out.extend((*value as u128 ^ 1 << 127).to_be_bytes()),
        Datum::F32(value) => out.extend(ordered_f32(*value).to_be_bytes()),
        Datum::F64(value) => out.extend(ordered_f64(*value).to_be_bytes()),
        Datum::Bytes(value) => encode_bytes_column(ty, value, out),
        Datum::Fixed16(value) => match ty.underlying() {
            DataType::Interval => out.extend((interval_span(value) as u128 ^ 1 << 127).to_be_bytes()),
            _ => out.extend_from_slice(value),
        },
    }
}

/// [`encode_column`] of a value whose physical form is bytes, borrowed.
pub fn encode_bytes_column(ty: &DataType, value: &[u8], out: &mut Vec<u8>) {
    match ty.underlying() {
        DataType::Numeric(_) => encode_bytes(numeric::key_bytes(value), out),
        DataType::Bpchar(_) => encode_bytes(unpadded(value), out),
        DataType::Range(kind) => encode_bytes(range::range_key(*kind, value), out),
        DataType::Multirange(kind) => encode_bytes(range::multirange_key(*kind, value), out),
        DataType::Jsonb => jsonb::encode_key(&String::from_utf8_lossy(value), out),
        DataType::Array(element) => {
            let array = element.phys().and_then(|phys| ArrayValue::decode(phys, value)).unwrap_or_default();
            encode_array(element, &array, out);
        }
        DataType::Composite(composite) => {
            let fields = composite.decode(value).unwrap_or_default();
            for (at, attribute) in composite.live() {
                encode_part(&attribute.ty, fields.get(at).unwrap_or(&Datum::Null), out);
            }
        }
        _ => encode_bytes(value, out),
    }
}

const CLOSED: u8 = 0;
const PRESENT: u8 = 1;
const NULL: u8 = 2;

fn encode_part(ty: &DataType, value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null => out.push(NULL),
        value => {
            out.push(PRESENT);
            encode_column(ty, value, out);
        }
    }
}

fn encode_array(element: &DataType, array: &ArrayValue, out: &mut Vec<u8>) {
    array.elements.iter().for_each(|value| encode_part(element, value, out));
    out.extend([CLOSED, array.dimensions.len() as u8]);
    array.dimensions.iter().for_each(|dimension| out.extend(dimension.length.to_be_bytes()));
    array.dimensions.iter().for_each(|dimension| out.extend((dimension.lower as u32 ^ 1 << 31).to_be_bytes()));
}

fn take_array(element: &DataType, input: &mut &[u8]) -> Option<Datum> {
    let mut array = ArrayValue::default();
    loop {
        match crate::varint::take_bytes(input, 1)?[0] {
            CLOSED => break,
            PRESENT => array.elements.push(take_column(element, input)?),
            _ => array.elements.push(Datum::Null),
        }
    }
    let count = usize::from(crate::varint::take_bytes(input, 1)?[0]);
    let mut words = Vec::with_capacity(2 * count);
    for _ in 0..2 * count {
        words.push(u32::from_be_bytes(crate::varint::take_bytes(input, 4)?.try_into().ok()?));
    }
    let (lengths, lowers) = words.split_at(count);
    let dimension = |(length, lower): (&u32, &u32)| Dimension { length: *length, lower: (lower ^ 1 << 31) as i32 };
    array.dimensions = lengths.iter().zip(lowers).map(dimension).collect();
    Some(array.encode(element.phys()?))
}

fn take_composite(composite: &crate::CompositeDef, input: &mut &[u8]) -> Option<Datum> {
    let mut fields = vec![Datum::Null; composite.attributes.len()];
    for (at, attribute) in composite.live() {
        if crate::varint::take_bytes(input, 1)?[0] == PRESENT {
            fields[at] = take_column(&attribute.ty, input)?;
        }
    }
    composite.encode(&fields)
}

/// Takes a column off the front of a key, for messages. What a key leaves out comes back in one form:
/// no padding, -0 as 0, no trailing zeros of a numeric. `None` if the bytes are no key of this type, and for
/// intervals, of which only the length is known.
pub fn take_column(ty: &DataType, input: &mut &[u8]) -> Option<Datum> {
    fn fixed<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
        crate::varint::take_bytes(input, N)?.try_into().ok()
    }
    let ty = ty.underlying();
    match ty {
        DataType::Array(element) => return take_array(element, input),
        DataType::Composite(composite) => return take_composite(composite, input),
        _ => {}
    }
    Some(match ty.phys()? {
        PhysType::Bool => Datum::Bool(fixed::<1>(input)? == [1]),
        PhysType::I16 => Datum::I16((u16::from_be_bytes(fixed(input)?) ^ 1 << 15) as i16),
        PhysType::I32 => Datum::I32((u32::from_be_bytes(fixed(input)?) ^ 1 << 31) as i32),
        PhysType::I64 => Datum::I64((u64::from_be_bytes(fixed(input)?) ^ 1 << 63) as i64),
        PhysType::I128 => Datum::I128((u128::from_be_bytes(fixed(input)?) ^ 1 << 127) as i128),
        PhysType::F32 => {
            let bits = u32::from_be_bytes(fixed(input)?);
            Datum::F32(f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits }))
        }
        PhysType::F64 => {
            let bits = u64::from_be_bytes(fixed(input)?);
            Datum::F64(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits }))
        }
        PhysType::Bytes if *ty == DataType::Jsonb => Datum::text(&jsonb::decode_key(input)?),
        PhysType::Bytes => {
            let bytes = take_escaped(input)?;
            match ty {
                DataType::Numeric(_) => numeric_of_key(bytes)?,
                DataType::Range(kind) => range::take_range_key(*kind, &mut bytes.as_slice())?,
                DataType::Multirange(kind) => range::take_multirange_key(*kind, &mut bytes.as_slice())?,
                _ => Datum::Bytes(bytes.into()),
            }
        }
        PhysType::Fixed16 if *ty == DataType::Interval => return None,
        PhysType::Fixed16 => Datum::Fixed16(fixed(input)?),
    })
}

/// The inverse of [`encode_bytes`].
pub(crate) fn take_escaped(input: &mut &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let zero = input.iter().position(|byte| *byte == 0)?;
        out.extend_from_slice(&input[..zero]);
        let after = *input.get(zero + 1)?;
        *input = &input[zero + 2..];
        match after {
            0x01 => return Some(out),
            0xff => out.push(0),
            _ => return None,
        }
    }
}

/// A numeric with as many decimals as its digits have.
pub(crate) fn numeric_of_key(mut bytes: Vec<u8>) -> Option<Datum> {
    bytes.extend([0, 0]);
    let mut parts = numeric::decode(&bytes)?;
    let last = parts.digits.last().copied().unwrap_or(0);
    let trailing = (1..4).take_while(|power| last % 10_u16.pow(*power) == 0).count() as i32;
    let groups = parts.digits.len() as i32 - 1 - i32::from(parts.weight);
    let decimals = if parts.digits.is_empty() { 0 } else { groups * 4 - trailing };
    parts.display_scale = u16::try_from(decimals.max(0)).ok()?;
    let mut out = Vec::new();
    numeric::encode(&parts, &mut out);
    Some(Datum::Bytes(out.into()))
}

/// An interval's length in microseconds as PostgreSQL compares intervals: months of 30 days of 24 hours.
pub fn interval_span(interval: &[u8; 16]) -> i128 {
    let months = i32::from_le_bytes(interval[0..4].try_into().expect("4 bytes"));
    let days = i32::from_le_bytes(interval[4..8].try_into().expect("4 bytes"));
    let micros = i64::from_le_bytes(interval[8..16].try_into().expect("8 bytes"));
    (i128::from(months) * 30 + i128::from(days)) * 86_400_000_000 + i128::from(micros)
}

/// What counts of a `char(n)`: it compares without the blanks at its end.
pub fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0x00, 0xff]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0x00, 0x01]);
}

/// An unsigned integer of the same order.
fn ordered_f64(value: f64) -> u64 {
    floats::ordered(value) as u64 ^ 1 << 63
}

fn ordered_f32(value: f32) -> u32 {
    let value = if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f32::NAN
    } else {
        value
    };
    let bits = value.to_bits() & if value.is_nan() { u32::MAX >> 1 } else { u32::MAX };
    if bits >> 31 == 0 { bits ^ 1 << 31 } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ty: &DataType, value: Datum) -> Vec<u8> {
        let mut out = Vec::new();
        encode_column(ty, &value, &mut out);
        out
    }

    /// They are on disk.
    #[test]
    fn floats_have_the_bytes_that_they_always_had() {
        for value in [0.0, 5e-324, 1.5, f64::MAX, f64::INFINITY, f64::NAN] {
            assert_eq!(ordered_f64(value), value.to_bits() ^ 1 << 63, "{value}");
        }
        for value in [-5e-324, -1.5, f64::MIN, f64::NEG_INFINITY] {
            assert_eq!(ordered_f64(value), !value.to_bits(), "{value}");
        }
        assert_eq!(ordered_f64(-0.0), 1 << 63);
        assert_eq!(ordered_f64(f64::from_bits(u64::MAX)), ordered_f64(f64::NAN));
    }

    #[test]
    fn keys_sort_as_values() {
        let ascending: Vec<Vec<Vec<u8>>> = vec![
            [i64::MIN, -1, 0, 1, i64::MAX].map(|v| key(&DataType::Int8, Datum::I64(v))).to_vec(),
            [i128::MIN, -1, 0, i128::MAX].map(|v| key(&DataType::Numeric(Some((38, 0))), Datum::I128(v))).to_vec(),
            [f64::NEG_INFINITY, -1.5, 0.0, 1e-300, f64::INFINITY, f64::NAN]
                .map(|v| key(&DataType::Float8, Datum::F64(v)))
                .to_vec(),
            ["", "\0", "\0a", "a", "a\0", "ab", "b", "é"].map(|v| key(&DataType::Text, Datum::text(v))).to_vec(),
        ];
        for values in ascending {
            for pair in values.windows(2) {
                assert!(pair[0] < pair[1], "{pair:?}");
            }
        }
        assert_eq!(key(&DataType::Float8, Datum::F64(-0.0)), key(&DataType::Float8, Datum::F64(0.0)));
        assert_eq!(
            key(&DataType::Bpchar(Some(3)), Datum::text("a  ")),
            key(&DataType::Bpchar(Some(1)), Datum::text("a"))
        );
    }

    #[test]
    fn columns_come_back_out_of_a_key() {
        let numeric = |digits: &[u16], weight, display_scale| {
            let mut out = Vec::new();
            let class = numeric::CLASS_NEGATIVE;
            let parts = numeric::Parts { class, weight, digits: digits.to_vec(), display_scale };
            numeric::encode(&parts, &mut out);
            Datum::Bytes(out.into())
        };
        let columns = [
            (DataType::Int4, Datum::I32(-7)),
            (DataType::Text, Datum::text("a\0b")),
            (DataType::Float8, Datum::F64(-1.5)),
            (DataType::Numeric(None), numeric(&[12, 3400], 0, 2)),
            (DataType::Numeric(Some((38, 2))), Datum::I128(-1)),
            (DataType::Uuid, Datum::Fixed16([7; 16])),
        ];
        let mut bytes = Vec::new();
        columns.iter().for_each(|(ty, value)| encode_column(ty, value, &mut bytes));
        let mut rest = bytes.as_slice();
        for (ty, value) in &columns {
            assert_eq!(take_column(ty, &mut rest).as_ref(), Some(value), "{ty:?}");
        }
        assert!(rest.is_empty());
        assert_eq!(take_column(&DataType::Text, &mut &bytes[..2]), None);
    }

    #[test]
    fn no_key_is_a_prefix_of_another_in_its_column() {
        let a = key(&DataType::Text, Datum::text("a"));
        let ab = key(&DataType::Text, Datum::text("a\0b"));
        assert!(!ab.starts_with(&a));
    }
}
