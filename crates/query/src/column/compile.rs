//! From the optimizer's tree to a plan of the column engine: column ids become positions.

use crate::column::facts;
use crate::optimize::columns::{ColSet, add_columns_of};
use crate::optimize::node::{JoinKind, Key, Node, Op, Side};
use crate::optimize::optimize;
use crate::optimize::reduce::is_repeatable;
use crate::plan::{AggregateCall, ColId, Plan, Query, SortKey, row_count};
use crate::run::RunContext;
use basalt_engine::ScanSpec;
use basalt_exec::plan as exec;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, DataType, TableDef};
use std::sync::Arc;

/// Aggregates whose result does not depend on the order of rows.
const UNORDERED: [&str; 25] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_count",
    "regr_slope",
    "regr_intercept",
    "regr_avgx",
    "regr_avgy",
];

/// An operator of the engine and which column of it holds what.
struct Compiled {
    plan: exec::Plan,
    columns: Vec<ColId>,
}

/// What the column engine runs for a query; `None`: the fallback does.
pub(crate) fn column_plan(query: &Query, ctx: &RunContext) -> Option<exec::Plan> {
    (query.row_locks.is_empty() && !ctx.inner && takes_in_all(&query.plan)).then_some(())?;
    let node = optimize(query, &facts::of(query, ctx))?;
    let needed = query.columns.iter().map(|column| column.id).collect();
    let compiled = Compiled::of(&node, &needed, ctx)?;
    let outputs = query.columns.iter().map(|column| placed(&hole(column.id, &column.ty), &compiled.columns));
    let exprs = outputs.collect::<Option<Vec<_>>>()?;
    // What fails for constants fails without rows, too: the fallback says how.
    query.first_fault(&ctx.eval).is_none().then_some(())?;
    Some(exec::Plan::Project { input: Box::new(compiled.plan), exprs })
}

/// Whether no row leaves before all were seen.
fn takes_in_all(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { .. } | Plan::Distinct { .. } | Plan::Sort { .. } => true,
        Plan::Project { input, .. } | Plan::Filter { input, .. } | Plan::Limit { input, .. } => takes_in_all(input),
        _ => false,
    }
}

/// What the inputs of a node have to give.
fn needed_below(node: &Node, needed: &ColSet) -> ColSet {
    let mut below = match &node.op {
        // They give nothing but what they define.
        Op::Project { .. } | Op::Aggregate { .. } => ColSet::new(),
        _ => needed.clone(),
    };
    node.exprs().into_iter().for_each(|expr| add_columns_of(expr, &mut below));
    below
}

fn hole(id: ColId, ty: &DataType) -> Expr {
    Expr::Hole { id, ty: ty.clone() }
}

impl Compiled {
    /// `needed`: the columns that somebody above reads.
    fn of(node: &Node, needed: &ColSet, ctx: &RunContext) -> Option<Compiled> {
        let below = needed_below(node, needed);
        match &node.op {
            Op::Scan { table, columns, filter } => Compiled::scan(table, columns)?.filtered(filter),
            Op::Values { .. } | Op::UnionAll { .. } => None,
            // Computed for each reference, which have to agree.
            Op::Shared { plan, columns, .. } => {
                is_repeatable(plan).then_some(())?;
                let exprs: Vec<(ColId, Expr)> =
                    columns.iter().map(|column| (column.id, hole(column.source, &column.ty))).collect();
                let sources = columns.iter().map(|column| column.source).collect();
                Compiled::of(plan, &sources, ctx)?.projected(&exprs)
            }
            Op::Filter { input, conjuncts } => Compiled::of(input, &below, ctx)?.filtered(conjuncts),
            Op::Project { input, exprs } => Compiled::of(input, &below, ctx)?.projected(exprs),
            Op::Join { left, right, kind, keys, residual, build } => {
                let (left, right) = (Compiled::of(left, &below, ctx)?, Compiled::of(right, &below, ctx)?);
                let compiled = Compiled::join(left, right, *kind, keys, residual, needed)?;
                Some(compiled.holding(*build))
            }
            Op::Aggregate { input, groups, dependent, aggregates } => {
                Compiled::of(input, &below, ctx)?.aggregated(groups, dependent, aggregates)
            }
            Op::Sort { input, keys } => {
                let Compiled { plan, columns } = Compiled::of(input, &below, ctx)?;
                let keys = keys.iter().map(|key| sort_key(key, &columns)).collect::<Option<Vec<_>>>()?;
                Some(Compiled { plan: exec::Plan::Sort { input: Box::new(plan), keys }, columns })
            }
            Op::Limit { input, limit, offset } => {
                let Compiled { plan, columns } = Compiled::of(input, &below, ctx)?;
                let count = |expr: &Option<Expr>, place| match expr {
                    Some(expr) => count(expr, place, ctx),
                    None => Some(None),
                };
                let (limit, offset) = (count(limit, row_count::LIMIT)?, count(offset, row_count::OFFSET)?);
                let plan = exec::Plan::Limit { input: Box::new(plan), offset: offset.unwrap_or(0), limit };
                Some(Compiled { plan, columns })
            }
        }
    }

