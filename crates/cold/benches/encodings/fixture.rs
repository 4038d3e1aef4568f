//! Segments of given columns in a folder of their own, with a cache that holds all of them.

use arrow_array::ArrayRef;
use basalt_cold::{
    BlockCache, Files, KeySpec, LocalStore, Segment, SegmentColumn, SegmentOptions, SegmentSchema, SegmentWriter,
    Stamps,
};
use basalt_sched::os::real::RealFs;
use basalt_types::{Epoch, FileId};
use std::cell::Cell;
use std::sync::Arc;

const CACHE_BYTES: u64 = 1 << 30;

pub struct Fixture {
    files: Files,
    serial: Cell<u32>,
    /// Goes when the fixture does.
    _folder: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Result<Fixture, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let files = Files::new(Arc::new(LocalStore::open(Arc::new(RealFs), folder.path())?));
        Ok(Fixture { files, serial: Cell::new(0), _folder: folder })
    }

    /// A segment of these columns, of which the first is given as its key without being in order. Texts are compressed with or without zstd.
    pub fn segment(
        &self,
        columns: &[SegmentColumn],
        chunks: impl Iterator<Item = Vec<ArrayRef>>,
        zstd: bool,
    ) -> Result<Segment, Box<dyn std::error::Error>> {
        let id = FileId { epoch: Epoch(1), serial: self.serial.replace(self.serial.get() + 1) };
        let schema = SegmentSchema { columns: columns.to_vec(), key: KeySpec::Columns(vec![columns[0].id]) };
        let options = SegmentOptions { sorted: false, filter: false, zstd, ..SegmentOptions::default() };
        let mut writer = SegmentWriter::create(&self.files, id, schema, options)?;
        for chunk in chunks {
            writer.push(&chunk, Stamps::Uniform)?;
        }
        writer.finish()?;
        Ok(Segment::open(&self.files, id, &Arc::new(BlockCache::new(0, CACHE_BYTES)))?)
    }
}
