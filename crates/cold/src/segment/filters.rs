//! Filters of columns: which row groups can hold a value at all.
//!
//! Where the values of a column lie scattered over a file, bounds rule nothing out. If most of them differ, a filter per
//! row group does: one that is searched for is then in few row groups, and one that does not occur in none. A filter is
//! as that of keys ([`crate::filter`]), at ten bits a value, or down to six where ten would not fit.
//!
//! Filters are for few columns: all of a row group take no more than [`SHARE_MAX`] of its bytes, and a column has
//! none whose values repeat, ascend with the rows, or cannot be told apart by their bytes. The first row group
//! says which columns; those behind it may go without, and a column whose values turn out to move on from one row group
//! to the next loses all of its filters. A column that an index asks for (`USING bloom`) has them in any case.

use super::directory::ChunkEntry;
use super::layout::RowGroup;
use super::values::{Values, validity};
use super::zone::{self, ZoneMap};
use super::{SegmentColumn, SegmentSchema};
use crate::Result;
use crate::encoding::dictionary::SharedKind;
use crate::encoding::{Damage, Decoded, take_varint};
use crate::filter::{self, BLOCK_BYTES, int_hash};
use crate::frame::{Filter, FramedFile, SECTION_COLUMN_FILTERS, SECTION_PAGE_BYTES, Section};
use crate::store::FileSink;
use arrow_array::ArrayRef;
use basalt_types::{ColumnId, ColumnPredicate, CompareOp, Datum, PhysType, varint};

/// Of a row group's bytes.
const SHARE_MAX: f64 = 0.02;
/// To read fewer rows costs no more than to ask a filter.
const ROWS_MIN: u32 = 1 << 14;
const BITS_PER_VALUE_MIN: u64 = 6;
const BITS_PER_VALUE_MAX: u64 = 10;
/// Values that are looked at before all are.
const SAMPLE: usize = 1024;
const SAMPLE_DISTINCT_MIN: f64 = 0.95;
/// Of a row group's values. Where so many differ, at most about a third of the row groups hold one that occurs in the
/// file, if all occur equally often.
const DISTINCT_MIN: f64 = 0.8;
/// Pages whose bounds span so much of the row group's on average are ruled out by bounds seldom enough.
const PAGE_SPREAD_MIN: f64 = 0.25;
/// Likewise row groups in a file.
const ROW_GROUP_SPREAD_MIN: f64 = 0.5;
/// Values of a list that are looked for.
const VALUES_MAX: usize = 1024;

/// A row group as it has just been written: in schema order, but for what follows the columns.
pub(super) struct Written<'a> {
    pub pieces: &'a [Vec<ArrayRef>],
    pub chunks: &'a [ChunkEntry],
    pub zones: &'a [ZoneMap],
    pub bytes: u64,
}

/// Collects the filters of a file.
pub(super) struct FiltersBuilder {
    row_groups: usize,
    columns: Vec<ColumnBuilder>,
}

struct ColumnBuilder {
    /// Its place in the schema.
    at: usize,
    /// By an index; otherwise it has filters as long as they are worth it.
    asked: bool,
    /// Of each row group, 0 where it has none.
    blocks: Vec<u32>,
    content: Vec<u8>,
}

impl ColumnBuilder {
    fn new(at: usize, asked: bool) -> ColumnBuilder {
        ColumnBuilder { at, asked, blocks: Vec::new(), content: Vec::new() }
    }

    /// The filter of the next row group; how many blocks it has.
    fn push(&mut self, filter: &[u8]) -> u64 {
        let blocks = (filter.len() / BLOCK_BYTES) as u32;
        self.blocks.push(blocks);
        self.content.extend_from_slice(filter);
        u64::from(blocks)
    }
}

impl FiltersBuilder {
    pub fn new(schema: &SegmentSchema, asked: &[ColumnId]) -> FiltersBuilder {
        let wanted = |(_, column): &(usize, &SegmentColumn)| asked.contains(&column.id) && has_filter(column);
        let columns = schema.columns.iter().enumerate().filter(wanted);
        FiltersBuilder { row_groups: 0, columns: columns.map(|(at, _)| ColumnBuilder::new(at, true)).collect() }
    }

