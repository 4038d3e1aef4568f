//! Array values: one dimension, subscripts from 1.
//!
//! At rest an array is a row of its elements ([`basalt_types::row`]): count, null bitmap, values.

use crate::error::{Error, Result};
use arrow_array::{Array, ArrayRef};
use basalt_types::{DataType, Datum, PhysType, batch, row};

fn element_phys(element: &DataType) -> Result<PhysType> {
    element.phys().ok_or_else(|| Error::not_supported(format!("arrays of type {}", element.sql_name())))
}

/// The stored form of an array of these elements.
pub fn encode(element: &DataType, elements: &[Datum]) -> Result<Datum> {
    let phys = element_phys(element)?;
    if let Some(wrong) = elements.iter().find(|value| value.phys().is_some_and(|have| have != phys)) {
        return Err(Error::internal(format!("{wrong:?} is no element of {}[]", element.sql_name())));
    }
    let mut out = Vec::new();
    row::encode(&vec![phys; elements.len()], elements, &mut out);
    Ok(Datum::Bytes(out.into()))
}

/// The elements of a stored array; XX001 if its bytes are damaged.
pub fn elements(element: &DataType, bytes: &[u8]) -> Result<Vec<Datum>> {
    batch::array_elements(element_phys(element)?, bytes)
        .ok_or_else(|| Error::new("XX001", format!("stored array of {} bytes is damaged", bytes.len())))
}

/// Stored arrays as a logical list.
pub fn to_list(element: &DataType, stored: &ArrayRef) -> Result<ArrayRef> {
    element_phys(element)?;
    batch::lists_from_stored(element, stored)
        .ok_or_else(|| Error::new("XX001", format!("stored array of type {}[] is damaged", element.sql_name())))
}

/// The stored form of one cell of a logical list, given its elements.
pub fn datum_of_list(element: &DataType, values: &ArrayRef) -> Datum {
    batch::datum_of_list(element, values)
}

/// The elements of one cell of a logical list.
pub fn elements_of_list(element: &DataType, values: &ArrayRef) -> Vec<Datum> {
    let Some(phys) = element.phys() else { return Vec::new() };
    let stored = batch::to_stored(element, values);
    (0..stored.len()).map(|index| batch::datum_at(phys, &stored, index)).collect()
}
