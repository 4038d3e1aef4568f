//! Groups that memory has no room for, as rows of their keys and partial states; and groups made of such rows again.
//!
//! A state that was written is merged into one that is held, or is one, as those of two workers are: in any order, any
//! number of times. So nobody has to know which groups are on disk.

use super::states::State;
use super::{Aggregation, Finished, Of, Spec, Unit, UnitKind, first_rows, integers};
use crate::error::{Error, Result};
use crate::join::concat::concat;
use crate::kernels::sums::Groups;
use crate::memory::Reservation;
use crate::program::{Field, logical};
use crate::spill::SpillFile;
use crate::spill::hash::{KeyHash, LEVELS_MAX};
use crate::spill::scatter::{Rows, Scatter};
use crate::stop::Stop;
use arrow_array::ArrayRef;
use basalt_types::batch::to_stored;
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::{ColumnBuilder, DataType};
use std::sync::Arc;

/// Groups that are written together.
const CHUNK: usize = 8192;

/// What one worker has written.
pub struct Flush {
    hash: KeyHash,
    groups: Scatter,
    sets: Vec<Scatter>,
}

/// All groups of a part of all keys, as far as they are on disk.
#[derive(Clone)]
pub struct Partition {
    groups: Rows,
    sets: Vec<Rows>,
    /// How often it was cut.
    level: u32,
}

/// The groups of all workers.
pub struct Spilled {
    pub spec: Arc<Spec>,
    pub hash: KeyHash,
    pub file: Arc<SpillFile>,
    pub parts: Vec<Partition>,
}

impl Spec {
    /// Whether states have a form on disk, and groups keys to be told apart by.
    pub fn is_spillable(&self) -> bool {
        !self.groups.is_empty() && self.state_fields().is_some_and(|fields| fields.iter().all(is_storable))
    }

    /// Of what is kept per group, beside distinct values.
    fn state_fields(&self) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        for unit in self.spilled_units() {
            match &unit.1.kind {
                UnitKind::Rows | UnitKind::Values(_) | UnitKind::Extreme(..) => {
                    fields.push(Field::new(DataType::Int8, false));
                }
                UnitKind::TextExtreme(..) => fields.push(Field::new(DataType::Text, true)),
                UnitKind::Sum(_) => fields.push(Field::new(DataType::Numeric(Some((38, 0))), false)),
                UnitKind::General { resolved, .. } => {
                    fields.extend(resolved.state_types().into_iter().map(|ty| Field::new(ty, true)));
                }
            }
        }
        Some(fields)
    }

    /// Of distinct values nothing has been aggregated before all are known.
    fn spilled_units(&self) -> impl Iterator<Item = (usize, &Unit)> {
        self.units.iter().enumerate().filter(|(_, unit)| !matches!(unit.of, Of::Distinct(_)))
    }

    /// Columns of a row of a group.
    fn group_fields(&self) -> Arc<[Field]> {
        let decided = self.decided.iter().map(|(_, field)| field.clone());
        self.keys.iter().cloned().chain(decided).chain(self.state_fields().unwrap_or_default()).collect()
    }

    /// Columns of a row of a distinct value.
    fn set_fields(&self, set: usize) -> Arc<[Field]> {
        self.keys.iter().chain([&self.sets[set].field]).cloned().collect()
    }
}

fn is_storable(field: &Field) -> bool {
    field.held().phys().is_some()
}

impl Flush {
    pub fn new(spec: &Spec, hash: &KeyHash, file: &Arc<SpillFile>, level: u32) -> Flush {
        let sets = (0..spec.sets.len()).map(|set| Scatter::new(file, spec.set_fields(set), level)).collect();
        Flush { hash: hash.clone(), groups: Scatter::new(file, spec.group_fields(), level), sets }
    }

    /// What was written, by part. `level`: how often each of them was cut.
    pub fn finish(self, level: u32) -> Result<Vec<Partition>> {
        let groups = self.groups.finish()?;
        let mut parts: Vec<Partition> =
            groups.into_iter().map(|groups| Partition { groups, sets: Vec::new(), level }).collect();
        for set in self.sets {
            set.finish()?.into_iter().zip(&mut parts).for_each(|(rows, part)| part.sets.push(rows));
        }
        Ok(parts)
    }
}

impl Partition {
    /// Takes over what another worker wrote of it.
    pub fn append(&mut self, other: Partition) {
        self.groups.append(other.groups);
        self.sets.iter_mut().zip(other.sets).for_each(|(own, other)| own.append(other));
    }

    pub fn is_empty(&self) -> bool {
        self.groups.rows == 0
    }
}

impl Aggregation {
    /// Writes all groups, and begins anew.
    pub fn flush(&mut self, into: &mut Flush) -> Result<()> {
        let spec = self.spec.clone();
        let mut own = std::mem::replace(self, Aggregation::new(&spec));
        own.keys.seal()?;
        let len = own.len();
        let decided = own.decided.iter().zip(&spec.decided);
        let decided = decided.map(|(parts, (_, field))| concat(&parts.iter().collect::<Vec<_>>(), field));
        let decided = decided.collect::<Result<Vec<Vector>>>()?;
        let states = own.stored_states()?;
        for from in (1..len).step_by(CHUNK) {
            let groups = from..len.min(from + CHUNK);
            let mut columns = own.keys.vectors(groups.clone());
            let hashes = into.hash.of(&columns, &spec.forms, groups.len())?;
            let rows: Vec<u32> = groups.map(|group| group as u32 - 1).collect();
            columns.extend(decided.iter().map(|values| values.take(&rows)));
            columns.extend(states.iter().map(|values| values.take(&rows)));
            into.groups.add(&columns, &hashes)?;
        }
        drop((decided, states));
        let keys = if own.sets.is_empty() { Vec::new() } else { own.keys.vectors(1..len) };
        for (set, scatter) in own.sets.iter_mut().zip(&mut into.sets) {
            set.seal()?;
            for pairs in set.parts() {
                let (groups, values) = set.pairs(pairs);
                let rows: Vec<u32> = groups.into_iter().map(|group| group - 1).collect();
                let mut columns: Vec<Vector> = keys.iter().map(|key| key.take(&rows)).collect();
                let hashes = into.hash.of(&columns, &spec.forms, rows.len())?;
                columns.push(values);
                scatter.add(&columns, &hashes)?;
            }
        }
        Ok(())
    }