    /// Adds the next row group; `before` are those that were written before it.
    pub fn add(&mut self, schema: &SegmentSchema, before: &[RowGroup], written: &Written<'_>) {
        let rows = written.zones.first().map_or(0, |zone| zone.rows);
        let mut room = (written.bytes as f64 * SHARE_MAX) as u64 / BLOCK_BYTES as u64;
        let is_first = self.row_groups == 0 && rows >= ROWS_MIN;
        let stays = |at: usize| stays(before.iter().map(|group| &group.zones), written.zones, at);
        self.columns.retain(|column| column.asked || is_first || stays(column.at));
        for column in &mut self.columns {
            if column.asked {
                column.push(&build_asked(&schema.columns[column.at], written, column.at));
                continue;
            }
            let built = match rows >= ROWS_MIN {
                true => build(&schema.columns[column.at], written, column.at, room).unwrap_or_default(),
                false => Vec::new(),
            };
            room -= column.push(&built);
        }
        if is_first {
            let is_known = |at: &usize| self.columns.iter().any(|column| column.at == *at);
            let mut columns: Vec<usize> = (0..schema.columns.len()).filter(|at| !is_known(at)).collect();
            // Short values are what is searched for most.
            columns.sort_by_key(|at| written.chunks[*at].pages.iter().map(|page| page.extent.bytes).sum::<u32>());
            for at in columns {
                let Some(built) = build(&schema.columns[at], written, at, room) else { continue };
                let mut column = ColumnBuilder::new(at, false);
                room -= column.push(&built);
                self.columns.push(column);
            }
        }
        self.row_groups += 1;
    }

    /// Writes a section per column.
    pub fn finish(self, schema: &SegmentSchema, sink: &mut FileSink) -> Result<Vec<Section>> {
        let mut columns = self.columns;
        columns.sort_by_key(|column| column.at);
        let write = |column: ColumnBuilder| {
            let mut extra = Vec::new();
            column.blocks.iter().for_each(|blocks| varint::put(&mut extra, u64::from(*blocks)));
            let section = Section::write(sink, SECTION_COLUMN_FILTERS, SECTION_PAGE_BYTES, &column.content, extra)?;
            Ok(section.of_column(schema.columns[column.at].id.0))
        };
        columns.into_iter().map(write).collect()
    }
}

/// Whether a column's bounds still say nothing of where in the file a value is.
fn stays<'z>(before: impl Iterator<Item = &'z Vec<ZoneMap>>, own: &'z [ZoneMap], at: usize) -> bool {
    let zones: Vec<&ZoneMap> = before.map(|zones| &zones[at]).chain([&own[at]]).collect();
    let mut all = ZoneMap::new(0);
    zones.iter().for_each(|zone| all.merge(zone));
    spread(zones.into_iter(), &all) >= ROW_GROUP_SPREAD_MIN
}

/// The filter of a chunk in no more than so many blocks, if it is worth one.
fn build(column: &SegmentColumn, written: &Written<'_>, at: usize, room: u64) -> Option<Vec<u8>> {
    let (chunk, zone) = (&written.chunks[at], &written.zones[at]);
    let values = u64::from(zone.rows - zone.nulls);
    let blocks = |bits: u64| (values * bits).div_ceil(BLOCK_BYTES as u64 * 8);
    let repeats = matches!(chunk.shared, Some((SharedKind::Strings | SharedKind::Ints, _)));
    if !has_filter(column) || repeats || values < u64::from(ROWS_MIN) || room < blocks(BITS_PER_VALUE_MIN) {
        return None;
    }
    if spread(chunk.pages.iter().map(|page| &page.zone), zone) < PAGE_SPREAD_MIN {
        return None;
    }
    let hashes = hashes(column, &written.pieces[at])?;
    let mut sample: Vec<u64> = hashes.iter().step_by(hashes.len().div_ceil(SAMPLE).max(1)).copied().collect();
    let sampled = sample.len();
    sample.sort_unstable();
    sample.dedup();
    if (sample.len() as f64) < sampled as f64 * SAMPLE_DISTINCT_MIN {
        return None;
    }
    let built = filter::build_in(&hashes, room.min(blocks(BITS_PER_VALUE_MAX)) as u32);
    (filter::distinct(&built) >= hashes.len() as f64 * DISTINCT_MIN).then_some(built)
}

