//! What the column engine is given: operators over columns that are counted, with expressions of `expr`.

use basalt_engine::ScanSpec;
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::tree::Expr;
use basalt_types::DataType;

/// An operator and what it reads. [`Expr::Column`] counts the input's columns.
#[derive(Clone, Debug)]
pub enum Plan {
    /// The columns of the spec, in its order.
    Scan {
        spec: ScanSpec,
    },
    Filter {
        input: Box<Plan>,
        conditions: Vec<Expr>,
    },
    Project {
        input: Box<Plan>,
        exprs: Vec<Expr>,
    },
    /// Keys, then calls. Without keys there is one group, even of no rows.
    Aggregate {
        input: Box<Plan>,
        groups: Vec<Expr>,
        calls: Vec<AggregateCall>,
    },
    Sort {
        input: Box<Plan>,
        keys: Vec<SortKey>,
    },
    Limit {
        input: Box<Plan>,
        offset: usize,
        limit: Option<usize>,
    },
}

#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub resolved: ResolvedAggregate,
    pub args: Vec<Expr>,
    pub filter: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct SortKey {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}

impl Plan {
    /// Types of the columns, in order.
    pub fn types(&self) -> Vec<DataType> {
        match self {
            Plan::Scan { spec } => spec.columns.iter().map(|id| spec.table.column(*id).ty.clone()).collect(),
            Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => input.types(),
            Plan::Project { exprs, .. } => exprs.iter().map(Expr::ty).collect(),
            Plan::Aggregate { groups, calls, .. } => {
                groups.iter().map(Expr::ty).chain(calls.iter().map(|call| call.resolved.ty.clone())).collect()
            }
        }
    }
}
