//! Offline check of a data directory: every checksum, every reference.

use crate::checkpoint::root::Root;
use crate::data_file::DataFile;
use crate::recovery::{lock_directory, open_files, read_body};
use crate::{EngineConfig, Error, Result};
use basalt_cold::{DeleteMap, FileKind, RowFile, Segment};
use basalt_sched::Os;
use basalt_types::{FileId, Version};
use std::collections::BTreeSet;
use std::path::Path;

/// What a check found. The directory is sound if `problems` is empty.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    pub version: Version,
    pub tables: u64,
    pub files: u64,
    pub file_bytes: u64,
    pub rows: u64,
    pub log_records: u64,
    /// Bytes of the unacknowledged end that a crash left; replay ignores them.
    pub log_torn_bytes: u64,
    /// Files that the checkpoint does not list: the log may (they are younger), or a crash left them.
    pub unlisted: Vec<String>,
    pub problems: Vec<String>,
}

/// Reads everything in a data directory that no server uses. `progress` is told what is being read.
pub fn check(os: &Os, data_dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<CheckReport> {
    let root = Root::read(os, data_dir)?.ok_or_else(|| {
        Error::Directory(format!("{} is not a Basalt data directory: it has no root file", data_dir.display()))
    })?;
    let _lock = lock_directory(os, data_dir)?;
    let config = EngineConfig { memory_bytes_max: 256 << 20, ..EngineConfig::new(data_dir) };
    let (files, cache) = open_files(os, &config)?;
    let mut report = CheckReport::default();
    let mut listed: BTreeSet<FileId> = BTreeSet::new();
    if let Some(id) = root.checkpoint {
        progress(&format!("checkpoint {id}"));
        listed.insert(id);
        match read_body(&files, id) {
            Err(error) => report.problems.push(error.to_string()),
            Ok(body) => {
                report.version = body.version;
                report.tables = body.catalog.tables.len() as u64;
                for tablet in &body.tablets {
                    if body.catalog.table_of(tablet.id).is_none() {
                        report.problems.push(format!("tablet {} belongs to no table", tablet.id));
                    }
                    for file in &tablet.files {
                        listed.insert(file.info.id);
                        progress(&format!("file {}", file.info.id));
                        report.files += 1;
                        report.file_bytes += file.info.bytes;
                        report.rows += file.info.rows;
                        let checked = DataFile::open(&files, &cache, file.info.id, file.info.kind).and_then(|data| {
                            data.verify()?;
                            if !file.deletes.is_empty() {
                                DeleteMap::from_bytes(&file.deletes, data.rows(), Version::ZERO)?;
                            }
                            Ok(data.rows())
                        });
                        match checked {
                            Ok(rows) if u64::from(rows) == file.info.rows => {}
                            Ok(rows) => report.problems.push(format!(
                                "file {} has {rows} rows, the checkpoint says {}",
                                file.info.id, file.info.rows
                            )),
                            Err(error) => report.problems.push(error.to_string()),
                        }
                    }
                    if let Some(hot) = &tablet.hot {
                        listed.insert(hot.id);
                        progress(&format!("row file {}", hot.id));
                        report.rows += hot.rows;
                        if let Err(error) = RowFile::open(&files, hot.id, &cache).and_then(|rows| rows.verify()) {
                            report.problems.push(error.to_string());
                        }
                    }
                }
            }
        }
    }
    for (id, kind, bytes) in files.list()? {
        if listed.contains(&id) {
            continue;
        }
        progress(&format!("file {id}"));
        report.unlisted.push(format!("{id} ({bytes} bytes)"));
        let checked = match kind {
            FileKind::Segment => Segment::open(&files, id, &cache).and_then(|segment| segment.verify()),
            FileKind::Row => RowFile::open(&files, id, &cache).and_then(|rows| rows.verify()),
            FileKind::Checkpoint => Ok(()),
        };
        if let Err(error) = checked {
            report.problems.push(error.to_string());
        }
    }
    progress("log");
    match basalt_wal::verify(os, &data_dir.join("log"), &mut |_| {}) {
        Ok(log) => {
            report.log_records = log.records;
            report.log_torn_bytes = log.torn_bytes;
        }
        Err(error) => report.problems.push(error.to_string()),
    }
    Ok(report)
}
