//! What becomes of a batch whose rows look for partners.

use super::{Between, Table};
use crate::batch::{Batch, MET, NO_ROW, UNKNOWN, Work};
use crate::error::{Error, Result};
use crate::kernels::mask;
use crate::program::{Condition, Place, Program};
use crate::stop::{ROWS, check};
use arrow_buffer::NullBuffer;
use basalt_types::vector::Vector;

/// Pairs of one batch that are held at once.
pub(super) const PAIRS_MAX: usize = 4 << 20;

const SEVERAL: Error = Error::Beyond("several rows where there must be one");

/// What a join makes of rows and their partners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Inner,
    /// Rows without a partner have nulls beside them.
    Left,
    Semi,
    Anti,
    /// `NOT IN` by one key that may be null.
    NullAwareAnti,
    /// As [`Kind::Left`], with no more than one partner.
    Single,
    /// Every row with a mark: whether it has a partner. If it has none, but its only key or one that it looked among is
    /// null, the mark of a `null_aware` join is null.
    Mark {
        null_aware: bool,
    },
}

impl Kind {
    /// Whether partners' columns leave the join.
    pub fn gives_partners(self) -> bool {
        matches!(self, Kind::Inner | Kind::Left | Kind::Single)
    }
}

/// One join of a pipeline.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Which of the pipeline's joins it is.
    pub join: usize,
    pub kind: Kind,
    pub keys: Vec<Place>,
    /// What must be true of a pair beside the keys.
    pub residual: Vec<Condition>,
    /// The same, where it bounds a column of partners.
    pub between: Option<Between>,
    /// Columns of rows, other than partners', that the residual reads.
    pub read: Vec<Place>,
}

impl Probe {
    /// Several rows for one that every row asks for are an error, but only if a row does ask: another engine knows.
    pub fn check(&self, table: &Table) -> Result<()> {
        match self.kind == Kind::Single && self.keys.is_empty() && table.rows > 1 {
            true => Err(SEVERAL),
            false => Ok(()),
        }
    }

    /// Whether every row that is left sees the same row of a table, and there is one.
    pub fn shows_one_row(&self, table: &Table) -> bool {
        let of_kind = match self.kind {
            Kind::Inner => true,
            Kind::Single | Kind::Left => self.residual.is_empty(),
            _ => false,
        };
        of_kind && self.keys.is_empty() && table.rows == 1
    }

    /// The columns that it asks for.
    pub fn places(&self) -> Vec<Place> {
        let residual = self.residual.iter().flat_map(Condition::places);
        self.keys.iter().chain(&self.read).copied().chain(residual).collect()
    }

    /// Whether it fails for no batch of so many rows.
    pub fn is_total(&self, table: &Table, program: &Program, rows: usize) -> bool {
        // Numerics of more digits may be beyond what keys are compared as.
        let is_narrow = |place: &Place| program.fields[*place].ty.decimal().is_none_or(|(digits, _)| digits <= 18);
        self.kind != Kind::Single
            && self.keys.iter().all(is_narrow)
            && self.residual.iter().all(Condition::is_total)
            && table.partners_max().saturating_mul(rows) <= PAIRS_MAX
    }

    pub fn apply(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let table = work.tables[self.join].clone();
        // Rows stay where they are, so that storage can tell what filters ask next.
        if self.shows_one_row(&table) {
            batch.set_matches(self.join, vec![0; batch.rows()]);
            return if self.residual.is_empty() { Ok(()) } else { batch.filter(&self.residual, work) };
        }
        if matches!(self.kind, Kind::Inner | Kind::Semi) {
            let all = self.screen(&table, batch, work)?;
            if batch.rows() == 0 {
                batch.set_matches(self.join, Vec::new());
                return Ok(());
            }
            if all && self.kind == Kind::Semi && self.residual.is_empty() {
                return Ok(());
            }
        }
        let keys = self.key_columns(batch, work)?;
        let numbers = table.lookup.numbers(&keys, batch.rows(), batch.mask())?;
        if self.kind == Kind::NullAwareAnti {
            let without_null = keys[0].nulls().cloned();
            let passes =
                |row: usize, number: u32| number == 0 && without_null.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            match (table.all_rows, table.has_null) {
                (0, _) => {}
                (_, true) => batch.retain(|_| false),
                (_, false) => batch.retain(|row| passes(row, numbers[row])),
            }
            return Ok(());
        }
        if self.residual.is_empty() {
            match self.kind {
                Kind::Semi => {
                    batch.retain_numbered(&numbers, true);
                    return Ok(());
                }
                Kind::Anti => {
                    batch.retain_numbered(&numbers, false);
                    return Ok(());
                }
                Kind::Inner if table.is_unique() => {
                    batch.set_matches(self.join, numbers.iter().map(|number| number.saturating_sub(1)).collect());
                    batch.retain_numbered(&numbers, true);
                    return Ok(());
                }
                Kind::Left | Kind::Single if table.is_unique() => {
                    let row = |number: &u32| number.checked_sub(1).unwrap_or(NO_ROW);
                    batch.set_matches(self.join, numbers.iter().map(row).collect());
                    return Ok(());
                }
                _ => {}
            }
        }
        if let (Kind::Mark { null_aware }, true) = (self.kind, self.residual.is_empty()) {
            let found = numbers.iter().map(|number| *number != 0);
            let marks = marks(found, null_aware.then(|| keys[0].nulls()), &table);
            batch.set_matches(self.join, marks);
            return Ok(());
        }
        self.expand(&table, &numbers, batch, work)
    }

