//! Opening the log for writing at the end that replay found.
//!
//! 1. The end is found again, from the last file that holds something; another end than the caller's is
//!    refused.
//! 2. What lies between the greatest known durable LSN and the end was written, but perhaps never synced: a
//!    killed process leaves it in the page cache, and after a failed sync the cache may call pages clean that
//!    the disk never got. Replay has read it, so from now on it counts: the same bytes are written once more
//!    and synced.
//! 3. Files behind the end (prepared, or torn) go, last first.
//! 4. A file of the new epoch is made that begins at the end. From its rename on, nothing behind the old end
//!    exists. Before it, replay finds the same end again.

use crate::buffer::Stream;
use crate::directory::{ChangeError, Directory, FoundFile, live_files};
use crate::error::{Error, Result};
use crate::format::{FileHeader, PAGE_BYTES, align_up};
use crate::log::{LiveFile, LogConfig};
use crate::replay::find_end;
use basalt_sched::{OpenMode, Os};
use basalt_types::{Epoch, Lsn};
use std::collections::VecDeque;

const COPY_BYTES: u64 = 4 << 20;

pub struct Started {
    pub stream: Stream,
    pub directory: Directory,
    pub files: VecDeque<LiveFile>,
}

pub fn start(os: &Os, config: &LogConfig, epoch: Epoch, start: Lsn) -> Result<Started> {
    os.fs.create_dir_all(&config.dir).map_err(Error::io("create", &config.dir))?;
    let found = live_files(os, &config.dir)?;
    if let Some(newer) = found.iter().find(|file| file.header.epoch >= epoch) {
        return Err(Error::StaleEpoch { asked: epoch, found: newer.header.epoch, path: newer.path.clone() });
    }
    let kept = settle_tail(os, &found, start)?;
    let stream = Stream {
        epoch,
        salt: os.random.next_u64(),
        origin: align_up(start.0),
        capacity: config.file_bytes - PAGE_BYTES,
    };
    let mut directory = Directory::open(os.clone(), config.dir.clone(), config.file_bytes, config.recycle_files_max)?;
    let sequence = match (kept, found.first()) {
        (0, Some(oldest)) => oldest.header.sequence,
        (0, None) => 1,
        _ => found[kept - 1].header.sequence + 1,
    };
    for unused in found.iter().skip(kept).rev().filter(|file| file.header.sequence != sequence) {
        directory.remove(&unused.path).map_err(ChangeError::into_inner)?;
    }
    let header = FileHeader { sequence, first: stream.origin, file_bytes: config.file_bytes, salt: stream.salt, epoch };
    let (file, _) = directory.make(&header).map_err(ChangeError::into_inner)?;
    let mut files: VecDeque<LiveFile> = found[..kept].iter().map(|file| live(&file.header)).collect();
    files.push_back(LiveFile { file: Some(file), ..live(&header) });
    Ok(Started { stream, directory, files })
}

fn live(header: &FileHeader) -> LiveFile {
    LiveFile { sequence: header.sequence, first: header.first, file_bytes: header.file_bytes, file: None, begun: None }
}

/// Makes sure that the log ends at `start` and is durable up to there; gives the number of files to keep.
fn settle_tail(os: &Os, found: &[FoundFile], start: Lsn) -> Result<usize> {
    if found.is_empty() {
        return Ok(0);
    }
    let (tail, end) = find_end(os, found, start)?;
    if end.end != start {
        return Err(Error::WrongStart { start, end: end.end });
    }
    let Some(tail) = tail else { return Ok(0) };
    rewrite(os, &found[tail], end.durable.0.max(found[tail].header.first), start.0)?;
    Ok(tail + 1)
}

fn rewrite(os: &Os, found: &FoundFile, from: u64, to: u64) -> Result<()> {
    let file = os.fs.open(&found.path, OpenMode::Write).map_err(Error::io("open", &found.path))?;
    let mut at = from;
    let mut bytes = Vec::new();
    while at < to {
        bytes.resize((to - at).min(COPY_BYTES) as usize, 0);
        let offset = found.header.offset_of(at);
        file.read_exact_at(&mut bytes, offset).map_err(Error::io("read", &found.path))?;
        file.write_at(&bytes, offset).map_err(Error::io("write", &found.path))?;
        at += bytes.len() as u64;
    }
    file.sync().map_err(Error::io("sync", &found.path))
}
