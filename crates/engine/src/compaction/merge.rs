//! Merges the rows of several files.
//!
//! Files that are in the order that outputs are to have are merged piece by piece. Memory: one decoded piece per input,
//! at most a row group, and of so many rows as made up the bytes allowed in the piece before. Rows are taken in runs: as
//! long as one input's keys stay below all others', whole slices are copied at once, which for inputs with disjoint
//! ranges is all there is.
//!
//! If one is not, rows are gathered as far as memory allows, sorted, and written, each lot to a file of its own.

use super::{NewPlace, Outputs};
use crate::data_file::{DataFile, damaged};
use crate::order::{Gathered, Order, OrderKeys};
use crate::tablet::FileEntry;
use crate::{Result, rows};
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use basalt_cold::{ROW_GROUP_ROWS, RowFile, RowStamps, Segment};
use basalt_hot::Rows;
use basalt_types::batch::bytes_of;
use basalt_types::{Stamp, Version};
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;

/// Rows copied to the outputs at once.
const FLUSH_ROWS: usize = 32_768;
/// Rows of an input's first piece, whose size tells how many the next one may have.
const FIRST_ROWS: u32 = 1024;
/// Decoded bytes of a piece: this, and at most a part of the memory limit.
const PIECE_BYTES: u64 = 16 << 20;
const PIECE_PART: u64 = 128;
/// All pieces together.
const PIECES_PART: u64 = 16;

pub(super) struct Merge {
    cursors: Vec<Cursor>,
    horizon: Version,
    order: Order,
    /// Per input, per ordinal: where the row went.
    pub places: Vec<Vec<NewPlace>>,
    /// Rows chosen and not yet copied: (input, row in its loaded piece).
    chosen: Vec<(usize, usize)>,
}

struct Cursor {
    file: Arc<FileEntry>,
    dead: RoaringBitmap,
    /// Where the loaded piece begins, and the next one.
    first: u32,
    next: u32,
    /// Rows that the next piece may have.
    rows_max: u32,
    columns: Vec<ArrayRef>,
    keys: Option<OrderKeys>,
    versions: Vec<Version>,
    row: usize,
    rows: usize,
}

impl Merge {
    /// `dead`: per input, ordinals that no reader can see any more.
    /// `order`: of the outputs.
    pub fn new(inputs: &[Arc<FileEntry>], dead: &[RoaringBitmap], horizon: Version, order: Order) -> Merge {
        let cursor = |(file, dead): (&Arc<FileEntry>, &RoaringBitmap)| Cursor {
            file: file.clone(),
            dead: dead.clone(),
            first: 0,
            next: 0,
            rows_max: FIRST_ROWS,
            columns: Vec::new(),
            keys: None,
            versions: Vec::new(),
            row: 0,
            rows: 0,
        };
        let places = inputs.iter().map(|file| vec![NewPlace::DROPPED; file.data.rows() as usize]).collect();
        let cursors = inputs.iter().zip(dead).map(cursor).collect();
        Merge { cursors, horizon, order, places, chosen: Vec::new() }
    }

    /// False: given up, since a large change has marked rows of an input meanwhile.
    pub fn run(&mut self, outputs: &mut Outputs<'_>) -> Result<bool> {
        let clustering = self.order.clustering();
        match self.cursors.iter().all(|cursor| cursor.file.data.is_ordered(clustering)) {
            true => self.merge(outputs),
            false => self.sort(outputs),
        }
    }

    fn merge(&mut self, outputs: &mut Outputs<'_>) -> Result<bool> {
        for input in 0..self.cursors.len() {
            self.load(input, outputs)?;
        }
        while let Some(input) = self.least() {
            let end = self.run_end(input);
            let cursor = &mut self.cursors[input];
            let first = cursor.first;
            for row in cursor.row..end {
                if !cursor.dead.contains(first + row as u32) {
                    self.chosen.push((input, row));
                }
            }
            cursor.row = end;
            let done = cursor.row == cursor.rows;
            if done || self.chosen.len() >= FLUSH_ROWS {
                self.copy(outputs)?;
                if self.is_disturbed() {
                    return Ok(false);
                }
            }
            if done {
                self.load(input, outputs)?;
            }
        }
        self.copy(outputs)?;
        Ok(true)
    }

    /// Whether a large change has marked rows of an input.
    fn is_disturbed(&self) -> bool {
        self.cursors.iter().any(|cursor| cursor.file.deletes.has_many())
    }

