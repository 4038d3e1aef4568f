//! What memory has no room for: columns of rows in temporary files, block by block (docs/decisions/0017).

pub(crate) mod encode;
pub(crate) mod hash;
pub(crate) mod scatter;

use crate::error::{Error, Result};
use crate::memory::Account;
use ahash::RandomState;
use basalt_sched::{File, FileSystem, OpenMode};
use basalt_types::vector::Vector;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is smaller is held without being asked for: else nothing would go forward where there is no memory at all.
pub(crate) const SPILL_BYTES_MIN: usize = if cfg!(test) { 16 << 10 } else { 1 << 20 };

const PREFIX: &str = "spill-";

/// The directory of all executions' temporary files, and how much they may have there together.
pub struct TempSpace {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    bytes_max: u64,
    bytes: AtomicU64,
    next: AtomicU64,
}

impl TempSpace {
    /// Removes what an earlier process may have left there: a file that it had made, but not yet unlinked.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, bytes_max: u64) -> std::io::Result<Arc<TempSpace>> {
        fs.create_dir_all(dir)?;
        for entry in fs.list(dir)? {
            if entry.name.starts_with(PREFIX) && !entry.is_dir {
                fs.remove(&dir.join(&entry.name))?;
            }
        }
        let (bytes, next) = Default::default();
        Ok(Arc::new(TempSpace { fs, dir: dir.to_path_buf(), bytes_max, bytes, next }))
    }

    /// Bytes that are on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A new file, which has no name any more.
    pub(crate) fn file(self: &Arc<TempSpace>, account: &Arc<Account>) -> Result<Arc<SpillFile>> {
        let path = self.dir.join(format!("{PREFIX}{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let file = self.fs.open(&path, OpenMode::CreateNew).map_err(Error::Temp)?;
        self.fs.remove(&path).map_err(Error::Temp)?;
        let end = AtomicU64::new(0);
        Ok(Arc::new(SpillFile { space: self.clone(), account: account.clone(), file, end, sums: RandomState::new() }))
    }
}

/// A temporary file that several workers append to. It goes with the last who knows it.
pub(crate) struct SpillFile {
    space: Arc<TempSpace>,
    account: Arc<Account>,
    file: Arc<dyn File>,
    end: AtomicU64,
    /// Of the sums of its blocks, which are not kept longer than the file.
    sums: RandomState,
}

/// Rows in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    offset: u64,
    bytes: usize,
    sum: u64,
    pub rows: usize,
}

impl SpillFile {
    /// Appends columns of so many rows.
    pub fn write(&self, columns: &[Vector], rows: usize) -> Result<Block> {
        let bytes = encode::encode(columns, rows);
        let count = bytes.len() as u64;
        let offset = self.end.fetch_add(count, Ordering::Relaxed);
        let before = self.space.bytes.fetch_add(count, Ordering::Relaxed);
        if before + count > self.space.bytes_max {
            return Err(Error::TempLimit { bytes_max: self.space.bytes_max });
        }
        self.file.write_at(&bytes, offset).map_err(Error::Temp)?;
        self.account.add_spilled(count);
        Ok(Block { offset, bytes: bytes.len(), sum: self.sums.hash_one(&bytes), rows })
    }

    pub fn read(&self, block: &Block) -> Result<Vec<Vector>> {
        let mut bytes = vec![0; block.bytes];
        self.file.read_exact_at(&mut bytes, block.offset).map_err(Error::Temp)?;
        let whole = (self.sums.hash_one(&bytes) == block.sum).then(|| encode::decode(&bytes, block.rows)).flatten();
        whole.ok_or(Error::TempDamaged { offset: block.offset, bytes: block.bytes })
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.space.bytes.fetch_sub(self.end.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Bytes that a column's own rows take; texts in a dictionary are shared with others.
pub(crate) fn bytes_of(vector: &Vector) -> usize {
    let values = match vector {
        Vector::Ints(ints) => ints.values.bytes(),
        Vector::Codes(codes) => codes.codes.len() * 4,
        Vector::Flat(values) => basalt_types::batch::bytes_of(std::slice::from_ref(values)),
    };
    values + vector.nulls().map_or(0, |nulls| nulls.len() / 8)
}

#[cfg(test)]
mod tests;
