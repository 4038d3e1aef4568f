//! Zeros for files that were never written.
//!
//! A new file is allocated but its pages are unwritten: the file system notes of each that it is written now, in the same
//! sync that a commit waits for, and that takes up to twice as long (docs/decisions/0032). So while the log fills
//! one file by small syncs, the prepare thread writes zeros over the next one, by pieces, with pauses, for as long as the
//! writer has not come to it. A file that is used again was written before and needs none.
//!
//! To those who read the log nothing changes: an unwritten page reads as zeros, too.

use crate::format::PAGE_BYTES;
use basalt_sched::File;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

const PIECE_BYTES: usize = 512 << 10;
/// Zeros are worth writing where syncs write less than this each, on average of at least so many.
const SYNC_BYTES_MAX: u64 = 64 << 10;
const SYNCS_MIN: u64 = 64;

/// Whether the writer has come to a file. Locked while zeros are written, so that none is written over a record.
#[derive(Default)]
pub struct Begun(Mutex<bool>);

impl Begun {
    /// Before the first record: from now on no zeros are written.
    pub fn begin(&self) {
        *self.0.lock() = true;
    }
}

/// A file that the log will come to, with pages that were never written.
pub struct Blank {
    file: Arc<dyn File>,
    begun: Arc<Begun>,
    at: u64,
    file_bytes: u64,
}

impl Blank {
    pub fn new(file: Arc<dyn File>, file_bytes: u64) -> Blank {
        Blank { file, begun: Arc::default(), at: PAGE_BYTES, file_bytes }
    }

    pub fn begun(&self) -> Arc<Begun> {
        self.begun.clone()
    }

    /// Writes and syncs one more piece; false where nothing is left to do. After an error the log must stop: what else of
    /// the file that sync did not write, nobody knows.
    pub fn write_piece(&mut self) -> io::Result<bool> {
        static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
        let bytes = (self.file_bytes - self.at).min(PIECE_BYTES as u64);
        {
            let begun = self.begun.0.lock();
            if *begun || bytes == 0 {
                return Ok(false);
            }
            if let Err(error) = self.file.write_at(&ZEROS[..bytes as usize], self.at) {
                // Nothing depends on them. Whether records can be written is told where they are.
                tracing::debug!(%error, "a new log file is not filled with zeros");
                return Ok(false);
            }
        }
        self.file.sync()?;
        self.at += bytes;
        Ok(true)
    }
}

/// Whether zeros pay, by what was written and synced while the log filled the file before.
pub fn pay(written_bytes: u64, syncs: u64) -> bool {
    syncs >= SYNCS_MIN && written_bytes / syncs < SYNC_BYTES_MAX
}
