//! What a window operator computes, over which columns of its input.

use arrow::compute::SortOptions;
use arrow_schema::FieldRef;
use basalt_exec::Stop;
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::context::EvalContext;
use basalt_expr::window::{Edge, FrameSpec, Ranking};
use basalt_types::DataType;
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
    /// The inputs after those sort rows that are peers.
    pub arrival: Vec<SortOptions>,
    pub calls: Vec<Call>,
    /// The calls' results, in their order.
    pub added: Vec<FieldRef>,
    pub eval: Arc<EvalContext>,
    pub stop: Stop,
}

impl Spec {
    pub fn names(&self) -> String {
        self.calls.iter().map(|call| call.function.name()).collect::<Vec<_>>().join(", ")
    }
}