/// The filter of a chunk whatever its values are: as large as those that differ ask for.
fn build_asked(column: &SegmentColumn, written: &Written<'_>, at: usize) -> Vec<u8> {
    let Some(mut hashes) = hashes(column, &written.pieces[at]) else { return Vec::new() };
    hashes.sort_unstable();
    hashes.dedup();
    filter::build(&hashes)
}

/// Whether values that are equal have equal hashes.
pub(super) fn has_filter(column: &SegmentColumn) -> bool {
    let floats_or_bools = matches!(column.ty, PhysType::Bool | PhysType::F32 | PhysType::F64);
    column.order.has_bounds() && !floats_or_bools && column.id != super::HIDDEN_KEY
}

/// Of values that are not null.
fn hashes(column: &SegmentColumn, pieces: &[ArrayRef]) -> Option<Vec<u64>> {
    let mut hashes: Vec<u64> = match Values::gather(column.ty, pieces) {
        Values::Ints(values) => values.into_iter().map(int_hash).collect(),
        Values::Wide(values) => values.into_iter().map(|value| filter::key_hash(&value.to_le_bytes())).collect(),
        Values::Fixed16(values) => values.into_iter().map(|value| filter::key_hash(&value)).collect(),
        Values::Strings(values) => {
            let hash = |value: &[u8]| Some(filter::key_hash(zone::comparable(column.order, value)?));
            values.into_iter().map(hash).collect::<Option<_>>()?
        }
    };
    if let Some(valid) = validity(pieces) {
        hashes = valid.set_indices().map(|row| hashes[row]).collect();
    }
    Some(hashes)
}

/// The same of a constant; `None` if it is not one of the column's values.
fn hash_of(column: &SegmentColumn, value: &Datum) -> Option<u64> {
    Some(match (column.ty, value) {
        (PhysType::I16, Datum::I16(value)) => int_hash(i64::from(*value)),
        (PhysType::I32, Datum::I32(value)) => int_hash(i64::from(*value)),
        (PhysType::I64, Datum::I64(value)) => int_hash(*value),
        (PhysType::I128, Datum::I128(value)) => filter::key_hash(&value.to_le_bytes()),
        (PhysType::Fixed16, Datum::Fixed16(value)) => filter::key_hash(value),
        (PhysType::Bytes, Datum::Bytes(value)) => filter::key_hash(zone::comparable(column.order, value)?),
        _ => return None,
    })
}

