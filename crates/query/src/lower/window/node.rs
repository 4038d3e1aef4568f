//! The operator in DataFusion's logical plan: what is computed, over which columns of its input.

use arrow::compute::SortOptions;
use arrow_schema::FieldRef;
use basalt_exec::Stop;
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::context::EvalContext;
use basalt_expr::window::{Edge, FrameSpec, Ranking};
use basalt_types::DataType;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A column among the node's inputs.
pub(super) struct Argument {
    pub index: usize,
    pub ty: DataType,
}

pub(super) enum Function {
    Ranking(Ranking),
    Ntile(Argument),
    Shifted { value: Argument, offset: Option<Argument>, default: Option<Argument>, lead: bool },
    Edge(Edge, Argument),
    NthValue(Argument, Argument),
    Aggregate { call: ResolvedAggregate, args: Vec<Argument>, filter: Option<Argument> },
}

impl Function {
    pub fn has_frame(&self) -> bool {
        matches!(self, Function::Edge(..) | Function::NthValue(..) | Function::Aggregate { .. })
    }

    fn name(&self) -> &str {
        match self {
            Function::Ranking(Ranking::RowNumber) => "row_number",
            Function::Ranking(Ranking::Rank) => "rank",
            Function::Ranking(Ranking::DenseRank) => "dense_rank",
            Function::Ranking(Ranking::PercentRank) => "percent_rank",
            Function::Ranking(Ranking::CumeDist) => "cume_dist",
            Function::Ntile(_) => "ntile",
            Function::Shifted { lead: false, .. } => "lag",
            Function::Shifted { lead: true, .. } => "lead",
            Function::Edge(Edge::First, _) => "first_value",
            Function::Edge(Edge::Last, _) => "last_value",
            Function::NthValue(..) => "nth_value",
            Function::Aggregate { call, .. } => &call.aggregate.name,
        }
    }
}

/// The ordering column as it is, for RANGE offsets.
pub(super) struct RangeOrder {
    pub value: Argument,
    pub descending: bool,
    pub nulls_first: bool,
}

pub(super) struct Frame {
    pub spec: FrameSpec,
    /// Columns of one value.
    pub offsets: [Option<Argument>; 2],
    pub range: Option<RangeOrder>,
}

pub(super) struct Call {
    pub function: Function,
    /// Only of functions that have one.
    pub frame: Option<Frame>,
}

pub(super) struct Spec {
    /// The first inputs are the partition's keys, the next ones the order's.
    pub partitions: usize,
    pub order: Vec<SortOptions>,
    pub calls: Vec<(FieldRef, Call)>,
    pub eval: Arc<EvalContext>,
    pub stop: Stop,
}

impl Spec {
    pub fn names(&self) -> String {
        self.calls.iter().map(|(_, call)| call.function.name()).collect::<Vec<_>>().join(", ")
    }
}

pub(super) struct WindowNode {
    pub spec: Arc<Spec>,
    /// Columns of the input.
    pub inputs: Vec<DfExpr>,
    pub input: LogicalPlan,
    schema: DFSchemaRef,
}

impl WindowNode {
    pub fn new(spec: Arc<Spec>, inputs: Vec<DfExpr>, input: LogicalPlan) -> DfResult<WindowNode> {
        let passed = input.schema().iter().map(|(qualifier, field)| (qualifier.cloned(), field.clone()));
        let fields = passed.chain(spec.calls.iter().map(|(field, _)| (None, field.clone()))).collect();
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(WindowNode { spec, inputs, input, schema: Arc::new(schema) })
    }
}

impl PartialEq for WindowNode {
    fn eq(&self, other: &WindowNode) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec) && self.inputs == other.inputs && self.input == other.input
    }
}

impl Eq for WindowNode {}

impl Hash for WindowNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.spec).hash(state);
        self.inputs.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for WindowNode {
    fn partial_cmp(&self, other: &WindowNode) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl fmt::Debug for WindowNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowAgg: {}", self.spec.names())
    }
}

impl UserDefinedLogicalNodeCore for WindowNode {
    fn name(&self) -> &str {
        "WindowAgg"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<DfExpr> {
        self.inputs.clone()
    }

    /// A row that a condition leaves out counts for the others of its partition.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "WindowAgg: {}", self.spec.names())
    }

    fn with_exprs_and_inputs(&self, inputs: Vec<DfExpr>, mut below: Vec<LogicalPlan>) -> DfResult<WindowNode> {
        WindowNode::new(self.spec.clone(), inputs, below.swap_remove(0))
    }

    fn necessary_children_exprs(&self, outputs: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![outputs.iter().copied().filter(|index| *index < width).collect()])
    }
}
