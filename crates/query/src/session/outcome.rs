//! What a statement gives back: a tag, rows, or one of COPY's two directions.

use super::Session;
use super::interrupt::guard;
use crate::copy::writer::{Chunk, CopyWriter};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::plan::HeldRows;
use crate::run::BatchStream;
use crate::statement::copy_in::CopyFeed;
use arrow_array::RecordBatch;
use basalt_types::DataType;
use basalt_types::batch::bytes_of;
use datafusion::execution::memory_pool::MemoryReservation;
use std::collections::VecDeque;
use std::sync::Arc;

/// One column of a result, as RowDescription tells it.
#[derive(Clone, PartialEq, Debug)]
pub struct ResultColumn {
    pub name: String,
    pub ty: DataType,
    /// What the client is told, whatever precision `ty` carries; -1 for computed values.
    pub typmod: i32,
    /// Of the table column that it is, or 0.
    pub table_oid: u32,
    pub column_no: i16,
    /// 0 text, 1 binary.
    pub format: i16,
}

/// Shared between executions.
pub type Columns = Arc<[ResultColumn]>;

impl ResultColumn {
    pub(crate) fn text(name: &str) -> ResultColumn {
        ResultColumn { name: name.to_string(), ty: DataType::Text, typmod: -1, table_oid: 0, column_no: 0, format: 0 }
    }
}

pub enum Outcome {
    /// An empty statement.
    Empty,
    Command {
        tag: String,
    },
    Rows(RowStream),
    CopyIn(CopyIn),
    CopyOut(CopyOut),
}

/// Where rows come from: computed already, or from a running query.
pub(crate) struct RowSource {
    ready: VecDeque<RecordBatch>,
    stream: Option<BatchStream>,
    /// What `ready` takes of the queries' memory, as long as this lives.
    _memory: Option<Arc<MemoryReservation>>,
}

impl RowSource {
    pub fn ready(batches: impl IntoIterator<Item = RecordBatch>) -> RowSource {
        RowSource { ready: batches.into_iter().collect(), stream: None, _memory: None }
    }

    pub fn held(rows: HeldRows) -> RowSource {
        RowSource { ready: rows.batches.into(), stream: None, _memory: rows.memory }
    }

    pub fn running(stream: BatchStream) -> RowSource {
        RowSource { ready: VecDeque::new(), stream: Some(stream), _memory: None }
    }

    /// At most `rows_max` rows; `None` at the end.
    pub async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        let batch = match self.ready.pop_front() {
            Some(batch) => batch,
            None => match &mut self.stream {
                Some(stream) => match stream.next().await? {
                    Some(batch) => batch,
                    None => {
                        self.stream = None;
                        return Ok(None);
                    }
                },
                None => return Ok(None),
            },
        };
        if batch.num_rows() > rows_max {
            self.ready.push_front(batch.slice(rows_max, batch.num_rows() - rows_max));
            return Ok(Some(batch.slice(0, rows_max)));
        }
        Ok(Some(batch))
    }

    /// Has all rows at hand, and the query done.
    pub async fn read_all(&mut self, memory: MemoryReservation) -> Result<()> {
        let mut rows = VecDeque::new();
        while let Some(batch) = self.next(usize::MAX).await? {
            memory.try_grow(bytes_of(batch.columns()))?;
            rows.push_back(batch);
        }
        (self.ready, self._memory) = (rows, Some(Arc::new(memory)));
        Ok(())
    }

    /// These rows come next.
    pub fn put_back(&mut self, batch: RecordBatch) {
        self.ready.push_front(batch);
    }

    /// Whether another row is there; reads ahead to know.
    pub async fn is_at_end(&mut self) -> Result<bool> {
        loop {
            match self.next(usize::MAX).await? {
                None => return Ok(true),
                Some(batch) if batch.num_rows() == 0 => continue,
                Some(batch) => {
                    self.ready.push_front(batch);
                    return Ok(false);
                }
            }
        }
    }
}

/// Rows of a running query. Ask for the next until `None`, then for the tag.
pub struct RowStream {
    pub columns: Columns,
    pub(crate) source: StreamSource,
    /// `SELECT`, `INSERT 0`, `SHOW`: what the tag begins with.
    pub(crate) verb: &'static str,
    pub(crate) rows: u64,
    pub(crate) rows_max: usize,
    /// What is left behind `rows_max` is for another Execute. FETCH has given what it was asked for.
    pub(crate) leaves_rest: bool,
    pub(crate) suspended: bool,
}

pub(crate) enum StreamSource {
    Own(RowSource),
    /// The session keeps the rows in this portal.
    Portal(String),
}

impl RowStream {
    pub(crate) fn new(columns: impl Into<Columns>, source: RowSource, verb: &'static str) -> RowStream {
        let source = StreamSource::Own(source);
        RowStream::of(columns.into(), source, verb, usize::MAX)
    }

    /// At most `rows_max` of them.
    pub(crate) fn of(columns: Columns, source: StreamSource, verb: &'static str, rows_max: usize) -> RowStream {
        RowStream { columns, source, verb, rows: 0, rows_max, leaves_rest: false, suspended: false }
    }

