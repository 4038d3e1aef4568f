//! The file that rows move to from hot, in either encoding.

use crate::bulk::{open_segment, segment_is_full};
use crate::{Engine, Error, Result, rows};
use basalt_cold::{RowFileWriter, SegmentWriter, Stamps};
use basalt_hot::{HotRow, Rows};
use basalt_meta::FileKind;
use basalt_types::{FileId, TableDef, Version};

pub(super) enum Writer {
    Segment(SegmentWriter),
    Rows(RowFileWriter),
}

impl Writer {
    pub fn create(engine: &Engine, table: &TableDef, id: FileId, kind: FileKind) -> Result<Writer> {
        Ok(match kind {
            FileKind::Segment => Writer::Segment(open_segment(engine, table, id)?),
            FileKind::RowFile => Writer::Rows(RowFileWriter::create(&engine.files, id)?),
        })
    }

    /// Whether what remains is for another file.
    pub fn is_full(&self, engine: &Engine) -> bool {
        match self {
            Writer::Segment(writer) => segment_is_full(engine, writer),
            Writer::Rows(writer) => u64::from(writer.rows()) >= engine.config.segment_rows,
        }
    }

    /// Appends settled rows in key order, with their stamps.
    pub fn push(&mut self, table: &TableDef, rows: &Rows) -> Result<()> {
        let version = |row: HotRow<'_>| row.stamp.as_version().expect("settled rows carry versions");
        match self {
            Writer::Segment(writer) => {
                let columns = rows::segment_columns(table, rows)
                    .ok_or_else(|| Error::Corrupt(format!("a hot row of table {} does not fit it", table.id)))?;
                let versions: Vec<Version> = rows.iter().map(version).collect();
                writer.push(&columns, Stamps::Versions(&versions))?;
            }
            Writer::Rows(writer) => {
                for row in rows.iter() {
                    writer.push(row.key, row.rid, version(row), Some(row.row))?;
                }
            }
        }
        Ok(())
    }

    /// The file is durable on return. Its bytes.
    pub fn finish(self) -> Result<u64> {
        Ok(match self {
            Writer::Segment(writer) => writer.finish()?.bytes,
            Writer::Rows(writer) => writer.finish()?.bytes,
        })
    }
}
