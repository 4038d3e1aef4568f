//! Array values in expressions: elements with their SQL type, and the shapes that operations give.

use crate::error::{Error, Result};
pub use basalt_types::array::{ArrayValue, DIMENSIONS_MAX, Dimension};
use basalt_types::{DataType, Datum, PhysType, array};

/// PostgreSQL's `MaxArraySize`: more elements than these cannot be addressed.
pub const ELEMENTS_MAX: usize = 134_217_727;

pub(crate) fn element_phys(element: &DataType) -> Result<PhysType> {
    match element {
        // A row constructor's string literals rest as text.
        DataType::Unknown => Ok(PhysType::Bytes),
        _ => element.phys().ok_or_else(|| Error::not_supported(format!("arrays of type {}", element.sql_name()))),
    }
}

/// The stored form of an array of one dimension of these elements.
pub fn encode(element: &DataType, elements: &[Datum]) -> Result<Datum> {
    encode_shaped(element, &ArrayValue::plain(elements.to_vec()))
}

/// The stored form of an array. 54000 if it has too many elements or dimensions.
pub fn encode_shaped(element: &DataType, array: &ArrayValue) -> Result<Datum> {
    let phys = element_phys(element)?;
    if let Some(wrong) = array.elements.iter().find(|value| value.phys().is_some_and(|have| have != phys)) {
        return Err(Error::internal(format!("{wrong:?} is no element of {}[]", element.sql_name())));
    }
    if array.elements.len() > ELEMENTS_MAX {
        return Err(too_large());
    }
    for dimension in &array.dimensions {
        check_bounds(*dimension)?;
    }
    Ok(array.encode(phys))
}

/// Of all elements together.
const BYTES_MAX: u64 = (1 << 30) - 1;

/// The same of an array all of whose elements, one at least and not too many, are `value`.
pub fn encode_filled(element: &DataType, dimensions: &[Dimension], value: &Datum) -> Result<Datum> {
    let phys = element_phys(element)?;
    if value.phys().is_some_and(|have| have != phys) {
        return Err(Error::internal(format!("{value:?} is no element of {}[]", element.sql_name())));
    }
    dimensions.iter().try_for_each(|dimension| check_bounds(*dimension))?;
    let count = dimensions.iter().map(|dimension| u64::from(dimension.length)).product::<u64>();
    let bytes = match value {
        Datum::Bytes(bytes) => bytes.len() as u64,
        _ => 0,
    };
    if bytes.saturating_mul(count) > BYTES_MAX {
        return Err(Error::new("54000", format!("array size exceeds the maximum allowed ({BYTES_MAX})")));
    }
    Ok(ArrayValue::encode_filled(dimensions, value))
}

#[cold]
pub fn too_large() -> Error {
    Error::new("54000", format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})"))
}

#[cold]
pub fn too_many_dimensions(count: usize) -> Error {
    Error::new("54000", format!("number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"))
}

/// 54000 if the greatest subscript, or the one after it, is no integer.
fn check_bounds(dimension: Dimension) -> Result<()> {
    match dimension.lower.checked_add_unsigned(dimension.length) {
        Some(_) => Ok(()),
        None => Err(Error::new("54000", format!("array lower bound is too large: {}", dimension.lower))),
    }
}

#[cold]
pub(crate) fn damaged(bytes: &[u8]) -> Error {
    Error::new("XX001", format!("stored array of {} bytes is damaged", bytes.len()))
}

/// The elements of a stored array, whatever its dimensions; XX001 if its bytes are damaged.
pub fn elements(element: &DataType, bytes: &[u8]) -> Result<Vec<Datum>> {
    array::elements(element_phys(element)?, bytes).ok_or_else(|| damaged(bytes))
}

/// A stored array with its shape; XX001 if its bytes are damaged.
pub fn decode(element: &DataType, bytes: &[u8]) -> Result<ArrayValue> {
    ArrayValue::decode(element_phys(element)?, bytes).ok_or_else(|| damaged(bytes))
}

/// An array with one dimension more, of these arrays as its elements. Null stands for an array without
/// elements. 2202E if they are not all of one shape.
pub fn nest(element: &DataType, parts: &[Datum]) -> Result<ArrayValue> {
    let mismatch =
        || Error::new("2202E", "multidimensional arrays must have array expressions with matching dimensions");
    let mut inner: Option<Vec<Dimension>> = None;
    let mut elements = Vec::new();
    let mut has_empty = false;
    for part in parts {
        let part = match part {
            Datum::Bytes(bytes) => decode(element, bytes)?,
            _ => ArrayValue::default(),
        };
        if part.elements.is_empty() {
            has_empty = true;
            continue;
        }
        match &inner {
            None if part.dimensions.len() >= DIMENSIONS_MAX => {
                return Err(too_many_dimensions(part.dimensions.len() + 1));
            }
            None => inner = Some(part.dimensions),
            Some(known) if *known == part.dimensions => {}
            Some(_) => return Err(mismatch()),
        }
        elements.extend(part.elements);
    }
    let Some(inner) = inner else { return Ok(ArrayValue::default()) };
    if has_empty {
        return Err(mismatch());
    }
    let outer = Dimension { lower: 1, length: parts.len() as u32 };
    Ok(ArrayValue { dimensions: std::iter::once(outer).chain(inner).collect(), elements })
}
