//! Expressions of one column with few values, computed once per value.
//!
//! The year of a date, a part of a text: there are millions of rows and a few thousand days. What was computed for one
//! batch serves the next, as long as the column stays within the same bounds or has the same dictionary. It is worth it
//! once as many rows have come as there are values, in however many batches: behind a join they are small.

use crate::program::General;
use ahash::AHashMap;
use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryViewArray};
use arrow_buffer::NullBuffer;
use basalt_expr::context::EvalContext;
use basalt_types::vector::{Codes, IntValues, Ints, Vector};
use std::sync::Arc;

/// Integers that are computed together.
const VALUES_MAX: usize = 1 << 12;
/// Entries of a dictionary that are computed together. They are worth more: whoever groups by what comes of them finds a
/// row group's texts by their codes.
const ENTRIES_MAX: usize = 1 << 14;

/// Integers by which bounds grow.
const STEP: i128 = 512;

/// What was computed, by the address of the expression, which lives as long as its program.
#[derive(Default)]
pub struct Domains(AHashMap<usize, Domain>);

#[derive(Default)]
struct Domain {
    /// Rows that came, of the same dictionary if they have one.
    rows: usize,
    dictionary: Option<Arc<BinaryViewArray>>,
    known: Option<Known>,
}

struct Known {
    of: Of,
    /// Of each value, and of null at the end; `None` if one of them fails.
    results: Option<Vector>,
}

enum Of {
    /// From the least to the greatest.
    Integers(i128, i128),
    Texts(Arc<BinaryViewArray>),
}

impl Domains {
    /// One value per row; `None` if it is better asked row by row.
    pub fn values(&mut self, general: &General, column: &Vector, ctx: &EvalContext) -> Option<Vector> {
        let key = std::ptr::from_ref(general) as usize;
        let domain = self.0.entry(key).or_default();
        domain.count(column);
        if !domain.known.as_ref().is_some_and(|known| known.of.covers(column)) {
            let before = domain.known.as_ref().map(|known| &known.of);
            let of = Of::new(column, domain.rows, before)?;
            let (values, rows) = of.values();
            let results = general.eval(&[&values], rows, ctx).ok().map(as_codes);
            domain.known = Some(Known { of, results });
        }
        let Known { of, results } = domain.known.as_ref()?;
        Some(results.as_ref()?.take(&of.places(column)?))
    }
}

impl Domain {
    fn count(&mut self, column: &Vector) {
        if let Vector::Codes(codes) = column
            && !self.dictionary.as_ref().is_some_and(|known| Arc::ptr_eq(known, &codes.dictionary))
        {
            (self.rows, self.dictionary) = (0, Some(codes.dictionary.clone()));
        }
        self.rows += column.len();
    }
}

/// Texts as codes: each one is compared and printed once, whichever values it comes from.
fn as_codes(results: Vector) -> Vector {
    let Vector::Flat(values) = &results else { return results };
    let Some(texts) = values.as_binary_view_opt() else { return results };
    let mut numbers: AHashMap<&[u8], u32> = AHashMap::new();
    let mut entries = Vec::new();
    let mut codes = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        let Some(text) = text else {
            codes.push(0);
            continue;
        };
        codes.push(*numbers.entry(text).or_insert_with(|| {
            entries.push(text);
            entries.len() as u32 - 1
        }));
    }
    let dictionary = Arc::new(BinaryViewArray::from_iter_values(entries));
    Vector::Codes(Codes { codes: codes.into(), nulls: texts.nulls().cloned(), dictionary })
}

impl Of {
    /// `None` if the column may have too many values, or more than the rows that came so far. Bounds that were known
    /// before are widened.
    fn new(column: &Vector, rows: usize, before: Option<&Of>) -> Option<Of> {
        match column {
            Vector::Ints(ints) => {
                let few = |min: i128, max: i128| max.checked_sub(min).is_some_and(|span| span < VALUES_MAX as i128 - 1);
                let wider = match before {
                    Some(Of::Integers(min, max)) => (ints.min.min(*min), ints.max.max(*max)),
                    _ => (ints.min, ints.max),
                };
                // What has grown once grows in steps, and not with each batch.
                let (low, high) = (wider.0.checked_div_euclid(STEP)?, wider.1.checked_div_euclid(STEP)?);
                let stepped = before.map(|_| (low * STEP, high * STEP + (STEP - 1)));
                let bounds = stepped.into_iter().chain([wider, (ints.min, ints.max)]);
                let bounds = bounds.into_iter().find(|(min, max)| few(*min, *max))?;
                let span = usize::try_from(bounds.1 - bounds.0).ok()?;
                (before.is_some() || span < rows).then_some(Of::Integers(bounds.0, bounds.1))
            }
            Vector::Codes(codes) => {
                (codes.dictionary.len() < rows.min(ENTRIES_MAX)).then(|| Of::Texts(codes.dictionary.clone()))
            }
            Vector::Flat(_) => None,
        }
    }

    fn covers(&self, column: &Vector) -> bool {
        match (self, column) {
            (Of::Integers(min, max), Vector::Ints(ints)) => *min <= ints.min && ints.max <= *max,
            (Of::Texts(dictionary), Vector::Codes(codes)) => Arc::ptr_eq(dictionary, &codes.dictionary),
            _ => false,
        }
    }

    /// Each value once, then null, and how many that is.
    fn values(&self) -> (Vector, usize) {
        match self {
            Of::Integers(min, max) => {
                let values: Vec<i128> = (*min..=*max).chain([*min]).collect();
                let rows = values.len();
                let values = match i64::try_from(*min).is_ok() && i64::try_from(*max).is_ok() {
                    true => IntValues::I64(values.into_iter().map(|value| value as i64).collect()),
                    false => IntValues::I128(values.into()),
                };
                (Vector::Ints(Ints { values, nulls: Some(null_at_end(rows)), min: *min, max: *max }), rows)
            }
            Of::Texts(dictionary) => {
                let rows = dictionary.len() + 1;
                let last = dictionary.len().saturating_sub(1) as u32;
                let codes = (0..dictionary.len() as u32).chain([last]).collect();
                let nulls = Some(null_at_end(rows));
                (Vector::Codes(Codes { codes, nulls, dictionary: dictionary.clone() }), rows)
            }
        }
    }

    /// Where each row's value is among them.
    fn places(&self, column: &Vector) -> Option<Vec<u32>> {
        let (mut places, null): (Vec<u32>, u32) = match (self, column) {
            (Of::Integers(min, max), Vector::Ints(ints)) => {
                let places = match &ints.values {
                    IntValues::I32(values) => values.iter().map(|value| (i128::from(*value) - min) as u32).collect(),
                    IntValues::I64(values) => values.iter().map(|value| (i128::from(*value) - min) as u32).collect(),
                    IntValues::I128(values) => values.iter().map(|value| (value - min) as u32).collect(),
                };
                (places, (max - min + 1) as u32)
            }
            (Of::Texts(dictionary), Vector::Codes(codes)) => (codes.codes.to_vec(), dictionary.len() as u32),
            _ => return None,
        };
        if let Some(nulls) = column.nulls() {
            places.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, place)| *place = null);
        }
        Some(places)
    }
}

fn null_at_end(rows: usize) -> NullBuffer {
    (0..rows).map(|row| row + 1 < rows).collect()
}
