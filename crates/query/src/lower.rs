//! From the bound plan to DataFusion's operators.
//!
//! Every column travels under the unique name `c<id>`, so that nothing DataFusion does with names can
//! confuse two of them. All coercions are already in the expressions: DataFusion's own type coercion is
//! switched off ([`session`]), its optimizer (decorrelation, pushdown, join order) is used. Types whose
//! equality or order is not that of their Arrow form are grouped, joined and sorted by [`keys`].

mod aggregate;
mod apply;
mod common;
mod conditions;
mod connected;
mod copies;
mod equivalences;
mod expr;
mod fence;
mod grouping;
mod in_turn;
mod keys;
mod lateral;
mod limit;
mod limits;
mod logic;
mod node;
mod plan;
mod pool;
mod pull_up;
mod push_down;
mod recursive;
mod sample;
mod scan;
pub mod session;
mod sets;
mod shared;
mod single_rows;
mod stage;
mod stop;
mod subquery;
mod turns;
mod udf;
mod whole;
mod window;

pub(crate) use aggregate::first_row_is_safe;
pub use apply::Applier;
pub(crate) use conditions::in_order;
pub(crate) use equivalences::{BARE_ROWS, loses_order};
pub(crate) use fence::FENCE;
pub(crate) use in_turn::{IN_ORDER, in_turn};
pub(crate) use limits::settle_limits;
pub(crate) use node::NodePlanner;
pub(crate) use shared::{SharedOwner, SharedTables};
pub(crate) use stop::{GATE, stoppable};
pub(crate) use subquery::may_fail_as_join;
pub(crate) use turns::{begin, take_turns};
pub(crate) use whole::WHOLE;

use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan, Query};
use crate::run::RunContext;
use ahash::{AHashMap, AHashSet};
use arrow_schema::{Field, FieldRef};
use basalt_types::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// How a column is reached in DataFusion's plan.
#[derive(Clone)]
pub(crate) struct Reach {
    pub column: Column,
    pub ty: DataType,
}

impl Reach {
    pub fn field(&self) -> FieldRef {
        Arc::new(Field::new(self.column.name.clone(), self.ty.to_arrow(), true))
    }
}

pub(crate) fn name_of(id: ColId) -> String {
    format!("c{id}")
}

/// What a lowering may choose; every choice means the same.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lowering {
    /// Run correlated subqueries row by row.
    pub nested_loops: bool,
    /// Sum products in 38 digits though they might not fit: a first batch of
    /// [`TOO_WIDE`](basalt_expr::resolve::decimal::TOO_WIDE) asks for a lowering without.
    pub narrow: bool,
    /// Run correlated subqueries that may fail row by row: as joins they are computed for rows, too, that no outer row
    /// asks for.
    pub careful: bool,
}

/// Lowers one query for one execution: parameters and settings are constants in the result.
pub struct Lowerer<'a> {
    pub(crate) query: &'a Query,
    pub(crate) ctx: &'a RunContext,
    pub(crate) applier: Arc<Applier>,
    pub(crate) columns: AHashMap<ColId, Reach>,
    /// Columns that hold the same value in every row of the plan that is being lowered. They are no keys to sort by.
    pub(crate) constants: AHashSet<ColId>,
    /// Columns that the subquery being lowered defines, innermost last; others are outer references.
    pub(crate) local: Vec<AHashSet<ColId>>,
    /// Conditions of filters may hold EXISTS and IN; other expressions get them applied row by row.
    pub(crate) in_filter: bool,
    /// Of a filter's condition, the part where null may be taken for false: IN as a join has no null.
    pub(crate) null_is_false: bool,
    /// What is lowered next is NOT of a subquery, and one of the conditions that a row has to fulfil.
    pub(crate) is_condition: bool,
    /// Inside of a CASE, where subqueries run only for the rows that reach them.
    pub(crate) lazily: bool,
    /// Correlated subqueries are run once per outer row: always right, and slow.
    pub(crate) nested_loops: bool,
    /// See [`Lowering::careful`].
    pub(crate) careful: bool,
    pub(crate) next_name: usize,
    /// The aggregate that takes all its input before the query gives its first row: what it and those below
    /// it sum may be narrowed, for the query can start again.
    restartable: Option<*const Plan>,
    /// Inside of it.
    pub(crate) narrows: bool,
}

impl<'a> Lowerer<'a> {
    pub fn new(query: &'a Query, ctx: &'a RunContext, applier: Arc<Applier>, how: Lowering) -> Lowerer<'a> {
        let restartable = how.narrow.then(|| first_aggregate(&query.plan)).flatten();
        Lowerer {
            query,
            ctx,
            applier,
            columns: AHashMap::new(),
            constants: AHashSet::new(),
            local: Vec::new(),
            in_filter: false,
            null_is_false: false,
            is_condition: false,
            lazily: false,
            nested_loops: how.nested_loops,
            careful: how.careful,
            next_name: 0,
            restartable: restartable.map(std::ptr::from_ref),
            narrows: false,
        }
    }

    /// The whole query, with its output columns in order under the names `o0`, `o1`, ….
    pub fn lower(mut self) -> Result<LogicalPlan> {
        let query = self.query;
        let plan = self.plan(&query.plan)?;
        let mut outputs = Vec::with_capacity(self.query.columns.len());
        for (index, column) in self.query.columns.iter().enumerate() {
            outputs.push(self.column(column.id, &column.ty)?.alias(format!("o{index}")));
        }
        Ok(datafusion::logical_expr::LogicalPlanBuilder::from(plan).project(outputs)?.build()?)
    }

    pub(crate) fn fresh_name(&mut self, prefix: &str) -> String {
        self.next_name += 1;
        format!("{prefix}{}", self.next_name)
    }

    pub(crate) fn restarts_at(&self, plan: &Plan) -> bool {
        self.restartable.is_some_and(|aggregate| std::ptr::eq(aggregate, plan))
    }

    /// Makes a column reachable under its own name, without a qualifier.
    pub(crate) fn define(&mut self, id: ColId, ty: &DataType) {
        self.columns.insert(id, Reach { column: Column::new_unqualified(name_of(id)), ty: ty.clone() });
    }

    pub(crate) fn reach(&self, id: ColId) -> Result<&Reach> {
        self.columns.get(&id).ok_or_else(|| {
            SqlError::new("42803", "subquery uses ungrouped column from outer query")
                .with_detail(format!("No input of the plan defines column {id}."))
        })
    }

    pub(crate) fn column(&self, id: ColId, ty: &DataType) -> Result<datafusion::logical_expr::Expr> {
        use datafusion::logical_expr::Expr;
        let reach = self.reach(id)?;
        debug_assert!(reach.ty.to_arrow() == ty.to_arrow(), "column {id} is {:?}, wanted as {ty:?}", reach.ty);
        let is_outer = self.local.last().is_some_and(|local| !local.contains(&id));
        Ok(match is_outer {
            true => Expr::OuterReferenceColumn(reach.field(), reach.column.clone()),
            false => Expr::Column(reach.column.clone()),
        })
    }
}

/// The topmost aggregate, if nothing beside it feeds the result.
fn first_aggregate(plan: &Plan) -> Option<&Plan> {
    match (plan, plan.inputs().as_slice()) {
        (Plan::Aggregate { .. }, _) => Some(plan),
        (_, [input]) => first_aggregate(input),
        _ => None,
    }
}

/// Every column that a plan or anything below it defines.
pub(crate) fn defined(plan: &Plan, out: &mut AHashSet<ColId>) {
    out.extend(plan.columns().into_iter().map(|(id, _)| id));
    for input in plan.inputs() {
        defined(input, out);
    }
}
