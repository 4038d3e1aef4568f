//! Parquet files: their columns, and their rows as record batches.

use crate::column::{FileColumn, sql_type};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use basalt_sched::{File, FileSystem, OpenMode};
use basalt_types::DataType;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::LogicalType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct ParquetFile {
    path: PathBuf,
    source: Source,
    metadata: ArrowReaderMetadata,
    columns: Vec<FileColumn>,
}

impl ParquetFile {
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<ParquetFile> {
        let io_error = |source| Error::Io { path: path.to_path_buf(), source };
        let file = fs.open(path, OpenMode::Read).map_err(io_error)?;
        let source = Source { len: file.len().map_err(io_error)?, file };
        let metadata =
            ArrowReaderMetadata::load(&source, ArrowReaderOptions::default()).map_err(|error| damaged(path, error))?;
        // Arrow knows a UUID by its 16 bytes only.
        let stored = metadata.metadata().file_metadata().schema_descr().root_schema().get_fields();
        let columns = metadata.schema().fields().iter().zip(stored).map(|(field, stored)| {
            let ty = match stored.get_basic_info().logical_type_ref() {
                Some(LogicalType::Uuid) => Some(DataType::Uuid),
                _ => sql_type(field.data_type()),
            };
            let ty = ty.ok_or_else(|| Error::UnknownType {
                path: path.to_path_buf(),
                column: field.name().clone(),
                found: field.data_type().to_string(),
            })?;
            Ok(FileColumn { name: field.name().clone(), ty, nullable: field.is_nullable() })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(ParquetFile { path: path.to_path_buf(), source, metadata, columns })
    }

    pub fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    pub fn rows(&self) -> u64 {
        self.metadata.metadata().file_metadata().num_rows().max(0) as u64
    }

    pub fn bytes(&self) -> u64 {
        self.source.len
    }

    /// The rows in file order, at most `rows` in a batch, with these columns (positions, ascending).
    pub fn batches(&self, columns: &[usize], rows: usize) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.source.clone(), self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let reader = builder.with_projection(mask).with_batch_size(rows).build();
        let path = self.path.clone();
        let reader = reader.map_err(|error| damaged(&path, error))?;
        Ok(reader
            .map(move |batch| batch.map_err(|error| Error::Parquet { path: path.clone(), reason: error.to_string() })))
    }
}

fn damaged(path: &Path, error: ParquetError) -> Error {
    Error::Parquet { path: path.to_path_buf(), reason: error.to_string() }
}

/// A file as the Parquet reader wants it.
#[derive(Clone)]
struct Source {
    file: Arc<dyn File>,
    len: u64,
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Source {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(Cursor { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of a file of {} bytes", self.len)));
        }
        let mut buf = vec![0; length];
        self.file.read_exact_at(&mut buf, start)?;
        Ok(buf.into())
    }
}

struct Cursor {
    file: Arc<dyn File>,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
