//! COPY FROM: bytes → parser → writer, each its own task with bounded queues between, so that receiving,
//! parsing and encoding overlap.

use super::batch::{self, Block};
use super::row_path::RowPath;
use crate::bind::{self, ParamTypes};
use crate::copy::reader::{CopyReader, FieldColumn};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::interrupt::guard;
use crate::session::outcome::CopyIn;
use crate::syntax::{CopyStatement, parse_expr_text};
use arrow::compute::filter;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, new_null_array};
use basalt_expr::io::LogicalBuilder;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, TableDef};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Small messages are gathered to this size before they go to the parser.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks waiting for the parser.
const CHUNKS_MAX: usize = 4;

enum Chunk {
    Data(Bytes),
    /// Without it a closed channel means that the client gave up.
    End,
}

/// The sending end of a running COPY FROM.
pub(crate) struct CopyFeed {
    sender: mpsc::Sender<Chunk>,
    parser: JoinHandle<Result<()>>,
    gathered: BytesMut,
}

/// What the parser makes of a field's place in the table.
enum Source {
    /// A field of the input.
    Field(usize),
    Dropped,
    /// The column's default, once per row if it is volatile.
    Default(Expr),
}

/// Completes parsed fields to rows of the table.
struct Completer {
    path: Arc<RowPath>,
    sources: Vec<Source>,
    filter: Option<Expr>,
}

pub(crate) fn start(
    session: &mut Session,
    table: &Arc<TableDef>,
    columns: &[ColumnId],
    copy: &CopyStatement,
    sql: &Arc<str>,
) -> Result<CopyFeed> {
    let catalog = session.txn()?.catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let ctx = session.bind_context(&catalog, sql, &eval);
    let mut sources = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        let field = columns.iter().position(|id| *id == column.id);
        let default = column.default.as_deref().or_else(|| bind::domain_default(&column.ty));
        sources.push(match (field, default) {
            _ if column.dropped => Source::Dropped,
            (Some(at), _) => Source::Field(at),
            (None, _) if column.identity.is_some() => Source::Default(bind::identity_value(column, &eval)?),
            (None, Some(text)) => {
                let syntax = parse_expr_text(text)?;
                Source::Default(bind::bind_scalar(&ctx, &syntax, Some(&column.ty), &mut ParamTypes::none())?)
            }
            (None, None) => Source::Default(Expr::null(column.ty.clone())),
        });
    }
    let filter = match &copy.filter {
        Some(filter) => {
            let bound = bind::bind_row_expr(&ctx, table, filter, None, &mut ParamTypes::none())?;
            let condition = basalt_expr::resolve::build::boolean("WHERE", bound, &eval);
            Some(condition.map_err(|error| SqlError::from(error).at(bind::position::of_expr(sql, filter)))?)
        }
        None => None,
    };
    let fields = columns.iter().map(|id| {
        let column = table.column(*id);
        FieldColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            force_not_null: copy.options.force_not_null.has(&column.name),
            force_null: copy.options.force_null.has(&column.name),
        }
    });
    let reader = CopyReader::new(table.name.clone(), fields.collect(), copy.options.clone(), eval.clone());
    let path = RowPath::new(table, &bind::bind_row_rules(&ctx, table)?, &catalog, &eval);
    let blocks = session.start_batch(&path)?;
    let completer = Completer { path, sources, filter };
    let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
    let parser = session.db.runtime().handle().spawn(parse(reader, completer, chunks, blocks));
    Ok(CopyFeed { sender, parser, gathered: BytesMut::new() })
}

async fn parse(
    mut reader: CopyReader,
    completer: Completer,
    mut chunks: mpsc::Receiver<Chunk>,
    blocks: mpsc::Sender<Block>,
) -> Result<()> {
    let mut ready: Vec<Vec<ArrayRef>> = Vec::new();
    loop {
        let chunk = chunks.recv().await;
        let mut emit = |fields: Vec<ArrayRef>, rows: usize| {
            if let Some(block) = completer.complete(&fields, rows)? {
                ready.push(block);
            }
            Ok(())
        };
        let ended = match chunk {
            Some(Chunk::Data(bytes)) => {
                reader.feed(&bytes, &mut emit)?;
                false
            }
            Some(Chunk::End) => {
                reader.finish(&mut emit)?;
                send(&mut ready, &blocks).await;
                let _ = blocks.send(Block::End).await;
                return Ok(());
            }
            None => true,
        };
        if ended || !send(&mut ready, &blocks).await {
            return Ok(());
        }
    }
}

/// False once the writer is gone; its error comes with the end of the batch.
async fn send(ready: &mut Vec<Vec<ArrayRef>>, blocks: &mpsc::Sender<Block>) -> bool {
    for block in ready.drain(..) {
        if blocks.send(Block::Rows(block)).await.is_err() {
            return false;
        }
    }
    true
}

