//! Groups as rows: columns of their keys, of what these decide, and of partial states. A state in this form is merged
//! into one that is held, or is one, in any order, any number of times.
//!
//! Groups of several workers are put together part by part, so that many may do that at once: each worker deals its own
//! rows out by a hash of their keys, and whoever wants a part takes in the rows that all of them have in it.

use super::distinct::Distinct;
use super::keys::Keys;
use super::states::State;
use super::{Aggregation, Finished, Spec, UnitKind, add_counts, first_rows, floats_of, integers};
use crate::error::{Error, Result};
use crate::join::concat::concat;
use crate::kernels::sums::Groups;
use crate::program::{Field, logical};
use crate::spill::bytes_of;
use crate::stop::{check, pieces};
use arrow_array::{ArrayRef, Float64Array};
use basalt_types::batch::to_stored;
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::{ColumnBuilder, DataType};
use std::ops::Range;
use std::sync::Arc;

/// One worker's groups. Row `n` is that of group `n + 1`.
pub struct GroupRows {
    pub(super) spec: Arc<Spec>,
    pub(super) keys: Keys,
    /// Decided columns, then states.
    pub(super) columns: Vec<Vector>,
    pub(super) rows: usize,
    pub(super) sets: Vec<Distinct>,
}

/// Rows in a fixed number of buckets.
struct Dealt {
    /// Bucket by bucket.
    rows: Vec<u32>,
    /// Where each bucket begins, and where the last one ends.
    bounds: Vec<u32>,
}

/// Groups of one worker, dealt out.
pub struct DealtRows {
    /// Bucket by bucket, so that whoever takes in some reads them one after the other.
    all: GroupRows,
    /// Where each bucket begins, and where the last one ends.
    bounds: Vec<u32>,
}

/// How fruitful it is to look for the groups of rows.
#[derive(Default)]
pub(super) struct Yield {
    /// Rows that came.
    rows: usize,
    /// Rows and groups that there were at the last look.
    before: (usize, usize),
}

/// The groups of several workers, as parts that are put together when they are read.
pub struct Parted {
    spec: Arc<Spec>,
    workers: Vec<DealtRows>,
    /// Buckets of a part.
    step: usize,
}

const BUCKET_BITS: u32 = 10;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// Of these there are more than workers, so that none waits long for another.
const PARTS_MIN: usize = 8;
/// Groups of a part, whose table the caches hold.
const PART_ROWS: usize = 1 << 13;
/// Rows that are taken in together.
const CHUNK: usize = 8192;
/// Groups of each of two workers that are worth it: fewer cost less one after the other.
const DEALT_OF_TWO_MIN: usize = 1 << 18;
/// Groups whose tables a processor's own caches hold.
const NEAR_GROUPS: usize = if cfg!(test) { 1 << 6 } else { 1 << 15 };
/// How often as many groups are dealt out before they become more: whoever puts a part together looks into all of them.
const DEALT_ALIKE: usize = 16;
/// Of so many rows each but one makes a group, or more of them: there it is better to begin anew.
const ROWS_PER_OLD_GROUP_MIN: usize = 4;

impl Spec {
    /// Whether all groups take about as much, so that parts of as many groups do.
    fn deals_evenly(&self) -> bool {
        let are_small = self.units.iter().all(|unit| unit.kind.is_small());
        !self.groups.is_empty() && self.sets.is_empty() && are_small && self.is_spillable()
    }
}

impl Yield {
    pub fn add(&mut self, rows: usize) {
        self.rows += rows;
    }
}

impl Aggregation {
    /// Whether its groups, beside those of other workers, are better put together part by part: the more there are, the
    /// more of them would wait for one.
    pub fn is_worth_dealing(&self, workers: usize) -> bool {
        workers > 1
            && self.spec.deals_evenly()
            && self.groups() >= 2 * DEALT_OF_TWO_MIN / workers
            && !self.keys.are_put_together_fast()
    }

    /// Whether rows hardly ever meet a group that is there: then a table beyond the caches would have each wait for
    /// memory, and for little. What there is is better dealt out, and the next rows make their own groups.
    /// `dealt`: how often that was done already; of very many groups some more are dealt out each time.
    pub fn is_fruitless(&mut self, dealt: usize) -> bool {
        let groups = self.groups();
        let (rows_before, groups_before) = self.fruit.before;
        let near = NEAR_GROUPS * (1 + dealt / DEALT_ALIKE);
        if groups < near.max(groups_before * 2) {
            return false;
        }
        let (rows, new) = (self.fruit.rows - rows_before, groups - groups_before);
        self.fruit.before = (self.fruit.rows, groups);
        let old = rows.saturating_sub(new);
        let in_array = self.keys.are_put_together_fast() || self.keys.may_lie_close();
        old * ROWS_PER_OLD_GROUP_MIN <= rows && !in_array && self.spec.deals_evenly()
    }

    /// The next one after one that was dealt out.
    pub fn anew(&self) -> Aggregation {
        let mut next = Aggregation::new(&self.spec);
        next.keys.expect(self.groups());
        next
    }

