//! LATERAL where no join stands for it: the right side runs once per row of the left, whose values are constants
//! in it. Its rows leave as they come; a LEFT JOIN gives nulls where there are none. Short results are remembered by
//! the left's values, as long as there is memory for them.

use super::apply::{given, outer_columns, part};
use super::node::{Columns, Node, Operator};
use super::shared::SharedOwner;
use super::stage::{Batches, Stage, Work, stream_of};
use super::turns::begin;
use super::{Lowerer, name_of};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, JoinKind, OutputColumn, Plan, Query, is_volatile};
use crate::run::{QueryRuntime, RunContext};
use ahash::AHashMap;
use arrow::compute::{concat_batches, take};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_schema::{Field, FieldRef};
use basalt_expr::eval::vector::value_at;
use basalt_expr::tree::Expr;
use basalt_types::batch::{bytes_of, own};
use basalt_types::row::put_datum;
use basalt_types::{DataType, Datum};
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

impl Lowerer<'_> {
    /// `left` joined with what `right` is for each of its rows.
    pub(super) fn loops(
        &mut self,
        left: LogicalPlan,
        right: &Plan,
        kind: JoinKind,
        condition: Option<&Expr>,
    ) -> Result<LogicalPlan> {
        if kind == JoinKind::Left {
            self.may_be_null(right);
        }
        let keeps = match kind {
            JoinKind::Inner => false,
            JoinKind::Left => true,
            JoinKind::Right | JoinKind::Full => {
                return Err(SqlError::internal("a lateral side may not be the outer one of a join"));
            }
        };
        let columns = right.columns();
        let mut plan = right.clone();
        if let Some(condition) = condition {
            plan = Plan::Filter { input: Box::new(plan), condition: condition.clone() };
        }
        let outer = outer_columns(self.query, &plan, None);
        let args = outer.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
        let remembers = !is_volatile(&plan, &self.query.subqueries);
        let outputs = columns.iter().map(|(id, ty)| OutputColumn::computed(*id, ty.clone())).collect();
        let added: Vec<FieldRef> =
            columns.iter().map(|(id, ty)| Arc::new(Field::new(name_of(*id), ty.to_arrow(), true))).collect();
        let side = Arc::new(Side {
            query: part(self.query, plan, outputs),
            outer,
            added,
            keeps,
            remembers,
            ctx: self.ctx.clone(),
            runtime: self.applier.runtime(),
        });
        columns.iter().for_each(|(id, ty)| self.define(*id, ty));
        Ok(Node::over(Arc::new(Loops { side }), args, left)?)
    }
}

/// A result of more is computed anew each time.
const KNOWN_BYTES_MAX: usize = 64 << 10;
/// What all that is remembered may take.
const ALL_KNOWN_BYTES_MAX: usize = 8 << 20;
/// Results after which nothing is remembered any more if none was asked for again.
const UNASKED_MAX: usize = 1000;
/// What an entry takes beside its values, about.
const KNOWN_ENTRY_BYTES: usize = 256;

/// What runs for each row.
struct Side {
    query: Query,
    outer: Vec<(ColId, DataType)>,
    added: Vec<FieldRef>,
    /// A row without matches stays, with nulls.
    keeps: bool,
    /// Equal values of the left have equal rows.
    remembers: bool,
    ctx: RunContext,
    runtime: Weak<QueryRuntime>,
}

struct Loops {
    side: Arc<Side>,
}

impl Operator for Loops {
    fn name(&self) -> &'static str {
        "Apply"
    }

    fn label(&self) -> String {
        if self.side.keeps { "Apply: left, once per row" } else { "Apply: once per row" }.to_string()
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Passed { added: &self.side.added, nullable: false }
    }

    fn lets_conditions_down(&self) -> bool {
        true
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

impl Stage for Loops {
    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        let schema = work.schema.clone();
        let looping = Looping {
            side: self.side.clone(),
            rows_max: work.context.session_config().batch_size(),
            known: AHashMap::new(),
            hits: 0,
            remembers: self.side.remembers,
            memory: MemoryConsumer::new("Apply").register(work.context.memory_pool()),
            work,
            left: None,
            right: None,
            given: false,
            ready: VecDeque::new(),
            rows: 0,
        };
        Ok(stream_of(looping, schema))
    }
}

/// One partition's progress.
struct Looping {
    side: Arc<Side>,
    work: Work,
    rows_max: usize,
    left: Option<Left>,
    /// The right side for the left row at hand.
    right: Option<Right>,
    /// Short results by the left's values, encoded.
    known: AHashMap<Vec<u8>, Arc<[RecordBatch]>>,
    /// How often one of them was asked for.
    hits: usize,
    remembers: bool,
    memory: MemoryReservation,
    /// That row has given a row.
    given: bool,
    /// Rows that are to leave together.
    ready: VecDeque<RecordBatch>,
    rows: usize,
}

enum Right {
    Known { batches: Arc<[RecordBatch]>, next: usize },
    Running { stream: SendableRecordBatchStream, kept: Option<Kept>, _owner: SharedOwner },
}

