//! Hash joins: the rows of one side held by their keys, and what a row of the other side finds there.
//!
//! One integer key whose values lie close together, as keys of tables do, indexes an array (a dense unique key needs
//! neither hash nor comparison); other keys are found by hash. Null keys match nothing.

pub(crate) mod concat;
mod guard;
mod mark;
mod probe;

pub use mark::Marks;
pub use probe::{Kind, Probe};

use crate::aggregate::keys::{Form, Found};
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::program::{Field, Place};
use basalt_types::batch::{bytes_of, own};
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::widest;
use guard::Guard;
use std::sync::Arc;

/// Slots of an array per row that it is worth.
const SLOTS_PER_ROW_MAX: usize = 16;
/// Slots that are always worth it.
const SLOTS_MIN: usize = 1 << 16;
/// More rows cannot be counted.
const ROWS_MAX: usize = u32::MAX as usize - 2;

/// What of the built side is kept.
#[derive(Debug)]
pub struct Spec {
    pub keys: Vec<Place>,
    forms: Vec<Form>,
    pub payload: Vec<Place>,
    pub fields: Vec<Field>,
}

impl Spec {
    /// `None` if equality of the keys is not that of their stored form.
    pub fn new(keys: Vec<(Place, Field)>, payload: Vec<(Place, Field)>) -> Option<Spec> {
        let forms = keys.iter().map(|(_, field)| Form::of(field)).collect::<Option<Vec<Form>>>()?;
        payload.iter().all(|(_, field)| field.held().phys().is_some()).then_some(())?;
        let keys = keys.into_iter().map(|(place, _)| place).collect();
        let (payload, fields) = payload.into_iter().unzip();
        Some(Spec { keys, forms, payload, fields })
    }
}

/// The rows of one worker.
pub struct Building {
    spec: Arc<Spec>,
    parts: Vec<Part>,
    rows: usize,
    bytes: usize,
}

struct Part {
    keys: Vec<Vector>,
    payload: Vec<Vector>,
    rows: usize,
}

impl Building {
    pub fn new(spec: &Arc<Spec>) -> Building {
        Building { spec: spec.clone(), parts: Vec::new(), rows: 0, bytes: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All rows of a batch.
    pub fn add(&mut self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let spec = self.spec.clone();
        let keys = spec.keys.iter().map(|place| batch.vector(*place, work)).collect::<Result<Vec<_>>>()?;
        let mut payload = Vec::with_capacity(spec.payload.len());
        for place in &spec.payload {
            // Texts share buffers with rows that are not held.
            payload.push(match batch.vector(*place, work)? {
                Vector::Flat(values) => {
                    let values = own(values);
                    self.bytes += bytes_of(std::slice::from_ref(&values));
                    Vector::Flat(values)
                }
                other => other,
            });
        }
        self.rows += batch.rows();
        // As they are gathered, as they are held, and the lookup.
        self.bytes += batch.rows() * ((keys.len() + payload.len()) * 2 * size_of::<u64>() + 4 * size_of::<u32>());
        self.parts.push(Part { keys, payload, rows: batch.rows() });
        Ok(())
    }

    pub fn merge(&mut self, other: Building) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.parts.extend(other.parts);
    }

    pub fn finish(self) -> Result<Table> {
        if self.rows > ROWS_MAX {
            return Err(Error::Beyond("more rows than a join can hold"));
        }
        let (mut lookup, of_rows) = Lookup::build(&self.spec, &self.parts, self.rows)?;
        let groups = of_rows.iter().copied().max().unwrap_or(0) as usize;
        let has_null = of_rows.contains(&0);
        let matches = Matches::new(of_rows, groups);
        lookup.seal();
        let column = |at: usize| {
            let parts: Vec<&Vector> = self.parts.iter().map(|part| &part.payload[at]).collect();
            concat::concat(&parts, &self.spec.fields[at])
        };
        let payload = (0..self.spec.fields.len()).map(column).collect::<Result<Vec<_>>>()?;
        Ok(Table { lookup, matches, payload, rows: self.rows, has_null })
    }
}

/// The built side.
pub struct Table {
    lookup: Lookup,
    matches: Matches,
    pub payload: Vec<Vector>,
    pub rows: usize,
    /// Whether a key is null.
    pub has_null: bool,
}

/// Keys by number, from 1; 0 stands for none.
enum Lookup {
    /// By the distance from the least key; one more at the end, which is 0.
    Dense {
        least: i64,
        numbers: Vec<u32>,
    },
    Hashed {
        found: Found,
        guards: Vec<Option<Guard>>,
    },
}

/// The rows of each key.
enum Matches {
    /// Each key has one: its number less one.
    Unique,
    Several {
        starts: Vec<u32>,
        rows: Vec<u32>,
        /// The number of each row's key; 0 where that is null.
        of_rows: Vec<u32>,
    },
}

impl Matches {
    fn new(of_rows: Vec<u32>, groups: usize) -> Matches {
        let unique = groups == of_rows.len() && of_rows.iter().enumerate().all(|(row, of)| *of as usize == row + 1);
        if unique {
            return Matches::Unique;
        }
        let mut starts = vec![0u32; groups + 2];
        of_rows.iter().for_each(|of| starts[*of as usize + 1] += 1);
        for group in 0..=groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; of_rows.len()];
        for (row, of) in of_rows.iter().enumerate() {
            rows[next[*of as usize] as usize] = row as u32;
            next[*of as usize] += 1;
        }
        Matches::Several { starts, rows, of_rows }
    }
}