/// Which part of all bounds those of a part span, on average. 0 where bounds are missing.
fn spread<'z>(parts: impl Iterator<Item = &'z ZoneMap>, all: &ZoneMap) -> f64 {
    let (Some(least), Some(greatest)) = (&all.min, &all.max) else { return 0.0 };
    let skipped = match (least, greatest) {
        (Datum::Bytes(least), Datum::Bytes(greatest)) => common(least, greatest),
        (Datum::Fixed16(least), Datum::Fixed16(greatest)) => common(least, greatest),
        _ => 0,
    };
    let span = |zone: &ZoneMap| Some(number(zone.max.as_ref()?, skipped)? - number(zone.min.as_ref()?, skipped)?);
    let Some(all) = span(all).filter(|all| *all > 0.0) else { return 0.0 };
    let (mut count, mut sum) = (0.0, 0.0);
    for part in parts.filter(|part| !part.all_null()) {
        count += 1.0;
        sum += span(part).unwrap_or(0.0) / all;
    }
    if count == 0.0 { 0.0 } else { sum / count }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A value on a line; of bytes, what follows those that are skipped.
fn number(value: &Datum, skipped: usize) -> Option<f64> {
    let of_bytes = |bytes: &[u8]| {
        let mut first = [0; 8];
        first.iter_mut().zip(bytes.iter().skip(skipped)).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(first) as f64
    };
    match value {
        Datum::I16(value) => Some(f64::from(*value)),
        Datum::I32(value) => Some(f64::from(*value)),
        Datum::I64(value) => Some(*value as f64),
        Datum::I128(value) => Some(*value as f64),
        Datum::Bytes(bytes) => Some(of_bytes(bytes)),
        Datum::Fixed16(bytes) => Some(of_bytes(bytes)),
        _ => None,
    }
}

/// The filters of one column of an open file.
pub(super) struct ColumnFilter {
    /// Its place in the schema.
    at: usize,
    column: SegmentColumn,
    filter: Filter,
    /// First block and number of blocks, by row group.
    blocks: Vec<(u32, u32)>,
}

impl ColumnFilter {
    /// Those of a file. Of columns that the file lacks there are none.
    pub fn all(sections: &[Section], schema: &SegmentSchema, row_groups: usize) -> Decoded<Vec<ColumnFilter>> {
        let known = sections.iter().filter(|section| section.kind == SECTION_COLUMN_FILTERS);
        let with_column = known.filter_map(|section| {
            let at = schema.columns.iter().position(|column| column.id.0 == section.column)?;
            Some((section, at))
        });
        with_column.map(|(section, at)| ColumnFilter::new(section, at, schema.columns[at], row_groups)).collect()
    }

    fn new(section: &Section, at: usize, column: SegmentColumn, row_groups: usize) -> Decoded<ColumnFilter> {
        const WHAT: Damage = Damage("blocks of a column's filters");
        let (mut rest, mut first) = (section.extra.as_slice(), 0u32);
        let mut blocks = Vec::with_capacity(row_groups);
        for _ in 0..row_groups {
            let count = u32::try_from(take_varint(&mut rest, WHAT.0)?).map_err(|_| WHAT)?;
            blocks.push((first, count));
            first = first.checked_add(count).ok_or(WHAT)?;
        }
        if !rest.is_empty() || u64::from(first) * BLOCK_BYTES as u64 != section.bytes {
            return Err(WHAT);
        }
        Ok(ColumnFilter { at, column, filter: Filter::new(section.clone()), blocks })
    }

    pub fn column(&self) -> ColumnId {
        self.column.id
    }

    pub fn is_of(&self, at: usize) -> bool {
        self.at == at
    }

    /// True only if no row of the row group, whose bounds are given, satisfies the predicate, which is one over this column.
    pub fn rules_out(
        &self,
        file: &FramedFile,
        row_group: usize,
        zone: &ZoneMap,
        predicate: &ColumnPredicate,
    ) -> Result<bool> {
        let hashes = match predicate {
            ColumnPredicate::Compare { op: CompareOp::Eq, value, .. } => self.hashes(std::slice::from_ref(value)),
            ColumnPredicate::In { values, .. } => self.hashes(values),
            ColumnPredicate::Among { values, .. } => self.hashes_within(values, zone),
            _ => None,
        };
        let (first, count) = self.blocks[row_group];
        let Some(hashes) = hashes.filter(|hashes| count > 0 && hashes.len() <= VALUES_MAX) else { return Ok(false) };
        for hash in hashes {
            if self.filter.contains_in(file, first..first + count, hash)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Nothing equals a null. `None`: nothing is known of one of the values.
    fn hashes(&self, values: &[Datum]) -> Option<Vec<u64>> {
        let values = values.iter().filter(|value| !value.is_null());
        values.map(|value| hash_of(&self.column, value)).collect()
    }

    /// Of ascending integers those that lie between bounds.
    fn hashes_within(&self, values: &[i64], zone: &ZoneMap) -> Option<Vec<u64>> {
        matches!(self.column.ty, PhysType::I16 | PhysType::I32 | PhysType::I64).then_some(())?;
        let (least, most) = zone.int_bounds()?;
        let (from, to) =
            (values.partition_point(|value| *value < least), values.partition_point(|value| *value <= most));
        (to - from <= VALUES_MAX).then(|| values[from..to].iter().map(|value| int_hash(*value)).collect())
    }
}

#[cfg(test)]
mod tests;
