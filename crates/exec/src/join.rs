//! Hash joins: the rows of one side held by their keys, and what a row of the other side finds there.
//!
//! Keys have numbers ([`lookup`]), and numbers have rows. Null keys match nothing.

pub(crate) mod assembly;
pub(crate) mod concat;
mod guard;
mod lookup;
mod mark;
mod ordered;
mod packing;
mod probe;
pub(crate) mod spill;

pub use mark::Marks;
pub use ordered::Between;
pub use probe::{Kind, Probe};

use crate::aggregate::keys::Form;
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::gather::taken;
use crate::program::{Field, Place};
use crate::spill::bytes_of;
use crate::stop::{check, pieces};
use arrow_array::Array;
use basalt_types::batch::own;
use basalt_types::vector::Vector;
use basalt_types::widest;
use lookup::Lookup;
use ordered::Ordered;
use std::sync::Arc;

/// More rows cannot be counted.
const ROWS_MAX: usize = u32::MAX as usize - 2;

/// What of the built side is kept.
#[derive(Debug)]
pub struct Spec {
    pub keys: Vec<Place>,
    pub forms: Vec<Form>,
    key_fields: Vec<Field>,
    /// Of keys: whether a null equals a null.
    pub null_safe: Vec<bool>,
    pub payload: Vec<Place>,
    pub fields: Vec<Field>,
    /// A column of the payload, of integers, in whose order the rows of a key are wanted.
    pub ordered_by: Option<usize>,
    /// Of rows without keys: they may be held in any order.
    pub any_order: bool,
}

impl Spec {
    /// `None` if equality of the keys is not that of their stored form.
    pub fn new(keys: Vec<(Place, Field)>, null_safe: Vec<bool>, payload: Vec<(Place, Field)>) -> Option<Spec> {
        let forms = keys.iter().map(|(_, field)| Form::of(field)).collect::<Option<Vec<Form>>>()?;
        payload.iter().all(|(_, field)| field.held().phys().is_some()).then_some(())?;
        let (keys, key_fields) = keys.into_iter().unzip();
        let (payload, fields) = payload.into_iter().unzip();
        Some(Spec { keys, forms, key_fields, null_safe, payload, fields, ordered_by: None, any_order: false })
    }

    pub fn has_float_keys(&self) -> bool {
        self.forms.iter().any(|form| matches!(form, Form::Floats { .. }))
    }
}

/// The rows of one worker.
pub struct Building {
    spec: Arc<Spec>,
    parts: Vec<Part>,
    rows: usize,
    bytes: usize,
    /// Of each column of the payload.
    column_bytes: Vec<usize>,
}

struct Part {
    keys: Vec<Vector>,
    payload: Vec<Vector>,
    rows: usize,
}

impl Part {
    /// The first row's first key, if it is an integer.
    fn first(&self) -> Option<i128> {
        match self.keys.first() {
            Some(Vector::Ints(ints)) if self.rows > 0 => Some(ints.values.get(0)),
            _ => None,
        }
    }
}

