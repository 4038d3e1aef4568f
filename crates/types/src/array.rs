//! Array values (manual 8.15): up to six dimensions, each with a lower bound.
//!
//! An array of one dimension that starts at 1, or without elements, rests as a row of its elements
//! ([`crate::row`]). Any other has a header before that row, which no row can start with: a row without
//! columns that goes on.
//!
//! ```text
//! 0 | dimensions u8 | per dimension: lower bound i32, length u32 | row of the elements, last dimension fastest
//! ```

use crate::row::{self, Field, RowRef};
use crate::{Datum, PhysType, varint};

/// As many dimensions as PostgreSQL has.
pub const DIMENSIONS_MAX: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimension {
    pub lower: i32,
    pub length: u32,
}

impl Dimension {
    /// The greatest subscript. The lower bound is such that it fits.
    pub fn upper(self) -> i32 {
        (i64::from(self.lower) + i64::from(self.length) - 1) as i32
    }
}

/// An array taken apart.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ArrayValue {
    /// None if there are no elements; otherwise their lengths multiplied are the number of elements.
    pub dimensions: Vec<Dimension>,
    pub elements: Vec<Datum>,
}

impl ArrayValue {
    /// One dimension that starts at 1.
    pub fn plain(elements: Vec<Datum>) -> ArrayValue {
        ArrayValue { dimensions: plain_dimensions(elements.len()), elements }
    }

    /// The array as it rests.
    ///
    /// # Panics
    /// If an element is not of the physical type.
    pub fn encode(&self, element: PhysType) -> Datum {
        let mut out = Vec::new();
        if !self.elements.is_empty() {
            put_dimensions(&self.dimensions, &mut out);
        }
        row::encode(&vec![element; self.elements.len()], &self.elements, &mut out);
        Datum::Bytes(out.into())
    }

    /// The same of an array all of whose elements, one at least, are `value`.
    pub fn encode_filled(dimensions: &[Dimension], value: &Datum) -> Datum {
        let mut out = Vec::new();
        put_dimensions(dimensions, &mut out);
        let elements = dimensions.iter().map(|dimension| dimension.length as usize).product();
        row::encode_repeated(value, elements, &mut out);
        Datum::Bytes(out.into())
    }

    /// `None` if the bytes are damaged.
    pub fn decode(element: PhysType, bytes: &[u8]) -> Option<ArrayValue> {
        let (dimensions, body) = split(bytes)?;
        let elements = row_elements(element, body)?;
        let dimensions = dimensions.unwrap_or_else(|| plain_dimensions(elements.len()));
        let count = dimensions.iter().try_fold(1usize, |count, dimension| count.checked_mul(dimension.length as usize));
        let count = if dimensions.is_empty() { 0 } else { count? };
        (count == elements.len()).then_some(ArrayValue { dimensions, elements })
    }
}

/// An array as it rests, of which single things are asked.
#[derive(Clone)]
pub struct Resting<'a> {
    /// `None`: one dimension that starts at 1, or no element.
    header: Option<Vec<Dimension>>,
    row: RowRef<'a>,
}

impl<'a> Resting<'a> {
    /// `None` if the bytes are damaged, as far as that shows.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Resting<'a>> {
        let (header, body) = split(bytes)?;
        Some(Resting { header, row: RowRef::new(body)? })
    }

    /// Whether it is a row of its elements and no more: of one dimension that starts at 1, or without elements.
    pub fn is_plain(&self) -> bool {
        self.header.is_none()
    }

    /// How many elements there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.row.column_count()
    }

    /// A dimension, counted from 0.
    #[inline]
    pub fn dimension(&self, at: usize) -> Option<Dimension> {
        match &self.header {
            Some(header) => header.get(at).copied(),
            None if at == 0 && self.count() > 0 => Some(Dimension { lower: 1, length: self.count() as u32 }),
            None => None,
        }
    }

    /// How many dimensions there are.
    #[inline]
    pub fn dimensions(&self) -> usize {
        self.header.as_ref().map_or(usize::from(self.count() > 0), Vec::len)
    }

    /// Calls `visit` with each element in storage order. `None`: the bytes are damaged, or `visit` says so.
    #[inline]
    pub fn each(&self, element: PhysType, visit: impl FnMut(Field<'a>) -> Option<()>) -> Option<()> {
        self.row.each(|_| element, 0..self.count(), visit)
    }

    /// The elements side by side, each of `width` bytes, if none is null.
    pub fn fixed(&self, width: usize) -> Option<&'a [u8]> {
        self.row.values_without_nulls()?.get(..self.count().checked_mul(width)?)
    }

    /// An element by its place in storage order; `None` if the bytes are damaged, or there is no such element.
    pub fn element(&self, element: PhysType, at: usize) -> Option<Datum> {
        match self.field(element, at)? {
            Field::Null => Some(Datum::Null),
            Field::Value(bytes) => row::decode_value(element, bytes),
        }
    }

    /// The bytes of that element.
    #[inline]
    pub fn field(&self, element: PhysType, at: usize) -> Option<Field<'a>> {
        if let Some(width) = element.fixed_width()
            && let Some(values) = self.row.values_without_nulls()
        {
            let start = at.checked_mul(width).filter(|_| at < self.count())?;
            return values.get(start..start.checked_add(width)?).map(Field::Value);
        }
        let mut found = None;
        self.row.each(
            |_| element,
            std::iter::once(at),
            |field| {
                found = Some(field);
                Some(())
            },
        )?;
        found
    }
}

/// What stands before the elements of an array that has some.
fn put_dimensions(dimensions: &[Dimension], out: &mut Vec<u8>) {
    if matches!(dimensions, [Dimension { lower: 1, .. }]) {
        return;
    }
    out.extend([0, dimensions.len() as u8]);
    for dimension in dimensions {
        out.extend(dimension.lower.to_le_bytes());
        out.extend(dimension.length.to_le_bytes());
    }
}