    /// Of inputs in any order.
    fn sort(&mut self, outputs: &mut Outputs<'_>) -> Result<bool> {
        let (rows_max, mut lot) = (outputs.engine.config.segment_rows as usize, Lot::default());
        for input in 0..self.cursors.len() {
            self.load(input, outputs)?;
            while self.cursors[input].rows > 0 {
                lot.add(input, &self.cursors[input]);
                if lot.rows.is_full(rows_max, &outputs.engine.config) {
                    self.write(std::mem::take(&mut lot), outputs)?;
                }
                if self.is_disturbed() {
                    return Ok(false);
                }
                self.load(input, outputs)?;
            }
        }
        self.write(lot, outputs)?;
        Ok(true)
    }

    /// Writes rows to a file of their own and notes where they went.
    fn write(&mut self, lot: Lot, outputs: &mut Outputs<'_>) -> Result<()> {
        if lot.rows.is_empty() {
            return Ok(());
        }
        let sorted = lot.rows.sort(&self.order)?;
        let mut origins = sorted.origins.values().iter().map(|row| lot.origins[*row as usize]);
        for (columns, versions) in sorted.pieces() {
            let first = outputs.next_place();
            for ((input, ordinal), at) in origins.by_ref().take(versions.len()).zip(first.ordinal..) {
                self.places[input][ordinal as usize] = NewPlace { output: first.output, ordinal: at };
            }
            outputs.push(&columns, versions)?;
        }
        outputs.close()
    }

    /// The input with the least next key.
    fn least(&self) -> Option<usize> {
        let live = (0..self.cursors.len()).filter(|input| self.cursors[*input].key().is_some());
        live.min_by_key(|input| (self.cursors[*input].key(), *input))
    }

    /// How far this input can be taken before another one's key comes (bounded by the loaded piece).
    fn run_end(&self, input: usize) -> usize {
        let others = (0..self.cursors.len()).filter(|other| *other != input);
        let bound = others.filter_map(|other| self.cursors[other].key()).min();
        let cursor = &self.cursors[input];
        let limit = cursor.rows.min(cursor.row + FLUSH_ROWS);
        let Some(bound) = bound else { return limit };
        let keys = cursor.keys.as_ref().expect("it has a next key");
        if keys.get(limit - 1) <= bound {
            return limit;
        }
        let mut end = cursor.row + 1;
        while end < limit && keys.get(end) <= bound {
            end += 1;
        }
        end
    }

    /// Loads the input's next piece. What was chosen from the last one has been copied.
    fn load(&mut self, input: usize, outputs: &Outputs<'_>) -> Result<()> {
        let (horizon, inputs) = (self.horizon, self.cursors.len() as u64);
        let cursor = &mut self.cursors[input];
        cursor.row = 0;
        cursor.rows = 0;
        cursor.keys = None;
        cursor.columns.clear();
        let first = cursor.next;
        let rows_left = cursor.file.data.rows() - first;
        if rows_left == 0 {
            return Ok(());
        }
        // Up to the end of the row group at most.
        let rows = rows_left.min(cursor.rows_max).min(ROW_GROUP_ROWS - first % ROW_GROUP_ROWS);
        match &cursor.file.data {
            DataFile::Segment(segment) | DataFile::Pair(segment, _) => {
                let segment = segment.clone();
                cursor.load_segment(&segment, first..first + rows, outputs)?;
            }
            DataFile::Rows(file) => {
                let file = file.clone();
                cursor.load_rows(&file, first..first + rows, outputs)?;
            }
        }
        cursor.keys = Some(self.order.keys(&cursor.columns));
        cursor.versions.iter_mut().for_each(|version| *version = if *version <= horizon { horizon } else { *version });
        cursor.rows = rows as usize;
        (cursor.first, cursor.next) = (first, first + rows);
        let memory = outputs.engine.config.memory_bytes_max;
        let allowed = PIECE_BYTES.min(memory / PIECE_PART).min(memory / PIECES_PART / inputs);
        let row_bytes = (bytes_of(&cursor.columns) as u64 / u64::from(rows)).max(1);
        cursor.rows_max = (allowed / row_bytes).clamp(1, u64::from(ROW_GROUP_ROWS)) as u32;
        Ok(())
    }

    /// Copies the chosen rows and notes where they went.
    fn copy(&mut self, outputs: &mut Outputs<'_>) -> Result<()> {
        if self.chosen.is_empty() {
            return Ok(());
        }
        let first = outputs.next_place();
        for (&(input, row), ordinal) in self.chosen.iter().zip(first.ordinal..) {
            let base = self.cursors[input].first as usize;
            self.places[input][base + row] = NewPlace { output: first.output, ordinal };
        }
        let versions: Vec<Version> =
            self.chosen.iter().map(|(input, row)| self.cursors[*input].versions[*row]).collect();
        let columns = self.gather(outputs.columns().len());
        outputs.push(&columns, &versions)?;
        self.chosen.clear();
        Ok(())
    }