impl Building {
    pub fn new(spec: &Arc<Spec>) -> Building {
        let column_bytes = vec![0; spec.payload.len()];
        Building { spec: spec.clone(), parts: Vec::new(), rows: 0, bytes: 0, column_bytes }
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
                Vector::Flat(values) => Vector::Flat(own(values)),
                other => other,
            });
        }
        self.push(Part { keys, payload, rows: batch.rows() });
        Ok(())
    }

    fn push(&mut self, part: Part) {
        self.bytes += part.keys.iter().map(bytes_of).sum::<usize>();
        for ((place, column), all) in self.spec.payload.iter().zip(&part.payload).zip(&mut self.column_bytes) {
            let bytes = bytes_of(column);
            *all += bytes;
            // A key that is payload, too, is held once.
            self.bytes += if self.spec.keys.contains(place) { 0 } else { bytes };
        }
        self.rows += part.rows;
        self.parts.push(part);
    }

    /// What the table takes beside the rows from which it is made, at most: they go column by column.
    pub fn table_bytes(&self) -> usize {
        const OF_MATCHES: usize = 4 * size_of::<u32>();
        let of_order = self.spec.ordered_by.map_or(0, |_| Ordered::ROW_BYTES);
        let largest = self.column_bytes.iter().copied().max().unwrap_or(0);
        largest + self.rows * (OF_MATCHES + of_order) + Lookup::bytes_expected(&self.spec, &self.parts, self.rows)
    }

    pub fn merge(&mut self, other: Building) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.column_bytes.iter_mut().zip(other.column_bytes).for_each(|(all, bytes)| *all += bytes);
        self.parts.extend(other.parts);
    }

    /// Workers took turns. Rows of a table that is in the order of its key are put in that order again: their numbers are
    /// then their places.
    fn put_in_order(&mut self) -> Result<()> {
        if self.rows > ROWS_MAX {
            return Err(Error::Beyond("more rows than a join can hold"));
        }
        if let [_] = self.spec.keys.as_slice() {
            self.parts.sort_by_key(Part::first);
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Table> {
        self.put_in_order()?;
        let Building { spec, mut parts, rows, .. } = self;
        let mut placed = Placed::of(&spec, &parts, rows)?;
        let order = placed.take_order();
        // What is put together is not kept twice.
        for part in &mut parts {
            part.keys.clear();
            part.payload.reverse();
        }
        let mut payload = Vec::with_capacity(spec.fields.len());
        for field in &spec.fields {
            let column: Vec<Vector> = parts.iter_mut().filter_map(|part| part.payload.pop()).collect();
            let all = concat::concat(&column.iter().collect::<Vec<_>>(), field)?;
            payload.push(match &order {
                Some(order) => taken(&all, order)?,
                None => all,
            });
        }
        placed.table(&spec, payload, rows)
    }
}

/// Where the rows of each key are.
struct Placed {
    lookup: Lookup,
    matches: Matches,
    has_null: bool,
}

impl Placed {
    fn of(spec: &Spec, parts: &[Part], rows: usize) -> Result<Placed> {
        let (lookup, of_rows) = Lookup::build(spec, parts, rows)?;
        let has_null = of_rows.contains(&0);
        Ok(Placed { lookup, matches: Matches::new(of_rows)?, has_null })
    }

    /// The order that columns are to be put in, if they are not in it. It is asked for once.
    fn take_order(&mut self) -> Option<Vec<u32>> {
        if let Matches::Unique(order) = &mut self.matches { order.take() } else { None }
    }

    fn table(self, spec: &Spec, payload: Vec<Vector>, rows: usize) -> Result<Table> {
        let Placed { lookup, matches, has_null } = self;
        let ordered = match (spec.ordered_by, &matches) {
            (Some(column), Matches::Several { starts, rows, .. }) => {
                Ordered::of(column, &payload[column], starts, rows)?
            }
            _ => None,
        };
        Ok(Table { lookup, matches, ordered, payload, rows, all_rows: rows, has_null })
    }
}

/// The built side.
pub struct Table {
    lookup: Lookup,
    matches: Matches,
    ordered: Option<Ordered>,
    pub payload: Vec<Vector>,
    pub rows: usize,
    /// Those of all parts, of a table that is one of them.
    pub all_rows: usize,
    /// Whether a key is null, in any part.
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
    fn bytes(&self) -> usize {
        let numbers = match self {
            Matches::Unique(_) => 0,
            Matches::Several { starts, rows, of_rows } => starts.len() + rows.len() + of_rows.len(),
        };
        numbers * size_of::<u32>()
    }

    fn new(of_rows: Vec<u32>) -> Result<Matches> {
        if of_rows.iter().enumerate().all(|(row, of)| *of as usize == row + 1) {
            return Ok(Matches::Unique(None));
        }
        if follow_each_other(&of_rows) {
            return Matches::of_runs(of_rows);
        }
        let groups = of_rows.iter().copied().max().unwrap_or(0) as usize;
        let mut starts = vec![0u32; groups + 2];
        for piece in pieces(of_rows.len()) {
            of_rows[piece?].iter().for_each(|of| starts[*of as usize + 1] += 1);
        }
        for piece in pieces(groups + 1) {
            piece?.for_each(|group| starts[group + 1] += starts[group]);
        }
        check()?;
        let mut next = starts.clone();
        let mut rows = vec![0; of_rows.len()];
        for piece in pieces(of_rows.len()) {
            for row in piece? {
                let next = &mut next[of_rows[row] as usize];
                rows[*next as usize] = row as u32;
                *next += 1;
            }
        }
        Ok(match groups == rows.len() {
            true => Matches::Unique(Some(rows)),
            false => Matches::Several { starts, rows, of_rows },
        })
    }

    /// Of keys whose rows follow each other: they are where they belong.
    fn of_runs(of_rows: Vec<u32>) -> Result<Matches> {
        // Number 0, which no row has, begins where the first one does; each row writes where its key begins: again, or
        // behind the others.
        let mut starts = vec![0u32; of_rows.len() + 2];
        let mut next = 1;
        for piece in pieces(of_rows.len()) {
            for row in piece? {
                starts[next] = row as u32;
                next += usize::from(of_rows[row] as usize == next);
            }
        }
        starts.truncate(next);
        starts.push(of_rows.len() as u32);
        Ok(Matches::Several { starts, rows: (0..of_rows.len() as u32).collect(), of_rows })
    }
}

widest! {
    /// Whether numbers begin with 1, and each is the one before it or the next.
    fn follow_each_other(numbers: &[u32]) -> bool {
        let gaps = numbers.iter().zip(numbers.get(1..).unwrap_or_default());
        numbers.first() == Some(&1) && gaps.map(|(a, b)| u32::from(b.wrapping_sub(*a) > 1)).sum::<u32>() == 0
    }
}

impl Table {
    /// Of no rows.
    pub fn empty(spec: &Arc<Spec>) -> Result<Table> {
        Building::new(spec).finish()
    }

    pub fn bytes(&self) -> usize {
        let texts = |column: &Vector| match column {
            Vector::Codes(codes) => codes.dictionary.get_buffer_memory_size(),
            Vector::Ints(_) | Vector::Flat(_) => 0,
        };
        let payload: usize = self.payload.iter().map(|column| bytes_of(column) + texts(column)).sum();
        let ordered = self.ordered.as_ref().map_or(0, Ordered::bytes);
        payload + self.lookup.bytes() + self.matches.bytes() + ordered
    }

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

    /// The keys in their order, if each is one integer and there are no more of them than so many.
    pub fn integer_keys(&self, most: usize) -> Option<Vec<i64>> {
        if self.rows == self.all_rows && self.keys() <= most { self.lookup.integers() } else { None }
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
