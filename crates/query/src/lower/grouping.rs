//! Grouping sets: an operator gives each row once per set, with the columns that the set lacks as nulls and
//! the set's number; what stands above groups once by all of it.
//!
//! A set of no columns has a row though there be no input. So each part of the input starts with a row for
//! every such set that no aggregate counts.

use super::node::{Columns, Node, Operator, as_column, with_computed};
use super::stage::{Stage, Work};
use super::{Lowerer, name_of};
use crate::error::Result;
use crate::plan::{AggregateCall, ColId, GroupingSets, Plan};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, SchemaRef};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;
use std::sync::Arc;

impl Lowerer<'_> {
    pub(super) fn grouping_sets(
        &mut self,
        input: &Plan,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
        sets: &GroupingSets,
    ) -> Result<LogicalPlan> {
        let mut lowered = self.plan(input)?;
        let (mut columns, mut computed) = (Vec::new(), Vec::new());
        for (_, expr) in groups {
            let lowered = self.expr(expr)?;
            columns.push(as_column(lowered, &mut computed, || self.fresh_name("g")));
        }
        lowered = with_computed(lowered, computed)?;
        // Columns of the operator's output travel under ids of their own.
        let ids: Vec<(ColId, DataType)> = groups.iter().map(|(_, expr)| (self.fresh_column(), expr.ty())).collect();
        let groupings: Vec<ColId> = sets.groupings.iter().map(|_| self.fresh_column()).collect();
        let (number, counts) = (self.fresh_column(), self.fresh_column());
        let int = |id: &ColId| Arc::new(Field::new(name_of(*id), ArrowType::Int32, true));
        let mut added: Vec<FieldRef> =
            ids.iter().map(|(id, ty)| Arc::new(Field::new(name_of(*id), ty.to_arrow(), true))).collect();
        added.extend(groupings.iter().map(int));
        added.push(int(&number));
        added.push(Arc::new(Field::new(name_of(counts), ArrowType::Boolean, true)));
        let spec = Spec {
            sets: sets.sets.clone(),
            groupings: sets.groupings.iter().map(|(_, places)| places.clone()).collect(),
            added,
        };
        let has_empty = spec.sets.iter().any(Vec::is_empty);
        let lowered = Node::over(Arc::new(GroupingOperator(Arc::new(spec))), columns, lowered)?;
        let ints = groupings.iter().chain([&number]).map(|id| (*id, DataType::Int4));
        for (id, ty) in ids.iter().cloned().chain(ints).chain([(counts, DataType::Bool)]) {
            self.define(id, &ty);
        }
        let hole = |(id, ty): (ColId, DataType)| (id, Expr::Hole { id, ty });
        let mut keys: Vec<(ColId, Expr)> = groups
            .iter()
            .zip(&ids)
            .map(|((id, _), (own, ty))| (*id, Expr::Hole { id: *own, ty: ty.clone() }))
            .collect();
        for ((id, _), own) in sets.groupings.iter().zip(&groupings) {
            keys.push((*id, Expr::Hole { id: *own, ty: DataType::Int4 }));
        }
        keys.push(hole((number, DataType::Int4)));
        // In the rows of sets that lack it even a constant is null.
        for (id, _) in groups {
            self.constants.remove(id);
        }
        let mut aggregates = aggregates.to_vec();
        for (_, call) in &mut aggregates {
            self.group_direct_arguments(call, groups, &ids);
            if has_empty {
                let counted = Expr::Hole { id: counts, ty: DataType::Bool };
                call.filter = Some(match call.filter.take() {
                    Some(filter) => Expr::And(vec![counted, filter]),
                    None => counted,
                });
            }
        }
        self.grouped(lowered, &keys, &aggregates, None)
    }

    /// Direct arguments of ordered-set aggregates see the groups, null where the set lacks them.
    fn group_direct_arguments(
        &mut self,
        call: &mut AggregateCall,
        groups: &[(ColId, Expr)],
        ids: &[(ColId, DataType)],
    ) {
        let direct = call.args.len() - call.resolved.orders.len();
        for arg in call.args[..direct].iter_mut().filter(|_| !call.resolved.orders.is_empty()) {
            let taken = std::mem::replace(arg, Expr::bool(false));
            *arg = taken.rewrite(&mut |node| match groups.iter().position(|(_, group)| *group == node) {
                Some(at) => Expr::Hole { id: ids[at].0, ty: ids[at].1.clone() },
                None => node,
            });
        }
    }

    /// An id for a column that only this lowering knows. It belongs to the subquery that is being lowered, whose plan
    /// does not name it.
    pub(super) fn fresh_column(&mut self) -> ColId {
        self.next_name += 1;
        let id = usize::MAX / 2 + self.next_name;
        if let Some(local) = self.local.last_mut() {
            local.insert(id);
        }
        id
    }
}

