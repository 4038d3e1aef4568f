//! The names in the log directory: live files (`<sequence>.log`) and spares (`<serial>.spare`).
//!
//! A live name always has a valid header: it is written and synced under a spare name first, then renamed.
//! Every change of a live name is made durable before the next, oldest file first when files are released and
//! newest first when a start drops unused ones, so that a crash never leaves a hole in the sequence. For the
//! same reason a recycled file's new header is written only once its old name is durably gone.
//!
//! To give a file's room back takes a file system tens of milliseconds, in which no sync ends. So released files
//! are kept for reuse, about as many as the log needs from one release to the next, and the rest goes slowly
//! (`prepare.rs`), unless the disk is full.

use crate::error::{Error, Result};
use crate::format::{FileHeader, log_name, parse_log_name, parse_spare_name, spare_name};
use basalt_sched::{File, OpenMode, Os};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A live file found on disk.
#[derive(Clone, Debug)]
pub struct FoundFile {
    pub path: PathBuf,
    pub header: FileHeader,
}

/// All live files in order of sequence, each with a sound header. A missing directory has none.
pub fn live_files(os: &Os, dir: &Path) -> Result<Vec<FoundFile>> {
    let entries = match os.fs.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(Error::io("list", dir))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let Some(sequence) = parse_log_name(&entry.name) else { continue };
        let path = dir.join(&entry.name);
        let file = os.fs.open(&path, OpenMode::Read).map_err(Error::io("open", &path))?;
        let mut page = [0; 64];
        let mut filled = 0;
        while filled < page.len() {
            match file.read_at(&mut page[filled..], filled as u64).map_err(Error::io("read", &path))? {
                0 => break,
                count => filled += count,
            }
        }
        let header = FileHeader::decode(&path, sequence, &page[..filled])?;
        files.push(FoundFile { path, header });
    }
    files.sort_by_key(|file| file.header.sequence);
    Ok(files)
}

/// Why a file could not be made or retired.
pub enum ChangeError {
    /// Nothing changed; may be tried again.
    Harmless(Error),
    /// It is unknown whether a name is durable: the log must stop.
    Fatal(Error),
}

impl ChangeError {
    pub fn into_inner(self) -> Error {
        match self {
            ChangeError::Harmless(error) | ChangeError::Fatal(error) => error,
        }
    }
}

pub struct Directory {
    os: Os,
    dir: PathBuf,
    file_bytes: u64,
    recycle_files_max: usize,
    spares: Vec<PathBuf>,
    next_spare: u64,
    /// How many files one release gives: the greatest lately, forgotten slowly.
    released: f64,
    /// Spares that may stay.
    wanted: usize,
}

/// Spares that are kept even when the disk is full.
const SPARES_MIN: usize = 2;
/// Part of `released` that one release of less takes away.
const FORGOTTEN: f64 = 0.1;

impl Directory {
    /// Adopts the spares that have the wanted size and removes the others.
    pub fn open(os: Os, dir: PathBuf, file_bytes: u64, recycle_files_max: usize) -> Result<Directory> {
        // A process that was killed may have renamed one just before: its old name could come back with a new header.
        os.fs.sync_dir(&dir).map_err(Error::io("sync", &dir))?;
        let mut spares = Vec::new();
        let mut next_spare = 0;
        for entry in os.fs.list(&dir).map_err(Error::io("list", &dir))? {
            let Some(serial) = parse_spare_name(&entry.name) else { continue };
            next_spare = next_spare.max(serial.saturating_add(1));
            let path = dir.join(&entry.name);
            match entry.bytes == file_bytes {
                true => spares.push(path),
                false => os.fs.remove(&path).map_err(Error::io("remove", &path))?,
            }
        }
        // What the last start kept, it used.
        let wanted = spares.len().min(recycle_files_max);
        Ok(Directory { os, dir, file_bytes, recycle_files_max, spares, next_spare, released: wanted as f64, wanted })
    }

