//! Stored arrays as flat values for the encoders, and their bounds.

use super::ValueOrder;
use super::chunk::BoundFixed;
use super::zone::{ZoneMap, comparable, compare_floats, cut_down, cut_up};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use basalt_types::{Datum, PhysType};

/// The values of a chunk, nulls undefined. Booleans, integers and floats (by their bits) are all `Ints`.
pub(super) enum Values<'a> {
    Ints(Vec<i64>),
    Wide(Vec<i128>),
    Fixed16(Vec<[u8; 16]>),
    Strings(Vec<&'a [u8]>),
}

impl<'a> Values<'a> {
    /// The arrays are of `ty`'s Arrow form: checked when they were pushed.
    pub fn gather(ty: PhysType, pieces: &'a [ArrayRef]) -> Values<'a> {
        let rows = pieces.iter().map(|piece| piece.len()).sum();
        let mut ints: Vec<i64> = Vec::new();
        for piece in pieces {
            ints.reserve(rows - ints.len());
            match ty {
                PhysType::Bool => ints.extend(piece.as_boolean().values().iter().map(i64::from)),
                PhysType::I16 => ints.extend(piece.as_primitive::<Int16Type>().values().iter().map(|v| i64::from(*v))),
                PhysType::I32 => ints.extend(piece.as_primitive::<Int32Type>().values().iter().map(|v| i64::from(*v))),
                PhysType::I64 => ints.extend_from_slice(piece.as_primitive::<Int64Type>().values()),
                PhysType::F32 => {
                    let values = piece.as_primitive::<Float32Type>().values();
                    ints.extend(values.iter().map(|v| i64::from(v.to_bits() as i32)));
                }
                PhysType::F64 => {
                    ints.extend(piece.as_primitive::<Float64Type>().values().iter().map(|v| v.to_bits() as i64));
                }
                PhysType::I128 | PhysType::Fixed16 | PhysType::Bytes => break,
            }
        }
        match ty {
            PhysType::I128 => {
                let values = pieces.iter().flat_map(|piece| piece.as_primitive::<Decimal128Type>().values());
                Values::Wide(values.copied().collect())
            }
            PhysType::Fixed16 => {
                let values = pieces.iter().map(|piece| piece.as_fixed_size_binary());
                let sixteen = |bytes: &[u8]| bytes.try_into().expect("16 bytes");
                Values::Fixed16(
                    values.flat_map(|array| (0..array.len()).map(move |i| sixteen(array.value(i)))).collect(),
                )
            }
            PhysType::Bytes => {
                let mut strings = Vec::with_capacity(rows);
                for array in pieces.iter().map(|piece| piece.as_binary_view()) {
                    strings.extend((0..array.len()).map(|i| array.value(i)));
                }
                Values::Strings(strings)
            }
            _ => Values::Ints(ints),
        }
    }
}

/// One bit per row, set where there is a value; `None` if no row is null.
pub(super) fn validity(pieces: &[ArrayRef]) -> Option<BooleanBuffer> {
    if pieces.iter().all(|piece| piece.null_count() == 0) {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(pieces.iter().map(|piece| piece.len()).sum());
    for piece in pieces {
        match piece.nulls() {
            Some(nulls) => valid.append_buffer(nulls.inner()),
            None => valid.append_n(piece.len(), true),
        }
    }
    Some(valid.finish())
}

/// Gives each null the value before it, leading nulls the first value.
pub(super) fn fill_nulls<T: Copy>(values: &mut [T], valid: &BooleanBuffer) {
    let Some(first) = valid.set_indices().next() else { return };
    let mut last = values[first];
    for (value, valid) in values.iter_mut().zip(valid.iter()) {
        if valid {
            last = *value;
        } else {
            *value = last;
        }
    }
}

/// Of floats.
pub(super) fn float_bits(ty: PhysType) -> Option<u32> {
    match ty {
        PhysType::F32 => Some(32),
        PhysType::F64 => Some(64),
        _ => None,
    }
}

/// A value that rests as an integer.
pub(super) fn int_datum(ty: PhysType, value: i64) -> Datum {
    match ty {
        PhysType::Bool => Datum::Bool(value != 0),
        PhysType::I16 => Datum::I16(value as i16),
        PhysType::I32 => Datum::I32(value as i32),
        PhysType::F32 => Datum::F32(f32::from_bits(value as u32)),
        PhysType::F64 => Datum::F64(f64::from_bits(value as u64)),
        _ => Datum::I64(value),
    }
}

impl ZoneMap {
    pub(super) fn bound_ints(&mut self, ty: PhysType, values: &[i64]) {
        let float = |value: &i64| match ty {
            PhysType::F32 => f64::from(f32::from_bits(*value as u32)),
            _ => f64::from_bits(*value as u64),
        };
        let (min, max) = if matches!(ty, PhysType::F32 | PhysType::F64) {
            let order = |a: &&i64, b: &&i64| compare_floats(float(a), float(b));
            (values.iter().min_by(order), values.iter().max_by(order))
        } else {
            (values.iter().min(), values.iter().max())
        };
        self.min = min.map(|value| int_datum(ty, *value));
        self.max = max.map(|value| int_datum(ty, *value));
    }

    pub(super) fn bound_strings<'a>(&mut self, order: ValueOrder, values: impl Iterator<Item = &'a [u8]>) {
        let mut values = values.filter_map(|value| comparable(order, value));
        let Some(first) = values.next() else { return };
        let (mut min, mut max) = (first, first);
        for value in values {
            if value < min {
                min = value;
            } else if value > max {
                max = value;
            }
        }
        self.min = Some(cut_down(min));
        self.max = cut_up(max);
    }
}

impl BoundFixed<i128> for ZoneMap {
    fn bound_fixed(&mut self, values: &[i128]) {
        self.min = values.iter().min().map(|value| Datum::I128(*value));
        self.max = values.iter().max().map(|value| Datum::I128(*value));
    }
}

impl BoundFixed<[u8; 16]> for ZoneMap {
    fn bound_fixed(&mut self, values: &[[u8; 16]]) {
        self.min = values.iter().min().map(|value| Datum::Fixed16(*value));
        self.max = values.iter().max().map(|value| Datum::Fixed16(*value));
    }
}