    fn scan(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)]) -> Option<Compiled> {
        let plan = exec::Plan::Scan { spec: scan_of(table, columns)? };
        Some(Compiled { plan, columns: columns.iter().map(|(id, _)| *id).collect() })
    }

    fn filtered(self, conjuncts: &[Expr]) -> Option<Compiled> {
        if conjuncts.is_empty() {
            return Some(self);
        }
        let Compiled { plan, columns } = self;
        let conditions = conjuncts.iter().map(|conjunct| placed(conjunct, &columns)).collect::<Option<Vec<_>>>()?;
        Some(Compiled { plan: exec::Plan::Filter { input: Box::new(plan), conditions }, columns })
    }

    fn projected(self, exprs: &[(ColId, Expr)]) -> Option<Compiled> {
        let Compiled { plan, columns } = self;
        let values = exprs.iter().map(|(_, expr)| placed(expr, &columns)).collect::<Option<Vec<_>>>()?;
        let plan = exec::Plan::Project { input: Box::new(plan), exprs: values };
        Some(Compiled { plan, columns: exprs.iter().map(|(id, _)| *id).collect() })
    }

    fn join(
        left: Compiled,
        right: Compiled,
        kind: JoinKind,
        keys: &[Key],
        residual: &[Expr],
        needed: &ColSet,
    ) -> Option<Compiled> {
        let kind = match kind {
            JoinKind::Inner => exec::JoinKind::Inner,
            JoinKind::Left => exec::JoinKind::Left,
            JoinKind::Semi => exec::JoinKind::Semi,
            JoinKind::Anti => exec::JoinKind::Anti,
            JoinKind::NullAwareAnti => exec::JoinKind::NullAwareAnti,
            JoinKind::Single => exec::JoinKind::Single,
            JoinKind::Full | JoinKind::Mark { .. } => return None,
        };
        let pair = |key: &Key| {
            let sides = (placed(&key.left, &left.columns)?, placed(&key.right, &right.columns)?);
            (!key.null_safe && sides.0.ty() == sides.1.ty()).then_some(sides)
        };
        let keys = keys.iter().map(pair).collect::<Option<Vec<_>>>()?;
        // Of partners only what is asked for is held.
        let asked: ColSet = residual.iter().fold(needed.clone(), |mut asked, condition| {
            add_columns_of(condition, &mut asked);
            asked
        });
        let kept = right.columns.iter().enumerate().filter(|(_, id)| asked.contains(id));
        let (payload, partners): (Vec<usize>, Vec<ColId>) = kept.unzip();
        let both: Vec<ColId> = left.columns.iter().chain(&partners).copied().collect();
        let residual = residual.iter().map(|condition| placed(condition, &both)).collect::<Option<Vec<_>>>()?;
        let columns = if kind.gives_partners() { both } else { left.columns };
        let (left, right) = (Box::new(left.plan), Box::new(right.plan));
        Some(Compiled {
            plan: exec::Plan::Join { left, right, kind, keys, payload, hold_left: false, residual },
            columns,
        })
    }

    /// With the side of a join held that the optimizer would hold.
    fn holding(mut self, side: Side) -> Compiled {
        if let exec::Plan::Join { hold_left, .. } = &mut self.plan {
            *hold_left = side == Side::Left;
        }
        self
    }

    fn aggregated(
        self,
        groups: &[(ColId, Expr)],
        dependent: &[usize],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Option<Compiled> {
        let ids = groups.iter().map(|(id, _)| *id).chain(aggregates.iter().map(|(id, _)| *id)).collect();
        let (input, distinct) = match aggregates.iter().any(|(_, call)| call.distinct) {
            true => self.distinct(groups, aggregates)?,
            false => (self, None),
        };
        let Compiled { plan, columns } = input;
        // Behind a grouping by everything that matters, keys come first and then what is aggregated.
        let key = |(at, (_, group)): (usize, &(ColId, Expr))| match &distinct {
            Some(_) => Some(Expr::Column { index: at, ty: group.ty() }),
            None => placed(group, &columns),
        };
        let keys = groups.iter().enumerate().map(key).collect::<Option<Vec<_>>>()?;
        let calls = aggregates.iter().map(|(_, call)| match &distinct {
            Some(arg) => Some(exec::AggregateCall {
                resolved: call.resolved.clone(),
                args: vec![Expr::Column { index: groups.len(), ty: arg.ty() }],
                filter: None,
            }),
            None => aggregate(call, &columns),
        });
        let calls = calls.collect::<Option<Vec<_>>>()?;
        let dependent = dependent.to_vec();
        let plan = exec::Plan::Aggregate { input: Box::new(plan), groups: keys, dependent, calls };
        Some(Compiled { plan, columns: ids })
    }

    /// For aggregates of the distinct values of one expression: one row for each value of each group, and the
    /// expression.
    fn distinct(
        self,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
    ) -> Option<(Compiled, Option<Expr>)> {
        let Compiled { plan, columns } = self;
        let [(_, first), rest @ ..] = aggregates else { return None };
        let [arg] = first.args.as_slice() else { return None };
        let alike = |call: &AggregateCall| {
            call.distinct && call.filter.is_none() && call.order_by.is_empty() && call.args == first.args
        };
        (alike(first) && rest.iter().all(|(_, call)| alike(call))).then_some(())?;
        aggregates.iter().all(|(_, call)| is_unordered(call)).then_some(())?;
        let values = groups.iter().map(|(_, group)| group).chain([arg]);
        let groups = values.map(|value| placed(value, &columns)).collect::<Option<Vec<_>>>()?;
        let (dependent, calls) = (Vec::new(), Vec::new());
        let plan = exec::Plan::Aggregate { input: Box::new(plan), groups, dependent, calls };
        Some((Compiled { plan, columns: Vec::new() }, Some(arg.clone())))
    }
}

