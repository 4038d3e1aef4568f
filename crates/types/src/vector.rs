//! A column of a block of rows as it comes from storage: integers with their bounds, codes of a dictionary, or values
//! in stored form.
//!
//! What storage knows of values travels with them. Bounds say which arithmetic cannot overflow and which arrays take the
//! place of hash tables; a dictionary lets a condition be decided once per distinct text.

use crate::{PhysType, text, widest};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use std::collections::HashMap;
use std::sync::Arc;

/// One column of a block.
#[derive(Clone, Debug)]
pub enum Vector {
    /// Of columns that rest as integers, scaled numerics among them.
    Ints(Ints),
    Codes(Codes),
    /// One stored value per row ([`PhysType::to_arrow`]).
    Flat(ArrayRef),
}

/// Integers in a width that holds their bounds.
#[derive(Clone, Debug)]
pub struct Ints {
    pub values: IntValues,
    pub nulls: Option<NullBuffer>,
    /// No slot lies outside, those of nulls included.
    pub min: i128,
    pub max: i128,
}

#[derive(Clone, Debug)]
pub enum IntValues {
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    I128(ScalarBuffer<i128>),
}

/// One place in a dictionary per row.
#[derive(Clone, Debug)]
pub struct Codes {
    /// Each below the dictionary's length, those of nulls too, unless that is empty.
    pub codes: ScalarBuffer<u32>,
    pub nulls: Option<NullBuffer>,
    /// Distinct byte strings without nulls, ascending.
    pub dictionary: Arc<BinaryViewArray>,
}

/// The elements of arrays of some rows.
#[derive(Clone, Debug)]
pub struct ArrayElements {
    /// How many each row has; none where there is no array.
    pub counts: Vec<u32>,
    /// Rows without an array.
    pub nulls: Option<NullBuffer>,
    /// Those of a row behind those of the row before.
    pub values: Vector,
}

impl Vector {
    /// Values in stored form, whose bounds are looked for if they are integers.
    pub fn measured(values: ArrayRef) -> Vector {
        let ints = match values.data_type() {
            ArrowType::Int16 => {
                let small = values.as_primitive::<Int16Type>();
                let wide: ScalarBuffer<i32> = small.values().iter().map(|value| i32::from(*value)).collect();
                Ints::measured(IntValues::I32(wide), small.nulls().cloned())
            }
            ArrowType::Int32 => {
                let values = values.as_primitive::<Int32Type>();
                Ints::measured(IntValues::I32(values.values().clone()), values.nulls().cloned())
            }
            ArrowType::Int64 => {
                let values = values.as_primitive::<Int64Type>();
                Ints::measured(IntValues::I64(values.values().clone()), values.nulls().cloned())
            }
            ArrowType::Decimal128(..) => {
                let values = values.as_primitive::<Decimal128Type>();
                Ints::measured(IntValues::I128(values.values().clone()), values.nulls().cloned())
            }
            _ => return Vector::Flat(values),
        };
        Vector::Ints(ints)
    }