    /// What [`Aggregation::into_rows`] and dealing them out take beside it.
    pub fn rows_bytes(&self) -> usize {
        let words = self.spec.keys.len() + 2 * self.spec.units.len() + 2;
        self.groups() * words * size_of::<u64>() + self.finish_bytes()
    }

    pub fn into_rows(self) -> Result<GroupRows> {
        let mut all = self.gathered()?;
        all.keys.seal();
        let (spec, rows) = (all.spec.clone(), all.groups());
        let mut columns = Vec::new();
        for (parts, (_, field)) in std::mem::take(&mut all.decided).iter().zip(&spec.decided) {
            check()?;
            columns.push(concat(&parts.iter().collect::<Vec<_>>(), field)?);
        }
        columns.extend(all.stored_states()?);
        all.sets.iter_mut().for_each(Distinct::seal);
        Ok(GroupRows { spec, keys: all.keys, columns, rows, sets: all.sets })
    }

    /// One value per group from number 1 on, of each column of states.
    fn stored_states(&mut self) -> Result<Vec<Vector>> {
        let (spec, len) = (self.spec.clone(), self.len());
        let mut columns = Vec::new();
        for (at, unit) in spec.stored_units() {
            let ints = |values: IntValues| Vector::Ints(Ints::measured(values, None));
            check()?;
            columns.push(match &mut self.states[at] {
                State::Count(counts) => {
                    counts.resize(len, 0);
                    ints(IntValues::I64(counts.split_off(1).into()))
                }
                State::Sum(sum) => match sum.narrow(1..len) {
                    Some(sums) => ints(IntValues::I64(sums.to_vec().into())),
                    None => {
                        let totals = (1..len).map(|group| sum.total(group)).collect::<Result<Vec<i128>>>()?;
                        ints(IntValues::I128(totals.into()))
                    }
                },
                State::FloatSum(sum) => Vector::Flat(Arc::new(Float64Array::from(sum.stored(1..len)))),
                State::Extreme(extreme) => ints(IntValues::I64(extreme.stored(len).into())),
                State::TextExtreme(extreme) => Vector::Flat(extreme.values(1..len)),
                State::General(accumulator) => {
                    let UnitKind::General { resolved, .. } = &unit.kind else { panic!("states are of their units") };
                    // Groups that never had a row are told of.
                    accumulator.update(&[], &unit.no_args(), None, len)?;
                    let stored = |(ty, values): (DataType, ArrayRef)| {
                        Vector::measured(to_stored(&ty, &values.slice(1, len - 1)))
                    };
                    columns.extend(resolved.state_types().into_iter().zip(accumulator.state()?).map(stored));
                    continue;
                }
            });
        }
        Ok(columns)
    }

    /// Takes in rows with keys and columns as [`GroupRows`] has them.
    pub(super) fn take_in(&mut self, keys: &[Vector], columns: &[Vector], rows: usize) -> Result<()> {
        let before = self.keys.len();
        let groups = self.keys.assign(keys, rows, None)?;
        self.take_in_columns(&groups, before, columns)
    }

    /// The columns of rows of these groups, of which those from number `before` on are new.
    fn take_in_columns(&mut self, groups: &[u32], before: usize, columns: &[Vector]) -> Result<()> {
        self.begun = true;
        let spec = self.spec.clone();
        let (decided, mut states) = columns.split_at(spec.decided.len());
        if self.keys.len() > before && !decided.is_empty() {
            let first = first_rows(groups, before)?;
            decided.iter().enumerate().for_each(|(at, values)| self.keep_decided(at, values.take(&first)));
        }
        let len = self.len();
        for (at, unit) in spec.stored_units() {
            let (own, rest) = states.split_at(unit.columns());
            states = rest;
            match &mut self.states[at] {
                State::Count(counts) => {
                    add_counts(counts, integers(&own[0])?, Groups::Each(groups), len);
                }
                State::Sum(sum) => sum.add(integers(&own[0])?, Groups::Each(groups), len)?,
                State::FloatSum(sum) => sum.add(&floats_of(&own[0])?, Groups::Each(groups), len)?,
                State::Extreme(extreme) => extreme.add(integers(&own[0])?, Groups::Each(groups), len)?,
                State::TextExtreme(extreme) => extreme.add(&own[0], Groups::Each(groups), len)?,
                State::General(accumulator) => {
                    let UnitKind::General { resolved, .. } = &unit.kind else { panic!("states are of their units") };
                    let types = resolved.state_types();
                    let arrays: Vec<ArrayRef> = own.iter().zip(&types).map(|(own, ty)| logical(own, ty)).collect();
                    accumulator.merge(groups, &arrays, len)?;
                }
            }
        }
        Ok(())
    }

    /// Takes in distinct values, with the keys of their groups before them.
    pub(super) fn take_in_pairs(&mut self, set: usize, keys: &[Vector], values: Vector, rows: usize) -> Result<()> {
        let before = self.keys.len();
        let groups = self.keys.assign(keys, rows, None)?;
        // Groups that were written meanwhile come once more, behind those that say what their keys decide.
        let new = self.keys.len() - before;
        if new > 0 {
            let spec = self.spec.clone();
            for (at, (_, field)) in spec.decided.iter().enumerate() {
                self.keep_decided(at, nulls(field, new)?);
            }
        }
        self.sets[set].add(Groups::Each(&groups), values, rows)
    }
}

