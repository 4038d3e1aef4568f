//! Grouping sets: an operator gives each row once per set, with the columns that the set lacks as nulls and
//! the set's number; what stands above groups once by all of it.
//!
//! A set of no columns has a row though there be no input. So each part of the input starts with a row for
//! every such set that no aggregate counts.

use super::{Lowerer, name_of};
use crate::error::Result;
use crate::plan::{AggregateCall, ColId, GroupingSets, Plan};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr as DfExpr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
    ident,
};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::StreamExt;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
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
            columns.push(match self.expr(expr)? {
                column @ DfExpr::Column(_) => column,
                other => {
                    let name = self.fresh_name("g");
                    computed.push(other.alias(&name));
                    ident(name)
                }
            });
        }
        if !computed.is_empty() {
            let all = lowered.schema().columns().into_iter().map(DfExpr::Column).chain(computed);
            lowered = LogicalPlanBuilder::from(lowered).project(all.collect::<Vec<_>>())?.build()?;
        }
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
        let node = GroupingNode::new(Arc::new(spec), columns, lowered)?;
        let lowered = LogicalPlan::Extension(Extension { node: Arc::new(node) });
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

    /// An id for a column that only this lowering knows.
    fn fresh_column(&mut self) -> ColId {
        self.next_name += 1;
        usize::MAX / 2 + self.next_name
    }
}

struct Spec {
    sets: Vec<Vec<usize>>,
    groupings: Vec<Vec<usize>>,
    /// The groups' columns, one per GROUPING call, the set's number, whether aggregates count the row.
    added: Vec<FieldRef>,
}

/// The operator in DataFusion's logical plan.
pub(super) struct GroupingNode {
    spec: Arc<Spec>,
    groups: Vec<DfExpr>,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl GroupingNode {
    fn new(spec: Arc<Spec>, groups: Vec<DfExpr>, input: LogicalPlan) -> DfResult<GroupingNode> {
        let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
        let passed = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), nullable(field)));
        let fields = passed.chain(spec.added.iter().map(|field| (None, field.clone()))).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(GroupingNode { spec, groups, input, schema: Arc::new(schema) })
    }
}

impl PartialEq for GroupingNode {
    fn eq(&self, other: &GroupingNode) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec) && self.groups == other.groups && self.input == other.input
    }
}

impl Eq for GroupingNode {}

impl Hash for GroupingNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.spec).hash(state);
        self.groups.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for GroupingNode {
    fn partial_cmp(&self, other: &GroupingNode) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl fmt::Debug for GroupingNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupingSets: {}", self.spec.sets.len())
    }
}

impl UserDefinedLogicalNodeCore for GroupingNode {
    fn name(&self) -> &str {
        "GroupingSets"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<DfExpr> {
        self.groups.clone()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "GroupingSets: {}", self.spec.sets.len())
    }

    fn with_exprs_and_inputs(&self, groups: Vec<DfExpr>, mut inputs: Vec<LogicalPlan>) -> DfResult<GroupingNode> {
        GroupingNode::new(self.spec.clone(), groups, inputs.swap_remove(0))
    }

    fn necessary_children_exprs(&self, outputs: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![outputs.iter().copied().filter(|index| *index < width).collect()])
    }
}

/// Plans [`GroupingNode`]s.
pub(crate) struct GroupingPlanner;

#[async_trait]
impl ExtensionPlanner for GroupingPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<GroupingNode>() else { return Ok(None) };
        let schema = logical_inputs[0].schema();
        let groups = node.groups.iter().map(|group| planner.create_physical_expr(group, schema, session, context));
        let groups = groups.collect::<DfResult<Vec<_>>>()?;
        Ok(Some(Arc::new(GroupingExec::new(node.spec.clone(), groups, physical_inputs[0].clone()))))
    }
}

struct GroupingExec {
    spec: Arc<Spec>,
    groups: Vec<Arc<dyn PhysicalExpr>>,
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl GroupingExec {
    fn new(spec: Arc<Spec>, groups: Vec<Arc<dyn PhysicalExpr>>, input: Arc<dyn ExecutionPlan>) -> GroupingExec {
        let below = input.schema();
        let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
        let fields: Vec<FieldRef> = below.fields().iter().map(nullable).chain(spec.added.iter().cloned()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, below.metadata().clone()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            datafusion::physical_expr::Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        GroupingExec { spec, groups, input, schema, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for GroupingExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupingSets: {}", self.spec.sets.len())
    }
}

impl DisplayAs for GroupingExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupingSets: {}", self.spec.sets.len())
    }
}

impl ExecutionPlan for GroupingExec {
    fn name(&self) -> &'static str {
        "GroupingSets"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        for group in &self.groups {
            if f(group)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(GroupingExec::new(self.spec.clone(), self.groups.clone(), children.swap_remove(0))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (spec, groups, schema) = (self.spec.clone(), self.groups.clone(), self.schema.clone());
        let numbers = 0..spec.sets.len();
        let uncounted: Vec<_> =
            numbers.clone().filter(|set| spec.sets[*set].is_empty()).map(|set| spec.uncounted(set, &schema)).collect();
        let expanded = input.flat_map(move |batch| {
            let all: Vec<DfResult<RecordBatch>> = match batch {
                Ok(batch) => numbers.clone().map(|set| spec.expanded(set, &batch, &groups, &schema)).collect(),
                Err(error) => vec![Err(error)],
            };
            futures::stream::iter(all)
        });
        let expanded = futures::stream::iter(uncounted).chain(expanded);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), expanded)))
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