    /// All of them, kept.
    pub(crate) async fn read(mut self, session: &mut Session) -> Result<RowSource> {
        let memory = session.db.runtime().reservation("rows of a portal");
        let mut batches = Vec::new();
        while let Some(batch) = self.step(session).await? {
            memory.try_grow(bytes_of(batch.columns()))?;
            self.rows += batch.num_rows() as u64;
            batches.push(batch);
        }
        Ok(RowSource::held(HeldRows { batches, memory: Some(Arc::new(memory)) }))
    }

    /// Batches of at most 8,192 rows; one column per entry of `columns`, in `DataType::to_arrow` form.
    pub async fn next(&mut self, session: &mut Session) -> Result<Option<RecordBatch>> {
        match self.step(session).await {
            Ok(Some(batch)) => {
                self.rows += batch.num_rows() as u64;
                Ok(Some(batch))
            }
            Ok(None) => {
                Stats::add(&session.db.stats().rows_returned, self.rows);
                session.note_rows(self.rows);
                session.statement_done();
                Ok(None)
            }
            Err(error) => {
                session.note_rows(self.rows);
                session.statement_failed(&error);
                Err(error)
            }
        }
    }

    async fn step(&mut self, session: &mut Session) -> Result<Option<RecordBatch>> {
        let left = self.rows_max.saturating_sub(self.rows as usize);
        let (interrupt, deadline) = (session.interrupt.clone(), session.deadline);
        let source = match &mut self.source {
            StreamSource::Own(source) => source,
            StreamSource::Portal(name) => match session.portals.get_mut(name).and_then(|portal| portal.rows.as_mut()) {
                Some(source) => source,
                None => return Err(super::no_portal(name)),
            },
        };
        if left == 0 {
            self.suspended = self.leaves_rest && !guard(&interrupt, deadline, source.is_at_end()).await?;
            return Ok(None);
        }
        let next = guard(&interrupt, deadline, source.next(left)).await;
        if let (Err(_), StreamSource::Portal(name)) = (&next, &self.source)
            && let Some(portal) = session.portals.get_mut(name)
        {
            portal.fail();
        }
        let mut batch = next?;
        if let StreamSource::Portal(name) = &self.source
            && let Some(portal) = session.portals.get_mut(name)
        {
            portal.done |= batch.is_none();
            if let Some(cursor) = &mut portal.cursor {
                cursor.passed += batch.as_ref().map_or(0, RecordBatch::num_rows);
            }
        }
        // A cursor's rows come with their places.
        if let Some(wide) = batch.take_if(|batch| batch.num_columns() > self.columns.len()) {
            let columns: Vec<usize> = (0..self.columns.len()).collect();
            let narrow = wide.project(&columns);
            batch = Some(narrow.map_err(|error| SqlError::internal(format!("rows of a cursor: {error}")))?);
        }
        Ok(batch)
    }

    /// The command tag, once `next` has given `None`.
    pub fn tag(&self) -> String {
        match self.verb {
            "SHOW" | "EXPLAIN" => self.verb.to_string(),
            verb => format!("{verb} {}", self.rows),
        }
    }

    /// The portal's row limit was reached with rows left: PortalSuspended instead of a tag.
    pub fn suspended(&self) -> bool {
        self.suspended
    }
}

/// A COPY FROM STDIN that waits for data: feed it through [`Session::copy_data`].
pub struct CopyIn {
    /// 0 text, 1 binary, for CopyInResponse.
    pub format: i16,
    pub columns: usize,
    pub(crate) feed: CopyFeed,
}

/// Rows that COPY TO STDOUT writes before the connection's thread may serve others.
const COPY_ROWS_MAX: usize = 1024;

/// A COPY TO STDOUT: one CopyData message per row.
pub struct CopyOut {
    pub format: i16,
    pub columns: usize,
    pub(crate) rows: u64,
    pub(crate) source: RowSource,
    /// Until the last chunk.
    pub(crate) writer: Option<CopyWriter>,
}

impl CopyOut {
    pub async fn next(&mut self, session: &mut Session) -> Result<Option<Chunk>> {
        match self.step(session).await {
            Ok(Some(chunk)) => Ok(Some(chunk)),
            Ok(None) => {
                Stats::add(&session.db.stats().rows_returned, self.rows);
                session.note_rows(self.rows);
                session.statement_done();
                Ok(None)
            }
            Err(error) => {
                session.note_rows(self.rows);
                session.statement_failed(&error);
                Err(error)
            }
        }
    }

    async fn step(&mut self, session: &mut Session) -> Result<Option<Chunk>> {
        let Some(writer) = &mut self.writer else { return Ok(None) };
        match guard(&session.interrupt, session.deadline, self.source.next(COPY_ROWS_MAX)).await? {
            Some(batch) => {
                self.rows += batch.num_rows() as u64;
                Ok(Some(writer.rows(&batch)?))
            }
            None => Ok(self.writer.take().map(CopyWriter::finish)),
        }
    }

    pub fn tag(&self) -> String {
        format!("COPY {}", self.rows)
    }
}