/// A scan of columns in this order; `None` if the table may not be read as it is.
pub(super) fn scan_of(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)]) -> Option<ScanSpec> {
    table.is_populated().then_some(())?;
    let columns = columns.iter().map(|(_, column)| *column).collect();
    Some(ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: false })
}

/// An expression with positions for ids; `None` if it asks for something else, or is volatile.
pub(super) fn placed(expr: &Expr, columns: &[ColId]) -> Option<Expr> {
    if expr.volatility() == Volatility::Volatile {
        return None;
    }
    let mut known = true;
    let placed = expr.clone().rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match columns.iter().position(|column| *column == id) {
            Some(index) => Expr::Column { index, ty },
            None => {
                known = false;
                Expr::Hole { id, ty }
            }
        },
        other => other,
    });
    known.then_some(placed)
}

fn is_unordered(call: &AggregateCall) -> bool {
    UNORDERED.contains(&call.resolved.aggregate.name.as_str()) && call.resolved.orders.is_empty()
}

fn aggregate(call: &AggregateCall, columns: &[ColId]) -> Option<exec::AggregateCall> {
    (!call.distinct && call.order_by.is_empty() && is_unordered(call)).then_some(())?;
    let args = call.args.iter().map(|arg| placed(arg, columns)).collect::<Option<Vec<_>>>()?;
    let filter = match &call.filter {
        Some(filter) => Some(placed(filter, columns)?),
        None => None,
    };
    Some(exec::AggregateCall { resolved: call.resolved.clone(), args, filter })
}

fn sort_key(key: &SortKey, columns: &[ColId]) -> Option<exec::SortKey> {
    let SortKey { expr, descending, nulls_first } = key;
    Some(exec::SortKey { expr: placed(expr, columns)?, descending: *descending, nulls_first: *nulls_first })
}

/// LIMIT's or OFFSET's number of rows; the inner `None` is no limit.
fn count(expr: &Expr, place: row_count::CountPlace, ctx: &RunContext) -> Option<Option<usize>> {
    let value = expr.eval_scalar(&[], &ctx.eval).ok()?;
    match row_count::row_count(&value, place).ok()? {
        Some(rows) => Some(Some(usize::try_from(rows).ok()?)),
        None => Some(None),
    }
}
