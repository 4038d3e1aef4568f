//! Zone maps: bounds and null count of a run of values, and how values compare.
//!
//! Bounds are in comparable form: numerics without their display scale, padded text without its padding;
//! byte strings are cut to [`BOUND_BYTES_MAX`], the least downwards, the greatest upwards. So a bound may
//! be a value that no row has. Columns of opaque order have none.

use super::ValueOrder;
use crate::encoding::{Damage, Decoded, take_array};
use crate::frame::take_u32;
use basalt_types::{Datum, key, numeric, row, varint};
use std::cmp::Ordering;

const BOUND_BYTES_MAX: usize = 32;

#[derive(Clone, PartialEq, Debug)]
pub struct ZoneMap {
    pub rows: u32,
    pub nulls: u32,
    /// Not above the least value; `None`: unknown, or no value at all.
    pub min: Option<Datum>,
    /// Not below the greatest value.
    pub max: Option<Datum>,
}

impl ZoneMap {
    pub fn new(rows: u32) -> ZoneMap {
        ZoneMap { rows, nulls: 0, min: None, max: None }
    }

    pub fn all_null(&self) -> bool {
        self.nulls == self.rows
    }

    /// Of integers in up to 64 bits.
    pub(super) fn int_bounds(&self) -> Option<(i64, i64)> {
        let integer = |bound: &Option<Datum>| match bound {
            Some(Datum::I16(value)) => Some(i64::from(*value)),
            Some(Datum::I32(value)) => Some(i64::from(*value)),
            Some(Datum::I64(value)) => Some(*value),
            _ => None,
        };
        integer(&self.min).zip(integer(&self.max))
    }

    /// Widens this map by that of further rows of the same column.
    pub fn merge(&mut self, other: &ZoneMap) {
        let (empty, other_empty) = (self.all_null(), other.all_null());
        self.rows += other.rows;
        self.nulls += other.nulls;
        if other_empty {
            return;
        }
        if empty {
            (self.min, self.max) = (other.min.clone(), other.max.clone());
            return;
        }
        let outermost = |own: &Option<Datum>, other: &Option<Datum>, wins: Ordering| match (own, other) {
            (Some(own), Some(other)) => Some(if compare(other, own) == Some(wins) { other } else { own }.clone()),
            _ => None,
        };
        self.min = outermost(&self.min, &other.min, Ordering::Less);
        self.max = outermost(&self.max, &other.max, Ordering::Greater);
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, u64::from(self.nulls));
        out.push(u8::from(self.min.is_some()) | u8::from(self.max.is_some()) << 1);
        self.min.iter().chain(&self.max).for_each(|bound| row::put_datum(bound, out));
    }

    pub(super) fn take(input: &mut &[u8], rows: u32) -> Decoded<ZoneMap> {
        let damage = Damage("a zone map");
        let nulls = take_u32(input, damage.0)?;
        let [present] = take_array(input, damage.0)?;
        if nulls > rows || present > 3 {
            return Err(damage);
        }
        let mut bound = |bit: u8| match present >> bit & 1 {
            0 => Ok(None),
            _ => row::take_datum(input).map(Some).ok_or(damage),
        };
        Ok(ZoneMap { rows, nulls, min: bound(0)?, max: bound(1)? })
    }
}

/// The part of a byte string that its order compares; `None` if bytes say nothing.
pub(super) fn comparable(order: ValueOrder, bytes: &[u8]) -> Option<&[u8]> {
    match order {
        ValueOrder::Natural => Some(bytes),
        ValueOrder::Numeric => Some(numeric::key_bytes(bytes)),
        ValueOrder::Padded => Some(key::unpadded(bytes)),
        ValueOrder::Opaque
        | ValueOrder::Interval
        | ValueOrder::Jsonb
        | ValueOrder::NumericRange
        | ValueOrder::NumericMultirange => None,
    }
}

/// A constant in the form in which bounds are kept.
pub(super) fn comparable_datum(order: ValueOrder, value: &Datum) -> Option<Datum> {
    match value {
        Datum::Null => None,
        Datum::Bytes(bytes) => Some(Datum::Bytes(comparable(order, bytes)?.into())),
        Datum::Fixed16(_) if order != ValueOrder::Natural => None,
        value => Some(value.clone()),
    }
}

/// The order of values in comparable form; `None` across types.
pub(super) fn compare(a: &Datum, b: &Datum) -> Option<Ordering> {
    Some(match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::I16(a), Datum::I16(b)) => a.cmp(b),
        (Datum::I32(a), Datum::I32(b)) => a.cmp(b),
        (Datum::I64(a), Datum::I64(b)) => a.cmp(b),
        (Datum::I128(a), Datum::I128(b)) => a.cmp(b),
        (Datum::F32(a), Datum::F32(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (Datum::F64(a), Datum::F64(b)) => compare_floats(*a, *b),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Fixed16(a), Datum::Fixed16(b)) => a.cmp(b),
        _ => return None,
    })
}

/// PostgreSQL's order: NaN equals itself and is greatest, -0 equals 0.
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A lower bound of at most [`BOUND_BYTES_MAX`] bytes.
pub(super) fn cut_down(bytes: &[u8]) -> Datum {
    Datum::Bytes(bytes[..bytes.len().min(BOUND_BYTES_MAX)].into())
}

/// An upper bound of at most [`BOUND_BYTES_MAX`] bytes; `None` if all of those are 0xff.
pub(super) fn cut_up(bytes: &[u8]) -> Option<Datum> {
    if bytes.len() <= BOUND_BYTES_MAX {
        return Some(Datum::Bytes(bytes.into()));
    }
    let last = bytes[..BOUND_BYTES_MAX].iter().rposition(|byte| *byte != 0xff)?;
    let mut bound = bytes[..=last].to_vec();
    bound[last] += 1;
    Some(Datum::Bytes(bound.into()))
}
