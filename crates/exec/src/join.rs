//! Hash joins: the rows of one side held by their keys, and what a row of the other side finds there.
//!
//! Keys have numbers ([`lookup`]), and numbers have rows. Null keys match nothing.

pub(crate) mod concat;
mod guard;
mod lookup;
mod mark;
mod packing;
mod probe;

pub use mark::Marks;
pub use probe::{Kind, Probe};

use crate::aggregate::keys::Form;
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::program::{Field, Place};
use basalt_types::batch::{bytes_of, own};
use basalt_types::vector::Vector;
use lookup::Lookup;
use std::sync::Arc;

/// More rows cannot be counted.
const ROWS_MAX: usize = u32::MAX as usize - 2;

/// What of the built side is kept.
#[derive(Debug)]
pub struct Spec {
    pub keys: Vec<Place>,
    forms: Vec<Form>,
    /// Of keys: whether a null equals a null.
    pub null_safe: Vec<bool>,
    pub payload: Vec<Place>,
    pub fields: Vec<Field>,
}

impl Spec {
    /// `None` if equality of the keys is not that of their stored form.
    pub fn new(keys: Vec<(Place, Field)>, null_safe: Vec<bool>, payload: Vec<(Place, Field)>) -> Option<Spec> {
        let forms = keys.iter().map(|(_, field)| Form::of(field)).collect::<Option<Vec<Form>>>()?;
        payload.iter().all(|(_, field)| field.held().phys().is_some()).then_some(())?;
        let keys = keys.into_iter().map(|(place, _)| place).collect();
        let (payload, fields) = payload.into_iter().unzip();
        Some(Spec { keys, forms, null_safe, payload, fields })
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
        // As they are gathered, as they are held, and the lookup with what says which rows a key has.
        let of_row = (keys.len() + payload.len()) * 2 * size_of::<u64>() + lookup::BYTES_PER_ROW_MAX;
        self.bytes += batch.rows() * of_row;
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
        let (lookup, of_rows) = Lookup::build(&self.spec, &self.parts, self.rows)?;
        let has_null = of_rows.contains(&0);
        let matches = Matches::new(of_rows);
        let column = |at: usize| {
            let parts: Vec<&Vector> = self.parts.iter().map(|part| &part.payload[at]).collect();
            let all = concat::concat(&parts, &self.spec.fields[at])?;
            Ok(match &matches {
                Matches::Unique(Some(order)) => all.take(order),
                _ => all,
            })
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

/// The rows of each key.
enum Matches {
    /// Each key has one: its number less one, once rows are put in this order.
    Unique(Option<Vec<u32>>),
    Several {
        starts: Vec<u32>,
        rows: Vec<u32>,
        /// The number of each row's key; 0 where that is null.
        of_rows: Vec<u32>,
    },
}

impl Matches {
    fn new(of_rows: Vec<u32>) -> Matches {
        if of_rows.iter().enumerate().all(|(row, of)| *of as usize == row + 1) {
            return Matches::Unique(None);
        }
        let groups = of_rows.iter().copied().max().unwrap_or(0) as usize;
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
        match groups == rows.len() {
            true => Matches::Unique(Some(rows)),
            false => Matches::Several { starts, rows, of_rows },
        }
    }
}

impl Table {
    /// The rows of a key by its number.
    fn matches(&self, number: u32) -> impl Iterator<Item = u32> {
        let (unique, several) = match (&self.matches, number) {
            (_, 0) => (None, [].as_slice()),
            (Matches::Unique(_), number) => (Some(number - 1), [].as_slice()),
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
            Matches::Unique(_) => self.rows,
            Matches::Several { starts, .. } => starts.len() - 2,
        }
    }

    /// The number of a row's key, 0 where that is null.
    fn number_of(&self, row: u32) -> u32 {
        match &self.matches {
            Matches::Unique(_) => row + 1,
            Matches::Several { of_rows, .. } => of_rows[row as usize],
        }
    }

    /// No key has more rows.
    pub fn partners_max(&self) -> usize {
        match &self.matches {
            Matches::Unique(_) => 1,
            Matches::Several { starts, .. } => {
                starts.windows(2).skip(1).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0).max(1)
            }
        }
    }

    fn is_unique(&self) -> bool {
        matches!(self.matches, Matches::Unique(_))
    }
}

#[cfg(test)]
mod tests;