fn nulls(field: &Field, rows: usize) -> Result<Vector> {
    let ty = field.held().phys().ok_or(Error::Beyond("columns of groups that cannot be held"))?;
    let mut values = ColumnBuilder::new(ty, rows);
    (0..rows).for_each(|_| values.push_null());
    Ok(Vector::measured(values.finish()))
}

impl GroupRows {
    /// Deals its rows out by the hash of their keys. There are no sets of distinct values: those of one group may be any
    /// share of all.
    pub fn dealt(mut self) -> Result<DealtRows> {
        let mut of_rows: Vec<u16> = Vec::with_capacity(self.rows);
        for piece in pieces(self.rows) {
            let groups: Vec<u32> = piece?.map(|row| row as u32 + 1).collect();
            // The lower bits say where a table has them.
            of_rows
                .extend(self.keys.hashes(&groups).into_iter().map(|hash| (hash >> (u32::BITS - BUCKET_BITS)) as u16));
        }
        let Dealt { rows, bounds } = Dealt::new(self.rows, |row| of_rows[row])?;
        self.keys.reorder(&rows);
        for column in &mut self.columns {
            check()?;
            *column = column.take(&rows);
        }
        Ok(DealtRows { all: self, bounds })
    }
}

impl Dealt {
    fn new(rows: usize, bucket: impl Fn(usize) -> u16) -> Result<Dealt> {
        let mut bounds = vec![0; BUCKETS + 1];
        for piece in pieces(rows) {
            piece?.for_each(|row| bounds[usize::from(bucket(row)) + 1] += 1);
        }
        for at in 1..bounds.len() {
            bounds[at] += bounds[at - 1];
        }
        let (mut next, mut all) = (bounds.clone(), vec![0; rows]);
        for piece in pieces(rows) {
            for row in piece? {
                let next = &mut next[usize::from(bucket(row))];
                all[*next as usize] = row as u32;
                *next += 1;
            }
        }
        Ok(Dealt { rows: all, bounds })
    }
}

impl DealtRows {
    pub fn rows(&self) -> &GroupRows {
        &self.all
    }

    pub fn bytes(&self) -> usize {
        let of_bounds = self.bounds.capacity() * size_of::<u32>();
        self.all.keys.bytes() + self.all.columns.iter().map(bytes_of).sum::<usize>() + of_bounds
    }

    /// The rows of some buckets.
    fn range(&self, buckets: &Range<usize>) -> Range<usize> {
        self.bounds[buckets.start] as usize..self.bounds[buckets.end] as usize
    }

    fn take_into(&self, groups: &mut Aggregation, buckets: Range<usize>) -> Result<()> {
        let all = self.range(&buckets);
        for from in all.clone().step_by(CHUNK) {
            check()?;
            let rows: Vec<u32> = (from as u32..all.end.min(from + CHUNK) as u32).collect();
            let before = groups.keys.len();
            let of_rows: Vec<u32> = rows.iter().map(|row| row + 1).collect();
            let of_rows = groups.keys.take_in(&self.all.keys, &of_rows, None)?;
            let columns: Vec<Vector> = self.all.columns.iter().map(|column| column.take(&rows)).collect();
            groups.take_in_columns(&of_rows, before, &columns)?;
        }
        Ok(())
    }
}

impl Parted {
    /// # Panics
    /// Without workers.
    pub fn new(workers: Vec<DealtRows>) -> Parted {
        let rows = workers.iter().map(|worker| worker.all.rows).sum::<usize>();
        let parts = (rows / PART_ROWS).next_power_of_two().clamp(PARTS_MIN, BUCKETS);
        Parted { spec: workers[0].all.spec.clone(), workers, step: BUCKETS / parts }
    }

    pub fn into_workers(self) -> impl Iterator<Item = DealtRows> {
        self.workers.into_iter()
    }

    pub fn parts(&self) -> usize {
        BUCKETS / self.step
    }

    pub fn bytes(&self) -> usize {
        self.workers.iter().map(DealtRows::bytes).sum()
    }

    /// What it takes to have so many parts open.
    pub fn open_bytes(&self, parts: usize) -> usize {
        // Tables may be half empty.
        self.bytes() / self.parts() * parts.min(self.parts()) * 2
    }

    /// Puts a part together.
    pub fn open(&self, part: usize) -> Result<Finished> {
        let mut groups = Aggregation::new(&self.spec);
        groups.keys.scatter();
        let buckets = part * self.step..(part + 1) * self.step;
        let rows = self.workers.iter().map(|worker| worker.range(&buckets).len()).sum::<usize>();
        groups.keys.expect(rows);
        self.workers.iter().try_for_each(|worker| worker.take_into(&mut groups, buckets.clone()))?;
        groups.finish()
    }
}
