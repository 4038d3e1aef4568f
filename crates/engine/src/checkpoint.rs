//! Checkpoints: where recovery starts (`docs/format/checkpoint.md`).
//!
//! *Capture*, in an instant: with the move gate closed, version C (the last one given), the log position,
//! the catalog, and the current view of every tablet. All moves of version ≤ C are in those views, none
//! above. *Write*, while everybody works on: per tablet its hot rows as of C in a row file, and one
//! checkpoint file with the catalog, the file lists and the delete maps as of C. *Switch*: once C is
//! durable in the log, the root names the new checkpoint file. Then log files and data files that only
//! earlier checkpoints needed may go.
//!
//! Replay starts at the least of the captured log position and the first record of every transaction that
//! was undecided then: such a transaction's version is above C, so replay applies it whole.

pub mod body;
pub mod root;

use crate::data_file::stored_kinds;
use crate::engine::DroppedFile;
use crate::tablet::{EntryStamps, ReadView, Tablet};
use crate::{Catalog, Engine, Error, Result};
use basalt_cold::{FileKind, Files, RowFileWriter};
use basalt_hot::{Reader, Rows};
use basalt_meta::{FileInfo, FileStamps, Pin, PinReason};
use basalt_types::{FileId, Lsn, ReadAt, Rid, Version};
use body::{Body, ListedFile, SequenceBody, TabletBody};
use parking_lot::Mutex;
use root::Root;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const CHUNK_ROWS: usize = 8192;

/// What the engine remembers of its checkpoints.
pub struct State {
    /// Held while one is made.
    running: Mutex<()>,
    current: Mutex<Current>,
}

struct Current {
    made: Made,
    at: Duration,
    /// Its root could not be written, and after a power cut either root may be there: both checkpoints stay
    /// until this one's root is in place.
    doubtful: Option<Made>,
}

/// A checkpoint whose files are durable.
struct Made {
    root: Root,
    /// Files that only it names: itself and its row files.
    own_files: Vec<(FileId, FileKind)>,
    version: Version,
    /// The log's end when it was taken. Open writers may hold the replay start far below.
    log_end: Lsn,
}

impl State {
    pub fn new(root: Root, own_files: Vec<(FileId, FileKind)>, at: Duration, version: Version) -> State {
        State {
            running: Mutex::new(()),
            current: Mutex::new(Current {
                made: Made { root, own_files, version, log_end: root.replay_start },
                at,
                doubtful: None,
            }),
        }
    }

    pub fn replay_start(&self) -> Lsn {
        self.current.lock().made.root.replay_start
    }

    /// Monotonic time of the last one.
    pub fn last_at(&self) -> Duration {
        self.current.lock().at
    }

    pub fn last_version(&self) -> Version {
        self.current.lock().made.version
    }
}

/// The state of one instant.
struct Captured {
    /// Keeps what version C sees while it is written out.
    pin: Pin,
    replay_start: Lsn,
    log_end: Lsn,
    catalog: Arc<Catalog>,
    tablets: Vec<(Arc<Tablet>, Arc<ReadView>, Rid)>,
    sequences: Vec<SequenceBody>,
    sequences_changed: bool,
    next_object: u32,
    next_tablet: u32,
}