    pub fn key_columns(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<Vec<Vector>> {
        self.keys.iter().map(|place| batch.vector(*place, work)).collect()
    }

    /// Rows count no more of which one key or a few bits tell that they have no partner. Whether all that still count
    /// have one.
    pub(super) fn screen(&self, table: &Table, batch: &mut Batch<'_>, work: &mut Work) -> Result<bool> {
        for (guard, place) in table.lookup.guards().iter().zip(&self.keys) {
            if let (Some(guard), Vector::Ints(ints)) = (guard, batch.vector(*place, work)?) {
                batch.clear(|mask| guard.pass(&ints, mask));
            }
            if batch.rows() == 0 {
                return Ok(false);
            }
        }
        let (keys, rows) = (self.key_columns(batch, work)?, batch.rows());
        let mut all = Ok(false);
        batch.clear(|mask| all = table.lookup.screen(&keys, rows, mask));
        all
    }

    /// Row by row with each partner.
    fn expand(&self, table: &Table, numbers: &[u32], batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let between = match &self.between {
            Some(between) => {
                between.pairs(table, numbers, between.most(self.kind), batch, work)?.map(|pairs| (pairs, &between.rest))
            }
            None => None,
        };
        let ((mut rows, mut partners), residual) = match between {
            Some(found) => found,
            None => (self.pairs(table, numbers, batch)?, &self.residual),
        };
        if !residual.is_empty() {
            let passed = batch.decide_pairs(residual, &self.read, self.join, (&rows, &partners), work)?;
            let kept = mask::rows(&passed);
            rows = kept.iter().map(|at| rows[*at as usize]).collect();
            partners = kept.iter().map(|at| partners[*at as usize]).collect();
        }
        match self.kind {
            Kind::Inner => batch.pair(self.join, &rows, partners),
            Kind::Left | Kind::Single => {
                if self.kind == Kind::Single && rows.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(SEVERAL);
                }
                let (rows, partners) = with_lonely(batch, &rows, &partners);
                batch.pair(self.join, &rows, partners);
            }
            Kind::Mark { .. } => {
                let found = found(batch.rows(), &rows);
                batch.set_matches(self.join, marks(found.into_iter(), None, table));
            }
            Kind::Semi | Kind::Anti | Kind::NullAwareAnti => {
                let found = found(batch.rows(), &rows);
                let wanted = self.kind == Kind::Semi;
                batch.retain(|row| found[row] == wanted);
            }
        }
        Ok(())
    }

    /// Rows that count and their partners, in the order of rows.
    pub(super) fn pairs(&self, table: &Table, numbers: &[u32], batch: &Batch<'_>) -> Result<(Vec<u32>, Vec<u32>)> {
        let (mut rows, mut partners) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        let mut rows_before = 0;
        for (row, number) in numbers.iter().enumerate() {
            if *number == 0 || batch.mask().is_some_and(|mask| mask[row] == 0) {
                continue;
            }
            if partners.len() / ROWS != rows_before / ROWS {
                check()?;
                rows_before = partners.len();
            }
            partners.extend(table.matches(*number));
            rows.resize(partners.len(), row as u32);
            if partners.len() > PAIRS_MAX {
                return Err(Error::Beyond("more pairs than a join can hold at once"));
            }
        }
        Ok((rows, partners))
    }
}

/// Which of all rows are among some.
fn found(all: usize, rows: &[u32]) -> Vec<bool> {
    let mut found = vec![false; all];
    rows.iter().for_each(|row| found[*row as usize] = true);
    found
}

/// The marks of rows in place of partners. `aware`: the nulls of the only key, if a null is not the same as nothing.
fn marks(found: impl Iterator<Item = bool>, aware: Option<Option<&NullBuffer>>, table: &Table) -> Vec<u32> {
    let is_unknown = |row: usize| {
        let is_null = |nulls: Option<&NullBuffer>| nulls.is_some_and(|nulls| nulls.is_null(row));
        aware.is_some_and(|nulls| table.all_rows > 0 && (table.has_null || is_null(nulls)))
    };
    let mark = |(row, found): (usize, bool)| match found {
        true => MET,
        false if is_unknown(row) => UNKNOWN,
        false => NO_ROW,
    };
    found.enumerate().map(mark).collect()
}

/// The pairs, and each row that counts and is in none with no partner.
fn with_lonely(batch: &Batch<'_>, rows: &[u32], partners: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut all, mut all_partners) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    let mut pairs = rows.iter().zip(partners).peekable();
    for row in 0..batch.rows() as u32 {
        if batch.mask().is_some_and(|mask| mask[row as usize] == 0) {
            continue;
        }
        let before = all.len();
        while let Some((_, partner)) = pairs.next_if(|(of, _)| **of == row) {
            all.push(row);
            all_partners.push(*partner);
        }
        if all.len() == before {
            all.push(row);
            all_partners.push(NO_ROW);
        }
    }
    (all, all_partners)
}