    fn gather(&self, columns: usize) -> Vec<ArrayRef> {
        let (input, row) = self.chosen[0];
        let straight = self.chosen.iter().zip(row..).all(|((other, at), expected)| *other == input && *at == expected);
        if straight {
            let slice = |column: &ArrayRef| column.slice(row, self.chosen.len());
            return self.cursors[input].columns.iter().map(slice).collect();
        }
        // Only loaded inputs take part: `interleave` wants arrays of one type.
        let loaded: Vec<usize> = (0..self.cursors.len()).filter(|i| !self.cursors[*i].columns.is_empty()).collect();
        let slot = |input: usize| loaded.iter().position(|other| *other == input).expect("chosen rows are loaded");
        let picks: Vec<(usize, usize)> = self.chosen.iter().map(|(input, row)| (slot(*input), *row)).collect();
        let gather_one = |i: usize| {
            let arrays: Vec<&dyn Array> = loaded.iter().map(|input| &*self.cursors[*input].columns[i]).collect();
            interleave(&arrays, &picks).expect("columns of one table have one type")
        };
        (0..columns).map(gather_one).collect()
    }
}

/// Rows that are gathered to be sorted.
#[derive(Default)]
struct Lot {
    rows: Gathered,
    /// Of each row its input and its ordinal there.
    origins: Vec<(usize, u32)>,
}

impl Lot {
    /// The rows of an input's loaded piece that somebody may see.
    fn add(&mut self, input: usize, cursor: &Cursor) {
        let kept = (0..cursor.rows as u32).filter(|row| !cursor.dead.contains(cursor.first + row));
        let kept: Vec<u32> = kept.collect();
        if kept.is_empty() {
            return;
        }
        self.origins.extend(kept.iter().map(|row| (input, cursor.first + row)));
        if kept.len() == cursor.rows {
            return self.rows.add(cursor.columns.clone(), &cursor.versions);
        }
        let versions: Vec<Version> = kept.iter().map(|row| cursor.versions[*row as usize]).collect();
        let kept = UInt32Array::from(kept);
        let columns = cursor.columns.iter().map(|column| take(column, &kept, None).expect("indices are in range"));
        self.rows.add(columns.collect(), &versions);
    }
}

impl Cursor {
    /// The ordinals are of one row group.
    fn load_segment(&mut self, segment: &Segment, ordinals: Range<u32>, outputs: &Outputs<'_>) -> Result<()> {
        let ids = outputs.columns();
        let row_group = (ordinals.start / ROW_GROUP_ROWS) as usize;
        let (rows, begin) = (ordinals.len(), ordinals.start % ROW_GROUP_ROWS);
        for (id, column) in ids.iter().zip(segment.read(row_group, &ids, begin..begin + rows as u32)?) {
            self.columns.push(match column {
                Some(column) => column,
                None => outputs.missing(*id, rows)?,
            });
        }
        self.versions = match segment.stamps(row_group)? {
            RowStamps::Each(versions) => versions[begin as usize..][..rows].to_vec(),
            RowStamps::Same(version) => vec![version; rows],
            RowStamps::Uniform => vec![self.uniform().expect("only decided files are merged"); rows],
        };
        Ok(())
    }

    /// The version of all rows, if they have one.
    fn uniform(&self) -> Option<Version> {
        self.file.uniform().and_then(|(stamp, _)| stamp.as_version())
    }

    fn load_rows(&mut self, file: &RowFile, ordinals: Range<u32>, outputs: &Outputs<'_>) -> Result<()> {
        let uniform = self.uniform();
        let (mut rows, versions) = (Rows::new(), &mut self.versions);
        versions.clear();
        file.visit(ordinals.clone(), |_, entry| {
            versions.push(uniform.unwrap_or(entry.version));
            // A tombstone has no place here: its bytes, none, fit no table.
            rows.push(entry.key, entry.row.unwrap_or_default(), entry.rid, Stamp::version(entry.version));
        })?;
        let columns = rows::segment_columns(outputs.table, &rows);
        self.columns = columns.ok_or_else(|| damaged(file.id(), ordinals.start))?;
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        match &self.keys {
            Some(keys) if self.row < self.rows => Some(keys.get(self.row)),
            _ => None,
        }
    }
}
