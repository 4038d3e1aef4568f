//! The thread that turns a batch's rows of one tablet into files, while the sender goes on reading.
//!
//! Rows that come in the order of the table's files stream into one open file after another. Rows that do not are
//! gathered, sorted and written as files of their own, so every file is in order inside.

use super::{Chunk, hidden_keys};
use crate::file_writer::{FileWriter, WrittenFile};
use crate::order::{Gathered, Order};
use crate::unlisted::Unlisted;
use crate::{Engine, Error, Result};
use arrow_array::ArrayRef;
use basalt_cold::Stamps;
use basalt_meta::FileKind;
use basalt_types::{Key, Rid, TableDef};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Chunks that may wait for the encoder.
const QUEUE_CHUNKS: usize = 2;
/// Unsorted rows gathered before they are sorted into a file, unless they are wide (`EngineConfig::sort_bytes`).
const SORT_ROWS: usize = 262_144;

/// Encoder threads that have not ended. A statement that was cancelled leaves its own behind.
#[derive(Default)]
pub(crate) struct Encoding {
    threads: Mutex<usize>,
    ended: Condvar,
}

impl Encoding {
    fn enter(self: &Arc<Encoding>) -> Entered {
        *self.threads.lock() += 1;
        Entered(self.clone())
    }

    /// Waits until all have; not for ever, should a statement still be sending to its own.
    pub fn wait(&self, limit: Duration) {
        let mut threads = self.threads.lock();
        self.ended.wait_while_for(&mut threads, |threads| *threads > 0, limit);
    }
}

struct Entered(Arc<Encoding>);

impl Drop for Entered {
    fn drop(&mut self) {
        *self.0.threads.lock() -= 1;
        self.0.ended.notify_all();
    }
}

pub(crate) struct Encoder {
    chunks: Option<mpsc::Sender<Chunk>>,
    outcome: Option<oneshot::Receiver<Result<Written>>>,
    /// Set when the sender is done; without it the thread removes what it has written.
    complete: Arc<AtomicBool>,
}

impl Encoder {
    pub fn start(engine: &Arc<Engine>, table: &Arc<TableDef>, kind: FileKind) -> Result<Encoder> {
        let (chunks, receiver) = mpsc::channel(QUEUE_CHUNKS);
        let (sender, outcome) = oneshot::channel();
        let complete = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            engine: engine.clone(),
            table: table.clone(),
            kind,
            order: Order::of(table, kind),
            open: None,
            last_key: None,
            done: Vec::new(),
            written: Unlisted::new(engine),
            unsorted: Gathered::default(),
        };
        let flag = complete.clone();
        let entered = engine.encoding.enter();
        std::thread::Builder::new()
            .name("basalt-encode".into())
            .spawn(move || {
                basalt_sched::threads::keep_nowhere();
                let _entered = entered;
                // The receiver is gone if the statement was cancelled: `Unlisted` then removes the files.
                let _ = sender.send(worker.run(receiver, &flag));
            })
            .map_err(|error| Error::Io(format!("cannot start an encoder thread: {error}")))?;
        Ok(Encoder { chunks: Some(chunks), outcome: Some(outcome), complete })
    }

    /// Hands over rows; waits while the encoder is behind.
    pub async fn send(&mut self, chunk: Chunk) -> Result<()> {
        if chunk.rows == 0 {
            return Ok(());
        }
        let chunks = self.chunks.as_ref().expect("not finished");
        match chunks.send(chunk).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure().await),
        }
    }

    async fn failure(&mut self) -> Error {
        match self.outcome.take() {
            Some(outcome) => match outcome.await {
                Ok(Err(error)) => error,
                _ => Error::Internal("the encoder thread ended early".into()),
            },
            None => Error::Internal("the encoder has failed before".into()),
        }
    }

    /// Waits until all files are durable.
    pub async fn finish(mut self) -> Result<Vec<WrittenFile>> {
        self.complete.store(true, Ordering::Release);
        self.chunks = None;
        let outcome = self.outcome.take().ok_or_else(|| Error::Internal("the encoder has failed before".into()))?;
        let written = outcome.await.map_err(|_| Error::Internal("the encoder thread ended early".into()))?;
        let (files, unlisted) = written?;
        unlisted.keep();
        Ok(files)
    }
}

