//! The thread that turns a batch's rows of one tablet into files, while the sender goes on reading.
//!
//! Rows that come in ascending key order stream into one open file after another. Rows that do not are
//! gathered, sorted and written as files of their own, so every file is sorted by key inside.

use super::{Chunk, KeyBytes, hidden_keys};
use crate::file_writer::{FileWriter, WrittenFile};
use crate::unlisted::Unlisted;
use crate::{Engine, Error, Result};
use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use basalt_cold::Stamps;
use basalt_meta::FileKind;
use basalt_types::batch::bytes_of;
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
            open: None,
            last_key: None,
            done: Vec::new(),
            written: Unlisted::new(engine),
            unsorted: Vec::new(),
            unsorted_rows: 0,
            unsorted_bytes: 0,
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
    open: Option<FileWriter>,
    last_key: Option<Key>,
    done: Vec<WrittenFile>,
    written: Unlisted,
    unsorted: Vec<Vec<ArrayRef>>,
    unsorted_rows: usize,
    unsorted_bytes: usize,
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
            match self.table.primary_key {
                None if columns.len() == self.table.columns.len() => self.write_hidden(columns, first)?,
                _ => self.write_keyed(columns)?,
            }
        }
        Ok(())
    }

    fn write_hidden(&mut self, columns: Vec<ArrayRef>, first: Rid) -> Result<()> {
        let mut live = vec![hidden_keys(first, columns[0].len())];
        live.extend(self.live_columns(&columns));
        self.write(&live)
    }

    fn write_keyed(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let keys = self.keys(&columns);
        let before = self.last_key.as_ref().map(Key::as_bytes);
        if self.unsorted.is_empty() && keys.first_unsorted(before).is_none() {
            let live = self.live_columns(&columns);
            self.write(&live)?;
            self.last_key = Some(keys.key(keys.len() - 1));
            return Ok(());
        }
        self.unsorted_rows += columns[0].len();
        self.unsorted_bytes += bytes_of(&columns);
        self.unsorted.push(columns);
        if self.unsorted_rows >= SORT_ROWS || self.unsorted_bytes >= self.engine.config.sort_bytes() {
            self.write_sorted()?;
        }
        Ok(())
    }

    /// Sorts what was gathered into a file of its own.
    fn write_sorted(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.unsorted);
        (self.unsorted_rows, self.unsorted_bytes) = (0, 0);
        let columns: Vec<ArrayRef> = (0..batches[0].len())
            .map(|i| {
                let parts: Vec<&dyn arrow_array::Array> = batches.iter().map(|batch| &*batch[i]).collect();
                concat(&parts).map_err(|error| Error::Memory(error.to_string()))
            })
            .collect::<Result<_>>()?;
        let keys = self.keys(&columns);
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_unstable_by(|a, b| keys.get(*a as usize).cmp(keys.get(*b as usize)));
        let twin = order.windows(2).find(|pair| keys.get(pair[0] as usize) == keys.get(pair[1] as usize));
        if let Some(pair) = twin {
            return Err(Error::DuplicateKey { table: self.table.id, key: keys.key(pair[0] as usize) });
        }
        self.close()?;
        let order = UInt32Array::from(order);
        let sorted: Vec<ArrayRef> = (self.live_columns(&columns).iter())
            .map(|column| take(column, &order, None).expect("indices are in range"))
            .collect();
        self.write(&sorted)?;
        self.close()
    }

    fn keys(&self, columns: &[ArrayRef]) -> KeyBytes {
        match self.row_ids(columns) {
            Some(ids) => KeyBytes::hidden(ids),
            None => KeyBytes::of(&self.table, columns),
        }
    }

    /// The row ids that come along.
    fn row_ids<'c>(&self, columns: &'c [ArrayRef]) -> Option<&'c ArrayRef> {
        columns.get(self.table.columns.len())
    }

    /// What a file holds, but for row ids that do not come along.
    fn live_columns(&self, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        let live = self.table.live_columns().map(|column| &columns[column.id.position()]);
        self.row_ids(columns).into_iter().chain(live).cloned().collect()
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