impl Lookup {
    /// The lookup, and the number of each row's key: 0 where it is null.
    fn build(spec: &Spec, parts: &[Part], rows: usize) -> Result<(Lookup, Vec<u32>)> {
        if let Some((least, slots)) = dense_range(parts, rows) {
            return Ok(Lookup::dense(parts, rows, least, slots));
        }
        let mut found = Found::new(&spec.forms);
        let mut of_rows = Vec::with_capacity(rows);
        for part in parts {
            let valued = valued(&part.keys, part.rows);
            of_rows.extend(found.hashed(&part.keys, part.rows, valued.as_deref())?);
        }
        let guard = |at: usize| Guard::new(parts.iter().map(|part| &part.keys[at]), rows);
        let guards = (0..spec.keys.len()).map(guard).collect();
        Ok((Lookup::Hashed { found, guards }, of_rows))
    }

    fn dense(parts: &[Part], rows: usize, least: i64, slots: usize) -> (Lookup, Vec<u32>) {
        let mut numbers = vec![0u32; slots + 1];
        let mut of_rows = Vec::with_capacity(rows);
        let mut next = 1;
        for part in parts {
            let Vector::Ints(ints) = &part.keys[0] else { continue };
            for row in 0..part.rows {
                if ints.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    of_rows.push(0);
                    continue;
                }
                let number = &mut numbers[(ints.values.get(row) - i128::from(least)) as usize];
                if *number == 0 {
                    *number = next;
                    next += 1;
                }
                of_rows.push(*number);
            }
        }
        (Lookup::Dense { least, numbers }, of_rows)
    }

    fn seal(&mut self) {
        if let Lookup::Dense { numbers, .. } = self {
            numbers.shrink_to_fit();
        }
    }
}

/// The least key and how many slots an array needs, if it is one integer and the array is worth it.
fn dense_range(parts: &[Part], rows: usize) -> Option<(i64, usize)> {
    let mut range: Option<(i128, i128)> = None;
    for part in parts {
        let [Vector::Ints(ints)] = part.keys.as_slice() else { return None };
        range = Some(range.map_or((ints.min, ints.max), |(min, max)| (min.min(ints.min), max.max(ints.max))));
    }
    let (min, max) = range?;
    let (min, max) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
    let slots = usize::try_from(max.checked_sub(min)?).ok()?.checked_add(1)?;
    (slots <= SLOTS_MIN.max(rows.saturating_mul(SLOTS_PER_ROW_MAX))).then_some((min, slots))
}

/// Rows without a null among their keys; `None`: all.
fn valued(keys: &[Vector], rows: usize) -> Option<Vec<u8>> {
    let mut mask = None;
    for nulls in keys.iter().filter_map(Vector::nulls) {
        crate::kernels::mask::clear_nulls(Some(nulls), mask.get_or_insert_with(|| vec![1; rows]));
    }
    mask
}

widest! {
    fn look_up_i32(keys: &[i32], least: i64, numbers: &[u32]) -> Vec<u32> {
        let end = numbers.len() as u64 - 1;
        keys.iter().map(|key| numbers[(i64::from(*key).wrapping_sub(least) as u64).min(end) as usize]).collect()
    }
}

widest! {
    fn look_up_i64(keys: &[i64], least: i64, numbers: &[u32]) -> Vec<u32> {
        let end = numbers.len() as u64 - 1;
        keys.iter().map(|key| numbers[(key.wrapping_sub(least) as u64).min(end) as usize]).collect()
    }
}

impl Table {
    /// The number of each row's key, 0 where there is none. Rows that the mask leaves out may have any.
    fn numbers(&self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        let mut numbers = match (&self.lookup, keys) {
            (Lookup::Dense { least, numbers }, [Vector::Ints(Ints { values, .. })]) => match values {
                IntValues::I32(values) => look_up_i32(values, *least, numbers),
                IntValues::I64(values) => look_up_i64(values, *least, numbers),
                IntValues::I128(values) => {
                    let narrow: Vec<i64> =
                        (values.iter()).map(|value| i64::try_from(*value).unwrap_or(least.wrapping_sub(1))).collect();
                    look_up_i64(&narrow, *least, numbers)
                }
            },
            (Lookup::Hashed { found, guards }, keys) => {
                let mut open = mask.map_or_else(|| vec![1; rows], <[u8]>::to_vec);
                for (guard, key) in guards.iter().zip(keys) {
                    if let (Some(guard), Vector::Ints(ints)) = (guard, key) {
                        guard.pass(ints, &mut open);
                    }
                }
                found.find(keys, rows, Some(&open))?
            }
            (Lookup::Dense { .. }, _) => return Err(Error::Beyond("a join key in another form")),
        };
        for nulls in keys.iter().filter_map(Vector::nulls) {
            numbers.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, number)| *number = 0);
        }
        Ok(numbers)
    }

    /// The rows of a key by its number.
    fn matches(&self, number: u32) -> impl Iterator<Item = u32> {
        let (unique, several) = match (&self.matches, number) {
            (_, 0) => (None, [].as_slice()),
            (Matches::Unique, number) => (Some(number - 1), [].as_slice()),
            (Matches::Several { starts, rows, .. }, number) => {
                let number = number as usize;
                (None, &rows[starts[number] as usize..starts[number + 1] as usize])
            }
        };
        unique.into_iter().chain(several.iter().copied())
    }

    /// How many keys there are.
    fn keys(&self) -> usize {
        match &self.matches {
            Matches::Unique => self.rows,
            Matches::Several { starts, .. } => starts.len() - 2,
        }
    }

    /// The number of a row's key, 0 where that is null.
    fn number_of(&self, row: u32) -> u32 {
        match &self.matches {
            Matches::Unique => row + 1,
            Matches::Several { of_rows, .. } => of_rows[row as usize],
        }
    }

    fn is_unique(&self) -> bool {
        matches!(self.matches, Matches::Unique)
    }
}

#[cfg(test)]
mod tests;
