//! Integer keys as one number: the place of each among the values between its bounds, put together.

use super::lookup::OTHER_FORM;
use super::{Part, Spec};
use crate::aggregate::keys::Form;
use crate::error::Result;
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::widest;

pub(super) struct Packing {
    columns: Vec<Column>,
    /// How many there are; [`NONE`] is none of them.
    pub numbers: u64,
}

struct Column {
    least: i64,
    values: u64,
}

/// What a key beyond the bounds is packed to.
pub(super) const NONE: u64 = u64::MAX;

impl Packing {
    /// `None` if a key is no integer, or 63 bits do not hold all of them together.
    pub fn of(spec: &Spec, parts: &[Part]) -> Option<Packing> {
        (!spec.keys.is_empty() && spec.forms.iter().all(|form| *form == Form::Integers)).then_some(())?;
        let mut columns = Vec::with_capacity(spec.keys.len());
        let mut numbers = 1u64;
        for at in 0..spec.keys.len() {
            let mut bounds: Option<(i128, i128)> = None;
            for part in parts.iter().filter(|part| part.rows > 0) {
                let Vector::Ints(ints) = &part.keys[at] else { return None };
                bounds = Some(bounds.map_or((ints.min, ints.max), |(min, max)| (min.min(ints.min), max.max(ints.max))));
            }
            let (min, max) = bounds.unwrap_or((0, 0));
            let (least, greatest) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
            let values = u64::try_from(greatest.checked_sub(least)?).ok()? + 1;
            numbers = numbers.checked_mul(values).filter(|numbers| *numbers <= i64::MAX as u64)?;
            columns.push(Column { least, values });
        }
        Some(Packing { columns, numbers })
    }

    /// The only key and its least value: its distance from that is what it is packed to, if it lies within the bounds.
    pub fn alone<'k>(&self, keys: &'k [Vector]) -> Option<(&'k Ints, i64)> {
        match (self.columns.as_slice(), keys) {
            ([column], [Vector::Ints(ints)]) => Some((ints, column.least)),
            _ => None,
        }
    }

    /// The least value of the only key.
    pub fn least_alone(&self) -> Option<i64> {
        match self.columns.as_slice() {
            [column] => Some(column.least),
            _ => None,
        }
    }

    /// [`NONE`] for rows one of whose keys lies beyond the bounds. Those with a null are packed to anything.
    pub fn pack(&self, keys: &[Vector], rows: usize) -> Result<Vec<u64>> {
        let mut packed = vec![0; rows];
        for (Column { least, values }, key) in self.columns.iter().zip(keys) {
            let Vector::Ints(ints) = key else { return Err(OTHER_FORM) };
            match &ints.values {
                IntValues::I32(keys) => add_i32(&mut packed, keys, *least, *values),
                IntValues::I64(keys) => add_i64(&mut packed, keys, *least, *values),
                IntValues::I128(keys) => {
                    let beyond = least.wrapping_sub(1);
                    let keys: Vec<i64> = keys.iter().map(|key| i64::try_from(*key).unwrap_or(beyond)).collect();
                    add_i64(&mut packed, &keys, *least, *values);
                }
            }
        }
        Ok(packed)
    }
}

macro_rules! add {
    ($name:ident, $native:ty) => {
        widest! {
            fn $name(packed: &mut [u64], keys: &[$native], least: i64, values: u64) {
                for (packed, key) in packed.iter_mut().zip(keys) {
                    let distance = i64::from(*key).wrapping_sub(least) as u64;
                    let within = distance < values && *packed != NONE;
                    *packed = if within { packed.wrapping_mul(values).wrapping_add(distance) } else { NONE };
                }
            }
        }
    };
}

add!(add_i32, i32);
add!(add_i64, i64);
