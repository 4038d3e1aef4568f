//! The operator that runs: reads rows sorted by partition and order, keeps them until their partition is
//! whole, and gives them back with the functions' results.
//!
//! Partitions that lie in one batch are computed together. What is kept is accounted; a partition beyond the
//! queries' memory is 53200.

use super::spec::{Argument, Call, Frame, Function, Spec};
use crate::error::{Result, SqlError};
use crate::lower::node::{Columns, Operator};
use crate::lower::stage::{Batches, Stage, Work, stream_of};
use arrow::compute::{SortOptions, concat_batches};
use arrow::row::{RowConverter, Rows as EncodedRows, SortField};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use basalt_expr::eval::vector::value_at;
use basalt_expr::window::{
    Frames, Offset, RangeKey, Rows, edge_value, nth_value, ntile, over_frames, ranking, shifted,
};
use basalt_types::batch::bytes_of;
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::Distribution;
use datafusion::physical_plan::metrics::Time;
use futures::StreamExt;
use std::collections::VecDeque;
use std::sync::Arc;

/// The operator as plans have it. A row that a condition leaves out counts for the others of its partition.
pub(super) struct WindowAgg(pub Arc<Spec>);

impl Operator for WindowAgg {
    fn name(&self) -> &'static str {
        "WindowAgg"
    }

    fn label(&self) -> String {
        format!("WindowAgg: {}", self.0.names())
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Passed { added: &self.0.added, nullable: false }
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

impl Stage for WindowAgg {
    fn keeps_order(&self) -> bool {
        false
    }

    fn distribution(&self, args: &[Arc<dyn PhysicalExpr>]) -> Distribution {
        match self.0.partitions {
            0 => Distribution::SinglePartition,
            keys => Distribution::KeyPartitioned(args[..keys].to_vec()),
        }
    }

    fn ordering(&self, args: &[Arc<dyn PhysicalExpr>]) -> Option<OrderingRequirements> {
        // As rows that leave are sorted: nulls come last.
        let ascending = SortOptions { descending: false, nulls_first: false };
        let partitions = args[..self.0.partitions].iter().map(|key| (key, ascending));
        let order = self.0.order.iter().chain(&self.0.arrival).copied();
        let order = args[self.0.partitions..].iter().zip(order);
        let keys = partitions.chain(order).map(|(key, options)| PhysicalSortExpr::new(key.clone(), options));
        LexOrdering::new(keys).map(OrderingRequirements::from)
    }

    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        let Work { input, args, schema, context, elapsed } = work;
        let worker = Worker {
            spec: self.0.clone(),
            inputs: args,
            keys: self.0.partitions + self.0.order.len(),
            below: input.schema(),
            input: Some(input),
            schema: schema.clone(),
            kept: Vec::new(),
            kept_rows: 0,
            last_keys: None,
            converters: None,
            ready: VecDeque::new(),
            rows_max: context.session_config().batch_size(),
            memory: MemoryConsumer::new("WindowAgg").register(context.memory_pool()),
            elapsed,
        };
        Ok(stream_of(worker, schema))
    }
}

/// One part of the input.
struct Worker {
    spec: Arc<Spec>,
    inputs: Vec<Arc<dyn PhysicalExpr>>,
    /// Inputs that are keys of the partition or the order.
    keys: usize,
    /// `None` at its end.
    input: Option<SendableRecordBatchStream>,
    below: SchemaRef,
    schema: SchemaRef,
    /// The beginning of a partition whose end has not come.
    kept: Vec<RecordBatch>,
    kept_rows: usize,
    /// The partition's keys in the last row met, encoded.
    last_keys: Option<Vec<u8>>,
    converters: Option<Converters>,
    /// Results on their way out.
    ready: VecDeque<RecordBatch>,
    rows_max: usize,
    memory: MemoryReservation,
    elapsed: Time,
}

/// Encoders of the partition's and the order's keys.
struct Converters {
    partition: Option<RowConverter>,
    order: Option<RowConverter>,
}

impl Converters {
    fn new(keys: &[ArrayRef], partitions: usize) -> DfResult<Converters> {
        let make = |keys: &[ArrayRef]| {
            let fields = keys.iter().map(|key| SortField::new(key.data_type().clone())).collect();
            (!keys.is_empty()).then(|| RowConverter::new(fields)).transpose()
        };
        Ok(Converters { partition: make(&keys[..partitions])?, order: make(&keys[partitions..])? })
    }
}

fn encode(converter: Option<&mut RowConverter>, keys: &[ArrayRef]) -> DfResult<Option<EncodedRows>> {
    Ok(converter.map(|converter| converter.convert_columns(keys)).transpose()?)
}

fn differs(rows: Option<&EncodedRows>, row: usize) -> bool {
    rows.is_some_and(|rows| row > 0 && rows.row(row) != rows.row(row - 1))
}

impl Batches for Worker {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                if self.ready.is_empty() {
                    self.memory.try_resize(self.kept.iter().map(|batch| bytes_of(batch.columns())).sum())?;
                }
                return Ok(Some(batch));
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next().await.transpose()? {
                Some(batch) => {
                    let timer = self.elapsed.clone();
                    let _timer = timer.timer();
                    self.take_in(batch)?;
                }
                None => {
                    self.input = None;
                    let timer = self.elapsed.clone();
                    let _timer = timer.timer();
                    let rest = std::mem::take(&mut self.kept);
                    self.compute(&rest)?;
                }
            }
        }
    }
}

