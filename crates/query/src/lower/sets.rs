//! Set-returning calls: an operator that gives one row per element, in batches, however long a set is.
//!
//! It passes its input's columns through and adds one per call. The sets of one row are advanced together;
//! those that end first are filled with nulls.

use super::node::{Columns, Node, Operator, as_column, with_computed};
use super::stage::{Batches, Stage, Work, stream_of};
use super::{Lowerer, name_of};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan};
use arrow::compute::take;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, SchemaRef};
use basalt_expr::context::EvalContext;
use basalt_expr::eval::open_set;
use basalt_expr::eval::vector::{VectorBuilder, value_at};
use basalt_expr::functions::SetRows;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::PhysicalExpr;
use futures::StreamExt;
use std::ops::Range;
use std::sync::Arc;

impl Lowerer<'_> {
    pub(super) fn project_set(
        &mut self,
        input: &Plan,
        sets: &[(ColId, Expr)],
        ordinality: Option<ColId>,
        keep_empty: bool,
    ) -> Result<LogicalPlan> {
        let passed = input.columns();
        let input = self.plan(input)?;
        if let Some(id) = ordinality.filter(|_| sets.is_empty()) {
            // A function that returns one row has the ordinality 1.
            let mut exprs = passed.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
            self.define(id, &DataType::Int8);
            exprs.push(DfExpr::Literal(ScalarValue::Int64(Some(1)), None).alias(name_of(id)));
            return Ok(LogicalPlanBuilder::from(input).project(exprs)?.build()?);
        }
        if sets.is_empty() {
            return Ok(input);
        }
        self.set_rows(input, sets, ordinality, keep_empty)
    }

    /// The input's columns and those of `sets`, a row for each row of the longest set.
    pub(super) fn set_rows(
        &mut self,
        mut input: LogicalPlan,
        sets: &[(ColId, Expr)],
        ordinality: Option<ColId>,
        keep_empty: bool,
    ) -> Result<LogicalPlan> {
        let (mut calls, mut args, mut computed) = (Vec::with_capacity(sets.len()), Vec::new(), Vec::new());
        for (_, call) in sets {
            let folded = call.clone().fold(&self.ctx.eval, true);
            let (template, own) = self.template(&folded)?;
            let from = args.len();
            for arg in own {
                // The values of subqueries are computed below, where they may become joins.
                args.push(as_column(arg, &mut computed, || self.fresh_name("a")));
            }
            calls.push(Call { template, args: from..args.len() });
        }
        input = with_computed(input, computed)?;
        let mut added: Vec<FieldRef> =
            sets.iter().map(|(id, call)| Arc::new(Field::new(name_of(*id), call.ty().to_arrow(), true))).collect();
        added.extend(ordinality.map(|id| Arc::new(Field::new(name_of(id), ArrowType::Int64, true))));
        for (id, call) in sets {
            self.define(*id, &call.ty());
        }
        if let Some(id) = ordinality {
            self.define(id, &DataType::Int8);
        }
        let ordinality = ordinality.is_some();
        let sets = Arc::new(Sets { calls, added, ordinality, keep_empty, eval: self.ctx.eval.clone() });
        Ok(Node::over(Arc::new(ProjectSet(sets)), args, input)?)
    }
}

/// One call; the columns of its tree count within `args` of the node.
#[derive(PartialEq)]
struct Call {
    template: Expr,
    args: Range<usize>,
}

struct Sets {
    calls: Vec<Call>,
    /// One field per call, and one for the ordinality.
    added: Vec<FieldRef>,
    ordinality: bool,
    /// A row whose sets are empty stays, with nulls.
    keep_empty: bool,
    eval: Arc<EvalContext>,
}

/// The operator as plans have it.
struct ProjectSet(Arc<Sets>);

impl Operator for ProjectSet {
    fn name(&self) -> &'static str {
        "ProjectSet"
    }

    fn label(&self) -> String {
        format!("ProjectSet: {}", self.0.names())
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Passed { added: &self.0.added, nullable: false }
    }

    fn lets_conditions_down(&self) -> bool {
        true
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

/// The operator that runs.
impl Stage for ProjectSet {
    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        let schema = work.schema.clone();
        let expander = Expander {
            sets: self.0.clone(),
            rows_max: work.context.session_config().batch_size(),
            work,
            current: None,
        };
        Ok(stream_of(expander, schema))
    }
}

