//! Rows into partitions by the hash of their keys: what a batch has of each is gathered until it is worth a block.

use super::hash::{PARTS, part_of};
use super::{Block, SpillFile, bytes_of};
use crate::error::Result;
use crate::join::concat::concat;
use crate::program::Field;
use arrow_array::Array;
use basalt_types::PhysType;
use basalt_types::batch::own;
use basalt_types::vector::Vector;
use std::sync::Arc;

/// Of a part, until it is written.
const PENDING_BYTES_MAX: usize = 64 << 10;
const PENDING_ROWS_MAX: usize = 8192;

/// Rows on disk, block by block.
#[derive(Clone)]
pub(crate) struct Rows {
    file: Arc<SpillFile>,
    blocks: Vec<Block>,
    pub rows: usize,
}

impl Rows {
    pub fn new(file: &Arc<SpillFile>) -> Rows {
        Rows { file: file.clone(), blocks: Vec::new(), rows: 0 }
    }

    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Columns of some rows, and how many.
    pub fn read(&self, block: usize) -> Result<(Vec<Vector>, usize)> {
        let block = &self.blocks[block];
        Ok((self.file.read(block)?, block.rows))
    }

    pub fn write(&mut self, columns: &[Vector], rows: usize) -> Result<()> {
        if rows > 0 {
            self.blocks.push(self.file.write(columns, rows)?);
            self.rows += rows;
        }
        Ok(())
    }

    /// Those of another come behind.
    ///
    /// # Panics
    /// If they are in another file.
    pub fn append(&mut self, other: Rows) {
        assert!(Arc::ptr_eq(&self.file, &other.file), "parts of one file");
        self.rows += other.rows;
        self.blocks.extend(other.blocks);
    }
}

/// One worker's rows on their way into [`PARTS`] parts.
pub(crate) struct Scatter {
    fields: Arc<[Field]>,
    level: u32,
    parts: Vec<Part>,
}

struct Part {
    pending: Vec<Vec<Vector>>,
    rows: usize,
    bytes: usize,
    written: Rows,
}

impl Scatter {
    /// `fields`: of the columns that come.
    pub fn new(file: &Arc<SpillFile>, fields: Arc<[Field]>, level: u32) -> Scatter {
        let part = || Part { pending: vec![Vec::new(); fields.len()], rows: 0, bytes: 0, written: Rows::new(file) };
        let parts = std::iter::repeat_with(part).take(PARTS).collect();
        Scatter { fields, level, parts }
    }

    /// A row for each hash.
    pub fn add(&mut self, columns: &[Vector], hashes: &[u64]) -> Result<()> {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); PARTS];
        for (row, hash) in hashes.iter().enumerate() {
            rows[part_of(*hash, self.level)].push(row as u32);
        }
        for (part, rows) in self.parts.iter_mut().zip(rows).filter(|(_, rows)| !rows.is_empty()) {
            for (pending, column) in part.pending.iter_mut().zip(columns) {
                let taken = match column.take(&rows) {
                    // Texts share buffers with rows of other parts, and a large dictionary would be kept for few of them.
                    Vector::Codes(codes) if codes.dictionary.len() > rows.len() => {
                        Vector::Flat(own(Vector::Codes(codes).to_array(PhysType::Bytes)))
                    }
                    Vector::Flat(values) => Vector::Flat(own(values)),
                    other => other,
                };
                part.bytes += bytes_of(&taken);
                pending.push(taken);
            }
            part.rows += rows.len();
            if part.bytes >= PENDING_BYTES_MAX || part.rows >= PENDING_ROWS_MAX {
                part.write(&self.fields)?;
            }
        }
        Ok(())
    }

    /// All rows of all parts, on disk.
    pub fn finish(mut self) -> Result<Vec<Rows>> {
        for part in &mut self.parts {
            part.write(&self.fields)?;
        }
        Ok(self.parts.into_iter().map(|part| part.written).collect())
    }
}

impl Part {
    fn write(&mut self, fields: &[Field]) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut columns = Vec::with_capacity(fields.len());
        for (pending, field) in self.pending.iter_mut().zip(fields) {
            columns.push(concat(&std::mem::take(pending).iter().collect::<Vec<_>>(), field)?);
        }
        self.written.write(&columns, self.rows)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}
