//! One file to load: its columns, its COPY statement, and its bytes in pieces.

use super::{Chosen, Pieces, SharedOptions, match_columns, quote};
use crate::cli::LoadArgs;
use anyhow::Result;
use basalt_ingest::{CopyEncoder, CsvFile, CsvOptions, FileColumn, ParquetFile};
use basalt_sched::FileSystem;
use basalt_types::DataType;
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CSV_PIECE_BYTES: usize = 1 << 18;
const PARQUET_PIECE_ROWS: usize = 8192;

/// What is sent in one message.
pub struct Piece {
    pub bytes: Bytes,
    pub rows: u64,
    /// How much of the file it stands for.
    pub progress_bytes: u64,
}

pub enum Source {
    Csv { path: PathBuf, file: CsvFile, options: SharedOptions },
    Parquet { path: PathBuf, file: ParquetFile },
}

impl Source {
    pub fn open(fs: &dyn FileSystem, path: &Path, args: &LoadArgs) -> Result<Source> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let path_buf = path.to_path_buf();
        if matches!(extension.to_ascii_lowercase().as_str(), "parquet" | "pq") {
            return Ok(Source::Parquet { path: path_buf, file: ParquetFile::open(fs, path)? });
        }
        let delimiter = match (args.delimiter, extension) {
            (Some(delimiter), _) => u8::try_from(delimiter)
                .ok()
                .filter(u8::is_ascii)
                .ok_or_else(|| anyhow::anyhow!("--delimiter {delimiter}: a delimiter is one ASCII character"))?,
            (None, "tsv") => b'\t',
            (None, "tbl") => b'|',
            (None, _) => b',',
        };
        let header = !args.no_header && extension != "tbl";
        let options = Arc::new(CsvOptions { delimiter, header, null: args.null.clone() });
        Ok(Source::Csv { path: path_buf, file: CsvFile::open(fs, path)?, options })
    }

    pub fn path(&self) -> &Path {
        match self {
            Source::Csv { path, .. } | Source::Parquet { path, .. } => path,
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Source::Csv { file, .. } => file.bytes(),
            Source::Parquet { file, .. } => file.bytes(),
        }
    }

    pub fn columns(&self) -> Result<Vec<FileColumn>> {
        Ok(match self {
            Source::Csv { file, options, .. } => file.infer(options)?,
            Source::Parquet { file, .. } => file.columns().to_vec(),
        })
    }

    /// The table's columns that this file fills; `None`: all of them, in the table's order.
    pub fn match_columns(&self, target: &[(String, DataType)]) -> Result<Option<Vec<Chosen>>> {
        let names = match self {
            Source::Csv { options, .. } if !options.header => return Ok(None),
            Source::Csv { file, options, .. } => file.names(options)?,
            Source::Parquet { file, .. } => file.columns().iter().map(|column| column.name.clone()).collect(),
        };
        match_columns(&self.path().display().to_string(), &names, target).map(Some)
    }

    pub fn copy_statement(&self, table: &str, chosen: Option<&[Chosen]>) -> String {
        let columns = chosen.map_or(String::new(), |chosen| {
            let names: Vec<String> = chosen.iter().map(|column| quote(&column.name)).collect();
            format!(" ({})", names.join(", "))
        });
        match self {
            Source::Parquet { .. } => format!("COPY {table}{columns} FROM STDIN (FORMAT binary)"),
            Source::Csv { options, .. } => format!(
                "COPY {table}{columns} FROM STDIN (FORMAT csv, HEADER {}, DELIMITER E'\\x{:02x}', NULL '{}')",
                options.header,
                options.delimiter,
                options.null.replace('\'', "''")
            ),
        }
    }

    /// Reads the whole file into `pieces`, until nobody wants them any more.
    pub fn read_into(self, chosen: Vec<Chosen>, pieces: &Pieces) {
        let result = match self {
            Source::Csv { file, .. } => read_csv(&file, pieces),
            Source::Parquet { file, .. } => read_parquet(&file, chosen, pieces),
        };
        if let Err(error) = result {
            // Nobody listens any more: then nobody asks for the reason either.
            let _ = pieces.blocking_send(Err(error));
        }
    }
}

fn read_csv(file: &CsvFile, pieces: &Pieces) -> basalt_ingest::Result<()> {
    let mut offset = 0;
    loop {
        let bytes = file.read(offset, CSV_PIECE_BYTES)?;
        if bytes.is_empty() {
            return Ok(());
        }
        offset += bytes.len() as u64;
        let rows = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let progress_bytes = bytes.len() as u64;
        if pieces.blocking_send(Ok(Piece { bytes: bytes.into(), rows, progress_bytes })).is_err() {
            return Ok(());
        }
    }
}

fn read_parquet(file: &ParquetFile, chosen: Vec<Chosen>, pieces: &Pieces) -> basalt_ingest::Result<()> {
    let positions: Vec<usize> = chosen.iter().map(|column| column.position).collect();
    let encoder = CopyEncoder::new(chosen.into_iter().map(|column| (column.name, column.ty)));
    let bytes_per_row = file.bytes() as f64 / file.rows().max(1) as f64;
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for batch in file.batches(&positions, PARQUET_PIECE_ROWS)? {
        let batch = batch?;
        encoder.rows(&batch, &mut out)?;
        let rows = batch.num_rows() as u64;
        let progress_bytes = (rows as f64 * bytes_per_row) as u64;
        let bytes = Bytes::from(std::mem::take(&mut out));
        if pieces.blocking_send(Ok(Piece { bytes, rows, progress_bytes })).is_err() {
            return Ok(());
        }
    }
    encoder.end(&mut out);
    // Nobody listens any more only if the load has failed.
    let _ = pieces.blocking_send(Ok(Piece { bytes: out.into(), rows: 0, progress_bytes: 0 }));
    Ok(())
}