impl Worker {
    /// Keeps a batch, and computes the partitions that end in it.
    fn take_in(&mut self, batch: RecordBatch) -> DfResult<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.memory.try_grow(bytes_of(batch.columns()))?;
        let begins = self.last_beginning(&batch)?;
        let Some(begins) = begins else {
            self.kept_rows += batch.num_rows();
            self.kept.push(batch);
            return Ok(());
        };
        let mut whole = std::mem::take(&mut self.kept);
        whole.push(batch.slice(0, begins));
        self.kept.push(batch.slice(begins, batch.num_rows() - begins));
        self.kept_rows = batch.num_rows() - begins;
        self.compute(&whole)
    }

    /// The last row of the batch that begins a partition; `None` if all of it belongs to the one that is open.
    fn last_beginning(&mut self, batch: &RecordBatch) -> DfResult<Option<usize>> {
        if self.spec.partitions == 0 {
            return Ok(None);
        }
        let keys = self.columns(batch, 0..self.keys)?;
        let converters = match &mut self.converters {
            Some(converters) => converters,
            empty => empty.insert(Converters::new(&keys, self.spec.partitions)?),
        };
        let rows = encode(converters.partition.as_mut(), &keys[..self.spec.partitions])?;
        let Some(rows) = rows else { return Ok(None) };
        let found = (1..batch.num_rows()).rev().find(|row| differs(Some(&rows), *row));
        let first_differs = self.last_keys.as_deref().is_some_and(|last| last != rows.row(0).as_ref());
        self.last_keys = Some(rows.row(batch.num_rows() - 1).as_ref().to_vec());
        Ok(found.or((first_differs && self.kept_rows > 0).then_some(0)))
    }

    fn columns(&self, batch: &RecordBatch, which: std::ops::Range<usize>) -> DfResult<Vec<ArrayRef>> {
        self.inputs[which].iter().map(|input| input.evaluate(batch)?.into_array(batch.num_rows())).collect()
    }

    /// Computes whole partitions and puts them into `ready`.
    fn compute(&mut self, batches: &[RecordBatch]) -> DfResult<()> {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if rows == 0 {
            return Ok(());
        }
        let batch = match batches {
            [one] => one.clone(),
            several => {
                let bytes = several.iter().map(|batch| bytes_of(batch.columns())).sum();
                self.memory.try_grow(bytes)?;
                concat_batches(&self.below, several)?
            }
        };
        let inputs = self.columns(&batch, 0..self.inputs.len())?;
        let results = self.results(&inputs, rows)?;
        self.memory.try_grow(bytes_of(&results))?;
        let columns = batch.columns().iter().cloned().chain(results).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let done = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        for start in (0..rows).step_by(self.rows_max) {
            self.ready.push_back(done.slice(start, self.rows_max.min(rows - start)));
        }
        Ok(())
    }

    fn results(&mut self, inputs: &[ArrayRef], rows: usize) -> DfResult<Vec<ArrayRef>> {
        let keys = &inputs[..self.keys];
        let converters = match &mut self.converters {
            Some(converters) => converters,
            empty => empty.insert(Converters::new(keys, self.spec.partitions)?),
        };
        let partition = encode(converters.partition.as_mut(), &keys[..self.spec.partitions])?;
        let order = encode(converters.order.as_mut(), &keys[self.spec.partitions..])?;
        let stop = self.spec.stop.clone();
        let check = move || match stop.is_set() {
            true => Err(basalt_expr::Error::new("57014", "canceling statement due to user request")),
            false => Ok(()),
        };
        let begins = |row: usize| (differs(partition.as_ref(), row), differs(order.as_ref(), row));
        let rows = Rows::new(rows, begins, &check).map_err(SqlError::from)?;
        let results = self.spec.calls.iter().map(|call| Ok(self.spec.result(call, &rows, inputs)?));
        results.collect()
    }
}

impl Spec {
    fn result(&self, call: &Call, rows: &Rows, inputs: &[ArrayRef]) -> Result<ArrayRef> {
        let column = |argument: &Argument| inputs[argument.index].clone();
        let frames = call.frame.as_ref().map(|frame| self.frames(frame, rows, inputs)).transpose()?;
        Ok(match (&call.function, frames) {
            (Function::Ranking(function), _) => ranking(rows, *function)?,
            (Function::Ntile(buckets), _) => ntile(rows, &column(buckets))?,
            (Function::Shifted { value, offset, default, lead }, _) => {
                let (offset, default) = (offset.as_ref().map(column), default.as_ref().map(column));
                shifted(rows, &column(value), offset.as_ref(), default.as_ref(), *lead)?
            }
            (Function::Edge(edge, value), Some(frames)) => edge_value(rows, &frames, &column(value), *edge)?,
            (Function::NthValue(value, nth), Some(frames)) => nth_value(rows, &frames, &column(value), &column(nth))?,
            (Function::Aggregate { call, args, filter }, Some(frames)) => {
                let args: Vec<ArrayRef> = args.iter().map(column).collect();
                let filter = filter.as_ref().map(column);
                let filter = filter.as_ref().map(|filter| filter.as_boolean());
                over_frames(rows, &frames, call, &args, filter)?
            }
            (_, None) => return Err(SqlError::internal("a window function without its frame")),
        })
    }

    fn frames(&self, frame: &Frame, rows: &Rows, inputs: &[ArrayRef]) -> Result<Frames> {
        let offset = |argument: &Argument| Offset {
            value: value_at(&argument.ty, inputs[argument.index].as_ref(), 0),
            ty: argument.ty.clone(),
        };
        let [start, end] = [&frame.offsets[0], &frame.offsets[1]].map(|argument| argument.as_ref().map(offset));
        let range = frame.range.as_ref().map(|range| RangeKey {
            ty: range.value.ty.clone(),
            values: &inputs[range.value.index],
            descending: range.descending,
            nulls_first: range.nulls_first,
            ctx: &self.eval,
        });
        Ok(Frames::new(rows, frame.spec, [start.as_ref(), end.as_ref()], range.as_ref())?)
    }
}
