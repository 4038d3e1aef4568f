//! Record batches into PostgreSQL's binary COPY (manual, COPY, "Binary Format").
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0" | flags i32 0 | extension i32 0
//! per row: field count i16 | per field: length i32 (-1: null), value
//! -1i16
//! ```

use crate::{Error, Result};
use arrow::compute::{CastOptions, cast_with_options};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, Field};
use basalt_expr::io::{LogicalBuilder, binary, datum_at};
use basalt_expr::{EvalContext, array_value};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Encodes batches for one table.
pub struct CopyEncoder {
    columns: Vec<Target>,
    context: EvalContext,
}

struct Target {
    name: String,
    ty: DataType,
}

impl CopyEncoder {
    /// `columns`: names and types of the table's columns, in the order of the batches' columns.
    pub fn new(columns: impl IntoIterator<Item = (String, DataType)>) -> CopyEncoder {
        let columns = columns.into_iter().map(|(name, ty)| Target { name, ty }).collect();
        CopyEncoder { columns, context: EvalContext::at(0) }
    }

    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(SIGNATURE);
        out.extend_from_slice(&[0; 8]);
    }

    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(-1i16).to_be_bytes());
    }

    pub fn rows(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let columns = self.columns.iter().zip(batch.columns()).map(|(target, array)| target.convert(array));
        let columns: Vec<(&Target, DataType, ArrayRef)> = columns.collect::<Result<_>>()?;
        for row in 0..batch.num_rows() {
            out.extend_from_slice(&(columns.len() as i16).to_be_bytes());
            for (target, ty, array) in &columns {
                let at = out.len();
                out.extend_from_slice(&(-1i32).to_be_bytes());
                let written = binary::format_cell(ty, array, row, &self.context, out)
                    .map_err(|error| target.refused(array, error.to_string()))?;
                if written {
                    let len = i32::try_from(out.len() - at - 4)
                        .map_err(|_| target.refused(array, "a value is longer than 2 GiB".into()))?;
                    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
                }
            }
        }
        Ok(())
    }
}

impl Target {
    /// The array in the form of a type whose binary form is the column's.
    fn convert(&self, array: &ArrayRef) -> Result<(&Target, DataType, ArrayRef)> {
        // The wire form of a numeric carries its own scale: the file's is kept, the server rounds.
        let ty = match (&self.ty, array.data_type()) {
            (DataType::Numeric(None), from) => DataType::Numeric(Some((38, scale_of(from)))),
            (ty, _) => ty.clone(),
        };
        if let (DataType::Array(element), ArrowType::List(_) | ArrowType::LargeList(_)) = (&ty, array.data_type()) {
            let lists = self.lists(element, array)?;
            return Ok((self, ty, lists));
        }
        let options = CastOptions { safe: false, ..Default::default() };
        let array = cast_with_options(array, &ty.to_arrow(), &options)
            .map_err(|error| self.refused(array, error.to_string()))?;
        Ok((self, ty, array))
    }

    /// Lists as arrays at rest, their elements in the form of the column's elements.
    fn lists(&self, element: &DataType, array: &ArrayRef) -> Result<ArrayRef> {
        let options = CastOptions { safe: false, ..Default::default() };
        let to = ArrowType::List(Arc::new(Field::new("item", element.to_arrow(), true)));
        let lists = cast_with_options(array, &to, &options).map_err(|error| self.refused(array, error.to_string()))?;
        let mut out = LogicalBuilder::new(&self.ty, array.len());
        for values in lists.as_list::<i32>().iter() {
            let Some(values) = values else {
                out.push_null();
                continue;
            };
            let elements: Vec<Datum> = (0..values.len()).map(|at| datum_at(element, &values, at)).collect();
            let value = array_value::encode(element, &elements);
            value.and_then(|value| out.push(&value)).map_err(|error| self.refused(array, error.to_string()))?;
        }
        Ok(out.finish())
    }

    #[cold]
    fn refused(&self, array: &ArrayRef, reason: String) -> Error {
        let from = array.data_type().to_string();
        Error::Convert { column: self.name.clone(), from, to: self.ty.sql_name(), reason }
    }
}

fn scale_of(ty: &ArrowType) -> i16 {
    match ty {
        ArrowType::Decimal32(_, s) | ArrowType::Decimal64(_, s) | ArrowType::Decimal128(_, s) => i16::from((*s).max(0)),
        ArrowType::Float16 | ArrowType::Float32 | ArrowType::Float64 => 15,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
