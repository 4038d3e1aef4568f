//! Sketches of columns: how many different values each has in this file ([`crate::sketch`]).
//!
//! A column has one if its bytes tell which of its values are equal, and if that says more than its bounds: none of
//! booleans, of the hidden key, of a key of one column, whose rows all differ, and of columns with one value or none.
//! A value is hashed once for a chunk at most, entries of a dictionary in place of what refers to them.

use super::layout::RowGroup;
use super::zone::{ZoneMap, comparable};
use super::{HIDDEN_KEY, KeySpec, PAGE_ROWS, SegmentColumn, SegmentSchema};
use crate::Result;
use crate::encoding::{Damage, Decoded, take_varint};
use crate::frame::{FramedFile, SECTION_SKETCHES, Section};
use crate::sketch::{Sketch, bytes_hash, float_hash, int_hash};
use crate::store::FileSink;
use basalt_types::{Datum, PhysType, varint};

/// Whether a column's values are counted while it is written.
pub(super) fn is_sketched(schema: &SegmentSchema, column: &SegmentColumn) -> bool {
    let is_key = matches!(&schema.key, KeySpec::Columns(columns) if *columns == [column.id]);
    column.order.has_bounds() && column.ty != PhysType::Bool && column.id != HIDDEN_KEY && !is_key
}

/// Pages that have values, with their bounds.
fn filled<'v, T>(values: &'v [T], zones: &'v [ZoneMap]) -> impl Iterator<Item = (&'v [T], &'v ZoneMap)> {
    values.chunks(PAGE_ROWS as usize).zip(zones).filter(|(_, zone)| !zone.all_null())
}

fn float_of(ty: PhysType) -> fn(i64) -> u64 {
    match ty {
        PhysType::F32 => |bits| float_hash(f64::from(f32::from_bits(bits as u32))),
        _ => |bits| float_hash(f64::from_bits(bits as u64)),
    }
}

/// The entries of a dictionary of integers or of bits of floats, all of which are values.
pub(super) fn add_int_entries(sketch: &mut Sketch, ty: PhysType, entries: &[i64]) {
    let hash = if matches!(ty, PhysType::F32 | PhysType::F64) { float_of(ty) } else { int_hash };
    entries.iter().for_each(|entry| sketch.add(hash(*entry)));
}

/// Adds the integers, or the bits of floats, of a chunk. Its nulls have the value of another row, except in pages of
/// nothing else.
pub(super) fn add_ints(sketch: &mut Sketch, ty: PhysType, values: &[i64], zones: &[ZoneMap]) {
    if matches!(ty, PhysType::F32 | PhysType::F64) {
        return filled(values, zones).for_each(|(values, _)| sketch.add_runs(values.iter().copied(), float_of(ty)));
    }
    let bounds = zones.iter().filter_map(ZoneMap::int_bounds);
    let Some(bounds) = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return };
    if zones.iter().any(ZoneMap::all_null) {
        filled(values, zones).for_each(|(values, zone)| sketch.add_ints(values, zone.int_bounds().unwrap_or(bounds)));
    } else {
        sketch.add_ints(values, bounds);
    }
}

pub(super) fn add_fixed<T: Copy + PartialEq>(
    sketch: &mut Sketch,
    values: &[T],
    zones: &[ZoneMap],
    hash: impl Fn(T) -> u64,
) {
    filled(values, zones).for_each(|(values, _)| sketch.add_runs(values.iter().copied(), &hash));
}

pub(super) fn add_strings(sketch: &mut Sketch, column: &SegmentColumn, values: &[&[u8]], zones: &[ZoneMap]) {
    for (values, _) in filled(values, zones) {
        let values = values.iter().filter_map(|value| comparable(column.order, value));
        sketch.add_runs(values, bytes_hash);
    }
}

/// The entries of a dictionary, all of which are values.
pub(super) fn add_entries(sketch: &mut Sketch, column: &SegmentColumn, entries: &[&[u8]]) {
    let entries = entries.iter().filter_map(|entry| comparable(column.order, entry));
    entries.for_each(|entry| sketch.add(bytes_hash(entry)));
}

