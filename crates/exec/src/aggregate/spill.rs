//! Groups that memory has no room for, as rows of their keys and partial states; and groups made of such rows again.
//!
//! A state that was written is merged into one that is held, or is one, as those of two workers are: in any order, any
//! number of times. So nobody has to know which groups are on disk.

use super::rows::GroupRows;
use super::{Aggregation, Finished, Of, Spec, Unit, UnitKind};
use crate::error::{Error, Result};
use crate::memory::Reservation;
use crate::program::Field;
use crate::spill::SpillFile;
use crate::spill::hash::{KeyHash, LEVELS_MAX};
use crate::spill::scatter::{Rows, Scatter};
use crate::stop::Stop;
use basalt_types::DataType;
use basalt_types::vector::Vector;
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
    /// Whether states have a form on disk, in which they may be merged in any order, and groups keys to be told apart by.
    pub fn is_spillable(&self) -> bool {
        !self.groups.is_empty()
            && !self.heeds_order
            && self.state_fields().is_some_and(|fields| fields.iter().all(is_storable))
    }

    /// Of what is kept per group, beside distinct values.
    fn state_fields(&self) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        for unit in self.stored_units() {
            match &unit.1.kind {
                UnitKind::Rows | UnitKind::Values(_) | UnitKind::Counted(_) => {
                    fields.push(Field::new(DataType::Int8, false));
                }
                UnitKind::Extreme(..) | UnitKind::FloatExtreme(..) => fields.push(Field::new(DataType::Int8, false)),
                UnitKind::FloatSum(..) => fields.push(Field::new(DataType::Float8, false)),
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
    pub(super) fn stored_units(&self) -> impl Iterator<Item = (usize, &Unit)> {
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

impl GroupRows {
    /// Writes all of them.
    pub fn flush(&self, into: &mut Flush) -> Result<()> {
        let spec = &*self.spec;
        for from in (0..self.rows).step_by(CHUNK) {
            let rows: Vec<u32> = (from as u32..self.rows.min(from + CHUNK) as u32).collect();
            let mut columns = self.keys.vectors(from + 1..from + 1 + rows.len());
            let hashes = into.hash.of(&columns, &spec.forms, rows.len())?;
            columns.extend(self.columns.iter().map(|column| column.take(&rows)));
            into.groups.add(&columns, &hashes)?;
        }
        let keys = if self.sets.is_empty() { Vec::new() } else { self.keys.vectors(1..self.rows + 1) };
        for (set, scatter) in self.sets.iter().zip(&mut into.sets) {
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
}

impl Aggregation {
    /// Writes all groups, and begins anew.
    pub fn flush(&mut self, into: &mut Flush) -> Result<()> {
        let new = Aggregation::new(&self.spec);
        let mut groups = std::mem::replace(self, new);
        // Each strand by itself: there is no room to put them together, and whoever reads a part does so anyway.
        for strand in std::mem::take(&mut groups.strands) {
            strand.into_rows()?.flush(into)?;
        }
        groups.into_rows()?.flush(into)
    }
}

impl Unit {
    /// Columns of its state.
    pub(super) fn columns(&self) -> usize {
        match &self.kind {
            UnitKind::General { resolved, .. } => resolved.state_types().len(),
            _ => 1,
        }
    }
}

/// Groups of a part, or smaller parts of it.
pub enum Opened {
    Groups(Box<Finished>),
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
            let (keys, columns) = columns.split_at(self.spec.keys.len());
            groups.take_in(keys, columns, rows)?;
            self.make_room(&mut groups, &mut flush, part.level, held, stop)?;
        }
        for (set, pairs) in part.sets.iter().enumerate() {
            for block in 0..pairs.blocks() {
                let (mut columns, rows) = pairs.read(block)?;
                let values = columns.pop().ok_or(Error::Beyond("a distinct value without a value"))?;
                groups.take_in_pairs(set, &columns, values, rows)?;
                self.make_room(&mut groups, &mut flush, part.level, held, stop)?;
            }
        }
        match flush {
            None => groups.finish().map(|groups| Opened::Groups(Box::new(groups))),
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