/// A result that may turn out to be short.
struct Kept {
    key: Vec<u8>,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

impl Right {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        match self {
            Right::Known { batches, next } => {
                *next += 1;
                Ok(batches.get(*next - 1).cloned())
            }
            Right::Running { stream, kept, .. } => {
                let mut batch = stream.next().await.transpose()?;
                if let (Some(result), Some(batch)) = (kept.as_mut(), &mut batch) {
                    let columns = batch.columns().iter().cloned().map(own).collect();
                    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    *batch = RecordBatch::try_new_with_options(batch.schema(), columns, &options)?;
                    result.bytes += bytes_of(batch.columns());
                    result.batches.push(batch.clone());
                    if result.bytes > KNOWN_BYTES_MAX {
                        *kept = None;
                    }
                }
                Ok(batch)
            }
        }
    }
}

/// A batch of the left side, and the row that comes next.
struct Left {
    batch: RecordBatch,
    outer: Vec<ArrayRef>,
    row: usize,
}

impl Batches for Looping {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        while self.rows < self.rows_max {
            if let Some(right) = &mut self.right {
                match right.next().await? {
                    Some(batch) if batch.num_rows() > 0 => {
                        self.given = true;
                        let columns = batch.columns().to_vec();
                        self.add(columns, batch.num_rows())?;
                    }
                    Some(_) => {}
                    None => {
                        self.remember();
                        if !self.given && self.side.keeps {
                            let nulls = self.side.added.iter().map(|field| new_null_array(field.data_type(), 1));
                            self.add(nulls.collect(), 1)?;
                        }
                        if let Some(left) = &mut self.left {
                            left.row += 1;
                        }
                    }
                }
                continue;
            }
            match &self.left {
                Some(left) if left.row < left.batch.num_rows() => self.open().await?,
                _ => match self.work.input.next().await.transpose()? {
                    Some(batch) => {
                        let rows = batch.num_rows();
                        let outer = self.work.args.iter().map(|arg| arg.evaluate(&batch)?.into_array(rows));
                        self.left = Some(Left { outer: outer.collect::<DfResult<_>>()?, batch, row: 0 });
                    }
                    None => break,
                },
            }
        }
        self.rows = 0;
        match self.ready.len() {
            0 => Ok(None),
            1 => Ok(self.ready.pop_front()),
            _ => {
                let batches: Vec<RecordBatch> = self.ready.drain(..).collect();
                Ok(Some(concat_batches(&self.work.schema, &batches)?))
            }
        }
    }
}

impl Looping {
    /// Starts the right side for the left row at hand.
    async fn open(&mut self) -> DfResult<()> {
        let Some(left) = &self.left else { return Ok(()) };
        let columns = self.side.outer.iter().zip(&left.outer);
        let values: Vec<Datum> = columns.map(|((_, ty), column)| value_at(ty, column.as_ref(), left.row)).collect();
        self.given = false;
        let mut key = Vec::new();
        values.iter().for_each(|value| put_datum(value, &mut key));
        if let Some(batches) = self.known.get(&key) {
            self.hits += 1;
            self.right = Some(Right::Known { batches: batches.clone(), next: 0 });
            return Ok(());
        }
        let runtime = self.side.runtime.upgrade().ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
        let (query, ctx) = given(&self.side.query, &self.side.ctx, &self.side.outer, &values);
        let owner = SharedOwner(ctx.shared.clone());
        let plan = Box::pin(runtime.prepare(&query, &ctx, false)).await?;
        let stream = begin(plan, &runtime, &ctx).await?;
        let kept = self.remembers.then(|| Kept { bytes: key.len(), key, batches: Vec::new() });
        self.right = Some(Right::Running { stream, kept, _owner: owner });
        Ok(())
    }

    /// The right side has come to its end.
    fn remember(&mut self) {
        if let Some(Right::Running { kept: Some(Kept { key, batches, bytes }), .. }) = self.right.take()
            && self.memory.size() + bytes <= ALL_KNOWN_BYTES_MAX
            && self.memory.try_grow(bytes + KNOWN_ENTRY_BYTES).is_ok()
        {
            self.known.insert(key, batches.into());
            if self.hits == 0 && self.known.len() >= UNASKED_MAX {
                self.remembers = false;
                self.known = AHashMap::new();
                self.memory.free();
            }
        }
    }

    fn add(&mut self, right: Vec<ArrayRef>, rows: usize) -> DfResult<()> {
        let Some(left) = &self.left else { return Ok(()) };
        let origin = UInt32Array::from(vec![left.row as u32; rows]);
        let mut columns = Vec::with_capacity(self.work.schema.fields().len());
        for column in left.batch.columns() {
            columns.push(own(take(column, &origin, None)?));
        }
        columns.extend(right.into_iter().map(own));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        self.ready.push_back(RecordBatch::try_new_with_options(self.work.schema.clone(), columns, &options)?);
        self.rows += rows;
        Ok(())
    }
}