impl Completer {
    /// `None` if WHERE leaves nothing.
    fn complete(&self, fields: &[ArrayRef], rows: usize) -> Result<Option<Vec<ArrayRef>>> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.sources.len());
        for (source, column) in self.sources.iter().zip(&self.path.table.columns) {
            columns.push(match source {
                Source::Field(at) => fields[*at].clone(),
                Source::Dropped => new_null_array(&column.ty.to_arrow(), rows),
                Source::Default(expr) => self.default(expr, column, rows)?,
            });
        }
        if let Some(condition) = &self.filter {
            let kept = condition.eval(&columns, rows, &self.path.eval)?;
            let kept = kept.as_boolean();
            // A condition that is null keeps no row.
            let kept = match kept.nulls() {
                Some(_) => arrow::compute::prep_null_mask_filter(kept),
                None => kept.clone(),
            };
            if kept.true_count() == 0 {
                return Ok(None);
            }
            for column in &mut columns {
                *column = filter(column, &kept).map_err(|error| SqlError::internal(error.to_string()))?;
            }
        }
        Ok(Some(batch::stored_block(&self.path, &columns)?))
    }

    fn default(&self, expr: &Expr, column: &basalt_types::ColumnDef, rows: usize) -> Result<ArrayRef> {
        if expr.is_null_const() {
            return Ok(new_null_array(&column.ty.to_arrow(), rows));
        }
        let once = expr.is_const();
        let mut builder = LogicalBuilder::new(&column.ty, rows);
        let mut value = expr.eval_scalar(&[], &self.path.eval)?;
        for row in 0..rows {
            if row > 0 && !once {
                value = expr.eval_scalar(&[], &self.path.eval)?;
            }
            builder.push(&value)?;
        }
        Ok(builder.finish())
    }
}

impl CopyFeed {
    pub async fn push(&mut self, session: &mut Session, bytes: Bytes) -> Result<()> {
        if self.gathered.is_empty() && bytes.len() >= CHUNK_BYTES {
            return self.send(session, Chunk::Data(bytes)).await;
        }
        self.gathered.extend_from_slice(&bytes);
        if self.gathered.len() < CHUNK_BYTES {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.gathered, BytesMut::with_capacity(CHUNK_BYTES + (64 << 10)));
        self.send(session, Chunk::Data(chunk.freeze())).await
    }

    async fn send(&mut self, session: &mut Session, chunk: Chunk) -> Result<()> {
        if self.sender.send(chunk).await.is_ok() {
            return Ok(());
        }
        Err(self.why(session).await)
    }

    /// The error that ended the pipeline early.
    async fn why(&mut self, session: &mut Session) -> SqlError {
        let parsed = (&mut self.parser).await;
        let written = session.finish_batch().await;
        match (parsed, written) {
            (Ok(Err(error)), _) => error,
            (Ok(Ok(())), Err(error)) => error,
            (Err(error), _) => SqlError::internal(format!("the parser of COPY failed: {error}")),
            (Ok(Ok(())), Ok(_)) => SqlError::internal("COPY ended before its data"),
        }
    }

    /// Everything was pushed: waits until it is written. The number of rows.
    pub async fn finish(mut self, session: &mut Session) -> Result<u64> {
        let rest = self.gathered.split().freeze();
        if !rest.is_empty() {
            self.send(session, Chunk::Data(rest)).await?;
        }
        self.send(session, Chunk::End).await?;
        let parsed = (&mut self.parser).await;
        let written = session.finish_batch().await;
        parsed.map_err(|error| SqlError::internal(format!("the parser of COPY failed: {error}")))??;
        let rows = written?;
        Stats::add(&session.db.stats().rows_written, rows);
        Ok(rows)
    }
}

impl Session {
    /// Takes a CopyData message in; waits while the pipeline behind it is full.
    pub async fn copy_data(&mut self, copy: &mut CopyIn, bytes: Bytes) -> Result<()> {
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
        let result = guard(&interrupt, deadline, copy.feed.push(self, bytes)).await;
        result.inspect_err(|error| self.statement_failed(error))
    }

    /// CopyDone: finishes, and returns the tag.
    pub async fn copy_done(&mut self, copy: CopyIn) -> Result<String> {
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline);
        let finish = async {
            let rows = copy.feed.finish(self).await?;
            self.after_statement().await?;
            Ok(rows)
        };
        match guard(&interrupt, deadline, finish).await {
            Ok(rows) => {
                self.note_rows(rows);
                self.statement_done();
                Ok(format!("COPY {rows}"))
            }
            Err(error) => {
                self.statement_failed(&error);
                Err(error)
            }
        }
    }

    /// CopyFail: undoes the copy and returns the error to report (57014).
    pub async fn copy_fail(&mut self, copy: CopyIn, message: &str) -> SqlError {
        drop(copy);
        // The writer gives up because its blocks end; what it says is not news.
        let _ = self.finish_batch().await;
        let error = SqlError::new("57014", format!("COPY from stdin failed: {message}"));
        self.statement_failed(&error);
        error
    }
}