fn plain_dimensions(count: usize) -> Vec<Dimension> {
    if count == 0 { Vec::new() } else { vec![Dimension { lower: 1, length: count as u32 }] }
}

/// The header's dimensions, if there is a header, and the row of elements.
#[inline]
fn split(bytes: &[u8]) -> Option<(Option<Vec<Dimension>>, &[u8])> {
    match bytes {
        [0, count, rest @ ..] => split_header(*count, rest),
        _ => Some((None, bytes)),
    }
}

#[cold]
fn split_header(count: u8, mut rest: &[u8]) -> Option<(Option<Vec<Dimension>>, &[u8])> {
    if usize::from(count) > DIMENSIONS_MAX {
        return None;
    }
    let mut dimensions = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let lower = i32::from_le_bytes(varint::take_bytes(&mut rest, 4)?.try_into().ok()?);
        let length = u32::from_le_bytes(varint::take_bytes(&mut rest, 4)?.try_into().ok()?);
        dimensions.push(Dimension { lower, length });
    }
    Some((Some(dimensions), rest))
}

fn row_elements(element: PhysType, body: &[u8]) -> Option<Vec<Datum>> {
    let row = RowRef::new(body)?;
    let count = row.column_count();
    row.to_datums(&vec![element; count], &vec![Datum::Null; count])
}

/// The elements of an array in storage order. `None` if its bytes are damaged.
pub fn elements(element: PhysType, bytes: &[u8]) -> Option<Vec<Datum>> {
    row_elements(element, split(bytes)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_things_are_those_of_the_array_taken_apart() {
        let texts = |texts: &[&str]| texts.iter().map(|text| Datum::text(text)).collect::<Vec<_>>();
        let arrays = [
            (PhysType::I32, ArrayValue::default()),
            (PhysType::I32, ArrayValue::plain(vec![Datum::I32(7), Datum::Null, Datum::I32(-1)])),
            (PhysType::Bytes, ArrayValue::plain(texts(&["", "a", "long text that is not short"]))),
            (
                PhysType::Bytes,
                ArrayValue {
                    dimensions: vec![Dimension { lower: -2, length: 2 }, Dimension { lower: 5, length: 2 }],
                    elements: texts(&["a", "b", "c", "d"]),
                },
            ),
        ];
        for (element, array) in arrays {
            let Datum::Bytes(bytes) = array.encode(element) else { panic!("arrays are bytes") };
            let resting = Resting::new(&bytes).unwrap();
            assert_eq!(resting.count(), array.elements.len());
            assert_eq!(resting.dimensions(), array.dimensions.len());
            for at in 0..DIMENSIONS_MAX {
                assert_eq!(resting.dimension(at), array.dimensions.get(at).copied());
            }
            for at in 0..array.elements.len() + 2 {
                assert_eq!(resting.element(element, at), array.elements.get(at).cloned());
            }
            let mut elements = Vec::new();
            resting.each(element, |field| {
                elements.push(match field {
                    Field::Null => Datum::Null,
                    Field::Value(bytes) => row::decode_value(element, bytes)?,
                });
                Some(())
            });
            assert_eq!(elements, array.elements);
            if element == PhysType::I32 {
                let has_null = array.elements.iter().any(Datum::is_null);
                assert_eq!(resting.fixed(4).map(<[u8]>::len), (!has_null).then_some(array.elements.len() * 4));
            }
            // Damage is no panic.
            for end in 0..bytes.len() {
                if let Some(resting) = Resting::new(&bytes[..end]) {
                    (0..4).for_each(|at| drop(resting.element(element, at)));
                }
            }
        }
    }

    #[test]
    fn an_array_of_one_value_is_as_if_it_were_written_out() {
        for value in [Datum::Null, Datum::I32(7), Datum::text("")] {
            let phys = value.phys().unwrap_or(PhysType::I32);
            for dimensions in [vec![(1, 1)], vec![(1, 8)], vec![(-2, 9)], vec![(1, 3), (5, 5)], vec![(1, 17)]] {
                let dimensions: Vec<Dimension> =
                    dimensions.into_iter().map(|(lower, length)| Dimension { lower, length }).collect();
                let count = dimensions.iter().map(|dimension| dimension.length as usize).product();
                let written = ArrayValue { dimensions: dimensions.clone(), elements: vec![value.clone(); count] };
                assert_eq!(ArrayValue::encode_filled(&dimensions, &value), written.encode(phys));
            }
        }
    }

    #[test]
    fn arrays_of_any_shape_come_back_and_damage_is_noticed() {
        let ints = |count: i32| (0..count).map(Datum::I32).collect::<Vec<_>>();
        let shapes = [
            ArrayValue::default(),
            ArrayValue::plain(ints(3)),
            ArrayValue { dimensions: vec![Dimension { lower: -2, length: 3 }], elements: ints(3) },
            ArrayValue { dimensions: vec![Dimension { lower: 1, length: 2 }; 3], elements: ints(8) },
        ];
        for shape in shapes {
            let Datum::Bytes(bytes) = shape.encode(PhysType::I32) else { panic!("arrays rest as bytes") };
            assert_eq!(ArrayValue::decode(PhysType::I32, &bytes), Some(shape.clone()));
            assert_eq!(elements(PhysType::I32, &bytes), Some(shape.elements.clone()));
            for cut in 0..bytes.len() {
                let got = ArrayValue::decode(PhysType::I32, &bytes[..cut]);
                assert_ne!(got, Some(shape.clone()), "cut at {cut}");
            }
        }
    }
}