struct Spec {
    sets: Vec<Vec<usize>>,
    groupings: Vec<Vec<usize>>,
    /// The groups' columns, one per GROUPING call, the set's number, whether aggregates count the row.
    added: Vec<FieldRef>,
}

/// The operator as plans have it.
struct GroupingOperator(Arc<Spec>);

impl Operator for GroupingOperator {
    fn name(&self) -> &'static str {
        "GroupingSets"
    }

    fn label(&self) -> String {
        format!("GroupingSets: {}", self.0.sets.len())
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Passed { added: &self.0.added, nullable: true }
    }

    fn needs_no_input(&self) -> bool {
        true
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

impl Stage for GroupingOperator {
    fn properties(&self, input: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> DfResult<Arc<PlanProperties>> {
        let partitions = input.output_partitioning().partition_count();
        Ok(Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions),
            input.pipeline_behavior(),
            input.boundedness(),
        )))
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        let Work { input, args: groups, schema, elapsed, .. } = work;
        let (spec, out) = (self.0.clone(), schema.clone());
        let numbers = 0..spec.sets.len();
        let uncounted: Vec<_> =
            numbers.clone().filter(|set| spec.sets[*set].is_empty()).map(|set| spec.uncounted(set, &schema)).collect();
        let expanded = input.flat_map(move |batch| {
            let _timer = elapsed.timer();
            let all: Vec<DfResult<RecordBatch>> = match batch {
                Ok(batch) => numbers.clone().map(|set| spec.expanded(set, &batch, &groups, &schema)).collect(),
                Err(error) => vec![Err(error)],
            };
            futures::stream::iter(all)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(out, futures::stream::iter(uncounted).chain(expanded))))
    }
}

impl Spec {
    /// The rows as one set has them.
    fn expanded(
        &self,
        set: usize,
        batch: &RecordBatch,
        groups: &[Arc<dyn PhysicalExpr>],
        schema: &SchemaRef,
    ) -> DfResult<RecordBatch> {
        let rows = batch.num_rows();
        let mut columns = batch.columns().to_vec();
        for (at, group) in groups.iter().enumerate() {
            columns.push(match self.sets[set].contains(&at) {
                true => group.evaluate(batch)?.into_array(rows)?,
                false => new_null_array(self.added[at].data_type(), rows),
            });
        }
        columns.extend(self.about(set, rows, true));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }

    /// A row of nulls that only makes the group.
    fn uncounted(&self, set: usize, schema: &SchemaRef) -> DfResult<RecordBatch> {
        let about = self.about(set, 1, false);
        let others = schema.fields().len() - about.len();
        let nulls = schema.fields()[..others].iter().map(|field| new_null_array(field.data_type(), 1));
        Ok(RecordBatch::try_new(schema.clone(), nulls.chain(about).collect())?)
    }

    fn about(&self, set: usize, rows: usize, counts: bool) -> Vec<ArrayRef> {
        let lacks = |place: &usize| i32::from(!self.sets[set].contains(place));
        let mut out: Vec<ArrayRef> = Vec::with_capacity(self.groupings.len() + 2);
        for places in &self.groupings {
            let bits = places.iter().fold(0, |bits, place| bits << 1 | lacks(place));
            out.push(Arc::new(Int32Array::from(vec![bits; rows])));
        }
        out.push(Arc::new(Int32Array::from(vec![set as i32; rows])));
        out.push(Arc::new(BooleanArray::from(vec![counts; rows])));
        out
    }
}
