//! The footer: schema, row groups with their zone maps, sections of the index region.
//!
//! `docs/format/segment.md`, "Footer", has the bytes. Everything else in the file is found from here.

use super::zone::ZoneMap;
use super::{KeySpec, ROW_GROUP_ROWS, ROWS_MAX, SegmentColumn, SegmentSchema, ValueOrder};
use crate::encoding::{Damage, Decoded, take_array, take_varint};
use crate::frame::{Extent, Section, put_stamp_range, take_stamp_range, take_u32};
use basalt_types::{ColumnId, FileId, Key, PhysType, Version, varint};

pub(super) const MAGIC: &[u8; 8] = b"BSLT-SEG";

/// One row group as the footer knows it.
#[derive(Clone, PartialEq, Debug)]
pub struct RowGroup {
    pub first_ordinal: u32,
    pub rows: u32,
    /// Least and greatest version if rows carry their own.
    pub stamp_range: Option<(Version, Version)>,
    /// In schema order.
    pub zones: Vec<ZoneMap>,
    pub(super) directory: Extent,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Layout {
    pub id: FileId,
    pub rows: u32,
    pub schema: SegmentSchema,
    pub sorted: bool,
    /// Ended because its rows are wide.
    pub wide: bool,
    /// Written by who asked for zstd, whether or not it has texts.
    pub zstd: bool,
    /// Rows carry versions of their own: each row group has a chunk more than columns.
    pub stamped: bool,
    pub key_range: Option<(Key, Key)>,
    pub row_groups: Vec<RowGroup>,
    pub sections: Vec<Section>,
}

impl Layout {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.id.to_u64().to_le_bytes());
        varint::put(&mut out, u64::from(self.rows));
        out.push(
            u8::from(self.sorted) | u8::from(self.stamped) << 1 | u8::from(self.wide) << 2 | u8::from(self.zstd) << 3,
        );
        put_schema(&self.schema, &mut out);
        out.push(u8::from(self.key_range.is_some()));
        if let Some((min, max)) = &self.key_range {
            varint::put_slice(&mut out, min.as_bytes());
            varint::put_slice(&mut out, max.as_bytes());
        }
        for row_group in &self.row_groups {
            row_group.directory.put(&mut out);
            put_stamp_range(row_group.stamp_range, &mut out);
            row_group.zones.iter().for_each(|zone| zone.put(&mut out));
        }
        varint::put(&mut out, self.sections.len() as u64);
        self.sections.iter().for_each(|section| section.put(&mut out));
        out
    }

    pub fn decode(mut input: &[u8]) -> Decoded<Layout> {
        let input = &mut input;
        let id = FileId::from_u64(u64::from_le_bytes(take_array(input, "file id")?));
        let rows = take_u32(input, "number of rows")?;
        let [flags] = take_array(input, "flags")?;
        if rows > ROWS_MAX || flags > 15 {
            return Err(Damage("too many rows or unknown flags"));
        }
        let schema = take_schema(input)?;
        let key_range = take_key_range(input)?;
        let mut row_groups = Vec::with_capacity(rows.div_ceil(ROW_GROUP_ROWS) as usize);
        for first_ordinal in (0..rows).step_by(ROW_GROUP_ROWS as usize) {
            let rows = (rows - first_ordinal).min(ROW_GROUP_ROWS);
            let directory = Extent::take(input)?;
            let stamp_range = take_stamp_range(input)?;
            let zones = schema.columns.iter().map(|_| ZoneMap::take(input, rows)).collect::<Decoded<Vec<_>>>()?;
            row_groups.push(RowGroup { first_ordinal, rows, stamp_range, zones, directory });
        }
        let count = take_varint(input, "number of sections")?;
        let sections = (0..count).map(|_| Section::take(input)).collect::<Decoded<Vec<_>>>()?;
        if !input.is_empty() {
            return Err(Damage("bytes behind the last section"));
        }
        let [sorted, stamped, wide, zstd] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        Ok(Layout { id, rows, schema, sorted, wide, zstd, stamped, key_range, row_groups, sections })
    }

    /// Position of a column in the schema.
    pub fn position(&self, column: ColumnId) -> Option<usize> {
        self.schema.columns.iter().position(|candidate| candidate.id == column)
    }

    /// Chunks of a row group.
    pub fn chunks(&self) -> usize {
        self.schema.columns.len() + usize::from(self.stamped)
    }

    pub fn section(&self, kind: u16) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }
}

/// In the place of the order of arrays: from here on the type of their elements.
const ARRAYS: u8 = 16;

/// `columns varint | (id u16, type u8, order u8)… | key columns varint, 0 for the hidden key | id u16…`
fn put_schema(schema: &SegmentSchema, out: &mut Vec<u8>) {
    varint::put(out, schema.columns.len() as u64);
    for column in &schema.columns {
        out.extend_from_slice(&column.id.0.to_le_bytes());
        out.extend_from_slice(&[column.ty as u8, column.elements.map_or(column.order as u8, |ty| ARRAYS + ty as u8)]);
    }
    let key = match &schema.key {
        KeySpec::Hidden => &[][..],
        KeySpec::Columns(columns) => columns,
    };
    varint::put(out, key.len() as u64);
    key.iter().for_each(|column| out.extend_from_slice(&column.0.to_le_bytes()));
}

fn take_schema(input: &mut &[u8]) -> Decoded<SegmentSchema> {
    const WHAT: Damage = Damage("schema");
    let count = take_varint(input, WHAT.0)?;
    let column = |_| {
        let id = ColumnId(u16::from_le_bytes(take_array(input, WHAT.0)?));
        let [ty, order] = take_array(input, WHAT.0)?;
        let ty = PhysType::from_u8(ty).ok_or(WHAT)?;
        let elements = order.checked_sub(ARRAYS).map(|ty| PhysType::from_u8(ty).ok_or(WHAT)).transpose()?;
        let order = if elements.is_some() { ValueOrder::Opaque } else { ValueOrder::from_u8(order).ok_or(WHAT)? };
        Ok(SegmentColumn { id, ty, order, elements })
    };
    let columns = (0..count).map(column).collect::<Decoded<Vec<_>>>()?;
    let count = take_varint(input, WHAT.0)?;
    let id = |_| Ok(ColumnId(u16::from_le_bytes(take_array(input, WHAT.0)?)));
    let key = (0..count).map(id).collect::<Decoded<Vec<_>>>()?;
    let schema = SegmentSchema { columns, key: if key.is_empty() { KeySpec::Hidden } else { KeySpec::Columns(key) } };
    if schema.key_positions().is_none() { Err(Damage("key columns are not in the schema")) } else { Ok(schema) }
}

fn take_key_range(input: &mut &[u8]) -> Decoded<Option<(Key, Key)>> {
    const WHAT: Damage = Damage("key range");
    match take_array(input, WHAT.0)? {
        [0] => Ok(None),
        [1] => {
            let mut key = || varint::take_slice(input).map(Key::from).ok_or(WHAT);
            Ok(Some((key()?, key()?)))
        }
        _ => Err(WHAT),
    }
}
