//! What an engine can be told. Every limit is explicit (DESIGN rule 7).

use basalt_cold::SegmentOptions;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of rows that make a message to an encoder, and a batch a large one; see [`EngineConfig::chunk_bytes`].
const CHUNK_BYTES: usize = 16 << 20;
/// See [`EngineConfig::sort_bytes`].
const SORT_BYTES: usize = 64 << 20;

#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub data_dir: PathBuf,
    /// Everything that the engine keeps in memory: hot rows, undo, caches, buffers.
    pub memory_bytes_max: u64,
    /// Of this, what locators of overlapping files may take: at most a quarter of `memory_bytes_max`. Where
    /// they have no room, lookups ask one file after the other.
    pub locator_bytes_max: u64,
    /// Of this, what rows of files may take that are read again and again by key: at most a sixteenth of
    /// `memory_bytes_max`.
    pub row_cache_bytes_max: u64,
    /// Log written since the last checkpoint that starts the next one.
    pub checkpoint_log_bytes: u64,
    /// Longest time between checkpoints while there is something to write.
    pub checkpoint_interval: Duration,
    /// Rows not changed for this long are cool enough to freeze.
    pub cool_after: Duration,
    /// A tablet with fewer cool rows than this is left hot (unless memory is short or it is asked for).
    pub freeze_rows_min: u64,
    /// Batches of at least this many rows per tablet go straight to files.
    pub bulk_rows_min: usize,
    /// Rows that a statement changes one by one before it goes on with what rests in files in the large way
    /// (`txn/large.rs`); a sixteenth of them if hot rows take much of the memory.
    pub large_changes_min: u64,
    /// Rows per segment that freeze, bulk loads and compaction aim for.
    pub segment_rows: u64,
    /// Bytes of values in a row group of a segment that ends it before: what writing one takes in memory.
    pub row_group_bytes_max: usize,
    /// Bytes with which a row file is as large as it should be; a sixteenth of the memory, if that is less.
    pub row_file_bytes_max: u64,
    /// How long statements and transactions may read at one snapshot; `None`: as long as they like.
    pub snapshot_age_max: Option<Duration>,
    /// Background freeze, compaction and checkpoints run by themselves.
    pub background: bool,
    pub log_file_bytes: u64,
    pub locks_max: usize,
}

impl EngineConfig {
    pub fn new(data_dir: impl Into<PathBuf>) -> EngineConfig {
        EngineConfig {
            data_dir: data_dir.into(),
            memory_bytes_max: 4 << 30,
            locator_bytes_max: 256 << 20,
            row_cache_bytes_max: 128 << 20,
            checkpoint_log_bytes: 1 << 30,
            checkpoint_interval: Duration::from_secs(300),
            cool_after: Duration::from_secs(10),
            freeze_rows_min: 65_536,
            bulk_rows_min: 16_384,
            large_changes_min: 16_384,
            segment_rows: 1 << 20,
            row_group_bytes_max: SegmentOptions::default().row_group_bytes_max,
            row_file_bytes_max: 512 << 20,
            snapshot_age_max: None,
            background: true,
            log_file_bytes: 64 << 20,
            locks_max: 10_000_000,
        }
    }

    /// Rows per message to an encoder (`bulk/encoder.rs`), unless they are more than enough.
    pub(crate) fn chunk_bytes(&self) -> usize {
        (CHUNK_BYTES as u64).min(self.memory_bytes_max / 32) as usize
    }

    /// Rows that come in no order: gathered before they are sorted into a file, which takes as much again.
    pub(crate) fn sort_bytes(&self) -> usize {
        (SORT_BYTES as u64).min(self.memory_bytes_max / 4) as usize
    }

    pub(crate) fn row_cache_bytes(&self) -> u64 {
        self.row_cache_bytes_max.min(self.memory_bytes_max / 16)
    }

    pub(crate) fn row_file_bytes(&self) -> u64 {
        self.row_file_bytes_max.min(self.memory_bytes_max / 16)
    }
}