    pub fn path_of(&self, sequence: u64) -> PathBuf {
        self.dir.join(log_name(sequence))
    }

    /// Makes the live file that `header` describes, allocated in full, in place of one of the same name. And whether it was
    /// used before.
    pub fn make(&mut self, header: &FileHeader) -> Result<(Arc<dyn File>, bool), ChangeError> {
        let (path, recycled) = match self.spares.pop() {
            Some(path) => (path, true),
            None => (self.new_spare_path(), false),
        };
        let file = match self.fill(&path, recycled, header) {
            Ok(file) => file,
            Err(error) => {
                // Best effort: gives the room back. What stays is a spare, to be adopted or removed at the next start.
                if let Err(left) = self.os.fs.remove(&path) {
                    tracing::debug!(path = %path.display(), error = %left, "an unfinished log file stays");
                }
                return Err(ChangeError::Harmless(error));
            }
        };
        let live = self.path_of(header.sequence);
        self.os.fs.rename(&path, &live).map_err(Error::io("rename", &path)).map_err(ChangeError::Fatal)?;
        self.sync().map_err(ChangeError::Fatal)?;
        Ok((file, recycled))
    }

    fn fill(&self, path: &Path, recycled: bool, header: &FileHeader) -> Result<Arc<dyn File>> {
        let mode = if recycled { OpenMode::Write } else { OpenMode::CreateNew };
        let file = self.os.fs.open(path, mode).map_err(Error::io("open", path))?;
        file.allocate(self.file_bytes).map_err(Error::io("allocate", path))?;
        file.write_at(&header.encode(), 0).map_err(Error::io("write", path))?;
        file.sync().map_err(Error::io("sync", path))?;
        Ok(file)
    }

    fn new_spare_path(&mut self) -> PathBuf {
        let path = self.dir.join(spare_name(self.next_spare));
        self.next_spare += 1;
        path
    }

    /// Takes a live file away: it becomes a spare if it fits. What is too many goes with [`Directory::trim`].
    pub fn retire(&mut self, sequence: u64, file_bytes: u64) -> Result<(), ChangeError> {
        let live = self.path_of(sequence);
        if file_bytes == self.file_bytes {
            let spare = self.new_spare_path();
            self.os.fs.rename(&live, &spare).map_err(Error::io("rename", &live)).map_err(ChangeError::Harmless)?;
            self.sync().map_err(ChangeError::Fatal)?;
            self.spares.push(spare);
            Ok(())
        } else {
            self.remove(&live)
        }
    }

    /// After a release of so many files: how many are worth keeping.
    pub fn note_released(&mut self, files: usize) {
        let files = files.min(self.recycle_files_max) as f64;
        self.released = files.max(self.released + (files - self.released) * FORGOTTEN);
        self.wanted = self.released.ceil() as usize;
    }

    /// The disk is full: room for other files comes first.
    pub fn give_up_spares(&mut self) {
        self.released = 0.0;
        self.wanted = SPARES_MIN;
    }

    /// Removes a spare, if there are too many of them. Whether there are still.
    pub fn trim(&mut self) -> bool {
        if self.spares.len() > self.wanted
            && let Some(path) = self.spares.pop()
            // Not durable at once: a spare that comes back is adopted at the next start.
            && let Err(error) = self.os.fs.remove(&path)
        {
            tracing::warn!(path = %path.display(), %error, "a spare log file cannot be removed: it stays until a restart");
        }
        self.spares.len() > self.wanted
    }

    pub fn remove(&self, live: &Path) -> Result<(), ChangeError> {
        self.os.fs.remove(live).map_err(Error::io("remove", live)).map_err(ChangeError::Harmless)?;
        self.sync().map_err(ChangeError::Fatal)
    }

    fn sync(&self) -> Result<()> {
        self.os.fs.sync_dir(&self.dir).map_err(Error::io("sync", &self.dir))
    }
}