fn hash_of(value: &Datum) -> Option<u64> {
    Some(match value {
        Datum::Bool(value) => int_hash(i64::from(*value)),
        Datum::I16(value) => int_hash(i64::from(*value)),
        Datum::I32(value) => int_hash(i64::from(*value)),
        Datum::I64(value) => int_hash(*value),
        Datum::F32(value) => float_hash(f64::from(*value)),
        Datum::F64(value) => float_hash(*value),
        Datum::I128(value) => bytes_hash(&value.to_le_bytes()),
        Datum::Fixed16(value) => bytes_hash(value),
        Datum::Bytes(value) => bytes_hash(value),
        Datum::Null => return None,
    })
}

/// What bounds alone tell: no value, one, or both that a boolean has.
fn of_bounds(column: &SegmentColumn, zone: &ZoneMap) -> Option<Sketch> {
    let mut sketch = Sketch::default();
    if zone.all_null() {
        return Some(sketch);
    }
    let (least, greatest) = (zone.min.as_ref()?, zone.max.as_ref()?);
    // Bounds of long strings lie beside their values, and differ.
    if column.ty != PhysType::Bool && super::zone::compare(least, greatest)?.is_ne() {
        return None;
    }
    [least, greatest].into_iter().try_for_each(|value| hash_of(value).map(|hash| sketch.add(hash)))?;
    Some(sketch)
}

/// Writes what was counted, behind everything but the footer, so that one read brings both.
pub(super) fn write(
    columns: impl Iterator<Item = Option<Sketch>>,
    schema: &SegmentSchema,
    row_groups: &[RowGroup],
    sink: &mut FileSink,
) -> Result<Option<Section>> {
    let (mut content, mut sizes) = (Vec::new(), Vec::new());
    for (at, (sketch, column)) in columns.zip(&schema.columns).enumerate() {
        let from = content.len();
        let mut zone = ZoneMap::new(0);
        row_groups.iter().for_each(|row_group| zone.merge(&row_group.zones[at]));
        if let Some(sketch) = sketch.filter(|_| of_bounds(column, &zone).is_none()) {
            sketch.put(&mut content);
        }
        varint::put(&mut sizes, (content.len() - from) as u64);
    }
    if content.is_empty() {
        return Ok(None);
    }
    let page_bytes = content.len() as u32;
    Section::write(sink, SECTION_SKETCHES, page_bytes, &content, sizes).map(Some)
}

/// The sketches of an open file.
pub(super) struct Sketches {
    section: Section,
    /// Of each column, in schema order: where its sketch is. Empty where it has none.
    places: Vec<std::ops::Range<usize>>,
}

impl Sketches {
    pub fn among(sections: &[Section], schema: &SegmentSchema) -> Decoded<Option<Sketches>> {
        const WHAT: Damage = Damage("sizes of sketches");
        let Some(section) = sections.iter().find(|section| section.kind == SECTION_SKETCHES) else { return Ok(None) };
        let (mut rest, mut end) = (section.extra.as_slice(), 0u64);
        let mut places = Vec::with_capacity(schema.columns.len());
        for _ in &schema.columns {
            let start = end;
            end = end.checked_add(take_varint(&mut rest, WHAT.0)?).filter(|end| *end <= section.bytes).ok_or(WHAT)?;
            places.push(start as usize..end as usize);
        }
        if !rest.is_empty() || end != section.bytes || section.pages() != 1 {
            return Err(WHAT);
        }
        Ok(Some(Sketches { section: section.clone(), places }))
    }

    /// Of the column at a place of the schema.
    fn get(&self, file: &FramedFile, at: usize) -> Result<Option<Sketch>> {
        let place = self.places[at].clone();
        if place.is_empty() {
            return Ok(None);
        }
        let block = file.block(self.section.page(0))?;
        let sketch = block.get(place).ok_or(Damage("a sketch beyond its section")).and_then(Sketch::take);
        sketch.map(Some).map_err(|damage| file.damaged(self.section.offset, damage))
    }

    /// Reads all of them.
    pub fn verify(&self, file: &FramedFile) -> Result<()> {
        (0..self.places.len()).try_for_each(|at| self.get(file, at).map(drop))
    }
}

/// The values of a column, whose bounds in the file are given; `None` where nothing is known.
pub(super) fn of_column(
    sketches: Option<&Sketches>,
    file: &FramedFile,
    at: usize,
    column: &SegmentColumn,
    zone: &ZoneMap,
) -> Result<Option<Sketch>> {
    match (of_bounds(column, zone), sketches) {
        (Some(sketch), _) => Ok(Some(sketch)),
        (None, Some(sketches)) => sketches.get(file, at),
        (None, None) => Ok(None),
    }
}