/// Files that nobody lists yet.
type Written = (Vec<WrittenFile>, Unlisted);

struct Worker {
    engine: Arc<Engine>,
    table: Arc<TableDef>,
    kind: FileKind,
    order: Order,
    open: Option<FileWriter>,
    /// What the last row compared by.
    last_key: Option<Vec<u8>>,
    done: Vec<WrittenFile>,
    written: Unlisted,
    unsorted: Gathered,
}

impl Worker {
    fn run(mut self, mut chunks: mpsc::Receiver<Chunk>, complete: &AtomicBool) -> Result<Written> {
        let outcome = loop {
            match chunks.blocking_recv() {
                Some(chunk) => {
                    if let Err(error) = self.take(chunk) {
                        break Err(error);
                    }
                }
                None if !complete.load(Ordering::Acquire) => {
                    break Err(Error::Internal("the batch was given up".into()));
                }
                None => break self.flush(),
            }
        };
        outcome.inspect_err(|error| self.engine.make_room_after(error))?;
        Ok((self.done, self.written))
    }

    fn take(&mut self, chunk: Chunk) -> Result<()> {
        for (columns, first) in chunk.batches {
            // Row ids are drawn in ascending order, unless rows keep those that they have.
            let draws_ids = self.table.primary_key.is_none() && columns.len() == self.table.columns.len();
            let columns = self.file_columns(columns, first);
            match draws_ids && self.order.is_by_key() {
                true => self.write(&columns)?,
                false => self.write_ordered(columns)?,
            }
        }
        Ok(())
    }

    /// Rows as a file holds them.
    fn file_columns(&self, columns: Vec<ArrayRef>, first: Rid) -> Vec<ArrayRef> {
        let live = self.table.live_columns().map(|column| columns[column.id.position()].clone());
        let ids = self.table.primary_key.is_none().then(|| match columns.get(self.table.columns.len()) {
            Some(ids) => ids.clone(),
            None => hidden_keys(first, columns[0].len()),
        });
        ids.into_iter().chain(live).collect()
    }

    fn write_ordered(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let keys = self.order.keys(&columns);
        if self.unsorted.is_empty() && keys.ascend(self.last_key.as_deref()) {
            self.write(&columns)?;
            self.last_key = keys.last().map(<[u8]>::to_vec);
            return Ok(());
        }
        self.unsorted.add(columns, &[]);
        if self.unsorted.is_full(self.sort_rows(), &self.engine.config) {
            self.write_sorted()?;
        }
        Ok(())
    }

    /// Rows gathered before they are sorted into a file. Of a clustering order files have the more the more rows they
    /// are; by keys they are found in several files as well.
    fn sort_rows(&self) -> usize {
        match self.order.is_by_key() {
            true => SORT_ROWS,
            false => self.engine.config.segment_rows as usize,
        }
    }

    /// Sorts what was gathered into a file of its own.
    fn write_sorted(&mut self) -> Result<()> {
        let sorted = std::mem::take(&mut self.unsorted).sort(&self.order)?;
        // In another order than that of keys twins lie anywhere.
        if self.order.is_by_key()
            && let Some(twin) = sorted.twin()
        {
            return Err(Error::DuplicateKey { table: self.table.id, key: Key::from(twin) });
        }
        self.close()?;
        self.write(sorted.columns())?;
        self.close()
    }

    fn write(&mut self, columns: &[ArrayRef]) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(FileWriter::create(&self.engine, &self.table, self.kind)?);
        }
        let writer = self.open.as_mut().expect("just opened");
        writer.push_columns(&self.table, columns, Stamps::Uniform)?;
        if writer.is_full(&self.engine) {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some(writer) = self.open.take() {
            let file = writer.finish(&mut self.written)?;
            self.done.push(file);
            // In key order they lie side by side, and are found while they are written.
            if self.table.primary_key.is_some()
                && !self.order.is_by_key()
                && let Some(key) = self.engine.open_file(file.id, file.kind)?.twin()?
            {
                return Err(Error::DuplicateKey { table: self.table.id, key });
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if !self.unsorted.is_empty() {
            self.write_sorted()?;
        }
        self.close()
    }
}