    pub fn len(&self) -> usize {
        match self {
            Vector::Ints(ints) => ints.values.len(),
            Vector::Codes(codes) => codes.codes.len(),
            Vector::Flat(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn nulls(&self) -> Option<&NullBuffer> {
        let nulls = match self {
            Vector::Ints(ints) => ints.nulls.as_ref(),
            Vector::Codes(codes) => codes.nulls.as_ref(),
            Vector::Flat(values) => values.nulls(),
        };
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// One value per row, as columns of `ty` are stored.
    ///
    /// # Panics
    /// If the values are of another type.
    pub fn to_array(&self, ty: PhysType) -> ArrayRef {
        match self {
            Vector::Ints(ints) => ints.to_array(ty),
            Vector::Codes(codes) => Arc::new(codes.to_array()),
            Vector::Flat(values) => values.clone(),
        }
    }

    /// The same values, and nulls where there is none in `valid`, too.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn with_nulls(self, valid: &NullBuffer) -> Vector {
        match self {
            Vector::Ints(ints) => {
                Vector::Ints(Ints { nulls: NullBuffer::union(ints.nulls.as_ref(), Some(valid)), ..ints })
            }
            Vector::Codes(codes) => {
                Vector::Codes(Codes { nulls: NullBuffer::union(codes.nulls.as_ref(), Some(valid)), ..codes })
            }
            Vector::Flat(values) => {
                let nulls = NullBuffer::union(values.nulls(), Some(valid));
                let data = values.to_data().into_builder().nulls(nulls).build();
                Vector::Flat(arrow_array::make_array(data.expect("as many rows")))
            }
        }
    }

    /// The same in less memory, for whoever keeps it: integers as narrow as their bounds, few byte strings as codes.
    pub fn compacted(self) -> Vector {
        match self {
            Vector::Ints(Ints { values, nulls, min, max }) => {
                Vector::Ints(Ints { values: values.narrowed(min, max), nulls, min, max })
            }
            Vector::Flat(values) => match values.as_binary_view_opt().and_then(coded) {
                Some(codes) => Vector::Codes(codes),
                None => Vector::Flat(values),
            },
            Vector::Codes(codes) => Vector::Codes(codes),
        }
    }

    /// The values at some positions, in their order.
    ///
    /// # Panics
    /// If a position is not below the length.
    pub fn take(&self, rows: &[u32]) -> Vector {
        match self {
            Vector::Ints(ints) => Vector::Ints(ints.take(rows)),
            Vector::Codes(codes) => Vector::Codes(codes.take(rows)),
            Vector::Flat(values) => Vector::Flat(take(values, rows)),
        }
    }
}

/// A dictionary of more entries than this saves nobody anything.
const ENTRIES_MAX: usize = 256;
/// Entries of a dictionary stand for so many rows each, at least.
const ROWS_PER_ENTRY_MIN: usize = 8;

/// Codes of a dictionary that has just these byte strings; `None` if there are many, or nulls alone.
fn coded(values: &BinaryViewArray) -> Option<Codes> {
    let entries_max = ENTRIES_MAX.min(values.len() / ROWS_PER_ENTRY_MIN);
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    for value in values.iter().flatten() {
        let next = known.len() as u32;
        known.entry(value).or_insert(next);
        if known.len() > entries_max {
            return None;
        }
    }
    let mut entries: Vec<&[u8]> = known.keys().copied().collect();
    entries.sort_unstable();
    for (code, entry) in entries.iter().enumerate() {
        known.insert(entry, code as u32);
    }
    let codes = values.iter().map(|value| value.map_or(0, |value| known[value])).collect();
    let dictionary = Arc::new(BinaryViewArray::from_iter_values(&entries));
    (!entries.is_empty()).then(|| Codes { codes, nulls: values.nulls().cloned(), dictionary })
}

widest! {
    fn bounds[T: Copy + Ord](values: &[T], first: T) -> (T, T) {
        values.iter().fold((first, first), |(min, max), value| (min.min(*value), max.max(*value)))
    }
}

impl IntValues {
    /// In the narrowest width that holds the bounds.
    fn narrowed(self, min: i128, max: i128) -> IntValues {
        let fits_i32 = i32::try_from(min).is_ok() && i32::try_from(max).is_ok();
        let fits_i64 = i64::try_from(min).is_ok() && i64::try_from(max).is_ok();
        match self {
            IntValues::I64(values) if fits_i32 => IntValues::I32(values.iter().map(|value| *value as i32).collect()),
            IntValues::I128(values) if fits_i32 => IntValues::I32(values.iter().map(|value| *value as i32).collect()),
            IntValues::I128(values) if fits_i64 => IntValues::I64(values.iter().map(|value| *value as i64).collect()),
            values => values,
        }
    }

    /// Memory of the values.
    pub fn bytes(&self) -> usize {
        match self {
            IntValues::I32(values) => values.inner().len(),
            IntValues::I64(values) => values.inner().len(),
            IntValues::I128(values) => values.inner().len(),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            IntValues::I32(values) => values.len(),
            IntValues::I64(values) => values.len(),
            IntValues::I128(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a position.
    pub fn get(&self, at: usize) -> i128 {
        match self {
            IntValues::I32(values) => i128::from(values[at]),
            IntValues::I64(values) => i128::from(values[at]),
            IntValues::I128(values) => values[at],
        }
    }

    fn bounds(&self) -> (i128, i128) {
        fn of<T: Copy + Ord + Into<i128>>(values: &[T]) -> (i128, i128) {
            let Some(first) = values.first() else { return (0, 0) };
            let (min, max) = bounds(values, *first);
            (min.into(), max.into())
        }
        match self {
            IntValues::I32(values) => of(values),
            IntValues::I64(values) => of(values),
            IntValues::I128(values) => of(values),
        }
    }
}

impl Ints {
    /// Looks for the bounds, which takes one pass.
    pub fn measured(values: IntValues, nulls: Option<NullBuffer>) -> Ints {
        let (min, max) = values.bounds();
        Ints { values, nulls, min, max }
    }

    fn take(&self, rows: &[u32]) -> Ints {
        fn of<T: arrow_buffer::ArrowNativeType>(values: &ScalarBuffer<T>, rows: &[u32]) -> ScalarBuffer<T> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        let values = match &self.values {
            IntValues::I32(values) => IntValues::I32(of(values, rows)),
            IntValues::I64(values) => IntValues::I64(of(values, rows)),
            IntValues::I128(values) => IntValues::I128(of(values, rows)),
        };
        Ints { values, nulls: take_nulls(self.nulls.as_ref(), rows), min: self.min, max: self.max }
    }

    fn to_array(&self, ty: PhysType) -> ArrayRef {
        macro_rules! as_type {
            ($arrow:ty, $native:ty) => {{
                let values: ScalarBuffer<$native> = match &self.values {
                    IntValues::I32(values) => values.iter().map(|value| *value as $native).collect(),
                    IntValues::I64(values) => values.iter().map(|value| *value as $native).collect(),
                    IntValues::I128(values) => values.iter().map(|value| *value as $native).collect(),
                };
                PrimitiveArray::<$arrow>::new(values, self.nulls.clone())
            }};
        }
        match (ty, &self.values) {
            (PhysType::I32, IntValues::I32(values)) => {
                Arc::new(PrimitiveArray::<Int32Type>::new(values.clone(), self.nulls.clone()))
            }
            (PhysType::I64, IntValues::I64(values)) => {
                Arc::new(PrimitiveArray::<Int64Type>::new(values.clone(), self.nulls.clone()))
            }
            (PhysType::I16, _) => Arc::new(as_type!(Int16Type, i16)),
            (PhysType::I32, _) => Arc::new(as_type!(Int32Type, i32)),
            (PhysType::I64, _) => Arc::new(as_type!(Int64Type, i64)),
            (PhysType::I128, _) => {
                let wide = as_type!(Decimal128Type, i128);
                Arc::new(wide.with_precision_and_scale(38, 0).expect("38 digits fit"))
            }
            (other, _) => panic!("{other:?} is not stored as an integer"),
        }
    }
}

impl Codes {
    /// Those at some positions, in their order.
    ///
    /// # Panics
    /// If a position is not below the length.
    pub fn take(&self, rows: &[u32]) -> Codes {
        let codes = rows.iter().map(|row| self.codes[*row as usize]).collect();
        Codes { codes, nulls: take_nulls(self.nulls.as_ref(), rows), dictionary: self.dictionary.clone() }
    }

    fn to_array(&self) -> BinaryViewArray {
        text::take(&self.dictionary, &self.codes, self.nulls.clone())
    }
}

/// Which of the chosen rows have a value; `None`: all.
pub fn take_nulls(nulls: Option<&NullBuffer>, rows: &[u32]) -> Option<NullBuffer> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    Some(rows.iter().map(|row| nulls.is_valid(*row as usize)).collect())
}

/// The values of an array at some positions.
///
/// # Panics
/// If a position is not below the length, or the array is in no form of [`PhysType::to_arrow`].
pub fn take(values: &ArrayRef, rows: &[u32]) -> ArrayRef {
    fn numbers<T: ArrowPrimitiveType>(values: &ArrayRef, rows: &[u32], nulls: Option<NullBuffer>) -> ArrayRef {
        let from = values.as_primitive::<T>();
        let taken: ScalarBuffer<T::Native> = rows.iter().map(|row| from.values()[*row as usize]).collect();
        Arc::new(PrimitiveArray::<T>::new(taken, nulls).with_data_type(from.data_type().clone()))
    }
    let nulls = take_nulls(values.nulls(), rows);
    match values.data_type() {
        ArrowType::Int16 => numbers::<Int16Type>(values, rows, nulls),
        ArrowType::Int32 => numbers::<Int32Type>(values, rows, nulls),
        ArrowType::Int64 => numbers::<Int64Type>(values, rows, nulls),
        ArrowType::Decimal128(..) => numbers::<Decimal128Type>(values, rows, nulls),
        ArrowType::Float32 => numbers::<Float32Type>(values, rows, nulls),
        ArrowType::Float64 => numbers::<Float64Type>(values, rows, nulls),
        ArrowType::Boolean => {
            let own = values.as_boolean().values();
            let taken = BooleanBuffer::collect_bool(rows.len(), |i| own.value(rows[i] as usize));
            Arc::new(BooleanArray::new(taken, nulls))
        }
        ArrowType::BinaryView => Arc::new(text::take(values.as_binary_view(), rows, nulls)),
        ArrowType::FixedSizeBinary(width) => {
            let from = values.as_fixed_size_binary();
            let mut taken = Vec::with_capacity(rows.len() * *width as usize);
            rows.iter().for_each(|row| taken.extend_from_slice(from.value(*row as usize)));
            let taken = FixedSizeBinaryArray::try_new(*width, taken.into(), nulls);
            Arc::new(taken.expect("as many bytes as rows have"))
        }
        other => panic!("{other} is no stored form"),
    }
}

#[cfg(test)]
mod tests;