impl Engine {
    /// Makes a checkpoint now. Nothing is done if nothing was committed since the last one.
    pub fn checkpoint(self: &Arc<Self>) -> Result<()> {
        let _one = self.checkpoints.running.lock();
        let doubtful = self.checkpoints.current.lock().doubtful.take();
        if let Some(made) = doubtful {
            self.switch(made)?;
        }
        let captured = self.capture()?;
        let version = captured.pin.version();
        if version == self.checkpoints.last_version()
            && !captured.sequences_changed
            && self.checkpoints.current.lock().made.root.checkpoint.is_some()
        {
            self.collect_files();
            return Ok(());
        }
        let started = self.os.clock.monotonic();
        if !self.order.wait_settled(version) {
            return Err(self.failure().unwrap_or(Error::ShuttingDown));
        }
        let mut written = Vec::new();
        let checkpoint = match self.write_checkpoint(&captured, &mut written) {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                self.remove_files(&written);
                self.make_room_after(&error);
                return Err(error);
            }
        };
        if let Err(error) = self.log.wait_durable_blocking(captured.log_end) {
            self.remove_files(&written);
            return Err(error.into());
        }
        let root = Root { epoch: self.ids.epoch, checkpoint: Some(checkpoint), replay_start: captured.replay_start };
        basalt_sched::failpoint::hit("checkpoint-file-durable");
        self.switch(Made { root, own_files: written, version, log_end: captured.log_end })?;
        self.collect_files();
        let took = self.os.clock.monotonic().saturating_sub(started);
        tracing::info!(%version, replay_start = %captured.replay_start, took_ms = took.as_millis() as u64, "checkpoint");
        Ok(())
    }

    /// Makes this the current checkpoint, and lets go of the one before.
    fn switch(&self, made: Made) -> Result<()> {
        if let Err(error) = made.root.write(&self.os, &self.config.data_dir) {
            self.checkpoints.current.lock().doubtful = Some(made);
            return Err(error);
        }
        basalt_sched::failpoint::hit("checkpoint-root-durable");
        let replay_start = made.root.replay_start;
        let current = Current { made, at: self.os.clock.monotonic(), doubtful: None };
        let previous = std::mem::replace(&mut *self.checkpoints.current.lock(), current);
        self.remove_files(&previous.made.own_files);
        self.log.release_before(replay_start)?;
        basalt_sched::failpoint::hit("checkpoint-log-cut");
        Ok(())
    }

    fn capture(&self) -> Result<Captured> {
        let _no_moves = self.move_gate.write();
        let turn = self.order.take_turn();
        let version = turn.last();
        let pin = self.pins.pin(PinReason::Checkpoint, self.os.clock.monotonic(), || version);
        let sequences_changed = self.sequences.has_changed();
        let (sequences, log_end) = self.sequences.capture(|| self.log.end());
        let sequences = sequences.into_iter();
        let sequences = sequences.map(|(state, value, logged_at)| SequenceBody { state, value, logged_at }).collect();
        let replay_start = self.txns.least_first_lsn().map_or(log_end, |first| first.min(log_end));
        let catalog = self.catalog();
        // In the turn: a DROP that is decided after C takes its tablets away, and may not become durable.
        let mut tablets = Vec::new();
        for table in catalog.stored_tables() {
            for id in table.tablets() {
                let Ok(tablet) = self.tablet(id) else { continue };
                let (view, next_rid) = (tablet.view(), tablet.next_rid());
                tablets.push((tablet, view, next_rid));
            }
        }
        drop(turn);
        let next_object = self.ids.object.load(Ordering::Relaxed);
        let next_tablet = self.ids.tablet.load(Ordering::Relaxed);
        Ok(Captured {
            pin,
            replay_start,
            log_end,
            catalog,
            tablets,
            sequences,
            sequences_changed,
            next_object,
            next_tablet,
        })
    }

    fn write_checkpoint(&self, captured: &Captured, written: &mut Vec<(FileId, FileKind)>) -> Result<FileId> {
        let version = captured.pin.version();
        let mut tablets = Vec::new();
        for (tablet, view, next_rid) in &captured.tablets {
            let hot = self.write_hot_rows(tablet, view, version, written)?;
            let files = view.files.iter().filter_map(|file| {
                let stamps = match &file.stamps {
                    EntryStamps::PerRow => FileStamps::PerRow,
                    // A file that is undecided, or of a later commit, comes back with its commit record.
                    EntryStamps::Uniform { .. } => {
                        let (stamp, _) = file.uniform()?;
                        FileStamps::Uniform(stamp.as_version().filter(|stamp| *stamp <= version)?)
                    }
                };
                let deletes = match file.deletes.count() {
                    0 => Vec::new(),
                    _ => file.deletes.to_bytes(version, &*self.txns),
                };
                Some(ListedFile { info: file.info(stamps), deletes })
            });
            tablets.push(TabletBody { id: tablet.id, next_rid: *next_rid, hot, files: files.collect() });
        }
        let body = Body {
            version,
            next_object: captured.next_object,
            next_tablet: captured.next_tablet,
            catalog: (*captured.catalog).clone(),
            tablets,
            sequences: captured.sequences.clone(),
        };
        let id = self.next_file_id();
        written.push((id, FileKind::Checkpoint));
        self.files.put(&Files::path(id, FileKind::Checkpoint), body.encode())?;
        Ok(id)
    }

    /// The tablet's hot rows as version C sees them, in a row file. None if there are none.
    fn write_hot_rows(
        &self,
        tablet: &Tablet,
        view: &ReadView,
        version: Version,
        written: &mut Vec<(FileId, FileKind)>,
    ) -> Result<Option<FileInfo>> {
        if tablet.hot.is_empty() {
            return Ok(None);
        }
        let id = self.next_file_id();
        let mut writer = RowFileWriter::create(&self.files, id)?;
        let mut rows = Rows::new();
        let mut from = Bound::Unbounded;
        let reader = Reader { at: ReadAt::version(version), view: view.number, txns: &*self.txns };
        loop {
            rows.clear();
            let last =
                tablet.hot.scan(crate::freeze::as_bytes(&from), Bound::Unbounded, &reader, CHUNK_ROWS, &mut rows);
            for row in rows.iter() {
                let stamp = row.stamp.as_version().ok_or_else(|| {
                    Error::Internal(format!("a row of {} is committed at {version} but not restamped", tablet.id))
                })?;
                writer.push(row.key, row.rid, Some(stamp), Some(row.row))?;
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => break,
            }
        }
        if writer.rows() == 0 {
            return Ok(None);
        }
        written.push((id, FileKind::Row));
        let meta = writer.finish()?;
        Ok(Some(FileInfo {
            id,
            kind: basalt_meta::FileKind::RowFile,
            rows: u64::from(meta.rows),
            bytes: meta.bytes,
            stamps: FileStamps::PerRow,
        }))
    }

    /// Deletes files that nothing names any more: no root in use, no record behind its replay start, no
    /// pinned view. What cannot be deleted now is tried again; what a crash leaves goes at the next start, and so does
    /// everything once the engine has failed.
    pub(crate) fn collect_files(&self) {
        let replay_start = self.checkpoints.replay_start();
        let is_unused = |_: &FileId, file: &mut DroppedFile| {
            let read = file.entry.as_ref().is_some_and(|entry| entry.strong_count() > 0);
            !read && file.last_named <= replay_start
        };
        let mut dropped = self.dropped.lock();
        // A move that was cut short has given up files that its record names. The log stops before it notes them.
        if self.failure().is_some() {
            return;
        }
        let unused: Vec<(FileId, DroppedFile)> = dropped.extract_if(.., is_unused).collect();
        // Deleting takes long, and moves and DROP TABLE note files under latches: not while it is locked.
        drop(dropped);
        for (id, file) in unused {
            self.cache.remove_file(id);
            let deleted = stored_kinds(file.kind).iter().try_for_each(|kind| self.files.delete(id, *kind));
            if let Err(error) = deleted {
                tracing::warn!(file = %id, %error, "cannot delete an unused file");
                self.dropped.lock().insert(id, file);
            }
        }
    }

    fn remove_files(&self, files: &[(FileId, FileKind)]) {
        for (id, kind) in files {
            self.cache.remove_file(*id);
            if let Err(error) = self.files.delete(*id, *kind) {
                tracing::warn!(file = %id, %error, "cannot delete a file of an old checkpoint");
            }
        }
    }

    /// Whether enough was logged, or enough time has passed, for the next checkpoint.
    pub(crate) fn checkpoint_is_due(&self) -> bool {
        let last_end = self.checkpoints.current.lock().made.log_end;
        let logged = self.log.end().0.saturating_sub(last_end.0).max(self.log.bytes_on_disk_since(last_end));
        let age = self.os.clock.monotonic().saturating_sub(self.checkpoints.last_at());
        let changed = self.published() > self.checkpoints.last_version() || self.sequences.has_changed();
        changed && (logged >= self.config.checkpoint_log_bytes || age >= self.config.checkpoint_interval)
    }
}