    /// One value per group from number 1 on, of each column of states.
    fn stored_states(&mut self) -> Result<Vec<Vector>> {
        let (spec, len) = (self.spec.clone(), self.len());
        let mut columns = Vec::new();
        for (at, unit) in spec.spilled_units() {
            let ints = |values: IntValues| Vector::Ints(Ints::measured(values, None));
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

    /// Rows that [`Aggregation::flush`] wrote.
    fn take_in(&mut self, columns: &[Vector], rows: usize) -> Result<()> {
        self.begun = true;
        let spec = self.spec.clone();
        let before = self.keys.len();
        let (keys, columns) = columns.split_at(spec.keys.len());
        let (decided, mut states) = columns.split_at(spec.decided.len());
        let groups = self.keys.assign(keys, rows, None)?;
        if self.keys.len() > before {
            let first = first_rows(&groups, before)?;
            decided.iter().enumerate().for_each(|(at, values)| self.keep_decided(at, values.take(&first)));
        }
        let len = self.len();
        for (at, unit) in spec.spilled_units() {
            let (own, rest) = states.split_at(unit.columns());
            states = rest;
            match &mut self.states[at] {
                State::Count(counts) => {
                    counts.resize(len, 0);
                    let more = &integers(&own[0])?.values;
                    groups.iter().enumerate().for_each(|(row, group)| counts[*group as usize] += more.get(row) as i64);
                }
                State::Sum(sum) => sum.add(integers(&own[0])?, Groups::Each(&groups), len)?,
                State::Extreme(extreme) => extreme.add(integers(&own[0])?, Groups::Each(&groups), len)?,
                State::TextExtreme(extreme) => extreme.add(&own[0], Groups::Each(&groups), len)?,
                State::General(accumulator) => {
                    let UnitKind::General { resolved, .. } = &unit.kind else { panic!("states are of their units") };
                    let types = resolved.state_types();
                    let arrays: Vec<ArrayRef> = own.iter().zip(&types).map(|(own, ty)| logical(own, ty)).collect();
                    accumulator.merge(&groups, &arrays, len)?;
                }
            }
        }
        Ok(())
    }

    fn take_in_pairs(&mut self, set: usize, mut columns: Vec<Vector>, rows: usize) -> Result<()> {
        let values = columns.pop().ok_or(Error::Beyond("a distinct value without a value"))?;
        let before = self.keys.len();
        let groups = self.keys.assign(&columns, rows, None)?;
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

impl Unit {
    /// Columns of its state.
    fn columns(&self) -> usize {
        match &self.kind {
            UnitKind::General { resolved, .. } => resolved.state_types().len(),
            _ => 1,
        }
    }
}

/// Groups of a part, or smaller parts of it.
pub enum Opened {
    Groups(Finished),
    Parts(Vec<Partition>),
}

impl Spilled {
    /// Puts a part's groups together; what has no room is cut again.
    pub fn open(&self, part: &Partition, held: &mut Reservation, stop: &Stop) -> Result<Opened> {
        let mut groups = Aggregation::new(&self.spec);
        groups.keys.scatter();
        let mut flush: Option<Flush> = None;
        for block in 0..part.groups.blocks() {
            let (columns, rows) = part.groups.read(block)?;
            groups.take_in(&columns, rows)?;
            self.make_room(&mut groups, &mut flush, part.level, held, stop)?;
        }
        for (set, pairs) in part.sets.iter().enumerate() {
            for block in 0..pairs.blocks() {
                let (columns, rows) = pairs.read(block)?;
                groups.take_in_pairs(set, columns, rows)?;
                self.make_room(&mut groups, &mut flush, part.level, held, stop)?;
            }
        }
        match flush {
            None => groups.finish().map(Opened::Groups),
            Some(mut flush) => {
                groups.flush(&mut flush)?;
                held.shrink_to(0);
                Ok(Opened::Parts(flush.finish(part.level + 1)?))
            }
        }
    }

    fn make_room(
        &self,
        groups: &mut Aggregation,
        flush: &mut Option<Flush>,
        level: u32,
        held: &mut Reservation,
        stop: &Stop,
    ) -> Result<()> {
        if stop.is_set() {
            return Err(Error::Stopped);
        }
        if held.reach(groups.bytes()) || groups.is_small() {
            return Ok(());
        }
        if level >= LEVELS_MAX {
            return Err(Error::Beyond("groups that no hash tells apart"));
        }
        groups.flush(flush.get_or_insert_with(|| Flush::new(&self.spec, &self.hash, &self.file, level)))?;
        groups.keys.scatter();
        held.shrink_to(0);
        Ok(())
    }
}
