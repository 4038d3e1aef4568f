//! Zeros for files that were never written.
//!
//! A new file is allocated but its pages are unwritten: the file system notes of each that it is written now, in the same
//! sync that a commit waits for, and that takes up to twice as long (docs/decisions/0032). So while the log fills
//! one file by small syncs, the prepare thread writes zeros over the next one, by pieces, with pauses, for as long as the
//! writer has not come to it. A file that is used again was written before (but for the end of what a start left) and gets none.
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

/// Who writes to a new file. Locked while zeros are written *and synced*: so none is written over a record, and no sync of
/// zeros runs beside one of records, for an error of writing is told to one of two syncs only.
#[derive(Default)]
pub struct Begun(Mutex<Writer>);

#[derive(Default)]
enum Writer {
    /// Zeros are written.
    #[default]
    Zeros,
    /// The log has come to the file: from now on, no zeros.
    Log,
    /// A sync of zeros failed, and nobody may trust what is in the file.
    Failed,
}

impl Begun {
    /// Before each write of records.
    pub fn begin(&self) -> io::Result<()> {
        let mut writer = self.0.lock();
        match *writer {
            Writer::Failed => Err(io::Error::other("a sync of zeros in this file has failed")),
            Writer::Zeros | Writer::Log => {
                *writer = Writer::Log;
                Ok(())
            }
        }
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

    /// Writes and syncs one more piece; false where nothing is left to do. After an error the log must stop.
    pub fn write_piece(&mut self) -> io::Result<bool> {
        static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
        let bytes = (self.file_bytes - self.at).min(PIECE_BYTES as u64);
        let mut writer = self.begun.0.lock();
        if !matches!(*writer, Writer::Zeros) || bytes == 0 {
            return Ok(false);
        }
        if let Err(error) = self.file.write_at(&ZEROS[..bytes as usize], self.at) {
            // Nothing depends on them. Whether records can be written is told where they are.
            tracing::debug!(%error, "a new log file is not filled with zeros");
            return Ok(false);
        }
        if let Err(error) = self.file.sync() {
            *writer = Writer::Failed;
            return Err(error);
        }
        self.at += bytes;
        Ok(true)
    }
}

/// Whether zeros pay, by what was written and synced while the log filled the file before. `None`: too little to tell.
pub fn pay(written_bytes: u64, syncs: u64) -> Option<bool> {
    (syncs >= SYNCS_MIN).then(|| written_bytes / syncs < SYNC_BYTES_MAX)
}
