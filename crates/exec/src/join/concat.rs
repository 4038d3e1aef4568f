//! One column of many batches.

use crate::aggregate::keys::is_text;
use crate::aggregate::texts::{Equality, Texts};
use crate::error::Result;
use crate::gather::{joined, joined_nulls};
use crate::program::Field;
use crate::stop::check;
use ahash::RandomState;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use basalt_types::batch::own_if_few;
use basalt_types::vector::{Codes, IntValues, Ints, Vector};
use basalt_types::{ColumnBuilder, PhysType};

/// The values of all parts, one after the other.
pub fn concat<'p>(parts: &[&'p Vector], field: &Field) -> Result<Vector> {
    let ty = field.held().phys().expect("columns are storable");
    if parts.is_empty() {
        return Ok(Vector::measured(ColumnBuilder::new(ty, 0).finish()));
    }
    let ints = |part: &&'p Vector| if let Vector::Ints(ints) = part { Some(ints) } else { None };
    if let Some(ints) = parts.iter().map(ints).collect::<Option<Vec<_>>>() {
        return Ok(Vector::Ints(integers(&ints)?));
    }
    let codes = |part: &&'p Vector| if let Vector::Codes(codes) = part { Some(codes) } else { None };
    if let Some(codes) = parts.iter().map(codes).collect::<Option<Vec<_>>>() {
        return texts(&codes).map(Vector::Codes);
    }
    if is_text(&field.ty) && repeats(parts) {
        let arrays: Vec<ArrayRef> = parts.iter().map(|part| part.to_array(ty)).collect();
        return numbered(&arrays).map(Vector::Codes);
    }
    // Texts may share buffers with rows that are not among these.
    let array = |part: &&Vector| check().map(|()| own_if_few(part.to_array(ty)));
    let arrays = parts.iter().map(array).collect::<Result<Vec<ArrayRef>>>()?;
    joined(&arrays).map(Vector::measured)
}

/// Texts by the number under which they came.
fn numbered(arrays: &[ArrayRef]) -> Result<Codes> {
    let mut texts = Texts::new(Equality::Bytes, RandomState::new());
    let mut codes: Vec<u32> = Vec::with_capacity(arrays.iter().map(|array| array.len()).sum());
    for array in arrays {
        check()?;
        texts.make_room(array.len())?;
        codes.extend(texts.of_values(array.as_binary_view(), None).into_iter().map(|number| number as u32));
    }
    texts.seal();
    let nulls = joined_nulls(arrays.iter().map(|array| (array.nulls(), array.len())))?;
    Ok(Codes { codes: codes.into(), nulls, dictionary: texts.sealed() })
}

/// Whether the first rows have few texts, each many times.
fn repeats(parts: &[&Vector]) -> bool {
    let mut texts = Texts::new(Equality::Bytes, RandomState::new());
    let mut rows = 0;
    for part in parts.iter().filter(|part| matches!(part, Vector::Flat(_))) {
        let looked = part.len().min(SAMPLE_ROWS - rows);
        let first: Vec<u32> = (0..looked as u32).collect();
        let values = part.take(&first).to_array(PhysType::Bytes);
        texts.of_values(values.as_binary_view(), None);
        rows += looked;
    }
    texts.count() <= SAMPLE_TEXTS_MAX.max(rows / 8)
}

/// Rows that are looked at for how often their texts repeat, and texts that are few.
const SAMPLE_ROWS: usize = 1024;
const SAMPLE_TEXTS_MAX: usize = 32;

fn integers(parts: &[&Ints]) -> Result<Ints> {
    let bounds = parts.iter().filter(|part| !part.values.is_empty()).map(|part| (part.min, part.max));
    let (min, max) = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or((0, 0));
    macro_rules! in_width {
        ($native:ty) => {{
            let mut all: Vec<$native> = Vec::with_capacity(parts.iter().map(|part| part.values.len()).sum());
            for part in parts {
                check()?;
                match &part.values {
                    IntValues::I32(values) => all.extend(values.iter().map(|value| *value as $native)),
                    IntValues::I64(values) => all.extend(values.iter().map(|value| *value as $native)),
                    IntValues::I128(values) => all.extend(values.iter().map(|value| *value as $native)),
                }
            }
            all.into()
        }};
    }
    let values = if i32::try_from(min).is_ok() && i32::try_from(max).is_ok() {
        IntValues::I32(in_width!(i32))
    } else if i64::try_from(min).is_ok() && i64::try_from(max).is_ok() {
        IntValues::I64(in_width!(i64))
    } else {
        IntValues::I128(in_width!(i128))
    };
    let nulls = joined_nulls(parts.iter().map(|part| (part.nulls.as_ref(), part.values.len())))?;
    Ok(Ints { values, nulls, min, max })
}

/// Codes of one dictionary.
fn texts(parts: &[&Codes]) -> Result<Codes> {
    let mut texts = Texts::new(Equality::Bytes, RandomState::new());
    let mut codes: Vec<u32> = Vec::with_capacity(parts.iter().map(|part| part.codes.len()).sum());
    for part in parts {
        check()?;
        texts.make_room(part.codes.len())?;
        codes.extend(texts.of_codes(part, None).into_iter().map(|number| number as u32));
    }
    texts.seal();
    let nulls = joined_nulls(parts.iter().map(|part| (part.nulls.as_ref(), part.codes.len())))?;
    Ok(Codes { codes: codes.into(), nulls, dictionary: texts.sealed() })
}
