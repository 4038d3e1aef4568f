//! Operators of our own inside DataFusion's plans: one logical node for all of them, and their planner.

use super::stage::{self, Stage};
use arrow_schema::{FieldRef, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Constraints, DFSchema, DFSchemaRef, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNode, UserDefinedLogicalNodeCore, ident,
};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Properties of an operator that passes its input's columns on, in their places, and appends its own.
///
/// What is equal and what is constant is passed on with the order: an order that was met by way of equal columns
/// would not be one otherwise.
pub(super) fn appending(input: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<PlanProperties> {
    let passed = input.equivalence_properties().clone().with_constraints(Constraints::default());
    Ok(PlanProperties::new(
        EquivalenceProperties::new(schema.clone()).extend(passed)?,
        input.output_partitioning().clone(),
        input.pipeline_behavior(),
        input.boundedness(),
    ))
}

/// The columns of an operator's output.
pub(super) enum Columns<'a> {
    /// None of an input.
    Own,
    /// The first input's in their places, and `added` behind them. Those that nobody asks for may be missing.
    Passed {
        added: &'a [FieldRef],
        /// Passed columns may become null.
        nullable: bool,
    },
}

/// What an operator is once its inputs and arguments are planned.
pub(super) trait Operator: Send + Sync {
    fn name(&self) -> &'static str;

    /// How EXPLAIN shows it.
    fn label(&self) -> String {
        self.name().to_string()
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Passed { added: &[], nullable: false }
    }

    /// Whether a condition on passed columns alone may be checked below.
    fn lets_conditions_down(&self) -> bool {
        false
    }

    /// Whether a condition on this passed column stays above all the same.
    fn holds_conditions_on(&self, _column: &str) -> bool {
        false
    }

    /// Whether no more rows are asked of its input than of it.
    fn lets_limits_down(&self) -> bool {
        false
    }

    /// Whether it may have rows though its input has none: even a condition without columns stays above.
    fn needs_no_input(&self) -> bool {
        false
    }

    /// How it runs, if it has one input whose rows pass through it.
    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        None
    }

    /// How it runs, if it is no [`Stage`].
    fn plan(&self, _inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        internal_err!("{} has no plan", self.name())
    }
}

pub(super) struct Node {
    operator: Arc<dyn Operator>,
    /// Over the first input.
    args: Vec<Expr>,
    inputs: Vec<LogicalPlan>,
    schema: DFSchemaRef,
}

impl Node {
    /// An operator with columns of its own.
    pub fn plan(operator: Arc<dyn Operator>, inputs: Vec<LogicalPlan>, schema: DFSchemaRef) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(Node { operator, args: Vec::new(), inputs, schema }) })
    }

    /// An operator that passes its input's columns. `args` are over the input.
    pub fn over(operator: Arc<dyn Operator>, args: Vec<Expr>, input: LogicalPlan) -> Result<LogicalPlan> {
        let schema = schema_over(&*operator, &input)?;
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Node { operator, args, inputs: vec![input], schema }) }))
    }

    pub fn needs_no_input(&self) -> bool {
        self.operator.needs_no_input()
    }
}

fn schema_over(operator: &dyn Operator, input: &LogicalPlan) -> Result<DFSchemaRef> {
    let Columns::Passed { added, nullable } = operator.columns() else { return Ok(input.schema().clone()) };
    let pass = |field: &FieldRef| match nullable {
        true => Arc::new(field.as_ref().clone().with_nullable(true)),
        false => field.clone(),
    };
    let passed = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), pass(field)));
    let fields = passed.chain(added.iter().map(|field| (None, field.clone()))).collect();
    Ok(Arc::new(DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?))
}

/// A column; anything else becomes one of `computed`, under this name.
pub(super) fn as_column(expr: Expr, computed: &mut Vec<Expr>, name: impl FnOnce() -> String) -> Expr {
    match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => expr,
        other => {
            let name = name();
            computed.push(other.alias(&name));
            ident(name)
        }
    }
}

/// The input with `computed` behind its columns.
pub(super) fn with_computed(input: LogicalPlan, computed: Vec<Expr>) -> Result<LogicalPlan> {
    if computed.is_empty() {
        return Ok(input);
    }
    let all = input.schema().columns().into_iter().map(Expr::Column).chain(computed);
    LogicalPlanBuilder::from(input).project(all.collect::<Vec<_>>())?.build()
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.operator, &other.operator) && self.args == other.args && self.inputs == other.inputs
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.operator).cast::<()>().hash(state);
        self.args.hash(state);
        self.inputs.hash(state);
    }
}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Node) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operator.label())
    }
}

impl UserDefinedLogicalNodeCore for Node {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.args.clone()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let fields = self.schema.fields();
        let passed = match self.operator.columns() {
            Columns::Passed { added, .. } if self.operator.lets_conditions_down() => fields.len() - added.len(),
            _ => 0,
        };
        let kept = fields.iter().enumerate();
        let kept = kept.filter(|(at, field)| *at >= passed || self.operator.holds_conditions_on(field.name()));
        kept.map(|(_, field)| field.name().clone()).collect()
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.operator.lets_limits_down()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.operator.label())
    }

    fn with_exprs_and_inputs(&self, args: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Node> {
        let schema = match (self.operator.columns(), inputs.first()) {
            (Columns::Passed { .. }, Some(input)) => schema_over(&*self.operator, input)?,
            _ => self.schema.clone(),
        };
        Ok(Node { operator: self.operator.clone(), args, inputs, schema })
    }

    fn necessary_children_exprs(&self, outputs: &[usize]) -> Option<Vec<Vec<usize>>> {
        let (Columns::Passed { .. }, [input]) = (self.operator.columns(), self.inputs.as_slice()) else { return None };
        let width = input.schema().fields().len();
        Some(vec![outputs.iter().copied().filter(|index| *index < width).collect()])
    }
}

/// Plans [`Node`]s.
pub(crate) struct NodePlanner;

#[async_trait]
impl ExtensionPlanner for NodePlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<Node>() else { return Ok(None) };
        let mut args = Vec::with_capacity(node.args.len());
        for arg in &node.args {
            args.push(planner.create_physical_expr(arg, logical_inputs[0].schema(), session, context)?);
        }
        match (node.operator.clone().stage(), physical_inputs) {
            (Some(stage), [input]) => stage::over(stage, args, input.clone()).map(Some),
            _ => node.operator.plan(physical_inputs.to_vec()).map(Some),
        }
    }
}
