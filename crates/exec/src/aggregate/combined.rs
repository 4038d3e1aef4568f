//! Groups by combination: where the keys of a batch can only have few values together, each combination has a place in
//! a table that says which group it is.
//!
//! The table serves as long as dictionaries and bounds stay the same, which for texts is a whole row group.

use super::keys::COMBINED_COLUMNS_MAX;
use crate::error::Result;
use arrow_array::{Array, BinaryViewArray};
use basalt_types::vector::{IntValues, Vector};
use basalt_types::widest;
use std::sync::Arc;

/// Places of the table: a power of two, so that no place can lie beyond it.
const PLACES: usize = 1 << 14;
/// A table that is made anew is worth it for half as many rows.
const PLACES_PER_ROW_MAX: usize = 2;

type Table = [u32; PLACES];

#[derive(Default)]
pub(super) struct Combined {
    /// Of each key column, what its places stand for.
    columns: Vec<Column>,
    /// The group at each place, 0 where it is not known.
    table: Option<Box<Table>>,
}

enum Column {
    /// Its entries, and null.
    Codes(Arc<BinaryViewArray>),
    /// So many integers from here, and null.
    Ints(i128, usize),
}

impl Column {
    /// `None` if there are too many values.
    fn of(key: &Vector) -> Option<Column> {
        match key {
            Vector::Codes(codes) if codes.dictionary.len() < PLACES => Some(Column::Codes(codes.dictionary.clone())),
            Vector::Ints(ints) => {
                let values = ints.max.checked_sub(ints.min)?.checked_add(1)?;
                Some(Column::Ints(ints.min, usize::try_from(values).ok().filter(|values| *values < PLACES)?))
            }
            Vector::Codes(_) | Vector::Flat(_) => None,
        }
    }

    fn values(&self) -> usize {
        match self {
            Column::Codes(dictionary) => dictionary.len() + 1,
            Column::Ints(_, values) => values + 1,
        }
    }

    fn is(&self, other: &Column) -> bool {
        match (self, other) {
            (Column::Codes(a), Column::Codes(b)) => Arc::ptr_eq(a, b),
            (Column::Ints(min, values), Column::Ints(other, others)) => min == other && values == others,
            _ => false,
        }
    }
}

widest! {
    fn add_codes(indexes: &mut [u32], codes: &[u32], values: u32) {
        indexes.iter_mut().zip(codes).for_each(|(index, code)| *index = *index * values + code);
    }
}

widest! {
    fn add_ints(indexes: &mut [u32], ints: &[i32], min: i32, values: u32) {
        indexes.iter_mut().zip(ints).for_each(|(index, int)| *index = *index * values + int.wrapping_sub(min) as u32);
    }
}

widest! {
    fn look_up(indexes: &[u32], table: &Table) -> Vec<u32> {
        indexes.iter().map(|index| table[*index as usize & (PLACES - 1)]).collect()
    }
}

widest! {
    fn least(groups: &[u32]) -> u32 {
        groups.iter().copied().fold(u32::MAX, u32::min)
    }
}

impl Combined {
    /// The place of each row's combination; `None` if there are too many.
    pub fn indexes(&mut self, keys: &[Vector], rows: usize) -> Option<Vec<u32>> {
        (keys.len() <= COMBINED_COLUMNS_MAX).then_some(())?;
        let columns: Vec<Column> = keys.iter().map(Column::of).collect::<Option<_>>()?;
        let mut places = 1usize;
        for column in &columns {
            places = places.checked_mul(column.values()).filter(|places| *places <= PLACES)?;
        }
        let same =
            self.columns.len() == columns.len() && self.columns.iter().zip(&columns).all(|(own, new)| own.is(new));
        if !same {
            (places <= rows * PLACES_PER_ROW_MAX || places <= 256).then_some(())?;
            self.table.get_or_insert_with(|| Box::new([0; PLACES]))[..places].fill(0);
        }
        let mut indexes = vec![0; rows];
        for (column, key) in columns.iter().zip(keys) {
            column.add(key, &mut indexes);
        }
        self.columns = columns;
        Some(indexes)
    }

    /// The group of each row; `group_of` is asked for rows whose combination is not known.
    pub fn assign(
        &mut self,
        indexes: &[u32],
        mask: Option<&[u8]>,
        mut group_of: impl FnMut(usize) -> Result<u32>,
    ) -> Result<Vec<u32>> {
        let table = self.table.get_or_insert_with(|| Box::new([0; PLACES]));
        let mut groups = look_up(indexes, table);
        if least(&groups) == 0 {
            for (row, group) in groups.iter_mut().enumerate() {
                if *group == 0 && mask.is_none_or(|mask| mask[row] != 0) {
                    let known = &mut table[indexes[row] as usize];
                    if *known == 0 {
                        *known = group_of(row)?;
                    }
                    *group = *known;
                }
            }
        }
        Ok(groups)
    }
}

impl Column {
    /// Appends the column's digit to the places of rows.
    fn add(&self, key: &Vector, indexes: &mut [u32]) {
        let values = self.values() as u32;
        let nulls = key.nulls();
        let before: Option<Vec<u32>> = nulls.map(|_| indexes.to_vec());
        match (self, key) {
            (Column::Codes(_), Vector::Codes(codes)) => add_codes(indexes, &codes.codes, values),
            (Column::Ints(min, _), Vector::Ints(ints)) => match &ints.values {
                // Between the bounds, which the width holds.
                IntValues::I32(ints) => add_ints(indexes, ints, *min as i32, values),
                wide => indexes.iter_mut().enumerate().for_each(|(row, index)| {
                    *index = *index * values + (wide.get(row) - min) as u32;
                }),
            },
            _ => panic!("columns are made of their keys"),
        }
        if let (Some(nulls), Some(before)) = (nulls, before) {
            let rows = indexes.iter_mut().zip(before).enumerate();
            rows.filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, (index, before))| {
                *index = before * values + values - 1;
            });
        }
    }
}
