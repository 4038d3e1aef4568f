//! Semi and anti joins from the other side: the rows that are chosen among are held, and those that they look for pass
//! by and leave marks. It is the better way where the rows to choose among are the fewer.

use super::{Probe, Table};
use crate::batch::{Batch, Work};
use crate::error::Result;
use crate::kernels::mask;
use crate::stop::pieces;

/// Which held rows were met.
pub struct Marks {
    /// By the number of their key; number 0 is that of rows without a partner.
    numbers: Vec<bool>,
    /// By row, where keys alone do not decide.
    rows: Vec<bool>,
}

impl Marks {
    pub fn new(table: &Table) -> Marks {
        Marks { numbers: vec![false; table.keys() + 1], rows: vec![false; table.rows] }
    }

    pub fn bytes(&self) -> usize {
        self.numbers.len() + self.rows.len()
    }

    /// What the rows of a batch meet.
    pub fn add(&mut self, probe: &Probe, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let table = work.tables[probe.join].clone();
        probe.screen(&table, batch, work)?;
        if batch.rows() == 0 {
            return Ok(());
        }
        let keys = probe.key_columns(batch, work)?;
        let numbers = table.lookup.numbers(&keys, batch.rows(), batch.mask())?;
        if probe.residual.is_empty() {
            match batch.mask() {
                None => numbers.iter().for_each(|number| self.numbers[*number as usize] = true),
                Some(mask) => {
                    let met = numbers.iter().zip(mask);
                    met.for_each(|(number, counts)| self.numbers[(*number * u32::from(*counts)) as usize] = true);
                }
            }
            return Ok(());
        }
        let (rows, partners) = probe.pairs(&table, &numbers, batch)?;
        let passed = batch.decide_pairs(&probe.residual, &probe.read, probe.join, (&rows, &partners), work)?;
        mask::rows(&passed).into_iter().for_each(|at| self.rows[partners[at as usize] as usize] = true);
        Ok(())
    }

    pub fn merge(&mut self, other: &Marks) {
        self.numbers.iter_mut().zip(&other.numbers).for_each(|(own, other)| *own |= other);
        self.rows.iter_mut().zip(&other.rows).for_each(|(own, other)| *own |= other);
    }

    /// The held rows that were met, or those that were not.
    pub fn chosen(&self, table: &Table, met: bool) -> Result<Vec<u32>> {
        let is_met = |row: u32| {
            let number = table.number_of(row);
            self.rows[row as usize] || number != 0 && self.numbers[number as usize]
        };
        let mut chosen = Vec::new();
        for piece in pieces(table.rows) {
            chosen.extend(piece?.map(|row| row as u32).filter(|row| is_met(*row) == met));
        }
        Ok(chosen)
    }
}
