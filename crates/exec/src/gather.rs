//! Columns of many rows put together, with looks at the stop flag between the parts.

use crate::error::{Error, Result};
use crate::stop::{ROWS, check, pieces};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_data::transform::{Capacities, MutableArrayData};
use basalt_types::vector::{Codes, IntValues, Ints, Vector, take};
use std::ops::Range;

/// The values of arrays, one after the other. Texts stay where they are.
pub fn joined(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let ty = arrays.first().map(|array| array.data_type());
    if arrays.iter().any(|array| Some(array.data_type()) != ty) {
        return Err(Error::Beyond("a column in two forms"));
    }
    let data: Vec<_> = arrays.iter().map(|array| array.to_data()).collect();
    let rows = data.iter().map(|part| part.len()).sum();
    let mut all = MutableArrayData::with_capacities(data.iter().collect(), false, Capacities::Array(rows));
    for (at, part) in data.iter().enumerate() {
        for piece in pieces(part.len()) {
            let piece = piece?;
            all.try_extend(at, piece.start, piece.end).map_err(|_| Error::Beyond("a column of too many values"))?;
        }
    }
    Ok(make_array(all.freeze()))
}

/// As [`Vector::take`].
pub fn taken(column: &Vector, rows: &[u32]) -> Result<Vector> {
    if rows.len() <= ROWS {
        return Ok(column.take(rows));
    }
    Ok(match column {
        Vector::Ints(ints) => {
            let values = match &ints.values {
                IntValues::I32(values) => IntValues::I32(picked(values, rows)?.into()),
                IntValues::I64(values) => IntValues::I64(picked(values, rows)?.into()),
                IntValues::I128(values) => IntValues::I128(picked(values, rows)?.into()),
            };
            Vector::Ints(Ints { values, nulls: taken_nulls(ints.nulls.as_ref(), rows)?, min: ints.min, max: ints.max })
        }
        Vector::Codes(Codes { codes, nulls, dictionary }) => Vector::Codes(Codes {
            codes: picked(codes, rows)?.into(),
            nulls: taken_nulls(nulls.as_ref(), rows)?,
            dictionary: dictionary.clone(),
        }),
        Vector::Flat(values) => {
            let part = |piece: Result<Range<usize>>| piece.map(|piece| take(values, &rows[piece]));
            Vector::Flat(joined(&pieces(rows.len()).map(part).collect::<Result<Vec<_>>>()?)?)
        }
    })
}

fn picked<T: Copy>(values: &[T], rows: &[u32]) -> Result<Vec<T>> {
    let mut out = Vec::with_capacity(rows.len());
    for piece in pieces(rows.len()) {
        out.extend(rows[piece?].iter().map(|row| values[*row as usize]));
    }
    Ok(out)
}

fn taken_nulls(nulls: Option<&NullBuffer>, rows: &[u32]) -> Result<Option<NullBuffer>> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(None) };
    let mut valid = BooleanBufferBuilder::new(rows.len());
    for piece in pieces(rows.len()) {
        rows[piece?].iter().for_each(|row| valid.append(nulls.is_valid(*row as usize)));
    }
    Ok(Some(NullBuffer::new(valid.finish())))
}

/// Which rows of several parts, one after the other, have a value; `None`: all.
pub fn joined_nulls<'p>(
    parts: impl Iterator<Item = (Option<&'p NullBuffer>, usize)> + Clone,
) -> Result<Option<NullBuffer>> {
    if !parts.clone().any(|(nulls, _)| nulls.is_some_and(|nulls| nulls.null_count() > 0)) {
        return Ok(None);
    }
    let mut valid = BooleanBufferBuilder::new(parts.clone().map(|(_, rows)| rows).sum());
    for (nulls, rows) in parts {
        check()?;
        match nulls {
            Some(nulls) => valid.append_buffer(nulls.inner()),
            None => valid.append_n(rows, true),
        }
    }
    Ok(Some(NullBuffer::new(valid.finish())))
}
