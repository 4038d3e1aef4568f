//! Semi and anti joins from the other side: the rows that are chosen among are held, and those that they look for pass
//! by and leave marks. It is the better way where the rows to choose among are the fewer.

use super::{Probe, Table};
use crate::batch::{Batch, Work};
use crate::error::Result;
use crate::kernels::mask;
use crate::stop::{check, pieces};

/// Which held rows were met.
pub struct Marks {
    /// By the number of their key; number 0 is that of rows without a partner.
    numbers: Vec<bool>,
    /// By row, where keys alone do not decide.
    rows: Vec<bool>,
    /// How many rows of a key are not marked yet, by its number; empty until keys alone do not decide, and where each has
    /// one row.
    open: Vec<u32>,
}

/// Pairs that are decided at once: what these mark, those to come need not be asked.
const PAIRS: usize = 16 << 10;
/// Partners that are looked at between two looks at whether to stop.
const LOOKED_AT_MAX: usize = 1 << 18;

impl Marks {
    pub fn new(table: &Table) -> Marks {
        Marks { numbers: vec![false; table.keys() + 1], rows: vec![false; table.rows], open: Vec::new() }
    }

    pub fn bytes(&self) -> usize {
        self.numbers.len() + self.rows.len() + size_of_val(self.open.as_slice())
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
        if self.open.is_empty() && !table.is_unique() {
            self.open = vec![0; table.keys() + 1];
            (0..table.rows).for_each(|row| self.open[table.number_of(row as u32) as usize] += 1);
        }
        let mut from = (0, 0);
        while from.0 < numbers.len() {
            check()?;
            let (rows, partners);
            (rows, partners, from) = self.open_pairs(&table, &numbers, batch.mask(), from);
            let passed = batch.decide_pairs(&probe.residual, &probe.read, probe.join, (&rows, &partners), work)?;
            for at in mask::rows(&passed) {
                let row = partners[at as usize];
                if !std::mem::replace(&mut self.rows[row as usize], true)
                    && let Some(open) = self.open.get_mut(table.number_of(row) as usize)
                {
                    *open -= 1;
                }
            }
        }
        Ok(())
    }

    /// Rows that count with partners that are not marked yet, from one row and its partner by its place on; and the two
    /// to go on with. No more pairs than [`PAIRS`], however many partners a row has.
    fn open_pairs(
        &self,
        table: &Table,
        numbers: &[u32],
        mask: Option<&[u8]>,
        from: (usize, usize),
    ) -> (Vec<u32>, Vec<u32>, (usize, usize)) {
        let (mut rows, mut partners) = (Vec::new(), Vec::new());
        let mut looked_at = 0;
        for (row, number) in numbers.iter().enumerate().skip(from.0) {
            let is_done = self.open.get(*number as usize) == Some(&0);
            if *number == 0 || is_done || mask.is_some_and(|mask| mask[row] == 0) {
                continue;
            }
            let mut at = if row == from.0 { from.1 } else { 0 };
            for partner in table.matches(*number).skip(at) {
                (at, looked_at) = (at + 1, looked_at + 1);
                if !self.rows[partner as usize] {
                    partners.push(partner);
                }
                if partners.len() == PAIRS || looked_at == LOOKED_AT_MAX {
                    rows.resize(partners.len(), row as u32);
                    return (rows, partners, (row, at));
                }
            }
            rows.resize(partners.len(), row as u32);
        }
        (rows, partners, (numbers.len(), 0))
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
