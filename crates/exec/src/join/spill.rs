//! A built side that memory has no room for, in parts by the hash of its keys; each part is a table of its own.

use super::{Building, Part, Spec, Table};
use crate::error::{Error, Result};
use crate::memory::Reservation;
use crate::program::Field;
use crate::spill::hash::{KeyHash, LEVELS_MAX};
use crate::spill::scatter::{Rows, Scatter};
use crate::spill::{SPILL_BYTES_MIN, SpillFile};
use crate::stop::Stop;
use basalt_types::vector::Vector;
use std::sync::Arc;

/// What one worker has written.
pub struct Flush {
    hash: KeyHash,
    scatter: Scatter,
    rows: usize,
    has_null: bool,
}

/// The rows of all workers.
pub struct Spilled {
    pub spec: Arc<Spec>,
    pub hash: KeyHash,
    pub file: Arc<SpillFile>,
    pub parts: Vec<Rows>,
    /// In all parts.
    pub rows: usize,
    /// Whether a key is null that equals nothing, in any part.
    has_null: bool,
}

impl Spec {
    /// Columns of a row on disk: keys, then what of the payload is none of them.
    fn stored_fields(&self) -> Arc<[Field]> {
        let own = self.payload.iter().zip(&self.fields).filter(|(place, _)| !self.keys.contains(place));
        self.key_fields.iter().cloned().chain(own.map(|(_, field)| field.clone())).collect()
    }

    fn stored(&self, part: Part) -> Vec<Vector> {
        let own = self.payload.iter().zip(part.payload).filter(|(place, _)| !self.keys.contains(place));
        part.keys.into_iter().chain(own.map(|(_, column)| column)).collect()
    }

    fn restored(&self, mut columns: Vec<Vector>, rows: usize) -> Part {
        let mut own = columns.split_off(self.keys.len()).into_iter();
        let column = |place| match self.keys.iter().position(|key| key == place) {
            Some(key) => columns[key].clone(),
            None => own.next().expect("a block has the columns that were written"),
        };
        let payload = self.payload.iter().map(column).collect();
        Part { keys: columns, payload, rows }
    }
}

impl Flush {
    pub fn new(spec: &Spec, hash: &KeyHash, file: &Arc<SpillFile>, level: u32) -> Flush {
        let scatter = Scatter::new(file, spec.stored_fields(), level);
        Flush { hash: hash.clone(), scatter, rows: 0, has_null: false }
    }

    fn add(&mut self, spec: &Spec, part: Part) -> Result<()> {
        let hashes = self.hash.of_sides(&part.keys, &spec.forms, &spec.null_safe, part.rows)?;
        let is_null = |(key, safe): (&Vector, &bool)| !safe && key.nulls().is_some();
        self.has_null |= part.rows > 0 && part.keys.iter().zip(&spec.null_safe).any(is_null);
        self.rows += part.rows;
        self.scatter.add(&spec.stored(part), &hashes)
    }
}

impl Spilled {
    pub fn new(spec: Arc<Spec>, hash: KeyHash, file: Arc<SpillFile>, flushes: Vec<Flush>) -> Result<Spilled> {
        let (mut rows, mut has_null) = (0, false);
        let mut parts: Option<Vec<Rows>> = None;
        for flush in flushes {
            rows += flush.rows;
            has_null |= flush.has_null;
            let written = flush.scatter.finish()?;
            match &mut parts {
                None => parts = Some(written),
                Some(parts) => parts.iter_mut().zip(written).for_each(|(part, more)| part.append(more)),
            }
        }
        Ok(Spilled { spec, hash, file, parts: parts.unwrap_or_default(), rows, has_null })
    }

    /// The table of a part that was cut so often, or, if there is no room for it, smaller parts.
    pub fn open(&self, part: &Rows, level: u32, held: &mut Reservation, stop: &Stop) -> Result<Opened> {
        let mut built = Building::new(&self.spec);
        for block in 0..part.blocks() {
            if stop.is_set() {
                return Err(Error::Stopped);
            }
            let (columns, rows) = part.read(block)?;
            built.push(self.spec.restored(columns, rows));
            if !held.reach(built.bytes()) && built.bytes() >= SPILL_BYTES_MIN {
                return self.cut(built, part, block + 1, level, held);
            }
        }
        let bytes = built.bytes() + built.table_bytes();
        if !held.reach(bytes) && bytes >= SPILL_BYTES_MIN {
            return self.cut(built, part, part.blocks(), level, held);
        }
        let mut table = built.finish()?;
        held.shrink_to(table.bytes());
        (table.all_rows, table.has_null) = (self.rows, self.has_null);
        Ok(Opened::Table(Box::new(table)))
    }

    fn cut(&self, mut built: Building, part: &Rows, next: usize, level: u32, held: &mut Reservation) -> Result<Opened> {
        if level >= LEVELS_MAX {
            return Err(Error::Beyond("rows of one key that are more than memory holds"));
        }
        let mut flush = Flush::new(&self.spec, &self.hash, &self.file, level);
        built.flush(&mut flush)?;
        held.shrink_to(0);
        for block in next..part.blocks() {
            let (columns, rows) = part.read(block)?;
            flush.add(&self.spec, self.spec.restored(columns, rows))?;
        }
        Ok(Opened::Parts(flush.scatter.finish()?))
    }
}

/// A part in memory, or smaller parts of it.
pub enum Opened {
    Table(Box<Table>),
    Parts(Vec<Rows>),
}

impl Building {
    /// Writes all rows, and begins anew.
    pub fn flush(&mut self, into: &mut Flush) -> Result<()> {
        let spec = self.spec.clone();
        let own = std::mem::replace(self, Building::new(&spec));
        own.parts.into_iter().try_for_each(|part| into.add(&spec, part))
    }

    /// The same for rows without keys, in the order in which they came.
    pub fn flush_in_order(&mut self, into: &mut Rows) -> Result<()> {
        let spec = self.spec.clone();
        let own = std::mem::replace(self, Building::new(&spec));
        own.parts.into_iter().try_for_each(|part| into.write(&part.payload, part.rows))
    }
}