impl Sets {
    fn names(&self) -> String {
        let names = self.calls.iter().map(|call| match &call.template {
            Expr::Call { function, .. } => function.name.as_str(),
            _ => "set",
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// One partition's progress.
struct Expander {
    sets: Arc<Sets>,
    work: Work,
    rows_max: usize,
    current: Option<Expanding>,
}

/// A batch of the input while its rows are being expanded.
struct Expanding {
    batch: RecordBatch,
    /// Operands of each call, for all rows.
    operands: Vec<Vec<(DataType, ArrayRef)>>,
    row: usize,
    /// The row's sets, where they are not yet at their ends.
    open: Option<Vec<Option<SetRows>>>,
    /// Rows that the row has given.
    given: i64,
}

impl Batches for Expander {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            if let Some(expanding) = &mut self.current {
                let timer = self.work.elapsed.timer();
                let batch = expanding.step(&self.sets, &self.work.schema, self.rows_max)?;
                timer.done();
                match batch {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.current = None,
                }
            }
            match self.work.input.next().await.transpose()? {
                Some(batch) => self.current = Some(Expanding::new(batch, &self.sets, &self.work.args)?),
                None => return Ok(None),
            }
        }
    }
}

impl Expanding {
    fn new(batch: RecordBatch, sets: &Sets, args: &[Arc<dyn PhysicalExpr>]) -> DfResult<Expanding> {
        let rows = batch.num_rows();
        let args = args.iter().map(|arg| arg.evaluate(&batch)?.into_array(rows)).collect::<DfResult<Vec<_>>>()?;
        let mut operands = Vec::with_capacity(sets.calls.len());
        for call in &sets.calls {
            let Expr::Call { args: trees, .. } = &call.template else { return Err(no_call().into()) };
            let own = &args[call.args.clone()];
            let values = trees.iter().map(|tree| Ok((tree.ty(), tree.eval(own, rows, &sets.eval)?)));
            operands.push(values.collect::<Result<Vec<_>>>()?);
        }
        Ok(Expanding { batch, operands, row: 0, open: None, given: 0 })
    }

    /// The next rows; `None` when the batch is used up.
    fn step(&mut self, sets: &Sets, schema: &SchemaRef, rows_max: usize) -> Result<Option<RecordBatch>> {
        let types = sets.calls.iter().map(|call| call.template.ty());
        let mut columns: Vec<VectorBuilder> = types.map(|ty| VectorBuilder::new(&ty, rows_max.min(1024))).collect();
        let (mut origins, mut ordinals): (Vec<u32>, Vec<Option<i64>>) = (Vec::new(), Vec::new());
        while origins.len() < rows_max && self.row < self.batch.num_rows() {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.open(sets)?,
            };
            let mut values = Vec::with_capacity(open.len());
            for set in &mut open {
                let value = set.as_mut().and_then(Iterator::next).transpose()?;
                if value.is_none() {
                    *set = None;
                }
                values.push(value);
            }
            let has_row = values.iter().any(Option::is_some);
            if has_row || (self.given == 0 && sets.keep_empty) {
                for (value, column) in values.into_iter().zip(&mut columns) {
                    column.push(&value.unwrap_or(Datum::Null))?;
                }
                origins.push(self.row as u32);
                self.given += 1;
                ordinals.push(has_row.then_some(self.given));
            }
            if has_row {
                self.open = Some(open);
            } else {
                (self.row, self.given) = (self.row + 1, 0);
            }
        }
        if origins.is_empty() {
            return Ok(None);
        }
        let rows = origins.len();
        let origins = UInt32Array::from(origins);
        let passed = self.batch.columns().iter().map(|column| take(column, &origins, None));
        let mut arrays = passed.collect::<std::result::Result<Vec<ArrayRef>, _>>().map_err(ill_formed)?;
        for column in columns {
            arrays.push(column.finish()?);
        }
        if sets.ordinality {
            arrays.push(Arc::new(Int64Array::from(ordinals)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map(Some).map_err(ill_formed)
    }

    /// The sets of the row.
    fn open(&self, sets: &Sets) -> Result<Vec<Option<SetRows>>> {
        let calls = sets.calls.iter().zip(&self.operands).map(|(call, operands)| {
            let Expr::Call { function, ty, .. } = &call.template else { return Err(no_call()) };
            let values: Vec<Datum> =
                operands.iter().map(|(ty, column)| value_at(ty, column.as_ref(), self.row)).collect();
            let types: Vec<DataType> = operands.iter().map(|(ty, _)| ty.clone()).collect();
            Ok(Some(open_set(function, &values, &types, ty, &sets.eval)?))
        });
        calls.collect()
    }
}

fn no_call() -> SqlError {
    SqlError::internal("a set is not a call")
}

fn ill_formed(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("rows of a set: {error}"))
}
